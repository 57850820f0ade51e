/* SPDX-License-Identifier: Apache-2.0 */
/* failing.c: a library whose function cannot be registered: it has no run. */
#include <weft/weft.h>

static int enter(const struct weft_custom_host *host)
{
    const struct weft_custom custom = {.size = sizeof custom, .name = "hollow"};
    return host->enroll(host->context, &custom);
}

WEFT_CUSTOM_LIBRARY(enter);

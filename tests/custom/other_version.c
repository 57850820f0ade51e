/* SPDX-License-Identifier: Apache-2.0 */
/* other_version.c: a library of custom functions that was built for an interface yet to come. */
#include <weft/weft.h>

WEFT_CUSTOM_SYMBOL const struct weft_custom_library weft_custom_library;
const struct weft_custom_library weft_custom_library = {.abi = WEFT_CUSTOM_ABI + 1};

/* SPDX-License-Identifier: Apache-2.0 */
/* custom_library.c: shared libraries of custom functions.
 *
 * A library has one symbol, data, so that its version is known before anything of it runs. It is handed the functions
 * of weft that it needs, and so need not be linked with weft: the program may have weft in itself, or several of them.
 * A library that was loaded stays, since plans call its functions as long as they live. */
#include "ir/custom.h"
#include "ir/public.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct loading {
    struct weft_context *context;
    const char *path;
    const struct weft_custom_library *library; /* NULL until it is found */
    const char *why;                           /* what the library's registration ended with */
    int status;
};

static int fail(const struct loading *l, int status, const char *why, const char *detail)
{
    weft_error(l->context, status, &(struct weft_place){.file = l->path}, "%s%s%s", why, detail ? ": " : "",
               detail ? detail : "");
    return status;
}

static int load(void *arg)
{
    struct loading *const l = arg;
    void *const handle = dlopen(l->path, RTLD_NOW | RTLD_LOCAL);
    const char *const error = handle ? NULL : dlerror();
    if (!handle)
        return fail(l, WEFT_ERR_IO, "the library of custom functions cannot be loaded", error);
    const struct weft_custom_library *const library = dlsym(handle, "weft_custom_library");
    if (library && library->abi == WEFT_CUSTOM_ABI && !library->reserved && library->enter) {
        l->library = library;
        return WEFT_OK;
    }
    if (!library)
        fail(l, WEFT_ERR_UNSUPPORTED,
             "the library has no symbol weft_custom_library, which WEFT_CUSTOM_LIBRARY of weft/custom.h makes", NULL);
    else if (library->abi != WEFT_CUSTOM_ABI)
        weft_error(l->context, WEFT_ERR_UNSUPPORTED, &(struct weft_place){.file = l->path},
                   "the library was built for version %d of weft's interface for such libraries; this weft has version "
                   "%d", library->abi, WEFT_CUSTOM_ABI);
    else
        fail(l, WEFT_ERR_UNSUPPORTED, "the library's weft_custom_library is damaged, or has no function", NULL);
    dlclose(handle);
    return WEFT_ERR_UNSUPPORTED;
}

static int say_failed(void *arg)
{
    const struct loading *const l = arg;
    return fail(l, l->status, "the library did not register its functions", l->why);
}

/* The library's own function runs outside of any protected call, whose end for want of memory would leap over it. */
int weft_register_library(struct weft_context *context, const char *path)
{
    struct loading l = {.context = context, .path = path};
    if (!context || !path)
        return weft_missing(context);
    const int found = weft_protected(context, load, &l);
    if (found != WEFT_OK)
        return found;
    const struct weft_custom_host host = {.size = sizeof host, .context = context, .enroll = weft_register,
                                          .extent = weft_extent, .extent_combine = weft_extent_combine,
                                          .value_of = weft_custom_value_of};
    const int status = l.library->enter(&host);
    if (status == WEFT_OK)
        return WEFT_OK;
    char why[512];
    const char *const said = weft_last_error(context);
    l.status = status < 0 ? status : WEFT_ERR_CUSTOM;
    snprintf(why, sizeof why, "%s", said[0] ? said : status < 0 ? weft_status_text(status) : "it returned no status");
    why[strcspn(why, "\n")] = '\0';
    l.why = why;
    return weft_protected(context, say_failed, &l);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c: the outputs of a model against files. */
#include "tools/tools.h"

#include "tools/npy.h"

bool weft_tool_compare_output(const struct weft_model *model, size_t i, const struct weft_tensor *want,
                              struct weft_comparison *ret)
{
    struct weft_tensor got;
    char message[256] = "";
    if (weft_output(model->execution, i, &got) < 0)
        fprintf(stderr, "weft: output %zu: %s\n", i, weft_execution_error(model->execution));
    else if (weft_tool_compare(&got, want, weft_tool_bound(model->graph, i), ret, message))
        return true;
    else
        fprintf(stderr, "weft: output %zu: got %s\n", i, message);
    return false;
}

bool weft_tool_compare_file(const struct weft_model *model, size_t i, const char *folder, struct weft_comparison *ret)
{
    char path[4096], message[WEFT_NPY_MESSAGE];
    struct weft_tensor want;
    snprintf(path, sizeof path, "%s/output_%zu.npy", folder, i);
    if (!weft_npy_load(path, &want, message)) {
        fprintf(stderr, "weft: %s: %s\n", path, message);
        return false;
    }
    struct weft_tensor got;
    if (weft_output(model->execution, i, &got) == WEFT_OK)
        weft_npy_narrow(&want, got.dtype);
    const bool ok = weft_tool_compare_output(model, i, &want, ret);
    weft_npy_free(&want);
    return ok;
}

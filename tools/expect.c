/* SPDX-License-Identifier: Apache-2.0 */
/* expect.c: the outputs of a model against files. */
#include "tools/tools.h"

#include "ir/ir.h"
#include "runtime/runtime.h"
#include "tools/npy.h"

bool weft_tool_compare_output(const struct weft_model *model, size_t i, const struct weft_tensor *want,
                              struct weft_comparison *ret)
{
    struct weft_tensor got;
    char message[256] = "";
    if (weft_output(model->execution, i, &got) < 0)
        fprintf(stderr, "weft: output %zu: %s\n", i, weft_execution_error(model->execution));
    else if (weft_tool_compare(&got, want, weft_tool_bound(model->graph, model->execution->symbols, i), ret, message))
        return true;
    else
        fprintf(stderr, "weft: output %zu: got %s\n", i, message);
    return false;
}

bool weft_tool_load_output(const struct weft_model *model, size_t i, const char *folder, struct weft_tensor *ret)
{
    char path[4096], message[WEFT_NPY_MESSAGE];
    snprintf(path, sizeof path, "%s/output_%zu.npy", folder, i);
    const bool loaded = weft_npy_load(path, ret, message);
    if (loaded)
        weft_npy_narrow(ret, weft_type_of(model->graph, model->graph->ret[i].value)->dtype);
    else
        fprintf(stderr, "weft: %s: %s\n", path, message);
    return loaded;
}

bool weft_tool_compare_file(const struct weft_model *model, size_t i, const char *folder, struct weft_comparison *ret)
{
    struct weft_tensor want;
    if (!weft_tool_load_output(model, i, folder, &want))
        return false;
    const bool ok = weft_tool_compare_output(model, i, &want, ret);
    weft_npy_free(&want);
    return ok;
}

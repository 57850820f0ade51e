/* SPDX-License-Identifier: Apache-2.0 */
/* infer_custom.c: the type of a custom node: what the function's own rule says, or what the node states where there is
 * no rule or no function. So a text may be read by who does not have its functions. */
#include "ir/custom.h"
#include "ir/infer.h"
#include "ir/rules.h"

#include <string.h>

static struct weft_custom_type outside(const struct weft_type *type)
{
    struct weft_custom_type ret = {.dtype = type->dtype, .rank = type->rank};
    memcpy(ret.extent, type->extent, sizeof ret.extent);
    return ret;
}

/* A caller's rule may say anything. */
static bool take_type(struct weft_infer *infer, const struct weft_custom_type *said, struct weft_type *ret)
{
    bool legal = weft_dtype_name(said->dtype) && said->rank >= 0 && said->rank <= WEFT_MAX_RANK;
    for (int i = 0; legal && i < said->rank; i++)
        legal = weft_dim_exists(infer->graph->dims, said->extent[i]) && !weft_infer_below(infer, said->extent[i], 0);
    if (!legal)
        return weft_infer_fail(infer, "the function's rule gives a type that is none");
    *ret = (struct weft_type){.dtype = (uint8_t)said->dtype, .rank = (uint8_t)said->rank};
    memcpy(ret->extent, said->extent, (size_t)said->rank * sizeof *ret->extent);
    return true;
}

static bool ask(struct weft_infer *infer, const struct weft_custom *custom, struct weft_type *ret)
{
    const struct weft_attr *parameters = weft_infer_attr(infer, WEFT_ATTR_parameters);
    struct weft_custom_type *operand = weft_new(infer->graph->arena, struct weft_custom_type, infer->operands);
    char message[256] = "";
    for (unsigned i = 0; i < infer->operands; i++)
        operand[i] = outside(weft_infer_type(infer, i));
    struct weft_custom_types types = {.size = sizeof types,
                                      .graph = infer->graph,
                                      .operand = operand,
                                      .operands = infer->operands,
                                      .parameter = parameters ? parameters->reals : NULL,
                                      .parameters = parameters ? parameters->count : 0,
                                      .message = message,
                                      .message_bytes = sizeof message};
    const int status = custom->type(custom->user, &types);
    message[sizeof message - 1] = '\0';
    if (status != 0)
        return weft_infer_fail(infer, "%s refuses these operands%s%s", custom->name, message[0] ? ": " : "", message);
    return take_type(infer, &types.result, ret);
}

static bool check_operands(struct weft_infer *infer, const struct weft_custom *custom)
{
    const unsigned least = (unsigned)custom->least_operands;
    const unsigned most = custom->most_operands < 0 ? UINT32_MAX : (unsigned)custom->most_operands;
    if (infer->operands >= least && infer->operands <= most)
        return true;
    return weft_infer_fail(infer, "%s takes at %s %u operands, not %u", custom->name,
                           infer->operands < least ? "least" : "most", infer->operands < least ? least : most,
                           infer->operands);
}

bool weft_infer_custom(struct weft_infer *infer)
{
    const char *name = weft_infer_attr(infer, WEFT_ATTR_function)->word;
    if (!name || !weft_custom_is_name(name))
        return weft_infer_fail(infer, "function '%s' is no name: a letter, then letters, digits and _, up to 63",
                               name ? name : "");
    const struct weft_custom_entry *entry = weft_custom_find(infer->graph->context, name);
    const bool stated = infer->result[0].dtype != 0;
    if (entry && !check_operands(infer, &entry->custom))
        return false;
    if (!entry || !entry->custom.type)
        return stated || weft_infer_fail(infer, "the type of the result is missing, and %s '%s' has no rule for it",
                                         entry ? "function" : "the unregistered function", name);
    struct weft_type type;
    if (!ask(infer, &entry->custom, &type))
        return false;
    if (stated && !weft_type_same(&type, &infer->result[0]))
        return weft_infer_fail(infer, "%s makes %s of these operands, but the result is stated as %s", name,
                               weft_infer_type_text(infer, &type), weft_infer_type_text(infer, &infer->result[0]));
    infer->result[0] = type;
    return true;
}

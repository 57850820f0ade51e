/* SPDX-License-Identifier: Apache-2.0 */
/* infer_custom.c: the types of a custom node's results: what the function's own rule says, or what the node states
 * where there is no rule or no function. So a text may be read by who does not have its functions. */
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

/* "before 1" where there are several. */
static const char *which(struct weft_infer *infer, const char *before, unsigned result)
{
    return infer->results > 1 ? weft_arena_format(infer->graph->arena, "%s%u", before, result) : "";
}

/* A caller's rule may say anything. */
static bool take_type(struct weft_infer *infer, unsigned result, const struct weft_custom_type *said,
                      struct weft_type *ret)
{
    bool legal = weft_dtype_name(said->dtype) && said->rank >= 0 && said->rank <= WEFT_MAX_RANK;
    for (int i = 0; legal && i < said->rank; i++)
        legal = weft_dim_exists(infer->graph->dims, said->extent[i]) && !weft_infer_below(infer, said->extent[i], 0);
    if (!legal)
        return weft_infer_fail(infer, "the function's rule gives a type%s that is none",
                               which(infer, " of result ", result));
    *ret = (struct weft_type){.dtype = (uint8_t)said->dtype, .rank = (uint8_t)said->rank};
    memcpy(ret->extent, said->extent, (size_t)said->rank * sizeof *ret->extent);
    return true;
}

/* What the rule makes of all results. */
static bool ask(struct weft_infer *infer, const struct weft_custom *custom, struct weft_type *ret)
{
    const struct weft_attr *const parameters = weft_infer_attr(infer, WEFT_ATTR_parameters);
    const struct weft_attr *const values = weft_infer_attr(infer, WEFT_ATTR_with);
    struct weft_custom_type *operand = weft_new(infer->graph->arena, struct weft_custom_type, infer->operands);
    struct weft_custom_type *more = weft_new(infer->graph->arena, struct weft_custom_type, infer->results);
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
                                      .message_bytes = sizeof message,
                                      .more = more,
                                      .results = infer->results,
                                      .value = values ? values->values : NULL,
                                      .values = values ? values->count : 0};
    const int status = custom->type(custom->user, &types);
    message[sizeof message - 1] = '\0';
    if (status != 0)
        return weft_infer_fail(infer, "%s refuses these operands%s%s", custom->name, message[0] ? ": " : "", message);
    bool right = true;
    for (unsigned i = 0; i < infer->results && right; i++)
        right = take_type(infer, i, i ? &more[i - 1] : &types.result, &ret[i]);
    return right;
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

/* A type that a node states; none has dtype 0. */
static bool check_stated(struct weft_infer *infer, unsigned i)
{
    const struct weft_type *const type = &infer->result[i];
    for (int axis = 0; type->dtype && axis < type->rank; axis++)
        if (weft_infer_below(infer, type->extent[axis], 0))
            return weft_infer_fail(infer, "extent %s of axis %d%s is negative",
                                   weft_infer_dim_text(infer, type->extent[axis]), axis,
                                   which(infer, " of result ", i));
    return true;
}

static bool check_results(struct weft_infer *infer, const struct weft_custom *custom)
{
    const unsigned wanted = (unsigned)custom->results;
    return infer->results == wanted ||
           weft_infer_fail(infer, "%s has %u result%s, not %u", custom->name, wanted, wanted == 1 ? "" : "s",
                           infer->results);
}

/* Without a rule, all types have to be stated. */
static bool take_stated(struct weft_infer *infer, const char *name, bool is_registered)
{
    for (unsigned i = 0; i < infer->results; i++)
        if (!infer->result[i].dtype)
            return weft_infer_fail(infer, "the type of the result%s is missing, and %s '%s' has no rule for it",
                                   which(infer, " ", i), is_registered ? "function" : "the unregistered function",
                                   name);
    return true;
}

bool weft_infer_custom(struct weft_infer *infer)
{
    const char *name = weft_infer_attr(infer, WEFT_ATTR_function)->word;
    if (!name || !weft_custom_is_name(name))
        return weft_infer_fail(infer, "function '%s' is no name: a letter, then letters, digits and _, up to 63",
                               name ? name : "");
    const struct weft_custom_entry *entry = weft_custom_find(infer->graph->context, name);
    if (infer->results == 0 || infer->results > WEFT_CUSTOM_MOST_RESULTS)
        return weft_infer_fail(infer, "has 1 to %d results, not %u", WEFT_CUSTOM_MOST_RESULTS, infer->results);
    for (unsigned i = 0; i < infer->results; i++)
        if (!check_stated(infer, i))
            return false;
    if (entry && (!check_operands(infer, &entry->custom) || !check_results(infer, &entry->custom)))
        return false;
    if (!entry || !entry->custom.type)
        return take_stated(infer, name, entry);
    struct weft_type *const type = weft_new(infer->graph->arena, struct weft_type, infer->results);
    if (!ask(infer, &entry->custom, type))
        return false;
    for (unsigned i = 0; i < infer->results; i++) {
        if (infer->result[i].dtype && !weft_type_same(&type[i], &infer->result[i]))
            return weft_infer_fail(infer, "%s makes %s of these operands, but the result%s is stated as %s", name,
                                   weft_infer_type_text(infer, &type[i]), which(infer, " ", i),
                                   weft_infer_type_text(infer, &infer->result[i]));
        infer->result[i] = type[i];
    }
    return true;
}

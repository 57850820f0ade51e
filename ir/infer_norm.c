/* SPDX-License-Identifier: Apache-2.0 */
/* infer_norm.c: normalisations: the result is the operand's type, and scale and bias, where they are given, have the
 * shape of what they belong to. */
#include "ir/infer.h"

/* Operands from number 1 on are all `wanted`. */
static bool check_rest(struct weft_infer *infer, const struct weft_type *wanted)
{
    const struct weft_type *type = weft_infer_type(infer, 0);
    for (unsigned i = 1; i < infer->operands; i++)
        if (!weft_type_same(weft_infer_type(infer, i), wanted))
            return weft_infer_fail(infer, "operand %u is %s, but operand 0, which is %s, asks for %s", i,
                                   weft_infer_type_text(infer, weft_infer_type(infer, i)),
                                   weft_infer_type_text(infer, type), weft_infer_type_text(infer, wanted));
    infer->result[0] = *type;
    return true;
}

/* One number for each channel. */
static bool check_channels(struct weft_infer *infer)
{
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL))
        return false;
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (type->rank < 2)
        return weft_infer_fail(infer, "operand 0 is %s, but needs a batch and a channel axis",
                               weft_infer_type_text(infer, type));
    const struct weft_type wanted = {.dtype = type->dtype, .rank = 1, .extent = {type->extent[1]}};
    return check_rest(infer, &wanted);
}

bool weft_infer_batch_norm(struct weft_infer *infer) { return check_channels(infer); }

bool weft_infer_group_norm(struct weft_infer *infer)
{
    int64_t groups;
    weft_dim per_group;
    if (!weft_infer_int(infer, WEFT_ATTR_groups, 1, INT32_MAX, &groups) || !check_channels(infer))
        return false;
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (!weft_dim_divides(infer->graph->dims, type->extent[1], weft_dim_of(groups), &per_group))
        return weft_infer_fail(infer, "operand 0 is %s: the channels do not fit groups=%lld",
                               weft_infer_type_text(infer, type), (long long)groups);
    return true;
}

/* layer_norm and rms_norm, over all axes from `axis` on. */
bool weft_infer_layer_norm(struct weft_infer *infer)
{
    int axis;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL))
        return false;
    const struct weft_type *type = weft_infer_type(infer, 0);
    if (!weft_infer_axis(infer, type->rank, &axis))
        return false;
    struct weft_type wanted = {.dtype = type->dtype};
    for (int i = axis; i < type->rank; i++)
        wanted.extent[wanted.rank++] = type->extent[i];
    return check_rest(infer, &wanted);
}

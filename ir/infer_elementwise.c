/* SPDX-License-Identifier: Apache-2.0 */
/* infer_elementwise.c: ops whose result has the shape of their operands.
 *
 * Nothing broadcasts by itself: operands of elementwise ops have equal shapes, and `bcast` says what is repeated where.
 */
#include "ir/infer.h"

static bool all_same(struct weft_infer *infer, unsigned families)
{
    if (!weft_infer_family(infer, 0, families))
        return false;
    for (unsigned i = 1; i < infer->operands; i++)
        if (!weft_infer_same(infer, 0, i))
            return false;
    infer->result[0] = *weft_infer_type(infer, 0);
    return true;
}

bool weft_infer_numeric(struct weft_infer *infer) { return all_same(infer, WEFT_FAMILY_NUMERIC); }
bool weft_infer_real(struct weft_infer *infer) { return all_same(infer, WEFT_FAMILY_REAL); }
bool weft_infer_integer(struct weft_infer *infer) { return all_same(infer, WEFT_FAMILY_INTEGER); }
bool weft_infer_logic(struct weft_infer *infer) { return all_same(infer, WEFT_FAMILY_BOOL); }

bool weft_infer_any(struct weft_infer *infer)
{
    infer->result[0] = *weft_infer_type(infer, 0); /* elements only move: types for storage are welcome */
    return true;
}

bool weft_infer_test(struct weft_infer *infer)
{
    if (!all_same(infer, WEFT_FAMILY_REAL))
        return false;
    infer->result[0].dtype = WEFT_BOOL;
    int64_t flag;
    return infer->op != WEFT_OP_is_inf || (weft_infer_int(infer, WEFT_ATTR_negative, 0, 1, &flag) &&
                                           weft_infer_int(infer, WEFT_ATTR_positive, 0, 1, &flag));
}

bool weft_infer_compare(struct weft_infer *infer)
{
    const bool equality = infer->op == WEFT_OP_eq || infer->op == WEFT_OP_ne;
    if (!all_same(infer, equality ? WEFT_FAMILY_ALL : WEFT_FAMILY_NUMERIC))
        return false;
    infer->result[0].dtype = WEFT_BOOL;
    return true;
}

static bool same_extents(const struct weft_type *a, const struct weft_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int axis = 0; axis < a->rank; axis++)
        if (!weft_dim_same(a->extent[axis], b->extent[axis]))
            return false;
    return true;
}

bool weft_infer_select(struct weft_infer *infer)
{
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_BOOL) || !weft_infer_family(infer, 1, WEFT_FAMILY_ALL) ||
        !weft_infer_same(infer, 1, 2))
        return false;
    const struct weft_type *condition = weft_infer_type(infer, 0), *chosen = weft_infer_type(infer, 1);
    if (!same_extents(condition, chosen))
        return weft_infer_fail(infer, "operand 0 is %s, but operand 1 is %s: the shapes differ",
                               weft_infer_type_text(infer, condition), weft_infer_type_text(infer, chosen));
    infer->result[0] = *chosen;
    return true;
}

bool weft_infer_cast(struct weft_infer *infer)
{
    int64_t saturate;
    const struct weft_type *from = weft_infer_type(infer, 0);
    if (!same_extents(from, &infer->result[0]))
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s: a cast keeps the shape",
                               weft_infer_type_text(infer, from), weft_infer_type_text(infer, &infer->result[0]));
    return weft_infer_int(infer, WEFT_ATTR_saturate, 0, 1, &saturate);
}

bool weft_infer_bitcast(struct weft_infer *infer)
{
    const struct weft_type *from = weft_infer_type(infer, 0), *to = &infer->result[0];
    if (!same_extents(from, to) || weft_dtype_bits(from->dtype) != weft_dtype_bits(to->dtype))
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s: bits keep the shape and the width",
                               weft_infer_type_text(infer, from), weft_infer_type_text(infer, to));
    return true;
}

/* --- normalisation ------------------------------------------------------------------------------------------ */

bool weft_infer_softmax(struct weft_infer *infer)
{
    int axis;
    if (!all_same(infer, WEFT_FAMILY_REAL) || !weft_infer_axis(infer, infer->result[0].rank, &axis))
        return false;
    return true;
}

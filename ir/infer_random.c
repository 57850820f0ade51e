/* SPDX-License-Identifier: Apache-2.0 */
/* infer_random.c: types of random numbers. */
#include "ir/infer.h"

/* A seed of 62 bits, a stream of 32, and in operand `step` perhaps the number of the step. */
static bool check_source(struct weft_infer *infer, unsigned step)
{
    int64_t unused;
    if (!weft_infer_int(infer, WEFT_ATTR_seed, 0, INT64_MAX / 4, &unused) ||
        !weft_infer_int(infer, WEFT_ATTR_stream, 0, UINT32_MAX, &unused))
        return false;
    const struct weft_type wanted = {.dtype = WEFT_I64};
    if (infer->operands <= step || weft_type_same(weft_infer_type(infer, step), &wanted))
        return true;
    return weft_infer_fail(infer, "operand %u is %s, but the number of a step is an i64[]", step,
                           weft_infer_type_text(infer, weft_infer_type(infer, step)));
}

bool weft_infer_random(struct weft_infer *infer)
{
    const int dtype = infer->result[0].dtype;
    if (!weft_dtype_is_float(dtype) || weft_dtype_is_storage_only(dtype))
        return weft_infer_fail(infer, "the result is %s, but random numbers are floats",
                               weft_infer_type_text(infer, &infer->result[0]));
    return check_source(infer, 0);
}

bool weft_infer_bernoulli(struct weft_infer *infer)
{
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !check_source(infer, 1))
        return false;
    infer->result[0] = *weft_infer_type(infer, 0);
    infer->result[0].dtype = WEFT_BOOL;
    return true;
}

bool weft_infer_multinomial(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    const weft_dim samples = weft_infer_dim(infer, WEFT_ATTR_samples);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !check_source(infer, 1))
        return false;
    if (x->rank == 0)
        return weft_infer_fail(infer, "operand 0 is %s, but needs an axis of classes", weft_infer_type_text(infer, x));
    if (weft_infer_below(infer, samples, 0))
        return weft_infer_fail(infer, "attribute samples is %s, but must not be negative",
                               weft_infer_dim_text(infer, samples));
    infer->result[0] = *x;
    infer->result[0].dtype = WEFT_I64;
    infer->result[0].extent[x->rank - 1] = samples;
    return true;
}

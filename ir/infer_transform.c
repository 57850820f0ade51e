/* SPDX-License-Identifier: Apache-2.0 */
/* infer_transform.c: Fourier transforms, determinants, and quantised types. */
#include "ir/infer.h"

/* --- dft, det ---------------------------------------------------------------------------------------------- */

bool weft_infer_dft(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    const struct weft_type *x = weft_infer_type(infer, 0);
    const weft_dim one = weft_dim_of(1), two = weft_dim_of(2), length = weft_infer_dim(infer, WEFT_ATTR_length);
    int64_t inverse, onesided;
    int axis;
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !weft_infer_int(infer, WEFT_ATTR_inverse, 0, 1, &inverse) ||
        !weft_infer_int(infer, WEFT_ATTR_onesided, 0, 1, &onesided))
        return false;
    if (x->rank < 2 || !(weft_dim_is(x->extent[x->rank - 1], 1) || weft_dim_is(x->extent[x->rank - 1], 2)))
        return weft_infer_fail(infer, "operand 0 is %s, but its last axis must hold real and imaginary parts",
                               weft_infer_type_text(infer, x));
    if (onesided && weft_dim_is(x->extent[x->rank - 1], inverse ? 1 : 2))
        return weft_infer_fail(infer, "operand 0 is %s, but only a real sequence has a spectrum that is given by half",
                               weft_infer_type_text(infer, x));
    if (!weft_infer_axis(infer, x->rank - 1, &axis))
        return false;
    if (weft_infer_below(infer, length, 1))
        return weft_infer_fail(infer, "attribute length is %s, but a transform has at least one point",
                               weft_infer_dim_text(infer, length));
    struct weft_type result = *x;
    result.extent[axis] = onesided && !inverse ? weft_dim_add(dims, weft_dim_div(dims, length, two), one) : length;
    result.extent[x->rank - 1] = onesided && inverse ? one : two;
    infer->result[0] = result;
    return true;
}

bool weft_infer_det(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL))
        return false;
    if (x->rank < 2 || !weft_dim_same(x->extent[x->rank - 1], x->extent[x->rank - 2]))
        return weft_infer_fail(infer, "operand 0 is %s, but must hold square matrices", weft_infer_type_text(infer, x));
    infer->result[0] = *x;
    infer->result[0].rank = (uint8_t)(x->rank - 2);
    return true;
}

/* --- quantised types --------------------------------------------------------------------------------------- */

static bool is_quantised(int dtype)
{
    const bool narrow = weft_dtype_is_int(dtype) && weft_dtype_bits(dtype) <= 16;
    return narrow || dtype == WEFT_F8E4M3 || dtype == WEFT_F8E5M2;
}

static bool same_shapes(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    for (unsigned operand = 1; operand < infer->operands; operand++) {
        struct weft_type wanted = *x;
        wanted.dtype = weft_infer_type(infer, operand)->dtype;
        if (!weft_type_same(weft_infer_type(infer, operand), &wanted))
            return weft_infer_fail(infer, "operand 0 is %s, but operand %u is %s: the shapes differ",
                                   weft_infer_type_text(infer, x), operand,
                                   weft_infer_type_text(infer, weft_infer_type(infer, operand)));
    }
    return true;
}

static bool zero_has(struct weft_infer *infer, int dtype)
{
    return infer->operands < 3 || weft_infer_type(infer, 2)->dtype == dtype ||
           weft_infer_fail(infer, "operand 2 is %s, but the quantised type is %s",
                           weft_infer_type_text(infer, weft_infer_type(infer, 2)), weft_dtype_name(dtype));
}

bool weft_infer_quantize(struct weft_infer *infer)
{
    struct weft_type wanted = *weft_infer_type(infer, 0);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL) || !weft_infer_same_dtype(infer, 0, 1) || !same_shapes(infer))
        return false;
    wanted.dtype = infer->result[0].dtype;
    if (!weft_type_same(&wanted, &infer->result[0]))
        return weft_infer_fail(infer, "operand 0 is %s, but the result is %s: the shapes differ",
                               weft_infer_type_text(infer, weft_infer_type(infer, 0)),
                               weft_infer_type_text(infer, &infer->result[0]));
    if (!is_quantised(wanted.dtype))
        return weft_infer_fail(infer, "%s is no quantised type: those are integers of at most 16 bits and f8",
                               weft_dtype_name(wanted.dtype));
    return zero_has(infer, wanted.dtype);
}

bool weft_infer_dequantize(struct weft_infer *infer)
{
    const struct weft_type *x = weft_infer_type(infer, 0);
    if (!weft_infer_family(infer, 1, WEFT_FAMILY_REAL) || !same_shapes(infer))
        return false;
    if (!is_quantised(x->dtype) && x->dtype != WEFT_I32)
        return weft_infer_fail(infer, "operand 0 is %s, but must be an integer of at most 32 bits or f8",
                               weft_infer_type_text(infer, x));
    infer->result[0] = *x;
    infer->result[0].dtype = weft_infer_type(infer, 1)->dtype;
    return zero_has(infer, x->dtype);
}

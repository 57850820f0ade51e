/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.c: real numbers as steps of a scale, and back.
 *
 * The quotient x / scale is rounded to f32 (f64 for f64) before it is rounded to an integer, as every runtime that
 * models were trained with does it: which side of a tie it falls on is a part of the definition. */
#include "eval/rule.h"

#include <math.h>

/* The ends of a quantised type. */
static void range_of(int dtype, double *ret_low, double *ret_high)
{
    const int bits = (int)weft_dtype_bits(dtype);
    if (dtype == WEFT_F8E4M3 || dtype == WEFT_F8E5M2) {
        *ret_high = dtype == WEFT_F8E4M3 ? 448 : 57344;
        *ret_low = -*ret_high;
    } else {
        *ret_low = weft_dtype_is_signed(dtype) ? -ldexp(1, bits - 1) : 0;
        *ret_high = *ret_low + ldexp(1, bits) - 1;
    }
}

static double real_of(const struct weft_tensor *tensor, union weft_number number)
{
    return weft_dtype_is_float(tensor->dtype) ? number.real : (double)number.integer;
}

/* Elements of up to three operands, in strips, through `apply`. */
static void each(struct weft_eval *eval,
                 void (*apply)(const struct weft_eval *, int64_t, union weft_number (*)[WEFT_EVAL_STRIP]))
{
    const int operands = weft_node_of(eval->graph, eval->node)->operands;
    const struct weft_tensor *const tensor[] = {&eval->out[0], &eval->in[0], &eval->in[1],
                                                &eval->in[operands == 3 ? 2 : 1]};
    struct weft_walk walk;
    for (weft_walk_open(&walk, 1 + operands, tensor); !walk.done; weft_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i += WEFT_EVAL_STRIP) {
            union weft_number x[3][WEFT_EVAL_STRIP] = {0};
            const int64_t n = walk.run - i < WEFT_EVAL_STRIP ? walk.run - i : WEFT_EVAL_STRIP;
            for (int t = 0; t < operands; t++)
                weft_eval_load(tensor[t + 1], walk.place[t + 1] + i * walk.step[t + 1], walk.step[t + 1], n, x[t]);
            apply(eval, n, x);
            weft_eval_store(tensor[0], walk.place[0] + i * walk.step[0], walk.step[0], n, x[0]);
        }
}

static void quantize(const struct weft_eval *eval, int64_t n, union weft_number (*x)[WEFT_EVAL_STRIP])
{
    const int dtype = eval->out[0].dtype;
    const bool real = weft_dtype_is_float(dtype), wide = eval->in[0].dtype == WEFT_F64;
    const bool has_zero = weft_node_of(eval->graph, eval->node)->operands == 3;
    double low, high;
    range_of(dtype, &low, &high);
    for (int64_t i = 0; i < n; i++) {
        const double exact = x[0][i].real / x[1][i].real, quotient = wide ? exact : (double)(float)exact;
        const double whole = real ? quotient : nearbyint(quotient);
        const double moved = has_zero ? whole + real_of(&eval->in[2], x[2][i]) : whole; /* -0 + 0 is another zero */
        const double kept = moved < low ? low : moved > high ? high : moved;
        if (real)
            x[0][i].real = kept;
        else
            x[0][i].integer = isnan(kept) ? 0 : (int64_t)kept;
    }
}

static void dequantize(const struct weft_eval *eval, int64_t n, union weft_number (*x)[WEFT_EVAL_STRIP])
{
    const struct weft_tensor *in = &eval->in[0];
    const bool real = weft_dtype_is_float(in->dtype), has_zero = weft_node_of(eval->graph, eval->node)->operands == 3;
    for (int64_t i = 0; i < n; i++) {
        const double difference = real ? x[0][i].real - (has_zero ? x[2][i].real : 0)
                                       : (double)(x[0][i].integer - (has_zero ? x[2][i].integer : 0));
        x[0][i].real = difference * x[1][i].real;
    }
}

void weft_eval_quantize(struct weft_eval *eval) { each(eval, quantize); }
void weft_eval_dequantize(struct weft_eval *eval) { each(eval, dequantize); }

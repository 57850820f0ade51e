/* SPDX-License-Identifier: Apache-2.0 */
/* eval_pool.c: maxima and means of windows.
 *
 * Padding never wins a maximum: a window without data gives the least value of the type. A mean divides by the taps
 * that fall upon data; with count_pad also by those upon stated padding, but not by those that rounding up put behind
 * it. */
#include "ir/eval.h"

#include <math.h>

/* Up to three spatial axes, with leading ones of extent 1. */
struct pool {
    bool mean, count_pad;
    int dtype;
    int64_t in[3], out[3], taps[3], stride[3], dilation[3], before[3], after[3];
};

static struct pool read_pool(const struct weft_eval *eval)
{
    const struct weft_tensor *x = &eval->in[0], *out = &eval->out[0];
    struct pool p = {.mean = weft_eval_op(eval) == WEFT_OP_mean_pool, .dtype = x->dtype};
    p.count_pad = p.mean && weft_eval_int(eval, WEFT_ATTR_count_pad);
    const int spatial = x->rank - 2, missing = 3 - spatial;
    for (int i = 0; i < 3; i++) {
        const bool given = i >= missing;
        const unsigned at = given ? (unsigned)(i - missing) : 0;
        p.in[i] = given ? x->extent[2 + at] : 1;
        p.out[i] = given ? out->extent[2 + at] : 1;
        p.taps[i] = given ? weft_eval_at(eval, WEFT_ATTR_kernel, at) : 1;
        p.stride[i] = given ? weft_eval_at(eval, WEFT_ATTR_stride, at) : 1;
        p.dilation[i] = given ? weft_eval_at(eval, WEFT_ATTR_dilation, at) : 1;
        p.before[i] = given ? weft_eval_at(eval, WEFT_ATTR_pad, at) : 0;
        p.after[i] = given ? weft_eval_at(eval, WEFT_ATTR_pad, (unsigned)spatial + at) : 0;
    }
    return p;
}

/* Taps [first, end) of window o along an axis whose place lies in [low, high). */
static void taps_within(const struct pool *p, int axis, int64_t o, int64_t low, int64_t high, int64_t *ret_first,
                        int64_t *ret_end)
{
    const int64_t start = o * p->stride[axis] - p->before[axis], d = p->dilation[axis];
    const int64_t first = start < low ? (low - start + d - 1) / d : 0;
    const int64_t end = start < high ? (high - 1 - start) / d + 1 : 0;
    *ret_end = end < p->taps[axis] ? end : p->taps[axis];
    *ret_first = first < *ret_end ? first : *ret_end;
}

static union weft_number least_of(int dtype)
{
    if (weft_dtype_is_float(dtype))
        return (union weft_number){.real = -INFINITY};
    if (weft_dtype_is_signed(dtype))
        return (union weft_number){.integer = INT64_MIN >> (64 - weft_dtype_bits(dtype))};
    return (union weft_number){.bits = 0};
}

static union weft_number larger(int dtype, union weft_number a, union weft_number b)
{
    if (weft_dtype_is_float(dtype))
        return isnan(a.real) || a.real > b.real ? a : b;
    const bool less = dtype == WEFT_U64 ? a.bits < b.bits : a.integer < b.integer;
    return less ? b : a;
}

static union weft_number pool_window(const struct pool *p, const union weft_number *plane, const int64_t *o)
{
    int64_t first[3], end[3], start[3], divisor = 1;
    for (int axis = 0; axis < 3; axis++) {
        int64_t counted_first, counted_end;
        taps_within(p, axis, o[axis], 0, p->in[axis], &first[axis], &end[axis]);
        taps_within(p, axis, o[axis], p->count_pad ? -p->before[axis] : 0,
                    p->in[axis] + (p->count_pad ? p->after[axis] : 0), &counted_first, &counted_end);
        divisor *= counted_end - counted_first;
        start[axis] = o[axis] * p->stride[axis] - p->before[axis];
    }
    union weft_number best = p->mean ? (union weft_number){.real = 0} : least_of(p->dtype);
    for (int64_t z = first[0]; z < end[0]; z++)
        for (int64_t y = first[1]; y < end[1]; y++)
            for (int64_t x = first[2]; x < end[2]; x++) {
                const int64_t row = (start[0] + z * p->dilation[0]) * p->in[1] + start[1] + y * p->dilation[1];
                const union weft_number tap = plane[row * p->in[2] + start[2] + x * p->dilation[2]];
                if (p->mean)
                    best.real += tap.real;
                else
                    best = larger(p->dtype, best, tap);
            }
    if (p->mean)
        best.real /= (double)divisor;
    return best;
}

void weft_eval_pool(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const struct pool p = read_pool(eval);
    const int64_t results = weft_tensor_count(out), plane = p.in[0] * p.in[1] * p.in[2];
    union weft_number *x = weft_eval_numbers(eval, in);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result), *at = result;
    if (x && result) {
        const int64_t planes = results > 0 ? in->extent[0] * in->extent[1] : 0;
        for (int64_t i = 0; i < planes; i++)
            for (int64_t z = 0; z < p.out[0]; z++)
                for (int64_t y = 0; y < p.out[1]; y++)
                    for (int64_t o = 0; o < p.out[2]; o++)
                        *at++ = pool_window(&p, x + i * plane, (const int64_t[]){z, y, o});
        weft_eval_store_all(out, result);
    }
    weft_eval_drop_numbers(eval, x, weft_tensor_count(in));
    weft_eval_drop_numbers(eval, result, results);
}

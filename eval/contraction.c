/* SPDX-License-Identifier: Apache-2.0 */
/* contraction.c: matrix products and convolutions, in double or wrapping 64-bit integers, rounded once at the end.
 *
 * Both are sums of scaled rows: a scalar of one operand times a row of the other is added to a row of results. That
 * keeps the innermost loop over neighbours, with all index arithmetic outside, and adds the terms of each result in one
 * fixed order: rising k, or channel by channel and tap by tap. */
#include "eval/rule.h"

#include <math.h>

/* sum[i] += scale · row[i · step] */
static void add_scaled(bool real, int64_t n, union weft_number *sum, union weft_number scale,
                       const union weft_number *row, int64_t step)
{
    if (real && step == 1)
        for (int64_t i = 0; i < n; i++)
            sum[i].real += scale.real * row[i].real;
    else if (real)
        for (int64_t i = 0; i < n; i++)
            sum[i].real += scale.real * row[i * step].real;
    else
        for (int64_t i = 0; i < n; i++)
            sum[i].bits += scale.bits * row[i * step].bits;
}

/* --- matmul ------------------------------------------------------------------------------------------------ */

static struct weft_tensor swap_last(const struct weft_tensor *tensor, bool swap)
{
    struct weft_tensor result = *tensor;
    if (swap) {
        const int last = tensor->rank - 1;
        result.extent[last] = tensor->extent[last - 1];
        result.extent[last - 1] = tensor->extent[last];
        result.stride[last] = tensor->stride[last - 1];
        result.stride[last - 1] = tensor->stride[last];
    }
    return result;
}

void weft_eval_matmul(struct weft_eval *eval)
{
    const struct weft_tensor a = swap_last(&eval->in[0], weft_eval_int(eval, WEFT_ATTR_trans_a) != 0);
    const struct weft_tensor b = swap_last(&eval->in[1], weft_eval_int(eval, WEFT_ATTR_trans_b) != 0);
    const struct weft_tensor *out = &eval->out[0];
    const bool real = weft_dtype_is_float(out->dtype);
    const int64_t m = a.extent[a.rank - 2], k = a.extent[a.rank - 1], n = b.extent[b.rank - 1];
    const int64_t results = weft_tensor_count(out);
    union weft_number *left = weft_eval_numbers(eval, &a), *right = weft_eval_numbers(eval, &b);
    union weft_number *sum = weft_eval_scratch(eval, results, sizeof *sum);
    if (left && right && sum) {
        for (int64_t i = 0; i < results; i++)
            sum[i].bits = 0; /* also the double 0 */
        const int64_t rows = n > 0 ? results / n : 0;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < k; i++)
                add_scaled(real, n, sum + row * n, left[row * k + i], right + (row / m * k + i) * n, 1);
        weft_eval_store_all(out, sum);
    }
    weft_eval_drop_numbers(eval, left, weft_tensor_count(&a));
    weft_eval_drop_numbers(eval, right, weft_tensor_count(&b));
    weft_eval_drop_numbers(eval, sum, results);
}

/* --- conv -------------------------------------------------------------------------------------------------- */

/* Up to three spatial axes, with leading ones of extent 1. */
struct convolution {
    bool real;
    int64_t images, channels, results,
        per_group; /* results: channels of the result; per_group: channels that one reads */
    int64_t in[3], out[3], taps[3], stride[3], dilation[3], before[3];
};

static struct convolution read_convolution(const struct weft_eval *eval)
{
    const struct weft_tensor *x = &eval->in[0], *w = &eval->in[1], *out = &eval->out[0];
    struct convolution c = {.real = weft_dtype_is_float(out->dtype),
                            .images = x->extent[0],
                            .channels = x->extent[1],
                            .results = out->extent[1],
                            .per_group = w->extent[1]};
    const int missing = 5 - x->rank;
    for (int i = 0; i < 3; i++) {
        const bool given = i >= missing;
        const unsigned at = given ? (unsigned)(i - missing) : 0;
        c.in[i] = given ? x->extent[2 + at] : 1;
        c.out[i] = given ? out->extent[2 + at] : 1;
        c.taps[i] = given ? w->extent[2 + at] : 1;
        c.stride[i] = given ? weft_eval_at(eval, WEFT_ATTR_stride, at) : 1;
        c.dilation[i] = given ? weft_eval_at(eval, WEFT_ATTR_dilation, at) : 1;
        c.before[i] = given ? weft_eval_at(eval, WEFT_ATTR_pad, at) : 0;
    }
    return c;
}

/* Results [first, end) along an axis whose tap falls upon data; the operand's index of result o is o · stride + shift.
 */
static void reach_of(const struct convolution *c, int axis, int64_t tap, int64_t *ret_first, int64_t *ret_end,
                     int64_t *ret_shift)
{
    const int64_t shift = tap * c->dilation[axis] - c->before[axis], stride = c->stride[axis];
    const int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const int64_t end = c->in[axis] > shift ? (c->in[axis] - 1 - shift) / stride + 1 : 0;
    *ret_first = first;
    *ret_end = end < c->out[axis] ? end : c->out[axis];
    *ret_shift = shift;
}

/* Padding is zeros that take part: with an infinite weight or a NaN they make a NaN, which leaving them out would not.
 */
static void add_padding(const struct convolution *c, union weft_number *sum, double weight, const int64_t *first,
                        const int64_t *end)
{
    for (int64_t z = 0; z < c->out[0]; z++)
        for (int64_t y = 0; y < c->out[1]; y++)
            for (int64_t x = 0; x < c->out[2]; x++, sum++)
                if (z < first[0] || z >= end[0] || y < first[1] || y >= end[1] || x < first[2] || x >= end[2])
                    sum->real += weight * 0;
}

/* Adds one tap of one channel of the operand to a channel of the result. */
static void add_tap(const struct convolution *c, union weft_number *sum, const union weft_number *plane,
                    union weft_number weight, const int64_t *tap)
{
    int64_t first[3], end[3], shift[3];
    for (int axis = 0; axis < 3; axis++)
        reach_of(c, axis, tap[axis], &first[axis], &end[axis], &shift[axis]);
    if (c->real && !isfinite(weight.real))
        add_padding(c, sum, weight.real, first, end);
    if (end[2] <= first[2])
        return;
    for (int64_t z = first[0]; z < end[0]; z++)
        for (int64_t y = first[1]; y < end[1]; y++) {
            const int64_t row = (z * c->stride[0] + shift[0]) * c->in[1] + y * c->stride[1] + shift[1];
            add_scaled(c->real, end[2] - first[2], sum + (z * c->out[1] + y) * c->out[2] + first[2], weight,
                       plane + row * c->in[2] + first[2] * c->stride[2] + shift[2], c->stride[2]);
        }
}

static void add_channel(const struct convolution *c, union weft_number *sum, const union weft_number *plane,
                        const union weft_number *weight)
{
    for (int64_t z = 0; z < c->taps[0]; z++)
        for (int64_t y = 0; y < c->taps[1]; y++)
            for (int64_t x = 0; x < c->taps[2]; x++)
                add_tap(c, sum, plane, *weight++, (const int64_t[]){z, y, x});
}

static void convolve(const struct convolution *c, int64_t groups, const union weft_number *x,
                     const union weft_number *w, union weft_number *sum)
{
    const int64_t plane = c->in[0] * c->in[1] * c->in[2], result = c->out[0] * c->out[1] * c->out[2];
    const int64_t taps = c->taps[0] * c->taps[1] * c->taps[2];
    const int64_t per_group = c->results / groups; /* results that share their channels of the operand */
    for (int64_t image = 0; image < c->images; image++)
        for (int64_t o = 0; o < c->results; o++, sum += result) {
            for (int64_t i = 0; i < result; i++)
                sum[i].bits = 0;
            for (int64_t channel = 0; channel < c->per_group; channel++)
                add_channel(c, sum, x + (image * c->channels + o / per_group * c->per_group + channel) * plane,
                            w + (o * c->per_group + channel) * taps);
        }
}

void weft_eval_conv(struct weft_eval *eval)
{
    const struct weft_tensor *out = &eval->out[0];
    const struct convolution c = read_convolution(eval);
    union weft_number *x = weft_eval_numbers(eval, &eval->in[0]), *w = weft_eval_numbers(eval, &eval->in[1]);
    const int64_t results = weft_tensor_count(out);
    union weft_number *sum = weft_eval_scratch(eval, results, sizeof *sum);
    if (x && w && sum) {
        if (results > 0)
            convolve(&c, weft_eval_int(eval, WEFT_ATTR_groups), x, w, sum);
        weft_eval_store_all(out, sum);
    }
    weft_eval_drop_numbers(eval, x, weft_tensor_count(&eval->in[0]));
    weft_eval_drop_numbers(eval, w, weft_tensor_count(&eval->in[1]));
    weft_eval_drop_numbers(eval, sum, results);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* conv_transpose.c: the adjoint of a convolution: each element of the operand is spread over the results that a
 * convolution would have gathered it from.
 *
 * Sums are kept in double or in wrapping 64-bit integers and rounded once. Terms of a result are added channel by
 * channel, then tap by tap. */
#include "eval/rule.h"

/* Up to three spatial axes, with leading ones of extent 1. */
struct spreading {
    bool real;
    int64_t images, groups, channels,
        results; /* channels: of the operand per group; results: of the result per group */
    int64_t in[3], out[3], taps[3], stride[3], dilation[3], before[3];
};

static struct spreading read_spreading(const struct weft_eval *eval)
{
    const struct weft_tensor *x = &eval->in[0], *w = &eval->in[1], *out = &eval->out[0];
    const int64_t groups = weft_eval_int(eval, WEFT_ATTR_groups);
    struct spreading s = {.real = weft_dtype_is_float(out->dtype),
                          .images = x->extent[0],
                          .groups = groups,
                          .channels = x->extent[1] / groups,
                          .results = w->extent[1]};
    const int missing = 5 - x->rank;
    for (int i = 0; i < 3; i++) {
        const bool given = i >= missing;
        const unsigned at = given ? (unsigned)(i - missing) : 0;
        s.in[i] = given ? x->extent[2 + at] : 1;
        s.out[i] = given ? out->extent[2 + at] : 1;
        s.taps[i] = given ? w->extent[2 + at] : 1;
        s.stride[i] = given ? weft_eval_at(eval, WEFT_ATTR_stride, at) : 1;
        s.dilation[i] = given ? weft_eval_at(eval, WEFT_ATTR_dilation, at) : 1;
        s.before[i] = given ? weft_eval_at(eval, WEFT_ATTR_pad, at) : 0;
    }
    return s;
}

/* Elements [first, end) along an axis whose place in the result, i · stride + shift, exists for this tap. */
static void reach_of(const struct spreading *s, int axis, int64_t tap, int64_t *ret_first, int64_t *ret_end,
                     int64_t *ret_shift)
{
    const int64_t shift = tap * s->dilation[axis] - s->before[axis], stride = s->stride[axis];
    const int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const int64_t end = s->out[axis] > shift ? (s->out[axis] - 1 - shift) / stride + 1 : 0;
    *ret_first = first;
    *ret_end = end < s->in[axis] ? end : s->in[axis];
    *ret_shift = shift;
}

static void spread_tap(const struct spreading *s, union weft_number *sum, const union weft_number *plane,
                       union weft_number weight, const int64_t *tap)
{
    int64_t first[3], end[3], shift[3];
    for (int axis = 0; axis < 3; axis++)
        reach_of(s, axis, tap[axis], &first[axis], &end[axis], &shift[axis]);
    for (int64_t z = first[0]; z < end[0]; z++)
        for (int64_t y = first[1]; y < end[1]; y++) {
            const union weft_number *from = plane + (z * s->in[1] + y) * s->in[2];
            union weft_number *to =
                sum + ((z * s->stride[0] + shift[0]) * s->out[1] + y * s->stride[1] + shift[1]) * s->out[2] + shift[2];
            for (int64_t x = first[2]; x < end[2]; x++)
                if (s->real)
                    to[x * s->stride[2]].real += weight.real * from[x].real;
                else
                    to[x * s->stride[2]].bits += weight.bits * from[x].bits;
        }
}

static void spread_channel(const struct spreading *s, union weft_number *sum, const union weft_number *plane,
                           const union weft_number *weight)
{
    for (int64_t z = 0; z < s->taps[0]; z++)
        for (int64_t y = 0; y < s->taps[1]; y++)
            for (int64_t x = 0; x < s->taps[2]; x++)
                spread_tap(s, sum, plane, *weight++, (const int64_t[]){z, y, x});
}

static void spread_all(const struct spreading *s, const union weft_number *x, const union weft_number *w,
                       union weft_number *sum)
{
    const int64_t plane = s->in[0] * s->in[1] * s->in[2], result = s->out[0] * s->out[1] * s->out[2];
    const int64_t taps = s->taps[0] * s->taps[1] * s->taps[2];
    for (int64_t image = 0; image < s->images; image++)
        for (int64_t group = 0; group < s->groups; group++)
            for (int64_t o = 0; o < s->results; o++, sum += result) {
                for (int64_t i = 0; i < result; i++)
                    sum[i].bits = 0; /* also the double 0 */
                for (int64_t c = group * s->channels; c < (group + 1) * s->channels; c++)
                    spread_channel(s, sum, x + (image * s->groups * s->channels + c) * plane,
                                   w + (c * s->results + o) * taps);
            }
}

void weft_eval_conv_transpose(struct weft_eval *eval)
{
    const struct weft_tensor *out = &eval->out[0];
    const struct spreading s = read_spreading(eval);
    union weft_number *x = weft_eval_numbers(eval, &eval->in[0]), *w = weft_eval_numbers(eval, &eval->in[1]);
    const int64_t results = weft_tensor_count(out);
    union weft_number *sum = weft_eval_scratch(eval, results, sizeof *sum);
    if (x && w && sum) {
        if (results > 0)
            spread_all(&s, x, w, sum);
        weft_eval_store_all(out, sum);
    }
    weft_eval_drop_numbers(eval, x, weft_tensor_count(&eval->in[0]));
    weft_eval_drop_numbers(eval, w, weft_tensor_count(&eval->in[1]));
    weft_eval_drop_numbers(eval, sum, results);
}

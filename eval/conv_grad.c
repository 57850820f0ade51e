/* SPDX-License-Identifier: Apache-2.0 */
/* conv_grad.c: the gradient of a convolution's weights. Sums are kept in double and rounded once; terms of a result are
 * added image by image, then place by place. */
#include "eval/rule.h"

/* Up to three spatial axes, with leading ones of extent 1. */
struct gradient {
    int64_t images, groups, channels, results; /* of a group */
    int64_t in[3], out[3], taps[3], stride[3], dilation[3], before[3];
};

static struct gradient read_gradient(const struct weft_eval *eval)
{
    const struct weft_tensor *x = &eval->in[0], *dy = &eval->in[1], *dw = &eval->out[0];
    struct gradient g = {.images = x->extent[0], .groups = weft_eval_int(eval, WEFT_ATTR_groups),
                         .channels = dw->extent[1]};
    g.results = dy->extent[1] / g.groups;
    const int missing = 5 - x->rank;
    for (int i = 0; i < 3; i++) {
        const bool given = i >= missing;
        const unsigned at = given ? (unsigned)(i - missing) : 0;
        g.in[i] = given ? x->extent[2 + at] : 1;
        g.out[i] = given ? dy->extent[2 + at] : 1;
        g.taps[i] = given ? dw->extent[2 + at] : 1;
        g.stride[i] = given ? weft_eval_at(eval, WEFT_ATTR_stride, at) : 1;
        g.dilation[i] = given ? weft_eval_at(eval, WEFT_ATTR_dilation, at) : 1;
        g.before[i] = given ? weft_eval_at(eval, WEFT_ATTR_pad, at) : 0;
    }
    return g;
}

/* The products of one tap in one image, added to `sum`. */
static double add_tap(const struct gradient *g, const union weft_number *x, const union weft_number *dy,
                      const int64_t *tap, double sum)
{
    for (int64_t d = 0; d < g->out[0]; d++)
        for (int64_t h = 0; h < g->out[1]; h++)
            for (int64_t w = 0; w < g->out[2]; w++, dy++) {
                const int64_t at[3] = {d * g->stride[0] + tap[0] * g->dilation[0] - g->before[0],
                                       h * g->stride[1] + tap[1] * g->dilation[1] - g->before[1],
                                       w * g->stride[2] + tap[2] * g->dilation[2] - g->before[2]};
                const bool inside = at[0] >= 0 && at[0] < g->in[0] && at[1] >= 0 && at[1] < g->in[1] && at[2] >= 0 &&
                                    at[2] < g->in[2];
                sum += (inside ? x[(at[0] * g->in[1] + at[1]) * g->in[2] + at[2]].real : 0) * dy->real;
            }
    return sum;
}

static void add_all(const struct gradient *g, const union weft_number *x, const union weft_number *dy,
                    union weft_number *dw)
{
    const int64_t in = g->in[0] * g->in[1] * g->in[2], out = g->out[0] * g->out[1] * g->out[2];
    const int64_t taps = g->taps[0] * g->taps[1] * g->taps[2];
    for (int64_t o = 0; o < g->groups * g->results; o++)
        for (int64_t c = 0; c < g->channels; c++)
            for (int64_t tap = 0; tap < taps; tap++, dw++) {
                const int64_t at[3] = {tap / (g->taps[1] * g->taps[2]), tap / g->taps[2] % g->taps[1],
                                       tap % g->taps[2]};
                const int64_t channel = o / g->results * g->channels + c;
                dw->real = 0;
                for (int64_t n = 0; n < g->images; n++)
                    dw->real = add_tap(g, x + (n * g->groups * g->channels + channel) * in,
                                       dy + (n * g->groups * g->results + o) * out, at, dw->real);
            }
}

void weft_eval_conv_grad_weight(struct weft_eval *eval)
{
    const struct weft_tensor *out = &eval->out[0];
    const struct gradient g = read_gradient(eval);
    union weft_number *x = weft_eval_numbers(eval, &eval->in[0]), *dy = weft_eval_numbers(eval, &eval->in[1]);
    const int64_t results = weft_tensor_count(out);
    union weft_number *dw = weft_eval_scratch(eval, results, sizeof *dw);
    if (x && dy && dw) {
        if (results > 0)
            add_all(&g, x, dy, dw);
        weft_eval_store_all(out, dw);
    }
    weft_eval_drop_numbers(eval, x, weft_tensor_count(&eval->in[0]));
    weft_eval_drop_numbers(eval, dy, weft_tensor_count(&eval->in[1]));
    weft_eval_drop_numbers(eval, dw, results);
}

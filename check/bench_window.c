/* SPDX-License-Identifier: Apache-2.0 */
/* bench_window.c: what the cases of convolutions and pooling share: their keys, extents of results, strides of dense
 * arrays. */
#include "check/bench_peers.h"

#include <string.h>

/* Strides of a dense array [n, c, axes…] with the channels in front of the axes or behind them; its size. */
static int64_t dense(int64_t *stride, int64_t n, int64_t c, const int64_t *extent, int spatial, bool last)
{
    int64_t step = 1;
    if (last)
        stride[1] = step, step *= c;
    for (int i = spatial - 1; i >= 0; i--)
        stride[2 + i] = step, step *= extent[i];
    if (!last)
        stride[1] = step, step *= c;
    stride[0] = step;
    return n * step;
}

static int64_t reach(const struct bench_window *w, int i) { return (w->kernel[i] - 1) * w->dilation[i] + 1; }

void bench_window_read(struct bench_window *w, const struct weft_case *c, const struct bench_window_keys *keys)
{
    w->taps = 1;
    w->spatial = c->count[keys->in];
    for (int i = 0; i < w->spatial; i++) {
        w->in[i] = c->value[keys->in][i];
        w->kernel[i] = weft_case_at(c, keys->k, i), w->stride[i] = weft_case_at(c, keys->stride, i);
        w->dilation[i] = weft_case_at(c, keys->dilation, i);
        w->pad[i] = w->pad_after[i] = weft_case_at(c, keys->pad, i);
    }
    for (int i = 0; i < w->spatial; i++) {
        const int64_t padding = w->pad[i] + w->pad_after[i];
        w->out[i] = w->transposed ? (w->in[i] - 1) * w->stride[i] + reach(w, i) - padding
                                  : (w->in[i] + padding - reach(w, i)) / w->stride[i] + 1;
        w->taps *= w->kernel[i];
    }
    w->x_size = dense(w->x_stride, w->n, w->c, w->in, w->spatial, w->last);
    w->y_size = dense(w->y_stride, w->n, w->o, w->out, w->spatial, w->last);
    const int64_t outer = w->transposed ? w->c : w->o, inner = (w->transposed ? w->o : w->c) / w->groups;
    w->w_size = dense(w->w_stride, outer, inner, w->kernel, w->spatial, false);
}

const char *bench_window_lists(const struct weft_case *c, const struct bench_window_keys *keys)
{
    const int lists[] = {keys->k, keys->stride, keys->pad, keys->dilation};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (c->count[lists[i]] > 1 && c->count[lists[i]] != c->count[keys->in])
            return "k, stride, pad and dilation have one number, or as many as 'in'";
    return NULL;
}

const char *bench_window_problem(const struct bench_window *w)
{
    if (w->c % w->groups || w->o % w->groups)
        return "the channels do not divide by groups";
    for (int i = 0; i < w->spatial; i++) {
        if (!w->transposed && w->in[i] + w->pad[i] + w->pad_after[i] < reach(w, i))
            return "the window is larger than what it slides over";
        if (w->out[i] < 1)
            return "the result is empty";
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* peer_onednn_window.c: convolutions and pooling in oneDNN, on x and y as they are given, and convolutions on x and y
 * in layouts of its own, which they then have when the clock starts. */
#include "check/peer_onednn.h"

#include <string.h>

/* oneDNN has the groups as an axis of their own, and results before channels. */
static bool describe_weights(dnnl_memory_desc_t *md, const struct bench_window *w, bool any)
{
    const int64_t o = w->o / w->groups, c = w->c / w->groups;
    int64_t extent[6] = {w->groups, o, c}, stride[6];
    stride[1] = w->transposed ? w->w_stride[1] : w->w_stride[0];
    stride[2] = w->transposed ? w->w_stride[0] : w->w_stride[1];
    stride[0] = (w->transposed ? c : o) * w->w_stride[0];
    for (int i = 0; i < w->spatial; i++)
        extent[3 + i] = w->kernel[i], stride[3 + i] = w->w_stride[2 + i];
    const int skip = w->groups == 1 ? 1 : 0;
    return onednn_describe(md, dnnl_f32, 3 - skip + w->spatial, extent + skip, any ? NULL : stride + skip);
}

static bool describe_maps(dnnl_memory_desc_t *x, dnnl_memory_desc_t *y, const struct bench_window *w, bool any)
{
    int64_t from[5] = {w->n, w->c}, to[5] = {w->n, w->o};
    memcpy(from + 2, w->in, (size_t)w->spatial * sizeof *from);
    memcpy(to + 2, w->out, (size_t)w->spatial * sizeof *to);
    return onednn_describe(x, dnnl_f32, 2 + w->spatial, from, any ? NULL : w->x_stride) &&
           onednn_describe(y, dnnl_f32, 2 + w->spatial, to, any ? NULL : w->y_stride);
}

/* The numbers of a window as oneDNN takes them: a dilation of 1 is 0. */
struct window_dims {
    dnnl_dims_t kernel, stride, dilation, before, after;
};
static struct window_dims dims_of(const struct bench_window *w)
{
    struct window_dims d = {0};
    for (int i = 0; i < w->spatial; i++) {
        d.kernel[i] = w->kernel[i], d.stride[i] = w->stride[i], d.dilation[i] = w->dilation[i] - 1;
        d.before[i] = w->pad[i], d.after[i] = w->pad_after[i];
    }
    return d;
}

static bool open_conv(struct weft_bench *bench, const struct weft_problem *problem, int threads, bool own,
                      struct weft_contestant *ret)
{
    struct onednn *const p = onednn_open(bench, threads);
    if (!p)
        return false;
    const struct bench_window w = bench_conv_of(problem->c);
    struct onednn_arrays arrays = {
        .a = problem->in[0], .b = problem->in[1], .out = problem->out, .constant = true, .own = own};
    dnnl_memory_desc_t x, weights, y;
    const struct window_dims d = dims_of(&w);
    bool good = describe_maps(&arrays.md[0], &arrays.md[2], &w, false) && describe_weights(&arrays.md[1], &w, false) &&
                describe_maps(&x, &y, &w, own) && describe_weights(&weights, &w, true);
    if (good && w.transposed) {
        dnnl_deconvolution_desc_t desc;
        good = dnnl_dilated_deconvolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_deconvolution_direct,
                                                            &x, &weights, NULL, &y, d.stride, d.dilation, d.before,
                                                            d.after) == dnnl_success &&
               onednn_finish(p, &desc, &arrays);
    } else if (good) {
        dnnl_convolution_desc_t desc;
        good = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_auto, &x,
                                                          &weights, NULL, &y, d.stride, d.dilation, d.before,
                                                            d.after) == dnnl_success &&
               onednn_finish(p, &desc, &arrays);
    }
    good = onednn_enter(p, good, ret);
    ret->elsewhere = own;
    return good;
}

bool bench_onednn_conv(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                       struct weft_contestant *ret)
{
    return open_conv(bench, problem, threads, /* own= */ false, ret);
}

bool bench_onednn_conv_own(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                           struct weft_contestant *ret)
{
    return open_conv(bench, problem, threads, /* own= */ true, ret);
}

bool bench_onednn_pool(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                       struct weft_contestant *ret)
{
    struct onednn *const p = onednn_open(bench, threads);
    if (!p)
        return false;
    bool mean, count_pad;
    const struct bench_window w = bench_pool_of(problem->c, &mean, &count_pad);
    struct onednn_arrays arrays = {.a = problem->in[0], .out = problem->out};
    const dnnl_alg_kind_t kind = !mean       ? dnnl_pooling_max
                                 : count_pad ? dnnl_pooling_avg_include_padding
                                             : dnnl_pooling_avg_exclude_padding;
    const struct window_dims d = dims_of(&w);
    dnnl_pooling_v2_desc_t desc;
    const bool good = describe_maps(&arrays.md[0], &arrays.md[2], &w, false) &&
                      dnnl_pooling_v2_forward_desc_init(&desc, dnnl_forward_inference, kind, &arrays.md[0],
                                                        &arrays.md[2], d.stride, d.kernel, d.dilation,
                                                        d.before, d.after) == dnnl_success &&
                      onednn_finish(p, &desc, &arrays);
    return onednn_enter(p, good, ret);
}

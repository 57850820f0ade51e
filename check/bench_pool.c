/* SPDX-License-Identifier: Apache-2.0 */
/* bench_pool.c: pooling for weft-check --bench.
 *
 * kind=max or mean, n, c, in and k (one to three axes), stride, pad (both ends alike), dilation, layout, count_pad: a
 * mean counts the padding. */
#include "check/bench_peers.h"

#include <stdio.h>

enum { KIND, N, C, IN, K, STRIDE, PAD, DILATION, LAYOUT, COUNT_PAD };

static const struct weft_case_key keys[] = {
    [KIND] = {.name = "kind", .most = 1, .required = true, .words = "max mean"},
    [N] = {.name = "n", .most = 1, .low = 1, .otherwise = 1},
    [C] = {.name = "c", .most = 1, .low = 1, .required = true},
    [IN] = {.name = "in", .most = 3, .low = 1, .required = true},
    [K] = {.name = "k", .most = 3, .low = 1, .required = true},
    [STRIDE] = {.name = "stride", .most = 3, .low = 1, .otherwise = 1},
    [PAD] = {.name = "pad", .most = 3},
    [DILATION] = {.name = "dilation", .most = 3, .low = 1, .otherwise = 1},
    [LAYOUT] = {.name = "layout", .most = 1, .words = "nchw nhwc"},
    [COUNT_PAD] = {.name = "count_pad"},
    {0},
};

static const struct bench_window_keys window_keys = {IN, K, STRIDE, PAD, DILATION};

struct bench_window bench_pool_of(const struct weft_case *c, bool *ret_mean, bool *ret_count_pad)
{
    struct bench_window w = {
        .last = c->value[LAYOUT][0], .n = c->value[N][0],
        .c = c->value[C][0],     .o = c->value[C][0],         .groups = c->value[C][0],
    };
    bench_window_read(&w, c, &window_keys);
    *ret_mean = c->value[KIND][0], *ret_count_pad = c->value[COUNT_PAD][0];
    return w;
}

static const char *problem_with(const struct weft_case *c)
{
    const char *const wrong = bench_window_lists(c, &window_keys);
    if (wrong)
        return wrong;
    bool mean, count_pad;
    const struct bench_window w = bench_pool_of(c, &mean, &count_pad);
    for (int i = 0; i < w.spatial; i++)
        if (w.pad[i] >= w.kernel[i])
            return "a window lies wholly in the padding";
    return bench_window_problem(&w);
}

static void set(struct weft_bench *bench, const struct weft_case *c, struct weft_problem *ret)
{
    bool mean, count_pad;
    const struct bench_window w = bench_pool_of(c, &mean, &count_pad);
    *ret = (struct weft_problem){
        .c = c,
        .read = 4.0 * (double)w.x_size,
        .written = 4.0 * (double)w.y_size,
        .in = {weft_bench_floats(bench, w.x_size)},
        .out = weft_bench_alloc(bench, (size_t)w.y_size * sizeof(float)),
        .out_bytes = (size_t)w.y_size * sizeof(float),
    };
}

struct ours {
    struct weft_pool pool;
    float *out;
    const float *in;
};

static void run(void *user, int part, int parts)
{
    const struct ours *const t = user;
    weft_pool_run(&t->pool, t->out, t->in, part, parts);
}

static bool ours(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers,
                 struct weft_contestant *ret)
{
    struct ours *const t = weft_bench_alloc(bench, sizeof *t);
    struct weft_pool *const p = &t->pool;
    const struct bench_window w = bench_pool_of(problem->c, &p->mean, &p->count_pad);
    p->cpu = cpu, p->spatial = w.spatial, p->n = w.n, p->c = w.c;
    for (int i = 0; i < w.spatial; i++) {
        p->in_extent[i] = w.in[i], p->out_extent[i] = w.out[i], p->kernel[i] = w.kernel[i], p->stride[i] = w.stride[i];
        p->dilation[i] = w.dilation[i], p->pad[i] = w.pad[i], p->pad_after[i] = w.pad_after[i];
    }
    for (int i = 0; i < 2 + w.spatial; i++)
        p->in_stride[i] = w.x_stride[i], p->out_stride[i] = w.y_stride[i];
    weft_pool_prepare(p, workers);
    t->in = problem->in[0], t->out = problem->out;
    *ret = (struct weft_contestant){.name = weft_pool_name(p), .run = run, .user = t, .parts = p->parts};
    return true;
}

static void draw(struct weft_bench *bench, char *line, size_t bytes)
{
    const int64_t k = weft_bench_between(bench, 2, 5), size = weft_bench_size(bench, 7, 160);
    const int64_t stride = weft_bench_between(bench, 1, k), c = weft_bench_size(bench, 1, 512);
    const char *const kind = weft_bench_between(bench, 0, 1) ? "mean" : "max";
    snprintf(line, bytes, "kind=%s c=%lld in=%lldx%lld k=%lld stride=%lld pad=%lld layout=%s", kind, (long long)c,
             (long long)size, (long long)size, (long long)k, (long long)stride,
             (long long)weft_bench_between(bench, 0, k / 2), weft_bench_between(bench, 0, 1) ? "nhwc" : "nchw");
}

static const struct weft_peer peers[] = {
#ifdef WITH_ONEDNN
    {"onednn", bench_onednn_pool},
#endif
    {0},
};

const struct weft_bench_family weft_bench_pool = {"pool", keys, problem_with, set, ours, peers, draw};

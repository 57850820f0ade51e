/* SPDX-License-Identifier: Apache-2.0 */
/* bench_conv.c: convolutions for weft-check --bench.
 *
 * n, c, o, in and k (one to three axes; the kernel has as many numbers, or one), stride, pad (both ends alike),
 * dilation, groups, layout of x and y, w=plain for weights that are no constant, transposed, as=chain or f4 for an
 * arithmetic that is not what plans have unless told otherwise, and relu=clamp or hook for a bias and a relu that the
 * kernel finishes its results with, or an epilogue: their peer is our convolution, then both in one pass over y. */
#include "check/bench_peers.h"

#include <math.h>
#include <stdio.h>

enum { N, C, O, IN, K, STRIDE, PAD, DILATION, GROUPS, LAYOUT, W, TRANSPOSED, AS, RELU };

static const struct weft_case_key keys[] = {
    [N] = {.name = "n", .most = 1, .low = 1, .otherwise = 1},
    [C] = {.name = "c", .most = 1, .low = 1, .required = true},
    [O] = {.name = "o", .most = 1, .low = 1, .required = true},
    [IN] = {.name = "in", .most = 3, .low = 1, .required = true},
    [K] = {.name = "k", .most = 3, .low = 1, .required = true},
    [STRIDE] = {.name = "stride", .most = 3, .low = 1, .otherwise = 1},
    [PAD] = {.name = "pad", .most = 3},
    [DILATION] = {.name = "dilation", .most = 3, .low = 1, .otherwise = 1},
    [GROUPS] = {.name = "groups", .most = 1, .low = 1, .otherwise = 1},
    [LAYOUT] = {.name = "layout", .most = 1, .words = "nchw nhwc"},
    [W] = {.name = "w", .most = 1, .words = "const plain"},
    [TRANSPOSED] = {.name = "transposed"},
    [AS] = {.name = "as", .most = 1, .words = "f2 chain f4"},
    [RELU] = {.name = "relu", .most = 1, .words = "no clamp hook"},
    {0},
};

static const struct bench_window_keys window_keys = {IN, K, STRIDE, PAD, DILATION};

struct bench_window bench_conv_of(const struct weft_case *c)
{
    struct bench_window w = {
        .last = c->value[LAYOUT][0],
        .transposed = c->value[TRANSPOSED][0],
        .n = c->value[N][0],
        .c = c->value[C][0],
        .o = c->value[O][0],
        .groups = c->value[GROUPS][0],
    };
    bench_window_read(&w, c, &window_keys);
    return w;
}

static const char *problem_with(const struct weft_case *c)
{
    const char *const wrong = bench_window_lists(c, &window_keys);
    if (wrong)
        return wrong;
    const struct bench_window w = bench_conv_of(c);
    return bench_window_problem(&w);
}

static void set(struct weft_bench *bench, const struct weft_case *c, struct weft_problem *ret)
{
    const struct bench_window w = bench_conv_of(c);
    const int64_t terms = w.transposed ? w.x_size * (w.o / w.groups) : w.y_size * (w.c / w.groups);
    *ret = (struct weft_problem){
        .c = c,
        .flops = 2.0 * (double)terms * (double)w.taps,
        .read = 4.0 * (double)(w.x_size + w.w_size),
        .written = 4.0 * (double)w.y_size,
        .in = {weft_bench_floats(bench, w.x_size), weft_bench_floats(bench, w.w_size), weft_bench_floats(bench, w.o)},
        .out = weft_bench_alloc(bench, (size_t)w.y_size * sizeof(float)),
        .out_bytes = (size_t)w.y_size * sizeof(float),
    };
}

/* --- bias and relu --- */

/* The kernels of the runtime, along runs of a piece. */
struct relu {
    weft_strip_fn add, relu;
};

static struct relu relu_find(uint32_t cpu)
{
    return (struct relu){weft_strip_find("add", WEFT_K_F32, WEFT_K_F32, cpu)->fn,
                         weft_strip_find("relu", WEFT_K_F32, WEFT_K_F32, cpu)->fn};
}

/* `bias` of the first channel, or NULL. Without one, runs that follow each other are one. */
static void relu(const struct relu *r, const struct weft_conv_piece *p, const float *bias)
{
    const bool across = p->channel_stride == 1;
    int64_t runs = across ? p->pixels : p->channels;
    const int64_t step = across ? p->pixel_stride : p->channel_stride;
    struct weft_strip_args args = {.n = across ? p->channels : p->pixels, .stride = {1, 1, across}};
    if (step == args.n && !bias)
        args.n *= runs, runs = 1;
    for (int64_t i = 0; i < runs; i++) {
        args.out = p->data + i * step, args.in[0] = args.out;
        if (bias) {
            args.in[1] = across ? bias : bias + i;
            r->add(&args);
        }
        r->relu(&args);
    }
}

/* --- ours --- */

struct ours {
    struct weft_conv conv;
    struct weft_conv_data data;
    const float *bias;       /* for a pass of its own, over the rows of y */
    struct weft_conv_piece image;
    struct relu relu;
};

static void relu_hook(void *user, const struct weft_conv_piece *piece)
{
    relu(user, piece, NULL);
}

static void run(void *user, int part, int parts)
{
    const struct ours *const t = user;
    struct weft_conv_data data = t->data;
    data.scratch = (char *)data.scratch + (size_t)part * t->conv.scratch;
    weft_conv_run(&t->conv, &data, part, parts);
    struct weft_conv_piece image = t->image;
    for (int64_t n = 0; t->bias && n < t->conv.n; n++, image.data += t->conv.y_stride[0])
        relu(&t->relu, &image, t->bias);
}

/* apart: bias and relu in a pass of their own. */
static void make(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers, bool apart,
                 struct weft_contestant *ret)
{
    const struct bench_window w = bench_conv_of(problem->c);
    struct ours *const t = weft_bench_alloc(bench, sizeof *t);
    struct weft_conv *const v = &t->conv;
    *v = (struct weft_conv){.cpu = cpu, .cache = weft_bench_cache(bench), .spatial = w.spatial, .n = w.n, .c = w.c,
                            .o = w.o, .groups = w.groups, .transposed = w.transposed,
                            .w_packed = problem->c->value[W][0] == 0};
    const enum weft_conv_arithmetic arithmetic[] = {WEFT_CONV_F2, WEFT_CONV_CHAIN, WEFT_CONV_F4};
    v->arithmetic = arithmetic[problem->c->value[AS][0]];
    for (int i = 0; i < w.spatial; i++) {
        v->in_extent[i] = w.in[i], v->out_extent[i] = w.out[i], v->kernel[i] = w.kernel[i];
        v->stride[i] = w.stride[i], v->dilation[i] = w.dilation[i], v->pad[i] = w.pad[i];
    }
    for (int i = 0; i < 2 + w.spatial; i++)
        v->x_stride[i] = w.x_stride[i], v->y_stride[i] = w.y_stride[i], v->w_stride[i] = w.w_stride[i];
    const int64_t finishes = apart ? 0 : problem->c->value[RELU][0];
    if (finishes == 1)
        v->clamp = (struct weft_clamp){true, 0, INFINITY, 0.0f};
    v->epilogue = finishes == 2 ? relu_hook : NULL;
    weft_conv_prepare(v, workers);
    t->data = (struct weft_conv_data){.y = problem->out, .x = problem->in[0], .w = problem->in[1], .user = &t->relu};
    t->relu = relu_find(cpu);
    t->data.bias = finishes ? problem->in[2] : NULL;
    t->bias = apart ? problem->in[2] : NULL;
    t->image = (struct weft_conv_piece){
        .data = problem->out, .channel_stride = w.y_stride[1], .pixel_stride = w.y_stride[1 + w.spatial],
        .channels = w.o, .pixels = w.y_size / (w.n * w.o)};
    if (v->w_packed) {
        float *const pack = weft_bench_alloc(bench, weft_conv_pack_bytes(v));
        weft_conv_pack(v, pack, problem->in[1]);
        t->data.w = pack;
    }
    t->data.scratch = weft_bench_alloc(bench, v->scratch * (size_t)workers);
    *ret = (struct weft_contestant){.name = weft_conv_name(v), .run = run, .user = t, .parts = v->parts};
}

static bool ours(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers,
                 struct weft_contestant *ret)
{
    make(bench, problem, cpu, workers, false, ret);
    return true;
}

/* One thread, since the pass begins where the convolution has ended. */
static bool pass(struct weft_bench *bench, const struct weft_problem *problem, int threads, struct weft_contestant *ret)
{
    if (threads != 1 || !problem->c->value[RELU][0])
        return false;
    struct weft_cpu cpu;
    weft_cpu_detect(&cpu);
    make(bench, problem, cpu.flags, 1, true, ret);
    ret->name = "pass";
    return true;
}

static void draw(struct weft_bench *bench, char *line, size_t bytes)
{
    const int64_t kernels[] = {1, 3, 3, 5, 7}, k = kernels[weft_bench_between(bench, 0, 4)];
    const int64_t size = weft_bench_size(bench, 7, 112), kind = weft_bench_between(bench, 0, 5);
    int64_t c = weft_bench_size(bench, 1, 512), o = kind == 0 ? c : weft_bench_size(bench, 1, 512);
    while (kind != 0 && c * o * k * k * size * size > 1000000000) /* a sample of a few tens of milliseconds */
        *(c > o ? &c : &o) /= 2;
    const int64_t groups = kind == 0 ? c : kind == 1 ? 2 : 1;
    c *= kind == 1 ? 2 : 1, o *= kind == 1 ? 2 : 1;
    snprintf(line, bytes, "c=%lld o=%lld in=%lldx%lld k=%lld stride=%lld pad=%lld dilation=%lld groups=%lld layout=%s",
             (long long)c, (long long)o, (long long)size, (long long)size, (long long)k,
             (long long)weft_bench_between(bench, 1, 2), (long long)(k / 2),
             (long long)(kind == 2 && size > 2 * k ? 2 : 1), (long long)groups,
             weft_bench_between(bench, 0, 1) ? "nhwc" : "nchw");
}

#ifdef WITH_ONEDNN
static bool onednn(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                   struct weft_contestant *ret)
{
    return !problem->c->value[RELU][0] && bench_onednn_conv(bench, problem, threads, ret);
}
static bool onednn_own(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                       struct weft_contestant *ret)
{
    return !problem->c->value[RELU][0] && bench_onednn_conv_own(bench, problem, threads, ret);
}
#endif

static const struct weft_peer peers[] = {
#ifdef WITH_ONEDNN
    {"onednn", onednn},
    {"onednn-own", onednn_own},
#endif
    {"pass", pass},
    {0},
};

const struct weft_bench_family weft_bench_conv = {"conv", keys, problem_with, set, ours, peers, draw};

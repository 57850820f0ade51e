/* SPDX-License-Identifier: Apache-2.0 */
/* bench_table.c: reads through tables for weft-check --bench: resizes that repeat elements, paddings by reflection.
 *
 * n, c, in: one to three axes; out: their extents in the result, of whose elements each stands for the one of the
 * operand before it; or reflect: elements by which each axis is continued at both ends; layout, bytes of an element. */
#include "check/bench_peers.h"

#include <stdio.h>
#include <string.h>

enum { N, C, IN, OUT, REFLECT, LAYOUT, BYTES, MOST_RANK = 5 };

static const struct weft_case_key keys[] = {
    [N] = {.name = "n", .most = 1, .low = 1, .otherwise = 1},
    [C] = {.name = "c", .most = 1, .low = 1, .required = true},
    [IN] = {.name = "in", .most = 3, .low = 1, .required = true},
    [OUT] = {.name = "out", .most = 3, .low = 1},
    [REFLECT] = {.name = "reflect", .most = 1, .low = 1},
    [LAYOUT] = {.name = "layout", .most = 1, .words = "nchw nhwc"},
    [BYTES] = {.name = "bytes", .most = 1, .low = 1, .otherwise = 4},
    {0},
};

static const char *problem_with(const struct weft_case *c)
{
    const int64_t bytes = c->value[BYTES][0];
    if (c->count[OUT] ? c->count[REFLECT] != 0 : c->count[REFLECT] == 0)
        return "one of out and reflect";
    if (c->count[OUT] && c->count[OUT] != c->count[IN])
        return "out has as many numbers as in";
    for (int i = 0; i < c->count[IN] && c->count[REFLECT]; i++)
        if (c->value[REFLECT][0] >= c->value[IN][i])
            return "an axis is continued by less than it has";
    return bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 ? "bytes is 1, 2, 4 or 8" : NULL;
}

/* Strides of a dense array [n, c, axes…], with the channels in front of the axes or behind them; its size. */
static int64_t dense(int64_t *stride, const int64_t *extent, int rank, bool last)
{
    int64_t step = last ? extent[1] : 1;
    stride[1] = 1;
    for (int i = rank - 1; i >= 2; i--)
        stride[i] = step, step *= extent[i];
    if (!last)
        stride[1] = step, step *= extent[1];
    stride[0] = step;
    return step * extent[0];
}

struct sizes {
    int rank;
    int64_t in[MOST_RANK], out[MOST_RANK], in_stride[MOST_RANK], out_stride[MOST_RANK], in_size, out_size;
};

static struct sizes sizes_of(const struct weft_case *c)
{
    struct sizes s = {.rank = 2 + c->count[IN], .in = {c->value[N][0], c->value[C][0]}};
    s.out[0] = s.in[0], s.out[1] = s.in[1];
    for (int i = 0; i < c->count[IN]; i++) {
        s.in[2 + i] = c->value[IN][i];
        s.out[2 + i] = c->count[OUT] ? c->value[OUT][i] : c->value[IN][i] + 2 * c->value[REFLECT][0];
    }
    s.in_size = dense(s.in_stride, s.in, s.rank, c->value[LAYOUT][0]);
    s.out_size = dense(s.out_stride, s.out, s.rank, c->value[LAYOUT][0]);
    return s;
}

static void set(struct weft_bench *bench, const struct weft_case *c, struct weft_problem *ret)
{
    const struct sizes s = sizes_of(c);
    const int64_t bytes = c->value[BYTES][0];
    const size_t in_bytes = (size_t)(s.in_size * bytes), out_bytes = (size_t)(s.out_size * bytes);
    *ret = (struct weft_problem){
        .c = c,
        .read = (double)in_bytes,
        .written = (double)out_bytes,
        .in = {weft_bench_floats(bench, (int64_t)(in_bytes / sizeof(float)) + 1)},
        .out = weft_bench_alloc(bench, out_bytes),
        .out_bytes = out_bytes,
        .exact = true,
    };
}

struct ours {
    struct weft_table table;
    const int64_t *place[MOST_RANK];
    struct weft_table_span span[3];
    void *out;
    const void *in;
};

static void run(void *user, int part, int parts)
{
    const struct ours *const t = user;
    weft_table_run(&t->table, t->out, t->in, t->place, t->table.spans ? t->span : NULL, part, parts);
}

static int64_t place_of(const struct sizes *s, int axis, int64_t reflect, int64_t i)
{
    if (!reflect || axis < 2)
        return i * s->in[axis] / s->out[axis];
    const int64_t at = i < reflect ? reflect - i : i - reflect, end = s->in[axis] - 1;
    return at > end ? 2 * end - at : at;
}

static bool ours(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers,
                 struct weft_contestant *ret)
{
    const struct sizes s = sizes_of(problem->c);
    const int64_t reflect = problem->c->count[REFLECT] ? problem->c->value[REFLECT][0] : 0;
    struct ours *const t = weft_bench_alloc(bench, sizeof *t);
    t->table = (struct weft_table){.cpu = cpu, .spans = reflect > 0, .rank = s.rank,
                                   .bytes = (int32_t)problem->c->value[BYTES][0]};
    for (int axis = 0; axis < s.rank; axis++) {
        int64_t *const place = weft_bench_alloc(bench, (size_t)s.out[axis] * sizeof *place);
        for (int64_t i = 0; i < s.out[axis]; i++)
            place[i] = place_of(&s, axis, reflect, i) * s.in_stride[axis];
        t->place[axis] = place;
        t->table.extent[axis] = s.out[axis], t->table.out_stride[axis] = s.out_stride[axis];
    }
    weft_table_prepare(&t->table, workers);
    const int inner = t->table.order[s.rank - 1];
    const int64_t n = s.in[inner], step = s.in_stride[inner], more = inner < 2 ? 0 : reflect;
    int spans = 0;
    if (more > 0)
        t->span[spans++] = (struct weft_table_span){more * step, -step, more};
    t->span[spans++] = (struct weft_table_span){0, step, n};
    t->span[spans] = (struct weft_table_span){(n - 2) * step, -step, more};
    t->in = problem->in[0], t->out = problem->out;
    *ret = (struct weft_contestant){
        .name = weft_table_name(&t->table), .run = run, .user = t, .parts = t->table.parts};
    return true;
}

static void draw(struct weft_bench *bench, char *line, size_t bytes)
{
    const int64_t c = weft_bench_size(bench, 1, 512), side = weft_bench_size(bench, 7, 80);
    const int64_t out = weft_bench_between(bench, side, 3 * side);
    const char *const layout = weft_bench_between(bench, 0, 1) ? "nhwc" : "nchw";
    const int size = 1 << weft_bench_between(bench, 0, 2);
    if (weft_bench_between(bench, 0, 3))
        snprintf(line, bytes, "c=%lld in=%lldx%lld out=%lldx%lld layout=%s bytes=%d", (long long)c, (long long)side,
                 (long long)side, (long long)out, (long long)out, layout, size);
    else
        snprintf(line, bytes, "c=%lld in=%lldx%lld reflect=%lld layout=%s bytes=%d", (long long)c, (long long)side,
                 (long long)side, (long long)weft_bench_between(bench, 1, 3), layout, size);
}

static const struct weft_peer peers[] = {{0}};

const struct weft_bench_family weft_bench_table = {"table", keys, problem_with, set, ours, peers, draw};

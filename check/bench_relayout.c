/* SPDX-License-Identifier: Apache-2.0 */
/* bench_relayout.c: transposes and conversions of layouts for weft-check --bench.
 *
 * shape: extents of the operand; order: the result's axis i is the operand's axis order[i]; bytes of an element; gap:
 * elements between the lines of both arrays, a line being the run of the last axis. */
#include "check/bench_peers.h"

#include <stdio.h>
#include <string.h>

enum { SHAPE, ORDER, BYTES, GAP };

static const struct weft_case_key keys[] = {
    [SHAPE] = {.name = "shape", .most = WEFT_CASE_NUMBERS, .low = 1, .required = true},
    [ORDER] = {.name = "order", .most = WEFT_CASE_NUMBERS, .required = true},
    [BYTES] = {.name = "bytes", .most = 1, .low = 1, .otherwise = 4},
    [GAP] = {.name = "gap", .most = 1},
    {0},
};

static const char *problem_with(const struct weft_case *c)
{
    const int rank = c->count[SHAPE];
    const int64_t bytes = c->value[BYTES][0];
    unsigned seen = 0;
    for (int i = 0; i < c->count[ORDER]; i++)
        seen |= 1u << (c->value[ORDER][i] & 31);
    if (c->count[ORDER] != rank || seen != (1u << rank) - 1)
        return "order does not name each axis of shape once";
    return bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 ? "bytes is 1, 2, 4 or 8" : NULL;
}

/* Strides of an array in row-major order with gaps behind its lines; its size. */
static int64_t lines(int64_t *stride, const int64_t *extent, int rank, int64_t gap)
{
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        stride[i] = step;
        step = step * extent[i] + (i == rank - 1 ? gap : 0);
    }
    return step;
}

struct bench_relayout bench_relayout_of(const struct weft_case *c)
{
    struct bench_relayout r = {.rank = c->count[SHAPE], .bytes = (int)c->value[BYTES][0]};
    int64_t stride[WEFT_CASE_NUMBERS];
    r.in_size = lines(stride, c->value[SHAPE], r.rank, c->value[GAP][0]);
    for (int i = 0; i < r.rank; i++) {
        const int64_t axis = c->value[ORDER][i];
        r.extent[i] = c->value[SHAPE][axis];
        r.in_stride[i] = stride[axis];
    }
    r.out_size = lines(r.out_stride, r.extent, r.rank, c->value[GAP][0]);
    return r;
}

static void set(struct weft_bench *bench, const struct weft_case *c, struct weft_problem *ret)
{
    const struct bench_relayout r = bench_relayout_of(c);
    double elements = 1;
    for (int i = 0; i < r.rank; i++)
        elements *= (double)r.extent[i];
    const size_t in_bytes = (size_t)(r.in_size * r.bytes), out_bytes = (size_t)(r.out_size * r.bytes);
    *ret = (struct weft_problem){
        .c = c,
        .read = elements * r.bytes,
        .written = elements * r.bytes,
        .in = {weft_bench_floats(bench, (int64_t)(in_bytes / sizeof(float)) + 1)},
        .out = weft_bench_alloc(bench, out_bytes),
        .out_bytes = out_bytes,
        .exact = true,
    };
}

struct ours {
    struct weft_copy copy;
    void *out;
    const void *in;
};

static void run(void *user, int part, int parts)
{
    const struct ours *const t = user;
    weft_copy_run(&t->copy, t->out, t->in, part, parts);
}

static bool ours(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers,
                 struct weft_contestant *ret)
{
    const struct bench_relayout r = bench_relayout_of(problem->c);
    struct ours *const t = weft_bench_alloc(bench, sizeof *t);
    t->copy = (struct weft_copy){.bytes = r.bytes, .rank = r.rank, .cpu = cpu};
    for (int i = 0; i < r.rank; i++) {
        t->copy.extent[i] = r.extent[i];
        t->copy.in_stride[i] = r.in_stride[i], t->copy.out_stride[i] = r.out_stride[i];
    }
    weft_copy_prepare(&t->copy, workers);
    t->in = problem->in[0], t->out = problem->out;
    *ret = (struct weft_contestant){
        .name = weft_copy_name(&t->copy), .run = run, .user = t, .parts = t->copy.parts};
    return true;
}

static void draw(struct weft_bench *bench, char *line, size_t bytes)
{
    const int rank = (int)weft_bench_between(bench, 2, 4);
    int order[4] = {0, 1, 2, 3}, length = snprintf(line, bytes, "shape=");
    int64_t rest = weft_bench_size(bench, 1 << 10, 1 << 24);
    for (int i = 0; i < rank; i++) {
        const int64_t extent = i == rank - 1 ? rest : weft_bench_size(bench, 1, rest);
        rest = (rest + extent - 1) / extent;
        length += snprintf(line + length, bytes - (size_t)length, "%s%lld", i ? "x" : "", (long long)extent);
    }
    for (int i = rank - 1; i > 0; i--) {
        const int j = (int)weft_bench_between(bench, 0, i), swap = order[i];
        order[i] = order[j], order[j] = swap;
    }
    for (int i = 0; i < rank; i++)
        length += snprintf(line + length, bytes - (size_t)length, "%s%d", i ? "x" : " order=", order[i]);
    snprintf(line + length, bytes - (size_t)length, " bytes=%d", 1 << weft_bench_between(bench, 0, 3));
}

static const struct weft_peer peers[] = {
#ifdef WITH_ONEDNN
    {"onednn", bench_onednn_relayout},
#endif
    {0},
};

const struct weft_bench_family weft_bench_relayout = {"relayout", keys, problem_with, set, ours, peers, draw};

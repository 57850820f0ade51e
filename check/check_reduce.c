/* SPDX-License-Identifier: Apache-2.0 */
/* check_reduce.c: reductions against double arithmetic, within the bound of their own summation order, and against
 * their own baseline form bit by bit. */
#include "kernels/strip/fold.h"
#include "check/check_reduce.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct variant {
    const char *name;
    uint32_t cpu;
};

static const struct variant variants[] = {
#define REDUCE(id, level, cpu) {"weft_reduce_" #id "__" #level, cpu},
#include "kernels/strip/reduce.def"
};

/* A result, and what its rounding errors are measured by: the sum of magnitudes. */
struct expected {
    double value, scale;
};

static void take(enum weft_reduce_op op, struct expected *e, float x)
{
    switch (op) {
    case WEFT_K_MAX:
        e->value = isnan(e->value) || isnan(x) ? (double)NAN : fmax(e->value, x);
        break;
    case WEFT_K_MIN:
        e->value = isnan(e->value) || isnan(x) ? (double)NAN : fmin(e->value, x);
        break;
    case WEFT_K_PROD:
        e->value *= x;
        break;
    default:
        e->value += x;
        e->scale += fabs((double)x);
    }
}

/* Two kept axes, two reduced axes. */
static struct expected reference(const struct weft_reduce *r, const float *in)
{
    struct expected e = {weft_fold_identity(r->op == WEFT_K_MEAN ? WEFT_K_SUM : (int)r->op), 0};
    for (int64_t i = 0; i < r->reduced_extent[0]; i++)
        for (int64_t j = 0; j < r->reduced_extent[1]; j++)
            take(r->op, &e, in[i * r->in_reduced[0] + j * r->in_reduced[1]]);
    const double terms = (double)(r->reduced_extent[0] * r->reduced_extent[1]);
    if (r->op == WEFT_K_MEAN)
        e.value /= terms, e.scale /= terms;
    return e;
}

static int64_t random_extent(struct weft_check *check)
{
    return weft_check_between(check, 0, 9) ? weft_check_between(check, 1, 40) : weft_check_between(check, 1, 700);
}

static void random_reduce(struct weft_check *check, struct weft_reduce *r, int64_t *ret_elements)
{
    int64_t extent[4], stride[4], step = weft_check_between(check, 0, 5) ? 1 : 2;
    int order[4] = {0, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        extent[i] = i % 2 ? random_extent(check) : weft_check_between(check, 1, 4);
    for (int i = 3; i > 0; i--) {
        const int j = (int)weft_check_between(check, 0, i), swap = order[i];
        order[i] = order[j], order[j] = swap;
    }
    for (int i = 3; i >= 0; i--) {
        stride[order[i]] = step;
        step *= extent[order[i]] + (weft_check_between(check, 0, 3) == 0);
    }
    *r = (struct weft_reduce){.op = (enum weft_reduce_op)weft_check_between(check, WEFT_K_SUM, WEFT_K_MIN),
                              .in_dtype = WEFT_K_F32,
                              .out_dtype = WEFT_K_F32,
                              .cpu = weft_check_cpu(check),
                              .kept = 2,
                              .reduced = 2,
                              .kept_extent = {extent[0], extent[1]},
                              .in_kept = {stride[0], stride[1]},
                              .reduced_extent = {extent[2], extent[3]},
                              .in_reduced = {stride[2], stride[3]},
                              .out_stride = {extent[1], 1}};
    *ret_elements = 1;
    for (int i = 0; i < 4; i++)
        *ret_elements += (extent[i] - 1) * stride[i];
}

/* One rounding a step along the longest chain: a block, then the blocks, then the lanes. */
static bool acceptable(const struct weft_reduce *r, float got, struct expected want, bool finite)
{
    const double terms = (double)(r->reduced_extent[0] * r->reduced_extent[1]);
    if (r->op == WEFT_K_MAX || r->op == WEFT_K_MIN)
        return weft_check_ulps(got, want.value) == 0;
    if (!finite)
        return true; /* what overflows depends on the order; the same bits at every level are checked elsewhere */
    if (r->op == WEFT_K_PROD)
        return fabs(got - want.value) <= terms * 0x1p-23 * fabs(want.value) + terms * 0x1p-149 * 4;
    const double steps = fmin(terms, 256 + terms / 256 + 40);
    return fabs(got - want.value) <= steps * 0x1p-24 * want.scale + fabs(want.value) * 0x1p-23 + 0x1p-149;
}

static void check_values(struct weft_check *check, const struct weft_reduce *plain, const float *in, const float *out,
                         bool finite)
{
    for (int64_t i = 0; i < plain->kept_extent[0]; i++)
        for (int64_t j = 0; j < plain->kept_extent[1]; j++) {
            const struct expected want = reference(plain, in + i * plain->in_kept[0] + j * plain->in_kept[1]);
            const float got = out[i * plain->out_stride[0] + j];
            if (acceptable(plain, got, want, finite))
                continue;
            weft_check_fail(check, "op %d, result %lld %lld of [%lld %lld], over [%lld %lld]: %.9g, should be %.9g",
                            (int)plain->op, (long long)i, (long long)j, (long long)plain->kept_extent[0],
                            (long long)plain->kept_extent[1], (long long)plain->reduced_extent[0],
                            (long long)plain->reduced_extent[1], got, want.value);
            return;
        }
}

static void check_case(struct weft_check *check, const struct weft_reduce *plain, int64_t elements)
{
    const int64_t results = plain->kept_extent[0] * plain->kept_extent[1];
    const enum weft_check_fill fill = (enum weft_check_fill)weft_check_between(check, 0, WEFT_FILLS - 1);
    float *const in = weft_check_alloc(check, (size_t)elements * sizeof *in);
    float *const out = weft_check_alloc(check, (size_t)results * sizeof *out);
    float *const again = weft_check_alloc(check, (size_t)results * sizeof *again);
    weft_check_fill(check, in, elements, fill);
    struct weft_reduce reduce = *plain;
    weft_reduce_prepare(&reduce, 4);
    void *const shared = weft_check_alloc(check, reduce.shared + 64);
    memset(shared, 0, 64);
    weft_reduce_run(&reduce, out, in, shared, 0, 1);
    check_values(check, plain, in, out, fill == WEFT_FILL_PLAIN || fill == WEFT_FILL_TINY);
    for (int parts = 2; parts <= 5; parts++) {
        memset(again, 0, (size_t)results * sizeof *again);
        for (int part = parts - 1; part >= 0; part--)
            weft_reduce_run(&reduce, again, in, shared, part, parts);
        weft_check_same(check, "in several parts", again, out, results);
    }
    struct weft_reduce baseline = *plain;
    baseline.cpu = 0;
    weft_reduce_prepare(&baseline, 4);
    weft_reduce_run(&baseline, again, in, shared, 0, 1);
    weft_check_same(check, "against the baseline", out, again, results);
}

struct timed {
    struct weft_reduce reduce;
    float *out;
    const float *in;
    void *shared;
};

static void run_timed(void *user)
{
    const struct timed *const t = user;
    weft_reduce_run(&t->reduce, t->out, t->in, t->shared, 0, 1);
}

static void bench(struct weft_check *check, const char *name)
{
    const bool lines = strstr(name, "lines") != NULL;
    struct timed t = {.reduce = {.op = WEFT_K_SUM,
                                 .in_dtype = WEFT_K_F32,
                                 .out_dtype = WEFT_K_F32,
                                 .cpu = weft_check_cpu(check),
                                 .kept = 1,
                                 .reduced = 1,
                                 .kept_extent = {1000},
                                 .reduced_extent = {256},
                                 .out_stride = {1},
                                 .in_kept = {lines ? 256 : 1},
                                 .in_reduced = {lines ? 1 : 1000}}};
    float *const in = weft_check_alloc(check, 256000 * sizeof(float));
    t.out = weft_check_alloc(check, 1000 * sizeof(float));
    t.in = in;
    weft_check_fill(check, in, 256000, WEFT_FILL_PLAIN);
    weft_reduce_prepare(&t.reduce, 1);
    t.shared = weft_check_alloc(check, t.reduce.shared + 64);
    memset(t.shared, 0, 64);
    if (!strcmp(weft_reduce_name(&t.reduce), name))
        weft_check_bench(check, "sum of 256 to 1000", 4 * 256000.0, "GB/s", run_timed, &t);
}

static void body(struct weft_check *check, const void *user)
{
    const char *const name = user;
    int cases = 0;
    for (int tries = 0; cases < 40 && tries < 5000 && !weft_check_failed(check); tries++) {
        struct weft_reduce plain, reduce;
        int64_t elements;
        random_reduce(check, &plain, &elements);
        reduce = plain;
        weft_reduce_prepare(&reduce, 4);
        if (strcmp(weft_reduce_name(&reduce), name) != 0 || elements > 200000)
            continue;
        cases++;
        check_case(check, &plain, elements);
    }
    if (cases < 40 && !weft_check_failed(check))
        weft_check_fail(check, "only %d cases reached this kernel", cases);
    if (weft_check_benching(check))
        bench(check, name);
}

void weft_check_reduce(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu,
                          strstr(variants[i].name, "_f32__") ? body : weft_check_reduce_types, variants[i].name);
}

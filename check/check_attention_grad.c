/* SPDX-License-Identifier: Apache-2.0 */
/* check_attention_grad.c: the gradient of attention against its definition in double, and against the baseline's bits
 * in other parts. */
#include "check/check.h"

#include "kernels/attention/attention.h"
#include "kernels/attention/grad.h"

#include <math.h>
#include <string.h>

static const struct kernel {
    const char *name;
    uint32_t cpu;
} kernels[] = {
#define ATTENTION(id, level, cpu) {"weft_attention_grad_" #id "__" #level, cpu},
#include "kernels/attention/attention.def"
};

enum { DY, QUERY, KEY, VALUE, Y, SUMS, MASK, OPERANDS, RESULTS = 3 };

struct arrays {
    int64_t size[OPERANDS], result_size[RESULTS];
    float *data[OPERANDS];
    double *want[RESULTS], *bound[RESULTS]; /* row-major */
};

static void random_case(struct weft_check *check, struct weft_attention_grad *a, struct arrays *s)
{
    *a = (struct weft_attention_grad){.cpu = weft_check_cpu(check), .batch = weft_check_between(check, 1, 2),
                                      .groups = weft_check_between(check, 1, 2)};
    a->heads = a->groups * weft_check_between(check, 1, 2);
    a->rows = weft_check_between(check, 1, weft_check_between(check, 0, 1) ? 150 : 20);
    a->keys = weft_check_between(check, 1, weft_check_between(check, 0, 2) ? 150 : 700);
    a->width = weft_check_between(check, 1, weft_check_between(check, 0, 1) ? 80 : 9);
    a->out_width = weft_check_between(check, 1, weft_check_between(check, 0, 1) ? 80 : 9);
    a->factor = (float)weft_check_between(check, 1, 9) * (weft_check_between(check, 0, 5) ? 0.05f : -0.05f);
    a->softcap = weft_check_between(check, 0, 3) ? 0 : 3;
    a->masked = weft_check_between(check, 0, 1);
    a->causal = weft_check_between(check, 0, 1);
    a->offset = weft_check_between(check, 0, 3) ? weft_check_between(check, -3, 5) : a->keys - a->rows;
    int64_t *const stride[] = {a->dy, a->q, a->k, a->v, a->y, NULL, a->mask}, sums[4];
    const int64_t rows[4] = {a->batch, a->heads, a->rows, 1}, keys[4] = {a->batch, a->groups, a->keys, 1};
    const int64_t last[OPERANDS] = {a->out_width, a->width, a->width, a->out_width, a->out_width, 1, a->keys};
    for (int i = 0; i < OPERANDS; i++) {
        int64_t extent[4];
        memcpy(extent, i == KEY || i == VALUE ? keys : rows, sizeof extent);
        extent[3] = last[i];
        s->size[i] = weft_check_lay(check, extent, i == SUMS ? sums : stride[i]);
    }
    memcpy(a->sums, sums, sizeof a->sums);
    s->result_size[0] = weft_check_lay(check, (int64_t[]){a->batch, a->heads, a->rows, a->width}, a->dq);
    s->result_size[1] = weft_check_lay(check, (int64_t[]){a->batch, a->groups, a->keys, a->width}, a->dk);
    s->result_size[2] = weft_check_lay(check, (int64_t[]){a->batch, a->groups, a->keys, a->out_width}, a->dv);
    for (int i = 0; i < 2 && weft_check_between(check, 0, 2) == 0; i++)
        a->mask[i] = 0; /* one mask for all */
}

static void fill(struct weft_check *check, struct arrays *s)
{
    for (int i = 0; i < OPERANDS; i++) {
        s->data[i] = weft_check_alloc(check, (size_t)s->size[i] * sizeof(float));
        for (int64_t j = 0; j < s->size[i]; j++)
            s->data[i][j] = (float)weft_check_between(check, -1000, 1000) * 0.001f;
    }
    for (int64_t j = 0; j < s->size[MASK]; j++) {
        if (weft_check_between(check, 0, 9) == 0)
            s->data[MASK][j] = weft_check_between(check, 0, 1) ? -INFINITY : WEFT_ATTENTION_HIDES;
    }
    for (int64_t j = 0; j < s->size[SUMS]; j++) /* as of some ten keys; now and then of none */
        s->data[SUMS][j] = weft_check_between(check, 0, 9) ? s->data[SUMS][j] + 2 : -INFINITY;
}

static int64_t at(const int64_t stride[4], int64_t b, int64_t h, int64_t i, int64_t j)
{
    return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
}

/* What one key gives and gets, of one row. Bounds are sums of what each term may differ by, in roundings. */
struct meeting {
    int64_t b, h, g, i, t;
};
static void add_term(struct arrays *s, int result, int64_t place, double value, double error)
{
    s->want[result][place] += value;
    s->bound[result][place] += error + fabs(value);
}
static void meet(const struct weft_attention_grad *a, struct arrays *s, const struct meeting *m, double delta,
                 double delta_size)
{
    double product = 0, size = 0, change = 0, change_size = 0;
    const double factor = (double)a->factor, cap = (double)a->softcap;
    for (int64_t p = 0; p < a->width; p++) {
        const double term = (double)s->data[QUERY][at(a->q, m->b, m->h, m->i, p)] *
                            (double)s->data[KEY][at(a->k, m->b, m->g, m->t, p)];
        product += term, size += fabs(term);
    }
    for (int64_t j = 0; j < a->out_width; j++) {
        const double term = (double)s->data[DY][at(a->dy, m->b, m->h, m->i, j)] *
                            (double)s->data[VALUE][at(a->v, m->b, m->g, m->t, j)];
        change += term, change_size += fabs(term);
    }
    const double added = a->masked ? (double)s->data[MASK][at(a->mask, m->b, m->h, m->i, m->t)] : 0;
    const double sum = (double)s->data[SUMS][m->b * a->sums[0] + m->h * a->sums[1] + m->i * a->sums[2]];
    const double bent = cap > 0 ? tanh(factor * product / cap) : 0;
    const bool hidden = added <= (double)WEFT_ATTENTION_HIDES;
    const double score = (cap > 0 ? cap * bent : factor * product) + added;
    const bool seen = sum != -INFINITY && (!a->causal || m->t <= m->i + a->offset);
    if (!seen || added == -INFINITY)
        return;
    const double weight = exp((hidden ? added : score) - sum);
    const double error = hidden ? 8 : size * fabs(factor) * (double)(a->width + 4) + 8 * fabs(score) + 8 + fabs(sum);
    const double bend = 1 - bent * bent, slope = hidden ? 0 : weight * (change - delta) * bend * factor;
    const double bend_error = cap > 0 ? 16 + 2 * error / cap : 0;
    const double slope_error = hidden ? 0 : weight * fabs(factor) * ((change_size + delta_size) *
                               (double)(a->out_width + 4) + fabs(change - delta) * (error + bend_error + 8));
    for (int64_t j = 0; j < a->out_width; j++) {
        const double dy = (double)s->data[DY][at(a->dy, m->b, m->h, m->i, j)];
        add_term(s, 2, ((m->b * a->groups + m->g) * a->keys + m->t) * a->out_width + j, weight * dy,
                 weight * fabs(dy) * error);
    }
    for (int64_t p = 0; p < a->width; p++) {
        const double q = (double)s->data[QUERY][at(a->q, m->b, m->h, m->i, p)];
        const double k = (double)s->data[KEY][at(a->k, m->b, m->g, m->t, p)];
        add_term(s, 0, ((m->b * a->heads + m->h) * a->rows + m->i) * a->width + p, slope * k, slope_error * fabs(k));
        add_term(s, 1, ((m->b * a->groups + m->g) * a->keys + m->t) * a->width + p, slope * q, slope_error * fabs(q));
    }
}

static void define(struct weft_check *check, const struct weft_attention_grad *a, struct arrays *s)
{
    const int64_t count[RESULTS] = {a->batch * a->heads * a->rows * a->width,
                                    a->batch * a->groups * a->keys * a->width,
                                    a->batch * a->groups * a->keys * a->out_width};
    for (int i = 0; i < RESULTS; i++) {
        s->want[i] = weft_check_alloc(check, (size_t)count[i] * sizeof(double));
        s->bound[i] = weft_check_alloc(check, (size_t)count[i] * sizeof(double));
        memset(s->want[i], 0, (size_t)count[i] * sizeof(double));
        memset(s->bound[i], 0, (size_t)count[i] * sizeof(double));
    }
    for (int64_t r = 0; r < a->batch * a->heads * a->rows; r++) {
        struct meeting m = {.b = r / a->rows / a->heads, .h = r / a->rows % a->heads, .i = r % a->rows};
        double delta = 0, size = 0;
        m.g = m.h / (a->heads / a->groups);
        for (int64_t j = 0; j < a->out_width; j++) {
            const double term = (double)s->data[DY][at(a->dy, m.b, m.h, m.i, j)] *
                                (double)s->data[Y][at(a->y, m.b, m.h, m.i, j)];
            delta += term, size += fabs(term);
        }
        for (m.t = 0; m.t < a->keys; m.t++)
            meet(a, s, &m, delta, size);
    }
}

static void compare(struct weft_check *check, const struct weft_attention_grad *a, const struct arrays *s,
                    float *const got[RESULTS])
{
    static const char *const name[] = {"dq", "dk", "dv"};
    const int64_t *const stride[] = {a->dq, a->dk, a->dv};
    for (int n = 0; n < RESULTS; n++) {
        const int64_t heads = n ? a->groups : a->heads, rows = n ? a->keys : a->rows;
        const int64_t columns = n == 2 ? a->out_width : a->width;
        const double terms = (double)(n ? a->rows * (a->heads / a->groups) : a->keys) + 16;
        for (int64_t e = 0; e < a->batch * heads * rows * columns && !weft_check_failed(check); e++) {
            const int64_t b = e / columns / rows / heads, h = e / columns / rows % heads, i = e / columns % rows;
            const double made = (double)got[n][at(stride[n], b, h, i, e % columns)], want = s->want[n][e];
            const double bound = s->bound[n][e] * terms * 0x1p-23;
            if (!(fabs(made - want) <= bound))
                weft_check_fail(check, "%s of row %lld of head %lld, element %lld: %.9g, should be %.9g +- %.2g",
                                name[n], (long long)i, (long long)h, (long long)(e % columns), made, want, bound);
        }
    }
}

static void run(struct weft_check *check, const struct weft_attention_grad *a, const struct arrays *s,
                float *const out[RESULTS], int parts)
{
    void *const scratch = weft_check_alloc(check, a->scratch + 64);
    char *const shared = weft_check_alloc(check, a->shared + 128);
    char *const zero = shared + (64 - (uintptr_t)shared % 64) % 64;
    const struct weft_attention_grad_data data = {
        .dq = out[0], .dk = out[1], .dv = out[2], .dy = s->data[DY], .q = s->data[QUERY], .k = s->data[KEY],
        .v = s->data[VALUE], .y = s->data[Y], .sums = s->data[SUMS], .mask = s->data[MASK],
        .scratch = (char *)scratch + (64 - (uintptr_t)scratch % 64) % 64, .shared = zero};
    memset(zero, 0, 64);
    for (int part = parts - 1; part >= 0; part--)
        weft_attention_grad_run(a, &data, part, parts);
    for (int i = 0; i < 64; i++)
        if (zero[i])
            weft_check_fail(check, "byte %d of shared memory is not zero in the end", i);
}

static void body(struct weft_check *check, const void *user)
{
    for (int i = 0; i < 25 && !weft_check_failed(check); i++) {
        struct weft_attention_grad a;
        struct arrays s;
        float *out[RESULTS], *again[RESULTS];
        random_case(check, &a, &s);
        fill(check, &s);
        for (int n = 0; n < RESULTS; n++) {
            out[n] = weft_check_alloc(check, (size_t)s.result_size[n] * sizeof(float));
            again[n] = weft_check_alloc(check, (size_t)s.result_size[n] * sizeof(float));
            for (int64_t j = 0; j < s.result_size[n]; j++)
                out[n][j] = again[n][j] = 7;
        }
        struct weft_attention_grad base = a;
        base.cpu = 0;
        weft_attention_grad_prepare(&a, (int)weft_check_between(check, 1, 9));
        if (strcmp(weft_attention_grad_name(&a), user) != 0)
            weft_check_fail(check, "a case for it runs %s", weft_attention_grad_name(&a));
        run(check, &a, &s, out, (int)weft_check_between(check, 1, 4));
        define(check, &a, &s);
        compare(check, &a, &s, out);
        weft_attention_grad_prepare(&base, 1);
        run(check, &base, &s, again, 1);
        for (int n = 0; n < RESULTS; n++)
            weft_check_same(check, "at the baseline", out[n], again[n], s.result_size[n]);
    }
}

void weft_check_attention_grad(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        weft_check_kernel(check, kernels[i].name, kernels[i].cpu, body, kernels[i].name);
}

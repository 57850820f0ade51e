/* SPDX-License-Identifier: Apache-2.0 */
/* check_attention.c: attention against its definition in double, and against the baseline's bits. */
#include "check/check.h"

#include "kernels/attention/attention.h"

#include <math.h>
#include <string.h>

static const struct kernel {
    const char *name;
    uint32_t cpu;
} kernels[] = {
#define ATTENTION(id, level, cpu) {"weft_attention_" #id "__" #level, cpu},
#include "kernels/attention/attention.def"
};

struct arrays {
    int64_t size[5];
    int64_t sums_size;
    float *data[4]; /* q, k, v, mask */
};

static void random_case(struct weft_check *check, struct weft_attention *a, struct arrays *s)
{
    const int64_t rows[] = {1, 4, 150, 150};
    a->cpu = weft_check_cpu(check);
    a->batch = weft_check_between(check, 1, 2);
    a->groups = weft_check_between(check, 1, 3);
    a->heads = a->groups * weft_check_between(check, 1, 3);
    a->rows = weft_check_between(check, 1, rows[weft_check_between(check, 0, 3)]);
    a->keys = weft_check_between(check, 1, weft_check_between(check, 0, 3) ? 70 : a->rows == 1 ? 2500 : 300);
    a->width = weft_check_between(check, 1, 80);
    a->out_width = weft_check_between(check, 1, 80);
    a->factor = (float)weft_check_between(check, 1, 9) * (weft_check_between(check, 0, 5) ? 0.1f : -0.1f);
    a->softcap = weft_check_between(check, 0, 4) ? 0 : 3;
    a->masked = weft_check_between(check, 0, 1);
    a->causal = weft_check_between(check, 0, 1);
    a->offset = weft_check_between(check, -3, 5);
    a->empty = (enum weft_attention_empty)weft_check_between(check, WEFT_ATTENTION_ZERO, WEFT_ATTENTION_CLEAR);
    a->cache = weft_check_between(check, 0, 1) ? 0 : 1 << 14;
    s->size[0] = weft_check_lay(check, (int64_t[]){a->batch, a->heads, a->rows, a->width}, a->q);
    s->size[1] = weft_check_lay(check, (int64_t[]){a->batch, a->groups, a->keys, a->width}, a->k);
    s->size[2] = weft_check_lay(check, (int64_t[]){a->batch, a->groups, a->keys, a->out_width}, a->v);
    s->size[3] = weft_check_lay(check, (int64_t[]){a->batch, a->heads, a->rows, a->keys}, a->mask);
    s->size[4] = weft_check_lay(check, (int64_t[]){a->batch, a->heads, a->rows, a->out_width}, a->y);
    a->has_sums = weft_check_between(check, 0, 1);
    int64_t stride[4]; /* in any order of axes, too */
    s->sums_size = weft_check_lay(check, (int64_t[]){a->batch, a->heads, a->rows, 1}, stride);
    memcpy(a->sums, stride, sizeof a->sums);
    if (weft_check_between(check, 0, 5) == 0)
        a->k[1] = a->v[1] = 0;
    for (int i = 0; i < 2 && weft_check_between(check, 0, 2) == 0; i++)
        a->mask[i] = 0; /* one mask for all */
}

static int64_t at(const int64_t stride[4], int64_t b, int64_t h, int64_t i, int64_t j)
{
    return b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3];
}

/* A row of results, and of what they may differ by; the logarithm of the sum, and what that may differ by. */
static void define(const struct weft_attention *a, const struct arrays *s, int64_t b, int64_t h, int64_t i,
                   double *score, double *ret_y, double *ret_bound, double ret_sum[2])
{
    const int64_t g = h / (a->heads / a->groups); /* of one, if all have the same keys */
    double top = -INFINITY, sum = 0, error = 0;
    for (int64_t t = 0; t < a->keys; t++) {
        double x = 0, size = 0;
        for (int64_t p = 0; p < a->width; p++) {
            const double term = (double)s->data[0][at(a->q, b, h, i, p)] * (double)s->data[1][at(a->k, b, g, t, p)];
            x += term, size += fabs(term);
        }
        x *= (double)a->factor;
        if (a->softcap > 0)
            x = (double)a->softcap * tanh(x / (double)a->softcap);
        const double added = a->masked ? (double)s->data[3][at(a->mask, b, h, i, t)] : 0;
        x = added <= (double)WEFT_ATTENTION_HIDES ? added : x + added;
        score[t] = a->causal && t > i + a->offset ? -INFINITY : x;
        const double rounded = x <= (double)WEFT_ATTENTION_HIDES || isinf(x) ? 0 : fabs(x); /* what hides is exact */
        error = fmax(error, size * fabs((double)a->factor) * (double)(a->width + 4) + 8 * rounded);
        top = score[t] > top || isnan(score[t]) ? score[t] : top;
    }
    for (int64_t t = 0; t < a->keys; t++) {
        score[t] = top == -INFINITY ? 0 : exp(score[t] - top);
        sum += score[t];
    }
    ret_sum[0] = top == -INFINITY ? top : top + log(sum);
    ret_sum[1] = (2 * error + (double)a->keys + 16 + 8 * fabs(ret_sum[0])) * 0x1p-23;
    const bool is_zero =
        (sum == 0 && a->empty != WEFT_ATTENTION_NAN) || (isnan(sum) && a->empty == WEFT_ATTENTION_CLEAR);
    for (int64_t j = 0; j < a->out_width; j++) {
        double y = 0, size = 0;
        for (int64_t t = 0; t < a->keys; t++) {
            y += score[t] * (double)s->data[2][at(a->v, b, g, t, j)];
            size += score[t] * fabs((double)s->data[2][at(a->v, b, g, t, j)]);
        }
        ret_y[j] = is_zero ? 0 : y / sum;
        ret_bound[j] = is_zero ? 0 : size / sum * (2 * error + (double)a->keys + 16) * 0x1p-23;
    }
}

static void check_rows(struct weft_check *check, const struct weft_attention *a, const struct arrays *s,
                       const float *y, const float *sums)
{
    double *const score = weft_check_alloc(check, (size_t)a->keys * sizeof *score);
    double want[80], bound[80], sum[2];
    for (int64_t r = 0; r < a->batch * a->heads * a->rows && !weft_check_failed(check); r++) {
        const int64_t b = r / a->rows / a->heads, h = r / a->rows % a->heads, i = r % a->rows;
        define(a, s, b, h, i, score, want, bound, sum);
        const double made = a->has_sums ? (double)sums[b * a->sums[0] + h * a->sums[1] + i * a->sums[2]] : sum[0];
        if (isnan(sum[0]) ? !isnan(made) : made != sum[0] && !(fabs(made - sum[0]) <= sum[1]))
            weft_check_fail(check, "row %lld of head %lld, %lld keys, sum: %.9g, should be %.9g +- %.2g", (long long)i,
                            (long long)h, (long long)a->keys, made, sum[0], sum[1]);
        for (int64_t j = 0; j < a->out_width; j++) {
            const double got = (double)y[at(a->y, b, h, i, j)];
            if (isnan(want[j]) ? !isnan(got) : !(fabs(got - want[j]) <= bound[j]))
                weft_check_fail(check, "row %lld of head %lld, %lld keys, element %lld: %.9g, should be %.9g +- %.2g",
                                (long long)i, (long long)h, (long long)a->keys, (long long)j, got, want[j], bound[j]);
        }
    }
}

static void run(struct weft_check *check, const struct weft_attention *a, const struct arrays *s, float *y, float *sums,
                int parts)
{
    void *const scratch = weft_check_alloc(check, a->scratch + 64);
    void *const aligned = (char *)scratch + (64 - (uintptr_t)scratch % 64) % 64;
    char *const shared = weft_check_alloc(check, a->shared + 128);
    char *const zero = shared + (64 - (uintptr_t)shared % 64) % 64;
    memset(zero, 0, 64);
    for (int part = parts - 1; part >= 0; part--)
        weft_attention_run(
            a, &(struct weft_attention_data){y, sums, s->data[0], s->data[1], s->data[2], s->data[3], aligned, zero},
            part, parts);
    for (int i = 0; i < 64; i++)
        if (zero[i])
            weft_check_fail(check, "byte %d of shared memory is not zero in the end", i);
}

static void body(struct weft_check *check, const void *user)
{
    for (int i = 0; i < 60 && !weft_check_failed(check); i++) {
        struct weft_attention a = {0};
        struct arrays s;
        random_case(check, &a, &s);
        struct weft_attention base = a;
        base.cpu = 0, base.cache = 0;
        for (int j = 0; j < 4; j++) {
            s.data[j] = weft_check_alloc(check, (size_t)s.size[j] * sizeof(float));
            weft_check_fill(check, s.data[j], s.size[j], WEFT_FILL_PLAIN);
        }
        for (int64_t j = 0; j < s.size[3]; j++)
            if (weft_check_between(check, 0, 9) == 0)
                s.data[3][j] = weft_check_between(check, 0, 1) ? -INFINITY : WEFT_ATTENTION_HIDES;
        if (weft_check_between(check, 0, 3) == 0)
            s.data[0][weft_check_between(check, 0, s.size[0] - 1)] = NAN;
        if (weft_check_between(check, 0, 3) == 0) /* whoever does not see the key is not to notice */
            s.data[1][weft_check_between(check, 0, s.size[1] - 1)] = NAN;
        if (weft_check_between(check, 0, 3) == 0 && a.masked) /* rows that see nothing */
            for (int64_t j = 0; j < s.size[3]; j++)
                s.data[3][j] = -INFINITY;
        float *const y = weft_check_alloc(check, (size_t)s.size[4] * sizeof *y);
        float *const again = weft_check_alloc(check, (size_t)s.size[4] * sizeof *again);
        for (int64_t j = 0; j < s.size[4]; j++)
            y[j] = again[j] = 7;
        float *const sums = weft_check_alloc(check, (size_t)s.sums_size * sizeof *sums);
        float *const sums_again = weft_check_alloc(check, (size_t)s.sums_size * sizeof *sums);
        for (int64_t j = 0; j < s.sums_size; j++)
            sums[j] = sums_again[j] = 7;
        weft_attention_prepare(&a, (int)weft_check_between(check, 1, 5));
        if (strcmp(weft_attention_name(&a), user) != 0)
            weft_check_fail(check, "a case for it runs %s", weft_attention_name(&a));
        run(check, &a, &s, y, sums, (int)weft_check_between(check, 1, 4));
        check_rows(check, &a, &s, y, sums);
        weft_attention_prepare(&base, 1);
        run(check, &base, &s, again, sums_again, 1);
        weft_check_same(check, "at the baseline", y, again, s.size[4]);
        weft_check_same(check, "of sums at the baseline", sums, sums_again, s.sums_size);
    }
}

void weft_check_attention(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        weft_check_kernel(check, kernels[i].name, kernels[i].cpu, body, kernels[i].name);
}

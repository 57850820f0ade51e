/* SPDX-License-Identifier: Apache-2.0 */
/* check_resize.c: weighted sums along two axes against the definition in double, and against the baseline's bits. */
#include "check/check.h"
#include "kernels/resize/resize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct variant {
    const char *name;
    uint32_t cpu;
};

static const struct variant variants[] = {
#define RESIZE(level, cpu) {"weft_blend_f32__" #level, cpu},
#include "kernels/resize/resize.def"
};

struct table {
    int64_t taps;
    int32_t *count;
    int64_t *place;
    float *weight;
};

static struct table random_table(struct weft_check *check, int64_t results, int64_t from, int64_t step)
{
    struct table t = {.taps = weft_check_between(check, 1, 4)};
    const size_t n = (size_t)(results * t.taps);
    t.count = weft_check_alloc(check, (size_t)results * sizeof *t.count);
    t.place = weft_check_alloc(check, n * sizeof *t.place);
    t.weight = weft_check_alloc(check, n * sizeof *t.weight);
    weft_check_fill(check, t.weight, (int64_t)n, WEFT_FILL_PLAIN);
    for (int64_t i = 0; i < results; i++)
        t.count[i] = (int32_t)weft_check_between(check, 1, t.taps);
    for (size_t i = 0; i < n; i++)
        t.place[i] = step * weft_check_between(check, 0, from - 1);
    return t;
}

/* One result; `ret_scale` the sum of the magnitudes that were added. */
static double definition(const struct table *rows, const struct table *columns, int64_t r, int64_t c,
                         const float *in, int64_t column_in, int64_t inner, double *ret_scale)
{
    double sum = 0;
    *ret_scale = 0;
    for (int64_t l = c * columns->taps; l < c * columns->taps + columns->count[c]; l++)
        for (int64_t k = r * rows->taps; k < r * rows->taps + rows->count[r]; k++) {
            const double x = (double)columns->weight[l] * (double)rows->weight[k] *
                             (double)in[rows->place[k] + columns->place[l] / inner * column_in];
            sum += x;
            *ret_scale += fabs(x);
        }
    return sum;
}

static void one_case(struct weft_check *check)
{
    const int64_t in_rows = weft_check_between(check, 1, 7), gap = weft_check_between(check, 0, 1) * 3;
    struct weft_blend b = {.cpu = weft_check_cpu(check), .outer = 1, .extent = {weft_check_between(check, 1, 3)},
                           .rows = weft_check_between(check, 1, 7), .columns = weft_check_between(check, 1, 20),
                           .in_columns = weft_check_between(check, 1, 20),
                           .inner = weft_check_between(check, 0, 1) ? 1 : weft_check_between(check, 2, 40)};
    b.column_in = b.inner + gap, b.column_out = b.inner + gap;
    const int64_t row_in = b.column_in * b.in_columns;
    b.row_out = b.column_out * b.columns;
    b.in_stride[0] = row_in * in_rows, b.out_stride[0] = b.row_out * b.rows;
    const int64_t in_count = b.in_stride[0] * b.extent[0], out_count = b.out_stride[0] * b.extent[0];
    const struct table r = random_table(check, b.rows, in_rows, row_in),
                       c = random_table(check, b.columns, b.in_columns, b.inner);
    float *const in = weft_check_alloc(check, (size_t)in_count * 4), *out[2];
    weft_check_fill(check, in, in_count, WEFT_FILL_PLAIN);
    const struct weft_blend_table rows = {r.taps, r.count, r.place, r.weight},
                                  columns = {c.taps, c.count, c.place, c.weight};
    for (int level = 0; level < 2; level++) {
        struct weft_blend own = b;
        own.cpu = level ? b.cpu : 0;
        weft_blend_prepare(&own, 4);
        void *const scratch = weft_check_alloc(check, own.scratch);
        out[level] = memset(weft_check_alloc(check, (size_t)out_count * 4), 0, (size_t)out_count * 4);
        const int parts = (int)weft_check_between(check, 1, 4);
        for (int part = parts - 1; part >= 0; part--)
            weft_blend_run(&own, out[level], in, &rows, &columns, scratch, part, parts);
    }
    if (!weft_check_same(check, "beside the baseline", out[1], out[0], out_count))
        return;
    for (int64_t o = 0; o < b.extent[0]; o++)
        for (int64_t y = 0; y < b.rows; y++)
            for (int64_t x = 0; x < b.columns; x++)
                for (int64_t i = 0; i < b.inner; i++) {
                    double scale;
                    const double want = definition(&r, &c, y, x, in + o * b.in_stride[0] + i, b.column_in, b.inner,
                                                   &scale);
                    const float *const got = out[1] + o * b.out_stride[0] + y * b.row_out + x * b.column_out + i;
                    if (!weft_check_close(check, "sum", got, &want, 1, 1, 8 * 0x1p-24 * scale))
                        return;
                }
}

static void body(struct weft_check *check, const void *user)
{
    for (int tries = 0; tries < 60 && !weft_check_failed(check); tries++)
        one_case(check);
}

void weft_check_resize(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu, body, NULL);
}

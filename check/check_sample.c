/* SPDX-License-Identifier: Apache-2.0 */
/* check_sample.c: images read at the points of a grid, against the definition in double, element by element, and
 * against the baseline's bits. */
#include "check/check.h"
#include "kernels/sample/sample.h"

#include <math.h>
#include <string.h>

static const struct variant {
    const char *name;
    uint32_t cpu;
} variants[] = {
#define SAMPLE(level, cpu) {"weft_sample_f32__" #level, cpu},
#include "kernels/sample/sample.def"
};

/* The sum over the elements around a point of image `x`; ret_scale: the sum of the magnitudes that were added. */
static double definition(const struct weft_sample *s, const float *x, const float *g, double *ret_scale)
{
    const struct weft_k_sampling how = {.form = s->nearest ? WEFT_K_NEAREST : WEFT_K_LINEAR,
                                        .border = (enum weft_k_border)s->border, .corners = s->corners};
    int64_t element[2][WEFT_K_TAPS];
    double weight[2][WEFT_K_TAPS], sum = 0;
    *ret_scale = 0;
    for (int axis = 0; axis < 2; axis++)
        weft_k_sample_any(&how, s->extent[axis], (double)g[(1 - axis) * s->grid_axis], element[axis], weight[axis]);
    for (int i = 0; i < weft_k_taps(how.form); i++)
        for (int j = 0; j < weft_k_taps(how.form); j++) {
            const double w = weight[0][i] * weight[1][j];
            if (element[0][i] < 0 || element[1][j] < 0 || (float)w == 0)
                continue;
            const double part = w * (double)x[element[0][i] * s->in[0] + element[1][j] * s->in[1]];
            sum += part;
            *ret_scale += fabs(part);
        }
    return sum;
}

/* Strides of [n, c, a, b] in one of three orders, with gaps; the number of elements. */
static int64_t lay_out(struct weft_check *check, const int64_t extent[4], int64_t stride[4])
{
    static const int orders[][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {1, 0, 3, 2}};
    const int *const order = orders[weft_check_between(check, 0, 2)];
    int64_t step = 1;
    for (int i = 3; i >= 0; i--) {
        stride[order[i]] = step;
        step *= extent[order[i]] + (i < 3 ? weft_check_between(check, 0, 1) : 0);
    }
    return step;
}

/* Coordinates inside, at the centres and edges of elements, somewhat outside, far away, or none. */
static void fill_grid(struct weft_check *check, float *grid, int64_t n, int64_t extent)
{
    const int64_t kind = weft_check_between(check, 0, 2);
    for (int64_t i = 0; i < n; i++) {
        const double at = (double)weft_check_between(check, -1000, 1000) / 1000;
        const int64_t odd = kind == 0 ? 9 : weft_check_between(check, 0, kind == 1 ? 9 : 5);
        grid[i] = odd == 0 ? (float)at * 4 : odd == 1 ? (float)(2 * weft_check_between(check, 0, extent)) /
                  (float)(extent > 0 ? extent : 1) - 1 : odd == 2 ? (float)(at < 0 ? -1e30 : 1e18 * at)
                  : odd == 3 ? NAN : odd == 4 ? copysignf(1, (float)at) : (float)at;
    }
}

static void one_case(struct weft_check *check)
{
    struct weft_sample s = {.cpu = weft_check_cpu(check), .nearest = weft_check_between(check, 0, 3) == 0,
                            .corners = weft_check_between(check, 0, 1), .images = weft_check_between(check, 1, 2),
                            .border = (int32_t)weft_check_between(check, 0, 2),
                            .channels = weft_check_between(check, 1, weft_check_between(check, 0, 1) ? 4 : 70),
                            .extent = {weft_check_between(check, 1, 9), weft_check_between(check, 1, 20)},
                            .points = {weft_check_between(check, 1, 5), weft_check_between(check, 1, 90)}};
    int64_t in[4], out[4];
    const int64_t in_count = lay_out(check, (const int64_t[]){s.images, s.channels, s.extent[0], s.extent[1]}, in);
    const int64_t out_count = lay_out(check, (const int64_t[]){s.images, s.channels, s.points[0], s.points[1]}, out);
    s.in_image = in[0], s.in_channel = in[1], s.in[0] = in[2], s.in[1] = in[3];
    s.out_image = out[0], s.out_channel = out[1], s.out_point[0] = out[2], s.out_point[1] = out[3];
    const bool apart = weft_check_between(check, 0, 3) == 0; /* [2, n, p, q] instead of [n, p, q, 2] */
    s.grid_axis = apart ? s.images * s.points[0] * s.points[1] : 1;
    s.grid[1] = apart ? 1 : 2, s.grid[0] = s.grid[1] * s.points[1], s.grid_image = s.grid[0] * s.points[0];
    const int64_t grid_count = 2 * s.images * s.points[0] * s.points[1];
    float *const x = weft_check_alloc(check, (size_t)in_count * 4), *y[2];
    float *const grid = weft_check_alloc(check, (size_t)grid_count * 4);
    weft_check_fill(check, x, in_count, weft_check_between(check, 0, 3) ? WEFT_FILL_PLAIN : WEFT_FILL_HOSTILE);
    fill_grid(check, grid, grid_count, s.extent[weft_check_between(check, 0, 1)]);
    for (int level = 0; level < 2; level++) {
        struct weft_sample own = s;
        own.cpu = level ? s.cpu : 0;
        weft_sample_prepare(&own, 4);
        y[level] = memset(weft_check_alloc(check, (size_t)out_count * 4), 0, (size_t)out_count * 4);
        const int parts = (int)weft_check_between(check, 1, 4);
        for (int part = parts - 1; part >= 0; part--)
            weft_sample_run(&own, y[level], x, grid, part, parts);
    }
    if (!weft_check_same(check, "beside the baseline", y[1], y[0], out_count))
        return;
    for (int64_t n = 0; n < s.images; n++)
        for (int64_t c = 0; c < s.channels; c++)
            for (int64_t i = 0; i < s.points[0] * s.points[1]; i++) {
                const int64_t p = i / s.points[1], q = i % s.points[1];
                double scale;
                const double want = definition(&s, x + n * s.in_image + c * s.in_channel,
                                               grid + n * s.grid_image + p * s.grid[0] + q * s.grid[1], &scale);
                const float *const got = y[1] + n * out[0] + c * out[1] + p * out[2] + q * out[3];
                if (!weft_check_close(check, "sum", got, &want, 1, 1, 8 * 0x1p-24 * scale))
                    return;
            }
}

static void body(struct weft_check *check, const void *user)
{
    for (int tries = 0; tries < 80 && !weft_check_failed(check); tries++)
        one_case(check);
}

void weft_check_sample(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu, body, NULL);
}

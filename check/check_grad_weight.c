/* SPDX-License-Identifier: Apache-2.0 */
/* check_grad_weight.c: gradients of a convolution's weights against the definition in double, and against the
 * baseline's bits. */
#include "check/check.h"
#include "kernels/grad_weight/grad_weight.h"

#include <math.h>
#include <string.h>

static const struct variant {
    const char *name;
    uint32_t cpu;
} variants[] = {
#define GRAD_WEIGHT(level, cpu) {"weft_grad_weight_f32__" #level, cpu},
#include "kernels/grad_weight/grad_weight.def"
};

/* Strides of [n, c, d, h, w] in one of three orders, with gaps; the number of elements. */
static int64_t lay_out(struct weft_check *check, const int64_t extent[5], int64_t stride[5])
{
    static const int orders[][5] = {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}, {1, 0, 4, 2, 3}};
    const int *const order = orders[weft_check_between(check, 0, 2)];
    int64_t step = 1;
    for (int i = 4; i >= 0; i--) {
        stride[order[i]] = step;
        step *= extent[order[i]] + (i < 4 ? weft_check_between(check, 0, 1) : 0);
    }
    return step;
}

static int64_t place(const int64_t *stride, int64_t n, int64_t c, const int64_t *at)
{
    return n * stride[0] + c * stride[1] + at[0] * stride[2] + at[1] * stride[3] + at[2] * stride[4];
}

/* Result (o, c, tap); ret_scale: the sum of the magnitudes that were added. */
static double definition(const struct weft_grad_weight *g, const float *x, const float *dy, int64_t o, int64_t c,
                         const int64_t *tap, double *ret_scale)
{
    double sum = 0;
    *ret_scale = 0;
    for (int64_t n = 0; n < g->images; n++)
        for (int64_t i = 0; i < g->out[0] * g->out[1] * g->out[2]; i++) {
            const int64_t p[3] = {i / (g->out[1] * g->out[2]), i / g->out[2] % g->out[1], i % g->out[2]};
            int64_t at[3];
            bool inside = true;
            for (int a = 0; a < 3; a++) {
                at[a] = p[a] * g->stride[a] + tap[a] * g->dilation[a] - g->pad[a];
                inside = inside && at[a] >= 0 && at[a] < g->in[a];
            }
            const double part = (inside ? (double)x[place(g->x_stride, n, o / g->o * g->c + c, at)] : 0) *
                                (double)dy[place(g->dy_stride, n, o, p)];
            sum += part;
            *ret_scale += fabs(part);
        }
    return sum;
}

/* A convolution with one to three spatial axes: few or many channels, groups of few results, long rows. */
static void draw(struct weft_check *check, struct weft_grad_weight *g)
{
    const int first = (int)weft_check_between(check, 0, 2);
    const bool depthwise = weft_check_between(check, 0, 2) == 0, padded = weft_check_between(check, 0, 2);
    *g = (struct weft_grad_weight){.cpu = weft_check_cpu(check), .images = weft_check_between(check, 1, 4),
                                   .groups = depthwise ? weft_check_between(check, 2, 40)
                                                       : weft_check_between(check, 1, 2),
                                   .c = weft_check_between(check, 1, depthwise ? 2 : 7),
                                   .o = weft_check_between(check, 1, depthwise ? 2 : 40)};
    for (int i = 0; i < 3; i++) {
        const bool there = i >= first;
        g->taps[i] = there ? weft_check_between(check, 1, 3) : 1;
        g->stride[i] = there ? weft_check_between(check, 1, 3) : 1;
        g->dilation[i] = there ? weft_check_between(check, 1, 2) : 1;
        g->pad[i] = there && padded ? weft_check_between(check, 0, 3) : 0;
        g->out[i] = there ? weft_check_between(check, 1, i < 2 ? 6 : first == 2 ? 700 : 20) : 1;
        const int64_t after = padded ? weft_check_between(check, 0, 2) : 0;
        const int64_t in = (g->out[i] - 1) * g->stride[i] + (g->taps[i] - 1) * g->dilation[i] + 1 - g->pad[i] - after;
        g->in[i] = there ? (in > 0 ? in : 1) : 1;
    }
}

static bool check_values(struct weft_check *check, const struct weft_grad_weight *g, const float *x, const float *dy,
                         const float *dw)
{
    for (int64_t o = 0; o < g->groups * g->o; o++)
        for (int64_t c = 0; c < g->c; c++)
            for (int64_t i = 0; i < g->taps[0] * g->taps[1] * g->taps[2]; i++) {
                const int64_t tap[3] = {i / (g->taps[1] * g->taps[2]), i / g->taps[2] % g->taps[1], i % g->taps[2]};
                double scale;
                const double want = definition(g, x, dy, o, c, tap, &scale);
                const double terms = (double)(g->images * g->out[0] * g->out[1] * g->out[2]);
                if (!weft_check_close(check, "sum", dw + place(g->dw_stride, o, c, tap), &want, 1, 1,
                                      terms * 0x1p-24 * scale))
                    return false;
            }
    return true;
}

static void one_case(struct weft_check *check)
{
    struct weft_grad_weight g;
    draw(check, &g);
    const int64_t c = g.groups * g.c, o = g.groups * g.o;
    const int64_t x_count = lay_out(check, (const int64_t[]){g.images, c, g.in[0], g.in[1], g.in[2]}, g.x_stride);
    const int64_t dy_count = lay_out(check, (const int64_t[]){g.images, o, g.out[0], g.out[1], g.out[2]}, g.dy_stride);
    const int64_t dw_count = lay_out(check, (const int64_t[]){o, g.c, g.taps[0], g.taps[1], g.taps[2]}, g.dw_stride);
    float *const x = weft_check_alloc(check, (size_t)x_count * 4), *dw[2];
    float *const dy = weft_check_alloc(check, (size_t)dy_count * 4);
    const bool plain = weft_check_between(check, 0, 3) > 0;
    weft_check_fill(check, x, x_count, plain ? WEFT_FILL_PLAIN : WEFT_FILL_HOSTILE);
    weft_check_fill(check, dy, dy_count, plain ? WEFT_FILL_PLAIN : WEFT_FILL_HOSTILE);
    for (int level = 0; level < 2; level++) {
        struct weft_grad_weight own = g;
        own.cpu = level ? g.cpu : 0;
        weft_grad_weight_prepare(&own, (int)weft_check_between(check, 1, 4));
        dw[level] = memset(weft_check_alloc(check, (size_t)dw_count * 4), 0, (size_t)dw_count * 4);
        void *const scratch = weft_check_alloc(check, own.scratch);
        memset(scratch, -1, own.scratch); /* NaN */
        const int parts = (int)weft_check_between(check, 1, 4);
        for (int part = parts - 1; part >= 0; part--)
            weft_grad_weight_run(&own, dw[level], x, dy, scratch, part, parts);
    }
    if (weft_check_same(check, "beside the baseline", dw[1], dw[0], dw_count) && plain)
        check_values(check, &g, x, dy, dw[1]);
}

static void body(struct weft_check *check, const void *user)
{
    for (int tries = 0; tries < 60 && !weft_check_failed(check); tries++)
        one_case(check);
}

void weft_check_grad_weight(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu, body, NULL);
}

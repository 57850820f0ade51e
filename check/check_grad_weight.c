/* SPDX-License-Identifier: Apache-2.0 */
/* check_grad_weight.c: gradients of a convolution's weights against the definition in double, and against the
 * baseline's bits. */
#include "check/check.h"
#include "kernels/grad_weight/grad_winograd.h"

#include <math.h>
#include <string.h>

static const struct variant {
    const char *name;
    uint32_t cpu;
    bool winograd;
} variants[] = {
#define GRAD_WEIGHT(level, cpu) {"weft_grad_weight_f32__" #level, cpu, false},
#include "kernels/grad_weight/grad_weight.def"
#define GRAD_WEIGHT(level, cpu) {"weft_grad_weight_f32_winograd__" #level, cpu, true},
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

/* What goes into a result. */
struct definition {
    double sum, scale; /* scale: of the magnitudes that are added */
    bool nan;          /* is one of the factors? */
};

static struct definition define(const struct weft_grad_weight *g, const float *x, const float *dy, int64_t o, int64_t c,
                                const int64_t *tap)
{
    struct definition d = {0};
    for (int64_t n = 0; n < g->images; n++)
        for (int64_t i = 0; i < g->out[0] * g->out[1] * g->out[2]; i++) {
            const int64_t p[3] = {i / (g->out[1] * g->out[2]), i / g->out[2] % g->out[1], i % g->out[2]};
            int64_t at[3];
            bool inside = true;
            for (int a = 0; a < 3; a++) {
                at[a] = p[a] * g->stride[a] + tap[a] * g->dilation[a] - g->pad[a];
                inside = inside && at[a] >= 0 && at[a] < g->in[a];
            }
            const double left = inside ? (double)x[place(g->x_stride, n, o / g->o * g->c + c, at)] : 0;
            const double right = (double)dy[place(g->dy_stride, n, o, p)];
            d.sum += left * right;
            d.scale += fabs(left * right);
            d.nan = d.nan || isnan(left) || isnan(right);
        }
    return d;
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

/* A 3x3 convolution that Winograd's transform may pay for: bands that are rows, pieces of rows or images; slices of
 * them; channels that fill no vectors. */
static void draw_winograd(struct weft_check *check, struct weft_grad_weight *g)
{
    const int64_t shape = weft_check_between(check, 0, 3);
    *g = (struct weft_grad_weight){.cpu = weft_check_cpu(check), .images = weft_check_between(check, 1, 4),
                                   .groups = weft_check_between(check, 0, 3) ? 1 : 2,
                                   .c = weft_check_between(check, 20, shape ? 40 : 150),
                                   .o = weft_check_between(check, 20, shape ? 40 : 150),
                                   .winograd_permitted = true};
    for (int i = 0; i < 3; i++) {
        g->taps[i] = i ? 3 : 1;
        g->stride[i] = g->dilation[i] = 1;
        g->pad[i] = i ? weft_check_between(check, 0, 3) : 0;
        g->out[i] = i ? weft_check_between(check, 4, shape ? 20 : 8) : 1;
    }
    if (shape == 2)
        g->out[2] = weft_check_between(check, 200, 300), g->out[1] = weft_check_between(check, 4, 12);
    if (shape == 3)
        g->images = weft_check_between(check, 8, 12);
    for (int i = 0; i < 3; i++) {
        const int64_t in = g->out[i] + g->taps[i] - 1 - g->pad[i] - (i ? weft_check_between(check, 0, 2) : 0);
        g->in[i] = in > 0 ? in : 1;
    }
}

/* With all operands, and the matrices of the transforms, replaced by their absolute values, grad_winograd.h's formula
 * gives the sum of the magnitudes of all that is rounded. */
static void winograd_magnitudes(const struct weft_grad_weight *g, const float *x, const float *dy, int64_t o, int64_t c,
                                double ret[9])
{
    static const double in[4][4] = {{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}};
    static const double tile[4][2] = {{1, 0}, {1, 1}, {1, 1}, {0, 1}};
    static const double out[3][4] = {{1, .5, .5, 0}, {0, .5, .5, 0}, {0, .5, .5, 1}};
    const int64_t rows = (g->out[1] + 1) / 2, columns = (g->out[2] + 1) / 2;
    double sum[16] = {0};
    for (int64_t t = 0; t < g->images * rows * columns; t++) {
        const int64_t n = t / (rows * columns), row = t / columns % rows * 2, column = t % columns * 2;
        double d[16], e[4];
        for (int i = 0; i < 16; i++) {
            const int64_t at[3] = {0, row + i / 4 - g->pad[1], column + i % 4 - g->pad[2]};
            const bool inside = at[1] >= 0 && at[1] < g->in[1] && at[2] >= 0 && at[2] < g->in[2];
            d[i] = inside ? fabs((double)x[place(g->x_stride, n, o / g->o * g->c + c, at)]) : 0;
        }
        for (int i = 0; i < 4; i++) {
            const int64_t at[3] = {0, row + i / 2, column + i % 2};
            const bool inside = at[1] < g->out[1] && at[2] < g->out[2];
            e[i] = inside ? fabs((double)dy[place(g->dy_stride, n, o, at)]) : 0;
        }
        for (int q = 0; q < 16; q++) {
            double v = 0, w = 0;
            for (int i = 0; i < 16; i++)
                v += in[q / 4][i / 4] * in[q % 4][i % 4] * d[i];
            for (int i = 0; i < 4; i++)
                w += tile[q / 4][i / 2] * tile[q % 4][i % 2] * e[i];
            sum[q] += v * w;
        }
    }
    for (int i = 0; i < 9; i++) {
        ret[i] = 0;
        for (int q = 0; q < 16; q++)
            ret[i] += out[i / 3][q / 4] * out[i % 3][q % 4] * sum[q];
    }
}

/* The taps of one pair of channels. By Winograd's transform no term goes through more roundings than there are tiles,
 * bands and slices, and 12 in the transforms. */
static bool check_pair(struct weft_check *check, const struct weft_grad_weight *g, bool plain, const float *x,
                       const float *dy, const float *dw, int64_t o, int64_t c)
{
    const double terms = (double)(g->images * g->out[0] * g->out[1] * g->out[2]) + (g->winograd ? 12 : 0);
    double magnitude[9] = {0};
    if (g->winograd)
        winograd_magnitudes(g, x, dy, o, c, magnitude);
    for (int64_t i = 0; i < g->taps[0] * g->taps[1] * g->taps[2]; i++) {
        const int64_t tap[3] = {i / (g->taps[1] * g->taps[2]), i / g->taps[2] % g->taps[1], i % g->taps[2]};
        const struct definition d = define(g, x, dy, o, c, tap);
        const float *const got = dw + place(g->dw_stride, o, c, tap);
        if (d.nan && !isnan(*got)) {
            weft_check_fail(check, "sum: %.9g; a NaN is lost", (double)*got);
            return false;
        }
        if (plain && !weft_check_close(check, "sum", got, &d.sum, 1, 1,
                                       terms * 0x1p-24 * (g->winograd ? magnitude[i] : d.scale)))
            return false;
    }
    return true;
}

/* Some pairs of many. */
static void check_values(struct weft_check *check, const struct weft_grad_weight *g, bool plain, const float *x,
                         const float *dy, const float *dw)
{
    enum { PAIRS = 40 };
    const int64_t pairs = g->groups * g->o * g->c;
    for (int64_t i = 0; i < (g->winograd ? PAIRS : pairs); i++) {
        const int64_t pair = g->winograd ? weft_check_between(check, 0, pairs - 1) : i;
        if (!check_pair(check, g, plain, x, dy, dw, pair / g->c, pair % g->c))
            return;
    }
}

static void one_case(struct weft_check *check, bool winograd)
{
    struct weft_grad_weight g;
    do
        (winograd ? draw_winograd : draw)(check, &g);
    while (winograd && !weft_grad_winograd_pays(&g));
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
        weft_grad_weight_prepare(&own, (int)weft_check_between(check, 1, winograd ? 20 : 4));
        g.winograd = own.winograd;
        dw[level] = memset(weft_check_alloc(check, (size_t)dw_count * 4), 0, (size_t)dw_count * 4);
        void *const scratch = weft_check_alloc(check, own.scratch);
        memset(scratch, -1, own.scratch); /* NaN */
        char *const shared = weft_check_alloc(check, own.shared);
        memset(shared, -1, own.shared);
        memset(shared, 0, own.shared ? 64 : 0);
        const int parts = (int)weft_check_between(check, 1, 4);
        for (int part = parts - 1; part >= 0; part--)
            weft_grad_weight_run(&own, dw[level], x, dy, scratch, shared, part, parts);
        for (int i = 0; own.shared && i < 64; i++)
            if (shared[i])
                weft_check_fail(check, "what is shared does not begin with zeros again");
    }
    if (g.winograd != winograd)
        weft_check_fail(check, winograd ? "Winograd's transform is not used" : "it is used, though not permitted");
    if (weft_check_same(check, "beside the baseline", dw[1], dw[0], dw_count))
        check_values(check, &g, plain, x, dy, dw[1]);
}

static void body(struct weft_check *check, const void *user)
{
    const bool winograd = *(const bool *)user;
    for (int tries = 0; tries < (winograd ? 20 : 60) && !weft_check_failed(check); tries++)
        one_case(check, winograd);
}

void weft_check_grad_weight(struct weft_check *check)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        weft_check_kernel(check, variants[i].name, variants[i].cpu, body, &variants[i].winograd);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* winograd_ref.c: the formula of winograd.h by plain loops, one tile after the other. */
#include "kernels/conv/winograd.h"

#include <math.h>

static void line_in(const float *d, float *out, int64_t step, int m)
{
    if (m == 2) {
        out[0] = d[0] - d[2], out[step] = d[1] + d[2], out[2 * step] = d[2] - d[1], out[3 * step] = d[1] - d[3];
        return;
    }
    const float a = fmaf(-4, d[2], d[4]), b = fmaf(-4, d[1], d[3]), e = d[4] - d[2], f = 2 * (d[3] - d[1]);
    out[0] = fmaf(-5, d[2], 4 * d[0]) + d[4], out[5 * step] = fmaf(-5, d[3], 4 * d[1]) + d[5];
    out[step] = a + b, out[2 * step] = a - b, out[3 * step] = e + f, out[4 * step] = e - f;
}

static void line_out(const float *d, float *out, int64_t step, int m)
{
    const float a = d[1] + d[2], b = d[1] - d[2];
    if (m == 2) {
        out[0] = d[0] + a, out[step] = b - d[3];
        return;
    }
    const float e = d[3] + d[4], f = d[3] - d[4];
    out[0] = (d[0] + a) + e, out[step] = fmaf(2, f, b);
    out[2 * step] = fmaf(4, e, a), out[3 * step] = fmaf(8, f, b) + d[5];
}

/* from[i·a + j] to `to` in the same order: columns first, then rows. */
static void both(void (*line)(const float *, float *, int64_t, int), const float *from, float *to, int sides, int m)
{
    const int a = m + 2;
    float half[WEFT_WINOGRAD_POINTS], column[WEFT_WINOGRAD_SIDE];
    for (int j = 0; j < a; j++) {
        for (int i = 0; i < a; i++)
            column[i] = from[i * a + j];
        line(column, half + j, a, m);
    }
    for (int i = 0; i < sides; i++)
        line(half + i * a, to + i * sides, 1, m);
}

/* V of one tile, [point][c]. */
static void tile_in(const struct weft_conv_shape *s, float *v, const float *x, int64_t row, int64_t column, int m)
{
    const int a = m + 2;
    for (int64_t c = 0; c < s->c; c++) {
        float seen[WEFT_WINOGRAD_POINTS], point[WEFT_WINOGRAD_POINTS];
        for (int q = 0; q < a * a; q++) {
            const int64_t h = row - s->pad[1] + q / a, w = column - s->pad[2] + q % a;
            const bool inside = h >= 0 && h < s->in[1] && w >= 0 && w < s->in[2];
            seen[q] = inside ? x[h * s->x_at[1] + w * s->x_at[2] + c * s->x_c] : 0.0f;
        }
        both(line_in, seen, point, a, m);
        for (int q = 0; q < a * a; q++)
            v[q * s->c + c] = point[q];
    }
}

/* Results of a group, of a tile that begins at `pixel`, to y. */
static void tile_store(const struct weft_conv *conv, const struct weft_conv_shape *s, const struct weft_conv_data *data,
                       int64_t n, int64_t o, const int64_t pixel[3], const float *out, int m)
{
    for (int i = 0; i < m * m; i++) {
        const int64_t h = pixel[1] + i / m, w = pixel[2] + i % m;
        if (h >= s->out[1] || w >= s->out[2])
            continue;
        const struct weft_conv_piece piece = weft_conv_piece(s, data, n, o, 1, h * s->out[2] + w, 1);
        const float biased = data->bias ? out[i] + data->bias[o] : out[i];
        *piece.data = conv->clamp.given && !conv->residual ? weft_clamped(&conv->clamp, biased) : biased;
        if (conv->residual)
            weft_conv_add_residual(conv, s, data, &piece);
        if (conv->epilogue)
            conv->epilogue(data->user, &piece);
    }
}

/* Result o of a group for one tile. The panels of u have one column each. */
static void tile_out(const struct weft_conv_shape *s, const struct weft_winograd *p, float *out, const float *v,
                     const float *u, int64_t o, int m)
{
    const int points = (m + 2) * (m + 2);
    float sum[WEFT_WINOGRAD_POINTS];
    for (int q = 0; q < points; q++) {
        const float *weight = u + o / WEFT_WINOGRAD_PASS * p->pass_size + q * p->u_point;
        weight += o % WEFT_WINOGRAD_PASS * s->c;
        sum[q] = 0;
        for (int64_t c = 0; c < s->c; c++)
            sum[q] = fmaf(v[q * s->c + c], weight[c], sum[q]);
    }
    both(line_out, sum, out, m, m);
}

static void winograd(const struct weft_conv *conv, const struct weft_conv_data *data, int part, int parts, int m)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    const struct weft_winograd p = weft_winograd_plan(conv, &s, m);
    const int64_t size = weft_conv_group_size(&conv->packing), tiles = p.rows * p.columns;
    const int64_t total = s.groups * s.n * tiles;
    float *v = data->scratch, *packed = v + p.v_size + p.m_size + p.band_size;
    int64_t last = -1;
    for (int64_t i = weft_cut_evenly(total, parts, part); i < weft_cut_evenly(total, parts, part + 1); i++) {
        const int64_t g = i / tiles / s.n, n = i / tiles % s.n;
        const int64_t pixel[3] = {0, i % tiles / p.columns * m, i % p.columns * m};
        if (!conv->w_packed && last != g)
            weft_conv_pack_group(conv, &s, packed, data->w, g);
        last = g;
        tile_in(&s, v, data->x + n * s.x_n + g * s.c * s.x_c, pixel[1], pixel[2], m);
        for (int64_t o = 0; o < s.o; o++) {
            float out[16];
            tile_out(&s, &p, out, v, conv->w_packed ? data->w + g * size : packed, o, m);
            tile_store(conv, &s, data, n, g * s.o + o, pixel, out, m);
        }
    }
}

void weft_conv_f32_winograd_2__ref(const struct weft_conv *conv, const struct weft_conv_data *data, int part,
                                   int parts)
{
    winograd(conv, data, part, parts, 2);
}
void weft_conv_f32_winograd_4__ref(const struct weft_conv *conv, const struct weft_conv_data *data, int part,
                                   int parts)
{
    winograd(conv, data, part, parts, 4);
}

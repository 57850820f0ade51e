/* SPDX-License-Identifier: Apache-2.0 */
/* direct.c: what DIRECT copies, and its weights. */
#include "kernels/conv/direct.h"

#include <string.h>

enum {
    BAND_FLOATS = 64 << 10, /* beside a panel of weights in the second-level cache */
    ALIAS = 1024,           /* planes a multiple of so many floats apart share the lines of the first-level cache */
    FEW = 8,                /* channels, which its ways can hold all the same */
    TURNED = 16,            /* channels from which on planes are turned into pixels for a band: they fill vectors */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static bool inside(const struct weft_conv_shape *s)
{
    for (int d = 0; d < 3; d++) {
        const int64_t reach = (s->out[d] - 1) * s->stride[d] + (s->kernel[d] - 1) * s->dilation[d] + 1 - s->pad[d];
        if (s->pad[d] != 0 || reach > s->in[d])
            return false;
    }
    return true;
}

static void lay_band(struct weft_direct *p, const struct weft_conv_shape *s)
{
    const bool turned = s->x_c != 1 && s->x_at[2] == 1 && s->c >= TURNED;
    const bool planes = s->x_c != 1 && s->c > 1 && !turned;
    const int64_t pixel = planes ? 1 : turned ? weft_conv_aligned(s->c) : s->c;
    const int64_t window = (s->kernel[1] - 1) * s->dilation[1] + 1;
    p->columns = (s->out[2] - 1) * s->stride[2] + (s->kernel[2] - 1) * s->dilation[2] + 1;
    const int64_t pitch = planes ? weft_conv_aligned(p->columns) : p->columns * pixel;
    const int64_t fits = (BAND_FLOATS / (pitch * s->kernel[0] * (planes ? s->c : 1)) - window) / s->stride[1] + 1;
    p->rows = smaller(s->out[1], larger(1, fits));
    p->rows = weft_pieces(s->out[1], weft_pieces(s->out[1], p->rows));
    p->in_rows = (p->rows - 1) * s->stride[1] + window;
    p->at[2] = pixel, p->at[1] = pitch, p->at[0] = p->in_rows * pitch;
    p->channel = planes ? s->kernel[0] * p->at[0] + 16 : 1;
    p->band_size = planes ? s->c * p->channel : s->kernel[0] * p->at[0] + 16 * pixel; /* behind it: whole vectors */
    p->band_size = weft_conv_aligned(p->band_size + WEFT_CONV_SLACK);
}

struct weft_direct weft_direct_plan(const struct weft_conv *conv, const struct weft_conv_shape *s)
{
    struct weft_direct p = {.channel = s->x_c, .at = {s->x_at[0] * s->dilation[0], s->x_at[1], s->x_at[2]}};
    p.in_place = inside(s) && (s->c <= FEW || s->x_c % ALIAS != 0);
    p.rows = s->out[1];
    if (!p.in_place)
        lay_band(&p, s);
    const bool joined = p.channel == 1 && s->dilation[2] == 1 && (p.at[2] == s->c || s->kernel[2] == 1);
    p.run = joined ? s->kernel[2] * s->c : s->c;
    p.runs = joined ? s->kernel[0] * s->kernel[1] : s->taps;
    if (p.run * 2 > WEFT_DIRECT_DEPTH && joined)
        p.run = s->c, p.runs = s->taps;
    p.offsets_size = weft_conv_aligned(2 * p.runs);
    p.block_size = s->y_rows ? 0 : WEFT_DIRECT_BLOCK * conv->gemm.kernel->columns;
    return p;
}

void weft_direct_pack(const struct weft_conv *conv, const struct weft_conv_shape *s, float *pack,
                      const weft_loose_f32 *w)
{
    const struct weft_gemm_kernel *kernel = conv->gemm.kernel;
    for (int64_t j = 0; j < weft_direct_panels(kernel, s->o); j++) {
        const struct weft_direct_panel panel = weft_direct_panel(kernel, s->o, j);
        for (int64_t t = 0; t < s->taps; t++, pack += s->c * panel.width) {
            int64_t tap[3];
            weft_conv_unravel(s->kernel, t, tap);
            const weft_loose_f32 *from = w + panel.first * s->w_o + weft_conv_offset(tap, s->w_at);
            weft_gemm_gather(kernel, pack, panel.width, from, s->w_c, s->w_o, s->c, panel.columns);
            for (int64_t c = 0; panel.columns < panel.width && c < s->c; c++)
                memset(pack + c * panel.width + panel.columns, 0,
                       (size_t)(panel.width - panel.columns) * sizeof *pack);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* direct.c: what DIRECT copies, which taps it leaves out, and its weights. */
#include "kernels/conv/direct.h"
#include "kernels/walk.h"

#include <math.h>
#include <string.h>

enum {
    BAND_FLOATS = 64 << 10, /* beside a panel of weights in the second-level cache */
    ALIAS = 1024,           /* planes a multiple of so many floats apart share the lines of the first-level cache */
    FEW = 8,                /* channels, which its ways can hold all the same */
    TURNED = 16,            /* channels from which on planes are turned into pixels for a band: they fill vectors */
};

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* The axes along which windows reach over the border, as bits. */
static int32_t open_axes(const struct weft_conv_shape *s)
{
    int32_t bits = 0;
    for (int d = 0; d < 3; d++) {
        const int64_t reach = (s->out[d] - 1) * s->stride[d] + (s->kernel[d] - 1) * s->dilation[d] + 1 - s->pad[d];
        bits |= (s->pad[d] > 0 || reach > s->in[d]) << d;
    }
    return bits;
}

static bool is_in_place(const struct weft_conv_shape *s, int32_t skips)
{
    const int32_t open = open_axes(s);
    if (s->x_c == 1)
        return (open & ~skips) == 0;
    return open == 0 && (s->c <= FEW || s->x_c % ALIAS != 0);
}

/* Rows of a band: those from the first to the last that the rows of y see, or only those that some tap sees. */
static void lay_rows(struct weft_direct *p, const struct weft_conv_shape *s, int64_t fits)
{
    const int64_t window = (s->kernel[1] - 1) * s->dilation[1] + 1;
    const int64_t apart = larger(1, (fits / s->kernel[1] - 1) / s->stride[1] + 1);
    const bool gaps = s->kernel[1] > 1 && (apart - 1) * s->stride[1] + 1 < s->dilation[1];
    p->rows = smaller(s->out[1], gaps ? apart : larger(1, (fits - window) / s->stride[1] + 1));
    p->rows = weft_pieces(s->out[1], weft_pieces(s->out[1], p->rows));
    p->groups = gaps ? s->kernel[1] : 1;
    p->group = (p->rows - 1) * s->stride[1] + (gaps ? 1 : window);
}

/* Are planes turned into pixels, where there is a band? */
static bool is_turned(const struct weft_conv_shape *s)
{
    return s->x_c != 1 && s->x_at[2] == 1 && s->c >= TURNED;
}

static void lay_band(struct weft_direct *p, const struct weft_conv_shape *s)
{
    const bool turned = is_turned(s);
    const bool planes = s->x_c != 1 && s->c > 1 && !turned;
    const int64_t pixel = planes ? 1 : turned ? weft_conv_aligned(s->c) : s->c;
    p->columns = (s->out[2] - 1) * s->stride[2] + (s->kernel[2] - 1) * s->dilation[2] + 1;
    const int64_t pitch = planes ? weft_conv_aligned(p->columns) : p->columns * pixel;
    lay_rows(p, s, BAND_FLOATS / (pitch * s->kernel[0] * (planes ? s->c : 1)));
    p->at[2] = pixel, p->at[1] = pitch, p->at[0] = p->groups * p->group * pitch;
    p->tap_row = p->groups > 1 ? p->group * pitch : s->dilation[1] * pitch;
    p->channel = planes ? s->kernel[0] * p->at[0] + 16 : 1;
    p->band_size = planes ? s->c * p->channel : s->kernel[0] * p->at[0] + 16 * pixel; /* behind it: whole vectors */
    p->band_size = weft_conv_aligned(p->band_size + WEFT_CONV_SLACK);
}

struct weft_direct weft_direct_plan(const struct weft_conv *conv, const struct weft_conv_shape *s, int32_t skips)
{
    struct weft_direct p = {.channel = s->x_c, .at = {s->x_at[0] * s->dilation[0], s->x_at[1], s->x_at[2]}};
    p.in_place = is_in_place(s, skips);
    p.rows = s->out[1];
    p.tap_row = s->x_at[1] * s->dilation[1];
    if (!p.in_place)
        lay_band(&p, s);
    p.list_size = weft_conv_aligned(4 * s->taps);
    p.block_size = s->y_rows ? 0 : (WEFT_DIRECT_BLOCK + WEFT_CONV_SLACK) * conv->gemm.kernel->columns;
    return p;
}

/* --- taps in the padding ------------------------------------------------------------------------------------------ */

static int64_t quotient_up(int64_t a, int64_t b) { return a <= 0 ? 0 : b == 1 ? a : (a + b - 1) / b; }

struct weft_direct_axis weft_direct_axis(const struct weft_conv_shape *s, int d, bool exact)
{
    struct weft_direct_axis axis = {.exact = exact};
    const int64_t pad = s->pad[d], results = s->out[d];
    for (int64_t i = 0; exact && i < results && axis.count < WEFT_DIRECT_CLASSES; axis.count++) {
        int64_t next = results;
        for (int64_t t = 0; t < s->kernel[d]; t++) { /* the results with which it comes in and goes out */
            const int64_t in = quotient_up(pad - t * s->dilation[d], s->stride[d]);
            const int64_t out = quotient_up(pad - t * s->dilation[d] + s->in[d], s->stride[d]);
            next = in > i && in < next ? in : next;
            next = out > i && out < next ? out : next;
        }
        axis.first[axis.count] = i;
        weft_conv_inside(i * s->stride[d] - pad, s->dilation[d], s->in[d], s->kernel[d], &axis.from[axis.count],
                         &axis.to[axis.count]);
        i = next;
        axis.first[axis.count + 1] = i;
    }
    if (!exact || axis.first[axis.count] != results)
        axis = (struct weft_direct_axis){.count = 1, .first = {0, results}, .to = {s->kernel[d]}};
    return axis;
}

/* Cycles, about: of a tile besides its multiply-adds, of a tap in it, of one whose few channels are planes and so a
 * loop of their own, of an area besides its tiles, of a vector of a result that is turned, of one of x that is copied
 * to a band; or turned for a band that the second-level cache holds, or for a larger one (60, of 40 to 90 that rows of
 * 4000 and more took on Zen 4). */
#define TILE_COST       40
#define TAP_COST        5
#define FEW_COST        20
#define AREA_COST       250
#define RESULT_COST     42
#define BAND_COST       2
#define NEAR_TURN_COST  20
#define FAR_TURN_COST   60
#define NEAR_FLOATS     (128 << 10) /* of a band: half of a second-level cache of 1 MiB */

/* What an image takes by areas. Tiles of one pixel wait for the weights and take as long as those of two. */
static double area_costs(const struct weft_conv_shape *s, const struct weft_direct_axis axis[3], int64_t lanes)
{
    const double tap_cost = s->x_c != 1 && s->c > 1 && s->c < TURNED ? FEW_COST : TAP_COST;
    const int64_t all = weft_pieces(s->o, lanes), vectors = smaller(all, 4), rows = vectors == 4 ? 6 : 8;
    double sum = 0;
    for (int64_t i = 0; i < axis[0].count * axis[1].count * axis[2].count; i++) {
        const int64_t at[3] = {i / axis[2].count / axis[1].count, i / axis[2].count % axis[1].count,
                               i % axis[2].count};
        int64_t taps = 1, pixels = 1, extent = 0;
        for (int d = 0; d < 3; d++) {
            extent = axis[d].first[at[d] + 1] - axis[d].first[at[d]];
            taps *= axis[d].to[at[d]] - axis[d].from[at[d]], pixels *= extent;
        }
        const double tiles = (double)weft_pieces(pixels, rows);
        const double work = larger(pixels, 2) * (double)(taps * s->c * vectors);
        const double turns = s->y_rows ? 0 : (double)(pixels / extent * weft_pieces(extent, lanes) * vectors);
        sum += AREA_COST + tiles * (TILE_COST + tap_cost * (double)taps) + work + RESULT_COST * turns;
    }
    return sum * (double)all / (double)vectors;
}

/* What it takes to copy bands. */
static double band_costs(const struct weft_conv *conv, const struct weft_conv_shape *s, int32_t skips)
{
    const struct weft_direct p = weft_direct_plan(conv, s, skips);
    if (p.in_place)
        return 0;
    const int64_t rows = s->out[0] * weft_pieces(s->out[1], p.rows) * p.groups * p.group * s->kernel[0];
    const double turned = p.band_size > NEAR_FLOATS ? FAR_TURN_COST : NEAR_TURN_COST;
    const int64_t vectors = rows * p.columns * weft_pieces(s->c, conv->gemm.kernel->lanes);
    return (is_turned(s) ? turned : BAND_COST) * (double)vectors;
}

/* `ret_skips`: the axes along which it pays to leave out taps. */
static double least_costs(const struct weft_conv *conv, const struct weft_conv_shape *s, int32_t *ret_skips)
{
    int32_t open = s->bordered ? open_axes(s) : 0;
    struct weft_direct_axis whole[3], parts[3];
    double least = 0;
    *ret_skips = 0;
    for (int d = 0; d < 3; d++) {
        whole[d] = weft_direct_axis(s, d, false);
        if (open >> d & 1)
            parts[d] = weft_direct_axis(s, d, true);
        if (open >> d & 1 && !parts[d].exact)
            open &= ~(1 << d);
    }
    for (int32_t skips = 0; skips < 8; skips++) {
        struct weft_direct_axis axis[3];
        if ((skips & ~open) != 0)
            continue;
        for (int d = 0; d < 3; d++)
            axis[d] = skips >> d & 1 ? parts[d] : whole[d];
        const double cost = area_costs(s, axis, conv->gemm.kernel->lanes) + band_costs(conv, s, skips);
        if (skips == 0 || cost < least)
            least = cost, *ret_skips = skips;
    }
    return least;
}

void weft_direct_weigh(struct weft_conv *conv, const struct weft_conv_shape *s)
{
    const int32_t lanes = (int32_t)conv->gemm.kernel->lanes;
    if (conv->direct_lanes == lanes)
        return;
    conv->direct = least_costs(conv, s, &conv->skips);
    conv->direct_lanes = lanes;
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

/* Are `count` floats all finite? */
static bool are_finite(const float *x, int64_t count)
{
    typedef uint32_t bits __attribute__((vector_size(16)));
    const bits exponent = {0x7f800000, 0x7f800000, 0x7f800000, 0x7f800000};
    bits infinite = {0};
    for (int64_t i = 0; i + 4 <= count; i += 4) {
        bits four;
        memcpy(&four, x + i, sizeof four);
        infinite |= (bits)((four & exponent) == exponent);
    }
    bool finite = !(infinite[0] | infinite[1] | infinite[2] | infinite[3]);
    for (int64_t i = count - count % 4; i < count; i++)
        finite &= fabsf(x[i]) < INFINITY;
    return finite;
}

bool weft_direct_are_finite(const struct weft_gemm_kernel *kernel, int64_t o, int64_t terms, const float *pack)
{
    const float *const flag = pack + weft_direct_flags(kernel, o, terms);
    bool finite = true;
    for (int i = 0; i < WEFT_CONV_PACK_PARTS; i++)
        finite = finite && flag[i] != 0;
    return finite;
}

void weft_direct_pack_begin(struct weft_direct_packing *d, const struct weft_packing *p, float *pack, int part,
                            int parts)
{
    float *const flag = pack + weft_direct_flags(weft_packing_kernel(p), p->o, weft_packing_terms(p));
    *d = (struct weft_direct_packing){.to = pack, .flag = flag + part};
    weft_share(weft_direct_panels(weft_packing_kernel(p), p->o) * weft_packing_taps(p), 1, part, parts, &d->begin,
               &d->end);
    *d->flag = 1;
    for (int i = parts; part == 0 && i < WEFT_CONV_PACK_PARTS; i++)
        flag[i] = 1;
}

void weft_direct_pack_tap(struct weft_direct_packing *d, const struct weft_packing *p,
                          const struct weft_direct_panel *panel, const weft_loose_f32 *from,
                          const struct weft_conv_weights *at)
{
    const int64_t spare = panel->width - panel->columns, floats = p->c * panel->width;
    float *const to = d->to;
    d->to += floats;
    const int64_t number = d->next++;
    if (number < d->begin || number >= d->end)
        return;
    weft_gemm_gather(weft_packing_kernel(p), to, panel->width, from, at->c, at->o, p->c, panel->columns);
    for (int64_t c = 0; spare > 0 && c < p->c; c++)
        memset(to + c * panel->width + panel->columns, 0, (size_t)spare * sizeof *to);
    if (!are_finite(to, floats))
        *d->flag = 0;
}

void weft_direct_pack(const struct weft_packing *p, float *pack, const weft_loose_f32 *w,
                      const struct weft_conv_weights *at, int part, int parts)
{
    const struct weft_gemm_kernel *const kernel = weft_packing_kernel(p);
    struct weft_direct_packing d;
    weft_direct_pack_begin(&d, p, pack, part, parts);
    for (int64_t j = 0; j < weft_direct_panels(kernel, p->o); j++) {
        const struct weft_direct_panel panel = weft_direct_panel(kernel, p->o, j);
        for (int64_t t = 0; t < weft_packing_taps(p); t++) {
            int64_t tap[3];
            weft_conv_unravel(p->taps, t, tap);
            weft_direct_pack_tap(&d, p, &panel, w + panel.first * at->o + weft_conv_offset(tap, at->tap), at);
        }
    }
}

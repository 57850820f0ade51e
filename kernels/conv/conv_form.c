/* SPDX-License-Identifier: Apache-2.0 */
/* conv_form.c: which forms fit a convolution, which of them it takes, and what their loops cost. The form follows from
 * sizes and the strides of y, since results are written once and in vectors, while x is copied anyway; only the POINT
 * forms, SLIDE and CHANNELS look at the strides of x too. */
#include "kernels/conv/costs.h"
#include "kernels/conv/direct.h"
#include "kernels/conv/phases.h"
#include "kernels/conv/transposed.h"
#include "kernels/conv/winograd.h"

/* --- forms -------------------------------------------------------------------------------------------------------- */

/* Pixels of x and of y are one axis each, of the same length, and one tap covers them. */
static bool is_point(const struct weft_conv_shape *s)
{
    int64_t run = 1;
    for (int d = 2; d >= 0; d--) {
        if (s->kernel[d] != 1 || s->stride[d] != 1 || s->pad[d] != 0 || s->in[d] != s->out[d])
            return false;
        if (s->in[d] != 1 && s->x_at[d] != run * s->x_at[2])
            return false;
        run *= s->in[d];
    }
    return s->line == s->pixels;
}

enum { COLUMNS_LANES = 16, PIECE = 370 }; /* PIECE: cycles of WINDOWS for sixteen channels besides their pixels */

/* What an image of a group costs by COLUMNS, in vectors of multiply-adds: a vector of a tap is gathered in the time of
 * a dozen, at steps that no vectors deal out in that of sixty, besides what a row takes for each tap. */
static double columns_costs(const struct weft_conv_shape *s, bool point)
{
    const double across = (double)weft_pieces(s->line, COLUMNS_LANES) * (double)s->pixels / (double)s->line;
    const double rows = (double)(s->pixels / s->out[2]) * (double)weft_pieces(s->out[2], 64);
    const double gather = point ? 0 : 12 * rows + (s->stride[2] <= 2 ? 12 : 60) * across;
    return (double)s->k * (across * (double)s->o + gather);
}

/* Depthwise by tiles that know the window. Planes are turned for it, which takes as long as a window of 3x3. */
static bool windows_fit(const struct weft_conv_shape *s)
{
    const int64_t across = s->kernel[2];
    if (s->groups < 8 || s->c != 1 || s->o != 1 || (across != 3 && across != 5 && across != 7) || s->kernel[1] > 7)
        return false;
    for (int d = 1; d < 3; d++) {
        if (s->dilation[d] != 1 || s->stride[d] > 2)
            return false;
    }
    return (s->x_c == 1 || s->x_at[2] == 1) && (s->y_rows || s->y_at[2] == 1);
}

/* Cycles of SLIDE for sixteen planes, and of WINDOWS for sixteen channels of planes that are turned: as measured with
 * windows of 3x3 to 7x7 on maps of 7 to 112, to a tenth. */
static double slide_cycles(const struct weft_conv_shape *s)
{
    enum { ROWS = 7, PLANE = 52 }; /* SLIDE_ROWS of AVX-512; what a plane takes besides */
    const double taps = (double)s->taps, vector = s->stride[2] == 1 ? 1.4 * taps : 1.85 * taps + 7.4;
    const int64_t rows = weft_pieces(s->out[1], ROWS) * ROWS, strips = weft_pieces(s->out[2], 16);
    return 16 * ((double)(rows * strips) * vector + PLANE);
}
static double turned_cycles(const struct weft_conv_shape *s)
{
    const double turns = 5.8 * (double)(1 + s->stride[1] * s->stride[2]);
    return (double)(s->out[1] * s->out[2]) * (1.03 * (double)s->taps + turns) + PIECE;
}

/* Depthwise in planes whose rows are contiguous. */
static bool slide_fits(const struct weft_conv_shape *s)
{
    const bool rows = s->x_at[2] == 1 && s->y_at[2] == 1 && !s->y_rows;
    const bool steps = s->stride[2] == 1 || (s->stride[2] == 2 && s->dilation[2] == 1);
    return s->groups >= 2 && s->c == 1 && s->o <= 2 && rows && steps && s->dilation[1] == 1;
}

/* Where WINDOWS could do it, too, times are weighed: rows that do not fill vectors and pairs of loads against turning x
 * and y. Sixteen registers of AVX2 hold neither weights nor masks, which leaves sliding behind. */
static bool slide_pays(const struct weft_conv_shape *s, uint32_t cpu)
{
    if (!slide_fits(s))
        return false;
    if (!windows_fit(s))
        return s->out[2] > 4;
    if (!(cpu & WEFT_CPU_AVX512))
        return false;
    const double planes = (double)s->groups / 16, channels = (double)weft_pieces(s->groups, 16);
    return planes * slide_cycles(s) < channels * turned_cycles(s);
}

/* Groups that fill vectors together, by tiles that know the window. */
static bool grouped_windows_fit(const struct weft_conv_shape *s)
{
    const bool even = s->c == s->o && (s->c == 2 || s->c == 4 || s->c == 8);
    if (!even || s->groups * s->o < 16 || s->kernel[2] != 3 || s->kernel[1] > 7)
        return false;
    for (int d = 1; d < 3; d++) {
        if (s->dilation[d] != 1 || s->stride[d] > 2)
            return false;
    }
    return (s->x_c == 1 || s->x_at[2] == 1) && (s->y_rows || s->y_at[2] == 1);
}

/* Groups that leave most lanes of a vector empty, which sixteen results of several groups fill. One tap or few results
 * in all do not pay for the band. */
static bool groups_fit(const struct weft_conv_shape *s)
{
    const bool x_fits = s->x_c == 1 || s->x_at[2] == 1, y_fits = s->y_rows || s->y_at[2] == 1;
    return s->groups * s->o >= 16 && s->o <= 4 && s->c > 1 && s->c <= 16 && s->taps > 1 && x_fits && y_fits;
}

/* Of the forms for windows of several channels that which costs least. */
static enum weft_conv_form cheapest(struct weft_conv *conv, const struct weft_conv_shape *s, bool along)
{
    weft_direct_weigh(conv, s);
    const bool point = is_point(s);
    const double lanes = (double)conv->gemm.kernel->lanes, columns = columns_costs(s, point) * COLUMNS_LANES / lanes;
    const double direct = conv->direct;
    if (!point && weft_phases_fit(s)) {
        const double phases = weft_phases_costs(s, conv->gemm.kernel->lanes);
        if (phases < direct && phases < columns)
            return WEFT_CONV_PHASES;
    }
    if (!along || direct <= columns)
        return WEFT_CONV_DIRECT;
    return point ? WEFT_CONV_POINT_COLUMNS : WEFT_CONV_COLUMNS;
}

/* One spatial axis or two, and no padding along the third. */
static bool is_flat(const struct weft_conv_shape *s)
{
    return s->in[0] == 1 && s->out[0] == 1 && s->kernel[0] == 1 && s->pad[0] == 0;
}
static bool runs_along(const struct weft_conv_shape *s)
{
    return !s->y_rows && (s->y_at[2] == 1 || s->line == 1);
}
static bool planes_fit(const struct weft_conv_shape *s)
{
    return is_flat(s) && s->groups > 1 && s->c == 1 && runs_along(s) && s->o <= 2;
}
static bool channels_fit(const struct weft_conv_shape *s)
{
    return is_flat(s) && s->groups > 1 && s->c == 1 && s->y_rows && s->o == 1 && s->x_c == 1;
}

/* What the loops of a form are made for: those across channels or groups not for fewer than fill a vector. */
static bool fits(const struct weft_conv *conv, const struct weft_conv_shape *s, enum weft_conv_form form)
{
    if (s->adjoint)
        return form == WEFT_CONV_TRANSPOSED || form == WEFT_CONV_PLAIN;
    switch (form) {
    case WEFT_CONV_PLAIN: case WEFT_CONV_DIRECT: return true;
    case WEFT_CONV_COLUMNS: return runs_along(s) && !is_point(s);
    case WEFT_CONV_PHASES: return !is_point(s) && weft_phases_fit(s);
    case WEFT_CONV_POINT_COLUMNS: return is_point(s) && runs_along(s);
    case WEFT_CONV_POINT_ROWS: return is_point(s) && s->y_rows;
    case WEFT_CONV_PLANES: return planes_fit(s);
    case WEFT_CONV_SLIDE: return is_flat(s) && slide_fits(s);
    case WEFT_CONV_CHANNELS: return channels_fit(s);
    case WEFT_CONV_WINDOWS: return is_flat(s) && windows_fit(s);
    case WEFT_CONV_GROUPED_WINDOWS: return is_flat(s) && grouped_windows_fit(s);
    case WEFT_CONV_GROUPED: return is_flat(s) && groups_fit(s);
    case WEFT_CONV_TRANSPOSED: return false;
    case WEFT_CONV_WINOGRAD_2: return weft_winograd_fits(conv, s);
    case WEFT_CONV_WINOGRAD_4: return weft_winograd_fits(conv, s) && conv->arithmetic == WEFT_CONV_F4;
    }
    return false;
}

bool weft_conv_fits(const struct weft_conv *conv, int form)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    return fits(conv, &s, (enum weft_conv_form)form);
}

bool weft_conv_is_made(const struct weft_conv *conv)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    bool is = s.groups == 1 && !conv->transposed;
    for (int d = 0; d < 3; d++)
        is = is && s.kernel[d] == 1 && s.stride[d] == 1 && s.pad[d] == 0 && s.in[d] == s.out[d];
    return is;
}

enum weft_conv_form weft_conv_choose(struct weft_conv *conv, const struct weft_conv_shape *s)
{
    if (conv->prologue)
        return s->y_rows ? WEFT_CONV_POINT_ROWS : WEFT_CONV_POINT_COLUMNS;
    if (conv->wanted && fits(conv, s, (enum weft_conv_form)(conv->wanted - 1)))
        return (enum weft_conv_form)(conv->wanted - 1);
    if (s->adjoint)
        return WEFT_CONV_TRANSPOSED;
    const int m = weft_winograd_choose(conv, s);
    if (m != 0)
        return m == 2 ? WEFT_CONV_WINOGRAD_2 : WEFT_CONV_WINOGRAD_4;
    const bool flat = is_flat(s);
    if (flat && slide_pays(s, conv->cpu))
        return WEFT_CONV_SLIDE;
    if (flat && windows_fit(s))
        return WEFT_CONV_WINDOWS;
    if (flat && grouped_windows_fit(s))
        return WEFT_CONV_GROUPED_WINDOWS;
    if (flat && groups_fit(s))
        return WEFT_CONV_GROUPED;
    if (channels_fit(s))
        return WEFT_CONV_CHANNELS;
    if (planes_fit(s))
        return WEFT_CONV_PLANES;
    const bool point = is_point(s);
    if (point && s->y_rows)
        return WEFT_CONV_POINT_ROWS;
    return cheapest(conv, s, runs_along(s));
}

/* --- what it takes ------------------------------------------------------------------------------------------------ */

/* Vectors of multiply-adds of an adjoint, all phases together: a tile of eight pixels, and what turns results that lie
 * along the pixels, take about what they do in DIRECT. */
static double transposed_costs(const struct weft_conv_shape *s, int64_t lanes)
{
    enum { TILE = 40, TURN = 25 };
    const int64_t vectors = weft_pieces(s->o, lanes), phases = s->stride[0] * s->stride[1] * s->stride[2];
    const double work = (double)(s->in[0] * s->in[1] * s->in[2] * vectors) * (double)s->k;
    const double tiles = (double)(phases * weft_pieces(s->pixels / phases, 8) * vectors);
    const double turns = s->y_rows ? 0 : (double)(s->pixels / s->out[2] * weft_pieces(s->out[2], lanes) * vectors);
    return work + TILE * tiles + TURN * turns;
}

/* The same of one tap. What lies across the vectors is turned as it is packed; and a little depth then leaves results
 * that are written a piece of each row at a time. */
static double point_costs(const struct weft_conv_shape *s, int64_t lanes)
{
    enum { TILE = 40, ROWS = 6, TURN = 4, PIECES = 5, LITTLE = 128 };
    const int64_t columns = s->y_rows ? s->o : s->pixels, rows = s->y_rows ? s->pixels : s->o;
    const double vectors = (double)weft_pieces(columns, lanes), all = (double)rows * vectors;
    const double tiles = (double)weft_pieces(rows, ROWS) * (double)weft_pieces(columns, 4 * lanes);
    const bool turns = s->y_rows ? s->x_c != 1 && s->c > 1 : s->x_at[2] != 1 && s->pixels > 1;
    const double x = (double)weft_pieces(s->pixels, lanes) * (double)s->c;
    return all * (double)s->k + TILE * tiles + (turns ? TURN * x : 0) +
           (turns && !s->y_rows && s->k <= LITTLE ? PIECES * all : 0);
}

/* Windows over channels: cycles of sixteen, and what turns planes. Sixteen that are not all there are masked. */
static double windows_costs(const struct weft_conv_shape *s)
{
    const double turns = (s->x_c != 1 ? 4 * (double)(s->stride[1] * s->stride[2]) : 0) + (s->y_rows ? 0 : 4);
    const double mask = s->groups % 16 ? 1.3 : 1;
    return (double)weft_pieces(s->groups, 16) *
           (mask * (double)s->pixels * ((double)s->taps + turns) + PIECE);
}

enum weft_conv_kind weft_conv_kind(const struct weft_conv *conv, double *ret_products)
{
    const struct weft_conv_shape s = weft_conv_shape(conv);
    const int64_t lanes = conv->gemm.kernel->lanes;
    const double images = (double)(s.n * s.groups), each = images * (double)weft_gemm_find(conv->cpu)->lanes;
    *ret_products = 0;
    switch (weft_conv_kernels[conv->form].form) {
    case WEFT_CONV_COLUMNS:
        *ret_products = images * COLUMNS_LANES * columns_costs(&s, /* point= */ false);
        return WEFT_CONV_KIND_DIRECT;
    case WEFT_CONV_DIRECT:
        *ret_products = each * conv->direct;
        return WEFT_CONV_KIND_DIRECT;
    case WEFT_CONV_PHASES:
        *ret_products = each * weft_phases_costs(&s, lanes);
        return WEFT_CONV_KIND_DIRECT;
    case WEFT_CONV_TRANSPOSED:
        *ret_products = each * transposed_costs(&s, lanes);
        return WEFT_CONV_KIND_DIRECT;
    case WEFT_CONV_POINT_COLUMNS: case WEFT_CONV_POINT_ROWS:
        *ret_products = each * point_costs(&s, lanes);
        return WEFT_CONV_KIND_POINT;
    case WEFT_CONV_WINOGRAD_2: case WEFT_CONV_WINOGRAD_4:
        return WEFT_CONV_KIND_WINOGRAD;
    case WEFT_CONV_WINDOWS:
        *ret_products = (double)s.n * 16 * windows_costs(&s);
        return WEFT_CONV_KIND_CHANNELS;
    case WEFT_CONV_CHANNELS:
        return WEFT_CONV_KIND_CHANNELS;
    case WEFT_CONV_PLANES: case WEFT_CONV_SLIDE:
        return WEFT_CONV_KIND_PLANES;
    case WEFT_CONV_PLAIN: case WEFT_CONV_GROUPED_WINDOWS: case WEFT_CONV_GROUPED:
        break;
    }
    return WEFT_CONV_KIND_OTHER;
}

int weft_conv_winograd(const struct weft_conv *conv) { return weft_winograd_of(weft_conv_kernels[conv->form].form); }

/* SPDX-License-Identifier: Apache-2.0 */
/* check_conv.c: every kernel of conv.def against the chain that conv.h defines, bit for bit; WINOGRAD against its own
 * reference, bit for bit, and that against the exact convolution by a bound.
 *
 * Cases are drawn until dispatch takes the kernel under test: one to three axes, groups, depthwise, dilation, stride,
 * padding that differs before and after, arrays in either order of channels and with gaps, weights packed or not, with
 * or without bias, residual, clamp, prologue and epilogue, which may fold pixels, 1 to 40 parts in reverse order.
 * The whole buffer of y is compared. */
#include "check/check_conv_fold.h"
#include "kernels/conv/share.h"
#include "kernels/conv/winograd.h"
#include "check/clamp_definition.h"
#include "check/winograd_definition.h"

#include <math.h>
#include <stdio.h>

enum { CASES = 250, SLOW_CASES = 60, TRIES = 200, BOUNDED = 20 };

/* Strides of an array with channels in front of (0) or behind (1) the spatial axes, or with no unit stride in either
 * (2); returns the elements from the first to the last one. */
static int64_t choose_strides(struct weft_check *check, int64_t kind, int32_t spatial, const int64_t extent[5],
                              int64_t ret_stride[5])
{
    const int32_t rank = 2 + spatial;
    const int64_t gap = weft_check_between(check, 0, 2) == 0 ? weft_check_between(check, 1, 4) : 0;
    int64_t run = kind == 2 ? 2 : 1, last = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        const int32_t axis = kind != 1 || i == 0 ? i : i == rank - 1 ? 1 : i + 1;
        ret_stride[axis] = run;
        last += (extent[axis] - 1) * run;
        run = run * extent[axis] + (i == rank - 1 ? gap : 0);
    }
    return last;
}

struct sizes {
    int64_t x, y, w, r;
};

/* What lets Winograd's transforms in: windows of 3x3 that move by one, and enough channels. */
static void choose_square(struct weft_check *check, struct weft_conv *v)
{
    const bool few = weft_check_between(check, 0, 3) != 0;
    v->spatial = 2, v->groups = weft_check_between(check, 0, 3) == 0 ? 2 : 1;
    v->c = v->groups * weft_check_between(check, 16, few ? 24 : 150);
    v->o = v->groups * weft_check_between(check, 8, few ? 24 : 150);
    for (int d = 0; d < 2; d++) {
        v->kernel[d] = 3, v->stride[d] = v->dilation[d] = 1, v->pad[d] = weft_check_between(check, 0, 2);
        v->in_extent[d] = weft_check_between(check, 3, weft_check_between(check, 0, 3) ? 14 : 50);
        v->out_extent[d] = v->in_extent[d] + v->pad[d] + weft_check_between(check, 0, 2) - 2;
    }
}

/* Windows and extents along one axis; `odd` windows are those of depthwise convolutions. */
static void choose_axis(struct weft_check *check, struct weft_conv *v, int d, bool point, bool three, bool odd)
{
    v->kernel[d] = point ? 1 : three ? 3 : weft_check_between(check, 1, 4);
    const bool far = weft_check_between(check, 0, 3) == 0;
    v->stride[d] = point ? 1 : weft_check_between(check, 1, 4);
    v->dilation[d] = weft_check_between(check, 1, far ? 7 : 2);
    v->pad[d] = point ? 0 : weft_check_between(check, 0, far ? 9 : 3);
    if (odd) {
        v->kernel[d] = weft_check_between(check, 1, 3) * 2 + 1, v->dilation[d] = 1;
        v->stride[d] = weft_check_between(check, 1, 2);
    }
    v->in_extent[d] = weft_check_between(check, 1, v->spatial == 1 ? 90 : v->spatial == 2 ? 18 : 6);
    const int64_t window = (v->kernel[d] - 1) * v->dilation[d] + 1;
    const int64_t padded = v->in_extent[d] + v->pad[d] + (point ? 0 : weft_check_between(check, 0, far ? 9 : 3));
    v->in_extent[d] += padded < window ? window - padded : 0;
    v->out_extent[d] = padded < window ? 1 : (padded - window) / v->stride[d] + 1;
}

static void choose_extent(struct weft_conv *v, int d, int64_t in)
{
    const int64_t window = (v->kernel[d] - 1) * v->dilation[d] + 1;
    v->in_extent[d] = in + 2 * v->pad[d] < window ? window - 2 * v->pad[d] : in;
    v->out_extent[d] = (v->in_extent[d] + 2 * v->pad[d] - window) / v->stride[d] + 1;
}

/* Few rows that are cut into pieces, or many of one result each. */
static void choose_rows(struct weft_check *check, struct weft_conv *v)
{
    const bool thin = weft_check_between(check, 0, 2) == 0;
    v->spatial = 2, v->groups = 1, v->c = weft_check_between(check, 1, 4), v->o = weft_check_between(check, 1, 20);
    for (int d = 0; d < 2; d++) {
        v->kernel[d] = weft_check_between(check, 1, 4), v->dilation[d] = 1;
        v->stride[d] = weft_check_between(check, 1, 4), v->pad[d] = weft_check_between(check, 0, v->kernel[d] - 1);
    }
    v->pad[1] = thin ? 0 : v->pad[1];
    choose_extent(v, 0, thin ? weft_check_between(check, 16, 200) : weft_check_between(check, 1, 12));
    choose_extent(v, 1, thin ? v->kernel[1] : weft_check_between(check, 100, 900));
}

/* Extents of an adjoint: up to two results more than elements and taps reach, and padding of either sign. */
static void choose_adjoint(struct weft_check *check, struct weft_conv *v)
{
    v->transposed = true;
    for (int d = 0; d < v->spatial; d++) {
        const int64_t reach = (v->kernel[d] - 1) * v->dilation[d] + 1;
        v->pad[d] = weft_check_between(check, -2, reach);
        const int64_t whole = (v->in_extent[d] - 1) * v->stride[d] + reach - v->pad[d];
        v->out_extent[d] = whole - weft_check_between(check, -2, 3);
        v->out_extent[d] = v->out_extent[d] < 1 ? 1 : v->out_extent[d];
    }
}

static struct weft_conv choose_case(struct weft_check *check, enum weft_conv_form form, struct sizes *ret_sizes)
{
    const bool windows = form == WEFT_CONV_WINDOWS && weft_check_between(check, 0, 7) != 0;
    const bool depth = windows || form == WEFT_CONV_PLANES || form == WEFT_CONV_SLIDE ||
                       form == WEFT_CONV_CHANNELS || weft_check_between(check, 0, 4) == 0;
    const bool point =
        form == WEFT_CONV_POINT_COLUMNS || form == WEFT_CONV_POINT_ROWS || weft_check_between(check, 0, 7) == 0;
    const bool deep = weft_check_between(check, 0, 31) == 0, one = windows || form == WEFT_CONV_CHANNELS;
    struct weft_conv v = {.cpu = weft_check_cpu(check), .n = weft_check_between(check, 1, 2)};
    v.spatial = depth ? (int32_t)weft_check_between(check, 1, 2) : (int32_t)weft_check_between(check, 1, 3);
    v.groups = depth ? weft_check_between(check, 2, 40) : weft_check_between(check, 0, 1) * 2 + 1;
    const int64_t c = depth ? 1 : deep ? weft_check_between(check, 200, 600) : weft_check_between(check, 1, 20);
    const int64_t o = one ? 1 : depth ? weft_check_between(check, 1, 2) : weft_check_between(check, 1, 70);
    v.c = v.groups * c, v.o = v.groups * o;
    for (int d = 0; d < v.spatial; d++)
        choose_axis(check, &v, d, point, depth && weft_check_between(check, 0, 1), windows);
    v.arithmetic = form == WEFT_CONV_WINOGRAD_2 ? WEFT_CONV_F2 : WEFT_CONV_F4;
    if (weft_winograd_of(form))
        choose_square(check, &v);
    if (form == WEFT_CONV_GROUPED && weft_check_between(check, 0, 7)) {
        v.groups = weft_check_between(check, 2, 20), v.spatial = v.spatial == 3 ? 2 : v.spatial;
        v.c = v.groups * weft_check_between(check, 2, 9), v.o = v.groups * weft_check_between(check, 1, 4);
    }
    if (form == WEFT_CONV_GROUPED_WINDOWS && weft_check_between(check, 0, 15)) {
        const int64_t each = (int64_t)1 << weft_check_between(check, 1, 3);
        v.groups = weft_check_between(check, 2, 20), v.spatial = v.spatial == 3 ? 2 : v.spatial;
        v.c = v.o = v.groups * each;
        for (int d = 0; d < v.spatial; d++)
            choose_axis(check, &v, d, false, false, true);
    }
    const bool rows = (form == WEFT_CONV_PHASES || form == WEFT_CONV_DIRECT) && weft_check_between(check, 0, 3) == 0;
    if (rows)
        choose_rows(check, &v);
    if (form == WEFT_CONV_TRANSPOSED || (form == WEFT_CONV_PLAIN && weft_check_between(check, 0, 2) == 0))
        choose_adjoint(check, &v);
    int64_t x[5] = {v.n, v.c}, y[5] = {v.n, v.o}, w[5] = {v.o, v.c / v.groups};
    if (v.transposed)
        w[0] = v.c, w[1] = v.o / v.groups;
    for (int d = 0; d < v.spatial; d++)
        x[2 + d] = v.in_extent[d], y[2 + d] = v.out_extent[d], w[2 + d] = v.kernel[d];
    const bool direct = form == WEFT_CONV_DIRECT && weft_check_between(check, 0, 3);
    const bool last = direct || form == WEFT_CONV_POINT_ROWS || form == WEFT_CONV_CHANNELS ||
                      weft_check_between(check, 0, 4) == 0;
    const bool any = (weft_winograd_of(form) || rows) && weft_check_between(check, 0, 4) == 0;
    const int64_t kind = form == WEFT_CONV_PLAIN || any ? 2 : last;
    const bool mixed = form != WEFT_CONV_CHANNELS && weft_check_between(check, 0, 3) == 0;
    ret_sizes->x = choose_strides(check, mixed ? weft_check_between(check, 0, 2) : kind, v.spatial, x, v.x_stride);
    ret_sizes->y = choose_strides(check, kind, v.spatial, y, v.y_stride);
    ret_sizes->w = choose_strides(check, weft_check_between(check, 0, 2), v.spatial, w, v.w_stride);
    for (int32_t i = 0; i < 2 + v.spatial; i++)
        v.x_stride[i] = weft_check_between(check, 0, 63) ? v.x_stride[i] : 0; /* what is repeated */
    v.w_packed = weft_check_between(check, 0, 1);
    v.shares = weft_check_between(check, 0, 1);
    return v;
}

/* As y lies, or in some other way. */
static void choose_residual(struct weft_check *check, struct weft_conv *v, struct sizes *sizes)
{
    int64_t extent[5] = {v->n, v->o};
    for (int d = 0; d < v->spatial; d++)
        extent[2 + d] = v->out_extent[d];
    v->residual = weft_check_between(check, 0, 2) == 0;
    sizes->r = sizes->y;
    for (int i = 0; i < 2 + v->spatial; i++)
        v->r_stride[i] = v->y_stride[i];
    if (weft_check_between(check, 0, 3) == 0)
        sizes->r = choose_strides(check, weft_check_between(check, 0, 2), v->spatial, extent, v->r_stride);
    for (int i = 0; i < 2 + v->spatial; i++)
        v->r_stride[i] = weft_check_between(check, 0, 7) ? v->r_stride[i] : 0; /* what is repeated */
}

/* One result: the chain over taps and channels. at: index of the result in the spatial axes. */
static float chain(const struct weft_conv *v, const float *x, const float *w, int64_t n, int64_t o, const int64_t at[3])
{
    const int64_t channels = v->c / v->groups, group = o / (v->o / v->groups);
    int64_t taps = 1;
    for (int d = 0; d < v->spatial; d++)
        taps *= v->kernel[d];
    float sum = 0;
    for (int64_t t = 0; t < taps; t++) {
        int64_t rest = t, from = n * v->x_stride[0], weight = o * v->w_stride[0];
        bool inside = true;
        for (int d = v->spatial - 1; d >= 0; d--) {
            const int64_t tap = rest % v->kernel[d], place = at[d] * v->stride[d] - v->pad[d] + tap * v->dilation[d];
            rest /= v->kernel[d];
            inside = inside && place >= 0 && place < v->in_extent[d];
            from += place * v->x_stride[2 + d];
            weight += tap * v->w_stride[2 + d];
        }
        for (int64_t c = 0; c < channels; c++)
            sum = fmaf(inside ? x[from + (group * channels + c) * v->x_stride[1]] : 0.0f,
                       w[weight + c * v->w_stride[1]], sum);
    }
    return sum;
}

/* The same for the adjoint: each tap that an element of x reaches the result by, the last tap first. */
static float adjoint(const struct weft_conv *v, const float *x, const float *w, int64_t n, int64_t o,
                     const int64_t at[3])
{
    const int64_t channels = v->c / v->groups, results = v->o / v->groups, group = o / results;
    int64_t taps = 1;
    for (int d = 0; d < v->spatial; d++)
        taps *= v->kernel[d];
    float sum = 0;
    for (int64_t t = taps - 1; t >= 0; t--) {
        int64_t rest = t, from = n * v->x_stride[0], weight = o % results * v->w_stride[1];
        bool inside = true, met = true;
        for (int d = v->spatial - 1; d >= 0; d--) {
            const int64_t tap = rest % v->kernel[d], spread = at[d] + v->pad[d] - tap * v->dilation[d];
            rest /= v->kernel[d];
            met = met && spread % v->stride[d] == 0;
            inside = inside && spread >= 0 && spread < v->in_extent[d] * v->stride[d];
            from += spread / v->stride[d] * v->x_stride[2 + d];
            weight += tap * v->w_stride[2 + d];
        }
        for (int64_t c = group * channels; met && c < (group + 1) * channels; c++)
            sum = fmaf(inside ? x[from + c * v->x_stride[1]] : 0.0f, w[weight + c * v->w_stride[0]], sum);
    }
    return sum;
}

static void define(const struct weft_conv *v, float *y, const float *x, const float *w)
{
    int64_t pixels = 1;
    for (int d = 0; d < v->spatial; d++)
        pixels *= v->out_extent[d];
    for (int64_t i = 0; i < v->n * v->o * pixels; i++) {
        const int64_t n = i / pixels / v->o, o = i / pixels % v->o;
        int64_t at[3], rest = i % pixels, to = n * v->y_stride[0] + o * v->y_stride[1];
        for (int d = v->spatial - 1; d >= 0; d--) {
            at[d] = rest % v->out_extent[d];
            rest /= v->out_extent[d];
            to += at[d] * v->y_stride[2 + d];
        }
        y[to] = v->transposed ? adjoint(v, x, w, n, o, at) : chain(v, x, w, n, o, at);
    }
}

static void describe(const struct weft_conv *v, int parts, int fill, char *text, size_t bytes)
{
    int used =
        snprintf(text, bytes, "n %lld c %lld o %lld groups %lld%s, residual %d%d, %d parts, fill %d, axes",
                 (long long)v->n, (long long)v->c, (long long)v->o, (long long)v->groups,
                 v->packs_together ? " packed together" : v->w_packed ? " packed" : "",
                 v->residual, v->beside, parts, fill);
    for (int d = 0; d < v->spatial; d++) {
        used += snprintf(text + used, bytes - (size_t)used, " %lld>%lld(k%lld s%lld d%lld p%lld)",
                         (long long)v->in_extent[d], (long long)v->out_extent[d], (long long)v->kernel[d],
                         (long long)v->stride[d], (long long)v->dilation[d], (long long)v->pad[d]);
    }
}

/* The epilogue under test adds to each result what its place says, so that a wrong place, a second call, none, and one
 * before the bias all show; and looks where it was sent. */
static float mark(int64_t n, int64_t o, int64_t pixel)
{
    return (float)((n * 5 + o * 3 + pixel * 7) % 17) - 8;
}

static int64_t place_by(const struct weft_conv *v, const int64_t stride[5], int64_t n, int64_t o, int64_t pixel)
{
    int64_t to = n * stride[0] + o * stride[1];
    for (int d = v->spatial - 1; d >= 0; d--) {
        to += pixel % v->out_extent[d] * stride[2 + d];
        pixel /= v->out_extent[d];
    }
    return to;
}
static int64_t place_of(const struct weft_conv *v, int64_t n, int64_t o, int64_t pixel)
{
    return place_by(v, v->y_stride, n, o, pixel);
}

struct hooked {
    const struct weft_conv *v;
    float *y;
    const float *x;
    int64_t pixels;
    bool wrong, folds;
    struct check_conv_fold fold;
};

static void hook(void *user, const struct weft_conv_piece *p)
{
    struct hooked *const h = user;
    for (int64_t i = 0; i < p->channels; i++) {
        for (int64_t j = 0; j < p->pixels; j++) {
            float *const to = p->data + i * p->channel_stride + j * p->pixel_stride;
            h->wrong = h->wrong || to != h->y + place_of(h->v, p->image, p->channel + i, p->pixel + j);
            *to += mark(p->image, p->channel + i, p->pixel + j);
        }
    }
    if (h->folds)
        check_conv_fold_piece(&h->fold, p);
}

/* The prologue under test makes what x holds. */
static void make(void *user, const struct weft_conv_piece *p)
{
    const struct hooked *const h = user;
    for (int64_t i = 0; i < p->channels; i++) {
        for (int64_t j = 0; j < p->pixels; j++) {
            const int64_t image = p->image + (p->pixel + j) / h->pixels, pixel = (p->pixel + j) % h->pixels;
            p->data[i * p->channel_stride + j * p->pixel_stride] =
                h->x[place_by(h->v, h->v->x_stride, image, p->channel + i, pixel)];
        }
    }
}

/* Whether conv.h adds +0 to the sums, which Winograd's have in them. */
static bool adds_zero(const struct weft_conv *v)
{
    bool over = false;
    for (int d = 0; d < v->spatial; d++) {
        const int64_t window = (v->kernel[d] - 1) * v->dilation[d];
        const int64_t pad = v->transposed ? window - v->pad[d] : v->pad[d];
        over = over || (v->transposed && v->stride[d] > 1) || pad > 0;
        over = over || (v->out_extent[d] - 1) * v->stride[d] + window - pad >= v->in_extent[d];
    }
    return over && v->c > v->groups && !weft_winograd_of(weft_conv_kernels[v->form].form);
}

/* Sums to results. */
static void finish(const struct weft_conv *v, float *y, const float *bias, const float *residual)
{
    const bool plus_zero = adds_zero(v);
    int64_t pixels = 1;
    for (int d = 0; d < v->spatial; d++)
        pixels *= v->out_extent[d];
    for (int64_t i = 0; i < v->n * v->o * pixels; i++) {
        const int64_t n = i / pixels / v->o, o = i / pixels % v->o;
        float *const to = y + place_of(v, n, o, i % pixels);
        *to = plus_zero ? *to + 0.0f : *to;
        *to = bias ? *to + bias[o] : *to;
        *to = v->residual ? *to + residual[place_by(v, v->r_stride, n, o, i % pixels)] : *to;
        *to = clamp_defined(&v->clamp, *to);
        *to = v->epilogue ? *to + mark(n, o, i % pixels) : *to;
    }
}

/* What y must be, bit for bit. */
static void define_any(struct weft_check *check, const struct weft_conv *v, float *y, const float *x, const float *w)
{
    if (!weft_winograd_of(weft_conv_kernels[v->form].form)) {
        define(v, y, x, w);
        return;
    }
    struct weft_conv plain = *v;
    plain.cpu = 0, plain.w_packed = plain.shares = false;
    plain.epilogue = plain.prologue = NULL, plain.clamp.given = plain.residual = false;
    weft_conv_prepare(&plain, 1);
    const struct weft_conv_data data = {
        .y = y, .x = x, .w = w, .scratch = weft_check_alloc(check, plain.scratch)};
    weft_conv_run(&plain, &data, 0, 1);
}

static void check_case(struct weft_check *check, struct weft_conv *v, const struct sizes *sizes, int parts,
                       bool bounded)
{
    const int fill = bounded ? WEFT_FILL_PLAIN : (int)weft_check_between(check, 0, WEFT_FILLS - 1);
    float *x = weft_check_alloc(check, (size_t)sizes->x * sizeof *x),
          *w = weft_check_alloc(check, (size_t)sizes->w * sizeof *w);
    const bool biased = !bounded && weft_check_between(check, 0, 1);
    float *bias = biased ? weft_check_alloc(check, (size_t)v->o * sizeof *bias) : NULL;
    float *residual = v->residual ? weft_check_alloc(check, (size_t)sizes->r * sizeof *residual) : NULL;
    float *got = weft_check_alloc(check, (size_t)sizes->y * sizeof *got);
    float *want = weft_check_alloc(check, (size_t)sizes->y * sizeof *want);
    weft_check_fill(check, x, sizes->x, fill);
    weft_check_fill(check, w, sizes->w, fill);
    weft_check_fill(check, bias, bias ? v->o : 0, fill);
    weft_check_fill(check, residual, residual ? sizes->r : 0, fill);
    weft_check_fill(check, got, sizes->y, WEFT_FILL_PLAIN);
    for (int64_t i = 0; i < sizes->y; i++)
        want[i] = got[i];
    if (bounded && weft_check_between(check, 0, 1))
        x[weft_check_between(check, 0, sizes->x - 1)] = NAN;
    define_any(check, v, want, x, w);
    finish(v, want, bias, residual);
    struct weft_conv_together together = {.taken = 0};
    float *const pack = v->w_packed ? weft_check_alloc(check, weft_conv_pack_bytes(v)) : NULL;
    const int pieces = (int)weft_check_between(check, 1, WEFT_CONV_PACK_PARTS);
    for (int piece = pieces - 1; v->w_packed && !v->packs_together && piece >= 0; piece--)
        weft_conv_pack_part(v, pack, w, piece, pieces);
    void *scratch = weft_check_alloc(check, v->scratch);
    struct hooked hooked = {.v = v, .y = got, .x = x, .pixels = 1, .folds = v->folds};
    for (int d = 0; d < v->spatial; d++)
        hooked.pixels *= v->out_extent[d];
    if (hooked.folds)
        check_conv_fold_open(check, v, &hooked.fold);
    const struct weft_conv_data data = {.y = got, .x = v->prologue ? NULL : x,
                                        .w = v->w_packed && !v->packs_together ? pack : w, .bias = bias,
                                        .residual = residual, .user = &hooked, .scratch = scratch,
                                        .together = &together, .pack = pack};
    for (int part = parts - 1; part >= 0; part--) {
        weft_conv_run(v, &data, part, parts);
        if (hooked.folds)
            check_conv_fold_end(&hooked.fold, got, parts);
    }
    char what[300];
    describe(v, parts, fill, what, sizeof what);
    if (together.taken || together.packed || together.gone)
        weft_check_fail(check, "%s: counters are left behind", what);
    if (hooked.wrong)
        weft_check_fail(check, "%s: the epilogue was told another place than it was given", what);
    weft_check_same(check, what, got, want, sizes->y);
    if (hooked.folds && !hooked.wrong)
        check_conv_fold_compare(check, what, &hooked.fold, want);
    if (bounded)
        weft_check_winograd(check, what, v, got, x, w);
}

static void check_kernel(struct weft_check *check, const void *user)
{
    const struct weft_conv_kernel *kernel = user;
    const bool winograd = weft_winograd_of(kernel->form);
    const int cases = winograd ? SLOW_CASES : CASES;
    int met = 0;
    for (int i = 0; i < cases * TRIES && met < cases && !weft_check_failed(check); i++) {
        struct sizes sizes = {.r = 0};
        struct weft_conv v = choose_case(check, kernel->form, &sizes);
        const int turns = (int)weft_check_between(check, 1, 3);
        int parts = (int)weft_check_between(check, 1, weft_check_between(check, 0, 3) ? 8 : 40);
        v.epilogue = met >= BOUNDED && weft_check_between(check, 0, 1) ? hook : NULL;
        v.prologue = weft_conv_is_made(&v) && weft_check_between(check, 0, 1) ? make : NULL;
        v.folds = v.epilogue && weft_check_between(check, 0, 1);
        v.small_pieces = v.epilogue && weft_check_between(check, 0, 1);
        if (met >= BOUNDED) {
            v.clamp = clamp_drawn(check);
            choose_residual(check, &v, &sizes);
        }
        weft_conv_prepare(&v, parts);
        if (weft_conv_kernels[v.form].run != kernel->run)
            continue;
        if (weft_check_between(check, 0, 1)) { /* as prepare does of long ones that take turns */
            const struct weft_conv_shape shape = weft_conv_shape(&v);
            v.parts = parts = parts * turns;
            v.share = weft_conv_share(&v, &shape, parts, turns);
        }
        check_case(check, &v, &sizes, parts, winograd && met < BOUNDED);
        met++;
    }
    if (met < cases && !weft_check_failed(check))
        weft_check_fail(check, "dispatch took this kernel in %d cases only", met);
}

void weft_check_conv(struct weft_check *check)
{
    for (unsigned i = 0; i < weft_conv_kernel_count; i++)
        weft_check_kernel(check, weft_conv_kernels[i].name, weft_conv_kernels[i].cpu, check_kernel,
                          &weft_conv_kernels[i]);
}

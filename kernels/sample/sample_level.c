/* SPDX-License-Identifier: Apache-2.0 */
/* sample_level.c: places, weights and sums of points, compiled once per CPU level. */
#include "kernels/sample/sample.h"
#include "kernels/strip/vector.h"

enum { HALF = LANES / 2 };
typedef double vd_any __attribute__((vector_size(4 * LANES), aligned(8), may_alias));
typedef int64_t vl_any __attribute__((vector_size(4 * LANES), aligned(8), may_alias));
typedef float vf_half_any __attribute__((vector_size(2 * LANES), aligned(4), may_alias));
typedef double pair __attribute__((aligned(4), may_alias)); /* two neighbours */

/* --- places and weights ------------------------------------------------------------------------------------------- */

#define WHOLE 0x1.8p52 /* added to |x| < 2^51, it leaves the nearest whole number, ties to even */

INLINE vd nearest(vd x) { return (x + WHOLE) - WHOLE; }
INLINE vd below(vd x)
{
    const vd r = nearest(x);
    return r - vdsel(r > x, vdall(1), vdall(0));
}
INLINE vl as_whole(vd x) { return (vl)(x + WHOLE) - (vl)vdall(WHOLE); }
INLINE vd limited(vd x, double low, double high)
{
    x = vdsel(x > low, x, vdall(low));
    return vdsel(x < high, x, vdall(high));
}

/* Mirrors the points that lie outside; few do, so that one after the other is good enough. */
static vd reflect(const struct weft_sample_axis *axis, vd x)
{
    const double low = axis->how.corners ? 0 : -0.5, high = (double)axis->extent - (axis->how.corners ? 1 : 0.5);
    double each[HALF];
    for (int i = 0; i < HALF; i++)
        each[i] = x[i] >= low && x[i] <= high ? x[i] : weft_k_reflect(&axis->how, axis->extent, x[i]);
    return *(const vd_any *)each;
}

/* Where coordinates lie along an axis, in elements from the first one; what is far outside is brought near, where it
 * is outside as well. */
INLINE vd places_along(const struct weft_sample_axis *axis, vd g)
{
    const double length = (double)axis->extent;
    g = limited(vdsel(g == g, g, vdall(-1)), -1e15, 1e15);
    vd x = axis->how.corners ? (g + 1) * 0.5 * (length - 1) : ((g + 1) * length - 1) * 0.5;
    if (axis->how.border != WEFT_K_REFLECT)
        x = limited(x, -2, length + 1);
    if (axis->how.form == WEFT_K_NEAREST)
        x = axis->how.border == WEFT_K_REFLECT ? vdsel(vdabs(x) < 0x1p51, nearest(x), x) : nearest(x);
    if (axis->how.border == WEFT_K_REFLECT)
        x = reflect(axis, x);
    return axis->how.border == WEFT_K_ZEROS ? x : limited(x, 0, length - 1);
}

/* The first of two elements that lie inside, and what both weigh; or the nearest one, and whether it is inside. */
INLINE vd weigh_along(const struct weft_sample_axis *axis, vd g, vd weight[2])
{
    const vd x = places_along(axis, g), none = vdall(0), first = below(x);
    weight[1] = none;
    if (axis->how.form == WEFT_K_NEAREST) {
        const vd base = limited(x, 0, (double)axis->extent - 1);
        weight[0] = vdsel(x == base, vdall(1), none);
        return base;
    }
    const vd base = limited(first, 0, axis->extent > 2 ? (double)axis->extent - 2 : 0);
    const vd one = 1 - (x - first), two = 1 - (first + 1 - x);
    weight[0] = vdsel(first == base, one, vdsel(first + 1 == base, two, none));
    if (axis->extent > 1)
        weight[1] = vdsel(first == base, two, vdsel(first == base + 1, one, none));
    return base;
}

static void find(const struct weft_sample_axis axis[2], double coordinate[2][WEFT_SAMPLE_POINTS], int n,
                 struct weft_sample_points *points)
{
    const int last = (n + LANES - 1) / LANES * LANES, taps = weft_sample_taps(axis);
    int64_t zeros = 0;
    points->count = n;
    for (int a = 0; a < 2; a++)
        for (int i = n; i < last; i++)
            coordinate[a][i] = -1;
    for (int i = 0; i < last; i += HALF) {
        vd row[2], column[2];
        const vd y = weigh_along(&axis[0], *(const vd_any *)&coordinate[0][i], row);
        const vd x = weigh_along(&axis[1], *(const vd_any *)&coordinate[1][i], column);
        *(vl_any *)&points->place[i] = as_whole(y) * axis[0].stride + as_whole(x) * axis[1].stride;
        for (int k = 0; k < taps; k++)
            *(vf_half_any *)&points->weight[k][i] = __builtin_convertvector(row[k / 2] * column[k % 2], vf_half);
    }
    for (int i = n; i < last; i++) {
        points->place[i] = 0;
        for (int k = 0; k < taps; k++)
            points->weight[k][i] = 0;
    }
    for (int k = 0; k < taps; k++)
        for (int i = 0; i < n; i++)
            zeros += points->weight[k][i] == 0;
    points->whole = zeros == 0;
}

/* --- planes: a vector of points at a time ------------------------------------------------------------------------- */

/* Element l of the even ones and of the odd ones: what is left and right of point l. Each quarter of a vector gets its
 * own four points, so that no shuffle crosses quarters. */
#if LANES == 16
#define EVEN 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30
#define ODD  1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31
#define PAIR(p, i) {p(i), p(i + 1), p(i + 4), p(i + 5), p(i + 8), p(i + 9), p(i + 12), p(i + 13)}
#elif LANES == 8
#define EVEN 0, 2, 8, 10, 4, 6, 12, 14
#define ODD  1, 3, 9, 11, 5, 7, 13, 15
#define PAIR(p, i) {p(i), p(i + 1), p(i + 4), p(i + 5)}
#else
#define EVEN 0, 2, 4, 6
#define ODD  1, 3, 5, 7
#define PAIR(p, i) {p(i), p(i + 1)}
#endif

INLINE void load_pairs(const float *x, const int64_t *place, vf *left, vf *right)
{
#define AT(i) *(const pair *)(x + place[i])
    const vf a = (vf)(vd)PAIR(AT, 0), b = (vf)(vd)PAIR(AT, 2);
#undef AT
    *left = __builtin_shufflevector(a, b, EVEN);
    *right = __builtin_shufflevector(a, b, ODD);
}

INLINE vf load_each(const float *x, const int64_t *place)
{
    float each[LANES];
    for (int i = 0; i < LANES; i++)
        each[i] = x[place[i]];
    return vload(each);
}

INLINE vf product(vf weight, vf x, bool whole)
{
    return weight * (whole ? x : (vf)((vi)x & (weight != 0)));
}

INLINE vf sum_points(const struct weft_sample_channels *how, const struct weft_sample_points *points, const float *x,
                     int i, int taps, bool pairs, bool whole)
{
    const int64_t *const place = points->place + i;
    vf part[WEFT_SAMPLE_TAPS], sum;
    for (int k = 0; k < taps; k += 2) {
        if (pairs) {
            load_pairs(x + how->tap[k], place, &part[k], &part[k + 1]);
        } else {
            part[k] = load_each(x + how->tap[k], place);
            if (k + 1 < taps)
                part[k + 1] = load_each(x + how->tap[k + 1], place);
        }
    }
    sum = product(vload(&points->weight[0][i]), part[0], whole);
    for (int k = 1; k < taps; k++)
        sum = sum + product(vload(&points->weight[k][i]), part[k], whole);
    return sum;
}

INLINE void sum_planes(const struct weft_sample_channels *how, const struct weft_sample_points *points, float *y,
                       const float *x, int taps, bool pairs, bool whole)
{
    for (int64_t c = 0; c < how->count; c++, x += how->in, y += how->out)
        for (int i = 0; i < points->count; i += LANES) {
            const vf sum = sum_points(how, points, x, i, taps, pairs, whole);
            const int n = points->count - i < LANES ? points->count - i : LANES;
            if (how->out_point == 1 && n == LANES)
                vstore(y + i, sum);
            else if (how->out_point == 1)
                vstorem(y + i, n, sum);
            else
                for (int k = 0; k < n; k++)
                    y[(i + k) * how->out_point] = sum[k];
        }
}

static void planes(const struct weft_sample_channels *how, const struct weft_sample_points *points, float *y,
                   const float *x)
{
    if (how->taps == 1)
        sum_planes(how, points, y, x, 1, false, false);
    else if (how->pairs && points->whole)
        sum_planes(how, points, y, x, WEFT_SAMPLE_TAPS, true, true);
    else
        sum_planes(how, points, y, x, WEFT_SAMPLE_TAPS, how->pairs, false);
}

/* --- pixels: the contiguous channels of one point after the other ------------------------------------------------- */

INLINE vf sum_channels(const float *const x[], const float *weight, int taps, int64_t c, int n)
{
    vf sum = vall(weight[0]) * (n < LANES ? vloadm(x[0] + c, n, 0.f) : vload(x[0] + c));
    for (int k = 1; k < taps; k++)
        sum = sum + vall(weight[k]) * (n < LANES ? vloadm(x[k] + c, n, 0.f) : vload(x[k] + c));
    return sum;
}

INLINE void sum_pixel(const float *const x[], const float *weight, int taps, float *y, int64_t channels)
{
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        vstore(y + c, sum_channels(x, weight, taps, c, LANES));
    const int rest = (int)(channels - c);
    if (rest)
        vstorem(y + c, rest, sum_channels(x, weight, taps, c, rest));
}

static void pixels(const struct weft_sample_channels *how, const struct weft_sample_points *points, float *y,
                   const float *x)
{
    for (int i = 0; i < points->count; i++, y += how->out_point) {
        const float *at[WEFT_SAMPLE_TAPS] = {x};
        float weight[WEFT_SAMPLE_TAPS] = {0};
        int taps = 0;
        for (int k = 0; k < how->taps; k++)
            if (points->weight[k][i] != 0) {
                at[taps] = x + points->place[i] + how->tap[k];
                weight[taps++] = points->weight[k][i];
            }
        if (taps == WEFT_SAMPLE_TAPS)
            sum_pixel(at, weight, WEFT_SAMPLE_TAPS, y, how->count);
        else if (taps)
            sum_pixel(at, weight, taps, y, how->count);
        else
            for (int64_t c = 0; c < how->count; c++)
                y[c] = 0;
    }
}

const struct weft_sample_level LEVEL(weft_sample_level) = {"weft_sample_f32" LEVEL_TEXT, LEVEL_CPU, find, planes,
                                                           pixels};

/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c: see shared.h. */
#include "kernels/plain/shared.h"

#include <math.h>
#include <string.h>

/* --- grid_sample -------------------------------------------------------------------------------------------------- */

/* Turns x back at both ends until it lies between them. Whole periods are taken off first, so it ends for any x. */
static double reflected(double x, double low, double high)
{
    const double range = high - low;
    if (range <= 0)
        return low;
    const double past = fmod(fabs(x - low), 2 * range);
    return past > range ? high - (past - range) : low + past;
}

double weft_k_reflect(const struct weft_k_sampling *s, int64_t extent, double x)
{
    return reflected(x, s->corners ? 0 : -0.5, (double)extent - (s->corners ? 1 : 0.5));
}

/* The element at i, which may lie outside. */
static int64_t element_at(const struct weft_k_sampling *s, double i, int64_t extent)
{
    if (i >= 0 && i < (double)extent)
        return (int64_t)i;
    if (s->border == WEFT_K_ZEROS)
        return -1;
    if (s->border == WEFT_K_REFLECT)
        i = trunc(weft_k_reflect(s, extent, i));
    return i <= 0 ? 0 : i >= (double)extent ? extent - 1 : (int64_t)i;
}

/* What Keys' cubic with a = -3/4 gives at a distance below 2. */
static double cubic_weight(double d)
{
    const double a = -0.75;
    return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

void weft_k_sample_any(const struct weft_k_sampling *s, int64_t extent, double g, int64_t *element, double *weight)
{
    const double length = (double)extent, low = s->corners ? 0 : -0.5, high = length - (s->corners ? 1 : 0.5);
    g = isnan(g) ? -1 : g < -1e15 ? -1e15 : g > 1e15 ? 1e15 : g;
    double x = weft_k_sample_place(s, length, g);
    if (s->form == WEFT_K_NEAREST)
        x = rint(x);
    const bool each = s->border == WEFT_K_ZEROS || (s->form == WEFT_K_CUBIC && s->border == WEFT_K_EDGE);
    if ((x < low || x > high) && !each) /* each: elements outside, one by one */
        x = s->border == WEFT_K_REFLECT ? reflected(x, low, high) : x < 0 ? 0 : x > length - 1 ? length - 1 : x;
    const double first = s->form == WEFT_K_NEAREST ? rint(x) : floor(x) - (s->form == WEFT_K_CUBIC);
    for (int k = 0; k < weft_k_taps(s->form); k++) {
        const double d = fabs(x - (first + k));
        element[k] = element_at(s, first + k, extent);
        weight[k] = s->form == WEFT_K_NEAREST ? 1 : s->form == WEFT_K_CUBIC ? cubic_weight(d) : 1 - d;
    }
}

/* --- roi_align ---------------------------------------------------------------------------------------------------- */

bool weft_k_neighbours(double at, int64_t extent, int64_t *ret_low, int64_t *ret_high, double *ret_share)
{
    if (!(at >= -1 && at <= (double)extent))
        return false;
    at = at > 0 ? at : 0;
    int64_t low = (int64_t)at;
    if (low >= extent - 1) {
        low = extent - 1;
        at = (double)low;
    }
    *ret_low = low;
    *ret_high = low < extent - 1 ? low + 1 : low;
    *ret_share = at - (double)low;
    return true;
}

/* --- nms ---------------------------------------------------------------------------------------------------------- */

struct weft_k_box weft_k_box_of(const double x[4], bool centre)
{
    struct weft_k_box box;
    for (int axis = 0; axis < 2; axis++) {
        const double a = centre ? x[axis] - x[axis + 2] / 2 : x[axis];
        const double b = centre ? x[axis] + x[axis + 2] / 2 : x[axis + 2];
        box.low[axis] = a < b ? a : b;
        box.high[axis] = a < b ? b : a;
    }
    return box;
}

static double area(const struct weft_k_box *box)
{
    return (box->high[0] - box->low[0]) * (box->high[1] - box->low[1]);
}

/* Intersection over union. */
static double overlap(const struct weft_k_box *a, const struct weft_k_box *b)
{
    double both = 1;
    for (int axis = 0; axis < 2; axis++) {
        const double low = a->low[axis] > b->low[axis] ? a->low[axis] : b->low[axis];
        const double high = a->high[axis] < b->high[axis] ? a->high[axis] : b->high[axis];
        both *= high > low ? high - low : 0;
    }
    return area(a) > 0 && area(b) > 0 ? both / (area(a) + area(b) - both) : 0;
}

bool weft_k_box_overlaps(const struct weft_k_box *box, const struct weft_k_box *others, int64_t n, double limit)
{
    for (int64_t i = 0; i < n; i++)
        if (overlap(box, &others[i]) > limit)
            return true;
    return false;
}

/* --- orders and draws --------------------------------------------------------------------------------------------- */

/* Merges runs of twice the length, until one is left. */
void weft_k_order(int64_t n, int (*compare)(const void *user, int64_t a, int64_t b), const void *user, bool descending,
                  int64_t *order, int64_t *scratch)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t start = 0; start < n; start += 2 * run) {
            const int64_t middle = start + run < n ? start + run : n, end = start + 2 * run < n ? start + 2 * run : n;
            int64_t a = start, b = middle;
            for (int64_t to = start; to < end; to++) {
                const int sign = a < middle && b < end ? compare(user, order[a], order[b]) : 0;
                const bool second = a == middle || (b < end && (descending ? sign < 0 : sign > 0));
                scratch[to] = second ? order[b++] : order[a++];
            }
        }
        memcpy(order, scratch, (size_t)n * sizeof *order);
    }
}

int64_t weft_k_draw(const double *running, int64_t classes, double share)
{
    int64_t low = 0, high = classes - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (running[middle] > share * running[classes - 1])
            high = middle;
        else
            low = middle + 1;
    }
    return low < 0 ? 0 : low;
}

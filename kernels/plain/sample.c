/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c: ops that read boxes of images: roi_align between elements, roi_max_pool at elements. Places are computed in
 * double. */
#include "kernels/plain/plain.h"
#include "kernels/plain/shared.h"

#include <math.h>

/* --- regions ------------------------------------------------------------------------------------------------------ */

enum { SIZE, FACTOR, SAMPLES, HALF_PIXEL, FORM }; /* attributes */

struct region {
    const struct weft_array *image;
    const void *data;
    int64_t place;        /* of the plane */
    bool largest;
    int64_t samples, extent[2], step[2], size[2];
    double start[2], cell[2];
};

static double pixel(const struct region *r, int64_t y, int64_t x)
{
    return weft_k_at(r->image->dtype, r->data, r->place + y * r->step[0] + x * r->step[1]).real;
}

/* A number as a count or an index: NaN is 0, and nothing is beyond what loops and sums can bear. */
static int64_t whole(double value)
{
    const double limit = 1 << 24;
    return isnan(value) ? 0 : (int64_t)(value < -limit ? -limit : value > limit ? limit : value);
}

/* One sample: the four neighbours weighed, their sum or the largest. */
static double sample_region(const struct region *r, double y, double x)
{
    int64_t low[2], high[2];
    double share[2];
    if (!weft_k_neighbours(y, r->extent[0], &low[0], &high[0], &share[0]) ||
        !weft_k_neighbours(x, r->extent[1], &low[1], &high[1], &share[1]))
        return 0;
    const double part[] = {(1 - share[0]) * (1 - share[1]) * pixel(r, low[0], low[1]),
                           (1 - share[0]) * share[1] * pixel(r, low[0], high[1]),
                           share[0] * (1 - share[1]) * pixel(r, high[0], low[1]),
                           share[0] * share[1] * pixel(r, high[0], high[1])};
    return r->largest ? fmax(fmax(part[0], part[1]), fmax(part[2], part[3])) : part[0] + part[1] + part[2] + part[3];
}

static double align_cell(const struct region *r, int64_t row, int64_t column)
{
    int64_t count[2];
    double total = 0;
    bool any = false;
    for (int i = 0; i < 2; i++)
        count[i] = r->samples > 0 ? r->samples : whole(ceil(r->cell[i]));
    for (int64_t i = 0; i < count[0]; i++)
        for (int64_t j = 0; j < count[1]; j++) {
            const double y = r->start[0] + r->cell[0] * ((double)row + ((double)i + 0.5) / (double)count[0]);
            const double x = r->start[1] + r->cell[1] * ((double)column + ((double)j + 0.5) / (double)count[1]);
            const double value = sample_region(r, y, x);
            total = !r->largest ? total + value : !any || value > total ? value : total;
            any = true;
        }
    const int64_t samples = count[0] * count[1];
    return r->largest || samples <= 0 ? total : total / (double)samples;
}

/* The largest element of a cell; an empty one gives 0. */
static double pool_cell(const struct region *r, int64_t row, int64_t column)
{
    const int64_t at[] = {row, column};
    int64_t first[2], end[2];
    for (int i = 0; i < 2; i++) {
        first[i] = (int64_t)r->start[i] + (int64_t)floor((double)at[i] * r->cell[i]);
        end[i] = (int64_t)r->start[i] + (int64_t)ceil((double)(at[i] + 1) * r->cell[i]);
        first[i] = first[i] < 0 ? 0 : first[i] > r->extent[i] ? r->extent[i] : first[i];
        end[i] = end[i] < 0 ? 0 : end[i] > r->extent[i] ? r->extent[i] : end[i];
    }
    double best = first[0] >= end[0] || first[1] >= end[1] ? 0 : -INFINITY;
    for (int64_t y = first[0]; y < end[0]; y++)
        for (int64_t x = first[1]; x < end[1]; x++) {
            const double element = pixel(r, y, x);
            best = isnan(best) || best > element ? best : element;
        }
    return best;
}

/* Where the box lies; boxes are x1 y1 x2 y2. */
static void place_box(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t box, bool align,
                      struct region *r)
{
    const struct weft_array *boxes = &plain->in[1];
    const double scale = plain->attr[FACTOR].real;
    const bool half = align && plain->attr[HALF_PIXEL].integer[0] != 0;
    for (int i = 0; i < 2; i++) {
        const int64_t row = box * boxes->stride[0];
        const double low = weft_k_at(boxes->dtype, data->in[1], row + (1 - i) * boxes->stride[1]).real * scale;
        const double high = weft_k_at(boxes->dtype, data->in[1], row + (3 - i) * boxes->stride[1]).real * scale;
        if (align) {
            const double shift = half ? 0.5 : 0;
            r->start[i] = low - shift;
            const double length = high - shift - r->start[i];
            r->cell[i] = (!half && !(length >= 1) ? 1 : length) / (double)r->size[i];
        } else {
            const int64_t start = whole(round(low)), length = whole(round(high)) - start + 1;
            r->start[i] = (double)start;
            r->cell[i] = (double)(length > 1 ? length : 1) / (double)r->size[i];
        }
    }
}

/* A unit is a channel of a box. */
static void regions(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin, int64_t end,
                    bool align)
{
    const struct weft_array *in = &plain->in[0], *image = &plain->in[2], *out = &plain->out[0];
    struct region r = {.image = in, .data = data->in[0], .extent = {in->extent[2], in->extent[3]},
                       .step = {in->stride[2], in->stride[3]}, .size = {out->extent[2], out->extent[3]},
                       .largest = align && plain->attr[FORM].integer[0] == 1,
                       .samples = align ? plain->attr[SAMPLES].integer[0] : 0};
    const bool empty = weft_array_elements(in) == 0;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t box = unit / out->extent[1], channel = unit % out->extent[1];
        int64_t which = weft_k_at(image->dtype, data->in[2], box * image->stride[0]).integer;
        which = which < 0 ? 0 : which >= in->extent[0] ? in->extent[0] - 1 : which;
        r.place = which * in->stride[0] + channel * in->stride[1];
        place_box(plain, data, box, align, &r);
        for (int64_t y = 0; y < r.size[0]; y++)
            for (int64_t x = 0; x < r.size[1]; x++) {
                const double value = empty ? 0 : align ? align_cell(&r, y, x) : pool_cell(&r, y, x);
                const int64_t index[] = {box, channel, y, x};
                weft_k_put(out->dtype, data->out[0], weft_array_place(out, 4, index),
                           (union weft_k_number){.real = value});
            }
    }
}

void weft_plain_run_roi_align(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                              int64_t end)
{
    regions(plain, data, begin, end, true);
}

void weft_plain_run_roi_max_pool(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                 int64_t end)
{
    regions(plain, data, begin, end, false);
}

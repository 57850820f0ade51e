/* SPDX-License-Identifier: Apache-2.0 */
/* region.c: ops that read images at computed places: deform_conv and roi_align between elements, roi_max_pool and
 * unpool at elements. All places are computed in double. */
#include "eval/rule.h"
#include "kernels/plain/shared.h"

#include <math.h>
#include <string.h>

static double real_attr(const struct weft_eval *eval, int key) { return weft_attr_real(eval->graph, eval->node, key); }

static bool form_is(const struct weft_eval *eval, const char *word)
{
    return strcmp(weft_attr_word(eval->graph, eval->node, WEFT_ATTR_form), word) == 0;
}

/* --- deform_conv ------------------------------------------------------------------------------------------- */

struct deformed {
    const union weft_number *x, *w, *offset, *mask; /* mask may be NULL */
    int64_t channels, results, per_group, group_results, offset_groups;
    int64_t in[2], out[2], taps[2], stride[2], dilation[2], before[2];
};

/* The four neighbours weighed by their distance; what lies outside of the image is 0. */
static double between(const union weft_number *plane, const int64_t *extent, double y, double x)
{
    if (!(y > -1 && y < (double)extent[0] && x > -1 && x < (double)extent[1]))
        return 0;
    const int64_t row = (int64_t)floor(y), column = (int64_t)floor(x);
    const double down = y - (double)row, right = x - (double)column;
    double sum = 0;
    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 2; j++)
            if (row + i >= 0 && row + i < extent[0] && column + j >= 0 && column + j < extent[1])
                sum += (i ? down : 1 - down) * (j ? right : 1 - right) * plane[(row + i) * extent[1] + column + j].real;
    return sum;
}

/* One result: channel o of an image at (row, column). Offsets are pairs (y, x) per tap, by group of channels. */
static double deform(const struct deformed *d, int64_t image, int64_t o, int64_t row, int64_t column)
{
    const int64_t first = o / d->group_results * d->per_group, plane = d->in[0] * d->in[1];
    const int64_t place = row * d->out[1] + column, step = d->out[0] * d->out[1], taps = d->taps[0] * d->taps[1];
    double sum = 0;
    for (int64_t c = 0; c < d->per_group; c++) {
        const int64_t channel = first + c, group = channel / (d->channels / d->offset_groups);
        const int64_t map = (image * d->offset_groups + group) * taps;
        for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t i = tap / d->taps[1], j = tap % d->taps[1];
            const double y = (double)(row * d->stride[0] - d->before[0] + i * d->dilation[0]) +
                             d->offset[2 * (map + tap) * step + place].real;
            const double x = (double)(column * d->stride[1] - d->before[1] + j * d->dilation[1]) +
                             d->offset[(2 * (map + tap) + 1) * step + place].real;
            const double share = d->mask ? d->mask[(map + tap) * step + place].real : 1;
            sum += d->w[(o * d->per_group + c) * taps + tap].real * share *
                   between(d->x + (image * d->channels + channel) * plane, d->in, y, x);
        }
    }
    return sum;
}

static void deform_all(const struct weft_eval *eval, struct deformed *d, union weft_number *result)
{
    const struct weft_tensor *x = &eval->in[0], *w = &eval->in[1], *out = &eval->out[0];
    d->channels = x->extent[1];
    d->results = w->extent[0];
    d->per_group = w->extent[1];
    d->group_results = d->results / weft_eval_int(eval, WEFT_ATTR_groups);
    d->offset_groups = weft_eval_int(eval, WEFT_ATTR_offset_groups);
    for (unsigned i = 0; i < 2; i++) {
        d->in[i] = x->extent[2 + i];
        d->out[i] = out->extent[2 + i];
        d->taps[i] = w->extent[2 + i];
        d->stride[i] = weft_eval_at(eval, WEFT_ATTR_stride, i);
        d->dilation[i] = weft_eval_at(eval, WEFT_ATTR_dilation, i);
        d->before[i] = weft_eval_at(eval, WEFT_ATTR_pad, i);
    }
    for (int64_t image = 0; image < x->extent[0]; image++)
        for (int64_t o = 0; o < d->results; o++)
            for (int64_t row = 0; row < d->out[0]; row++)
                for (int64_t column = 0; column < d->out[1]; column++)
                    (result++)->real = deform(d, image, o, row, column);
}

void weft_eval_deform_conv(struct weft_eval *eval)
{
    const bool masked = weft_node_of(eval->graph, eval->node)->operands == 4;
    union weft_number *in[4] = {NULL};
    bool there = true;
    for (unsigned i = 0; i < 3u + masked; i++) {
        in[i] = weft_eval_numbers(eval, &eval->in[i]);
        there = there && in[i];
    }
    const int64_t results = weft_tensor_count(&eval->out[0]);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    if (there && result) {
        struct deformed d = {.x = in[0], .w = in[1], .offset = in[2], .mask = in[3]};
        if (results > 0)
            deform_all(eval, &d, result);
        weft_eval_store_all(&eval->out[0], result);
    }
    for (unsigned i = 0; i < 3u + masked; i++)
        weft_eval_drop_numbers(eval, in[i], weft_tensor_count(&eval->in[i]));
    weft_eval_drop_numbers(eval, result, results);
}

/* A real number as an index or count: NaN is 0, and nothing is beyond what loops and sums can bear. */
static int64_t whole(double value)
{
    const double limit = 1 << 24;
    return isnan(value) ? 0 : (int64_t)(value < -limit ? -limit : value > limit ? limit : value);
}

/* --- regions ----------------------------------------------------------------------------------------------- */

struct regions {
    bool largest, half_pixel;
    double scale;
    int64_t samples, extent[2], size[2];
};

/* The mean of the samples of one cell, or the largest weighed neighbour of any of them. */
static double align_cell(const struct regions *r, const union weft_number *plane, const double *start,
                         const double *cell, const int64_t *o)
{
    int64_t count[2];
    double total = 0;
    for (int i = 0; i < 2; i++)
        count[i] = r->samples > 0 ? r->samples : whole(ceil(cell[i]));
    bool any = false;
    for (int64_t i = 0; i < count[0]; i++)
        for (int64_t j = 0; j < count[1]; j++) {
            int64_t low[2], high[2];
            double share[2], value = 0, largest = 0;
            const double y = start[0] + cell[0] * ((double)o[0] + ((double)i + 0.5) / (double)count[0]);
            const double x = start[1] + cell[1] * ((double)o[1] + ((double)j + 0.5) / (double)count[1]);
            if (weft_k_neighbours(y, r->extent[0], &low[0], &high[0], &share[0]) &&
                weft_k_neighbours(x, r->extent[1], &low[1], &high[1], &share[1])) {
                const int64_t width = r->extent[1];
                const double part[] = {(1 - share[0]) * (1 - share[1]) * plane[low[0] * width + low[1]].real,
                                       (1 - share[0]) * share[1] * plane[low[0] * width + high[1]].real,
                                       share[0] * (1 - share[1]) * plane[high[0] * width + low[1]].real,
                                       share[0] * share[1] * plane[high[0] * width + high[1]].real};
                largest = fmax(fmax(part[0], part[1]), fmax(part[2], part[3]));
                value = part[0] + part[1] + part[2] + part[3];
            }
            total = !r->largest ? total + value : !any || largest > total ? largest : total;
            any = true;
        }
    const int64_t samples = count[0] * count[1];
    return r->largest || samples <= 0 ? total : total / (double)samples;
}

static void align_region(const struct regions *r, const union weft_number *image, int64_t channels,
                         const union weft_number *box, union weft_number *result)
{
    const double shift = r->half_pixel ? 0.5 : 0;
    double start[2], cell[2];
    for (int i = 0; i < 2; i++) { /* boxes are x1 y1 x2 y2 */
        start[i] = box[1 - i].real * r->scale - shift;
        double length = box[3 - i].real * r->scale - shift - start[i];
        if (!r->half_pixel && !(length >= 1))
            length = 1;
        cell[i] = length / (double)r->size[i];
    }
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < r->size[0]; y++)
            for (int64_t x = 0; x < r->size[1]; x++)
                (result++)->real =
                    align_cell(r, image + c * r->extent[0] * r->extent[1], start, cell, (const int64_t[]){y, x});
}

/* The largest element of each cell of a box of whole elements; an empty cell gives 0. */
static void pool_region(const struct regions *r, const union weft_number *image, int64_t channels,
                        const union weft_number *box, union weft_number *result)
{
    int64_t start[2];
    double cell[2];
    for (int i = 0; i < 2; i++) {
        start[i] = whole(round(box[1 - i].real * r->scale));
        const int64_t end = whole(round(box[3 - i].real * r->scale));
        cell[i] = (double)(end - start[i] + 1 > 1 ? end - start[i] + 1 : 1) / (double)r->size[i];
    }
    for (int64_t c = 0; c < channels; c++, image += r->extent[0] * r->extent[1])
        for (int64_t o = 0; o < r->size[0] * r->size[1]; o++, result++) {
            const int64_t at[] = {o / r->size[1], o % r->size[1]};
            int64_t first[2], end[2];
            for (int i = 0; i < 2; i++) {
                first[i] = start[i] + (int64_t)floor((double)at[i] * cell[i]);
                end[i] = start[i] + (int64_t)ceil((double)(at[i] + 1) * cell[i]);
                first[i] = first[i] < 0 ? 0 : first[i] > r->extent[i] ? r->extent[i] : first[i];
                end[i] = end[i] < 0 ? 0 : end[i] > r->extent[i] ? r->extent[i] : end[i];
            }
            const bool empty = first[0] >= end[0] || first[1] >= end[1];
            double best = empty ? 0 : -INFINITY;
            for (int64_t y = first[0]; y < end[0]; y++)
                for (int64_t x = first[1]; x < end[1]; x++) {
                    const double element = image[y * r->extent[1] + x].real;
                    best = isnan(best) || best > element ? best : element;
                }
            result->real = best;
        }
}

/* Indices of images are clamped to those that exist. */
static int64_t image_of(int64_t index, int64_t images) { return index < 0 ? 0 : index >= images ? images - 1 : index; }

static void evaluate_regions(struct weft_eval *eval, bool align)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const int64_t results = weft_tensor_count(out);
    struct regions r = {.scale = real_attr(eval, WEFT_ATTR_factor),
                        .extent = {in->extent[2], in->extent[3]},
                        .size = {out->extent[2], out->extent[3]}};
    if (align) {
        r.largest = form_is(eval, "max");
        r.half_pixel = weft_eval_int(eval, WEFT_ATTR_half_pixel) != 0;
        r.samples = weft_eval_int(eval, WEFT_ATTR_samples);
    }
    union weft_number *x = weft_eval_numbers(eval, in), *box = weft_eval_numbers(eval, &eval->in[1]);
    union weft_number *image = weft_eval_numbers(eval, &eval->in[2]);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    if (x && box && image && result) {
        const int64_t channels = in->extent[1], plane = r.extent[0] * r.extent[1],
                      each = channels * r.size[0] * r.size[1];
        for (int64_t i = 0; i < results; i++)
            result[i].real = 0;
        for (int64_t i = 0; i < out->extent[0] && results > 0 && plane > 0 && in->extent[0] > 0; i++)
            (align ? align_region : pool_region)(&r, x + image_of(image[i].integer, in->extent[0]) * channels * plane,
                                                 channels, box + 4 * i, result + i * each);
        weft_eval_store_all(out, result);
    }
    weft_eval_drop_numbers(eval, x, weft_tensor_count(in));
    weft_eval_drop_numbers(eval, box, weft_tensor_count(&eval->in[1]));
    weft_eval_drop_numbers(eval, image, weft_tensor_count(&eval->in[2]));
    weft_eval_drop_numbers(eval, result, results);
}

void weft_eval_roi_align(struct weft_eval *eval) { evaluate_regions(eval, true); }
void weft_eval_roi_max_pool(struct weft_eval *eval) { evaluate_regions(eval, false); }

/* --- unpool ------------------------------------------------------------------------------------------------ */

void weft_eval_unpool(struct weft_eval *eval)
{
    const struct weft_tensor *in = &eval->in[0], *out = &eval->out[0];
    const int64_t count = weft_tensor_count(in), results = weft_tensor_count(out);
    union weft_number *x = weft_eval_numbers(eval, in), *place = weft_eval_numbers(eval, &eval->in[1]);
    union weft_number *result = weft_eval_scratch(eval, results, sizeof *result);
    if (x && place && result) {
        for (int64_t i = 0; i < results; i++)
            result[i].bits = 0;
        for (int64_t i = 0; i < count; i++)
            if (place[i].bits < (uint64_t)results)
                result[place[i].integer] = x[i];
        weft_eval_store_all(out, result);
    }
    weft_eval_drop_numbers(eval, x, count);
    weft_eval_drop_numbers(eval, place, weft_tensor_count(&eval->in[1]));
    weft_eval_drop_numbers(eval, result, results);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c: grid_sample, for any number of spatial axes. Places and sums are in double.
 *
 *   x f32[N,C,H,W], grid f32[N,P,Q,2]:  y[n,c,p,q] = sum over taps k of weight[k] · x[n,c][place[k]]
 *
 * The elements that a point is the weighed sum of (*taps*) and their weights are found once for all channels. Elements
 * outside, which read as 0, and weights of 0 are left out, because what they weigh may be infinite or NaN. Points that
 * nothing is left out of, nearly all, are summed some at a time, one channel after the other: the loop has a constant
 * number of taps, and of planes (NCHW) it reads one at a time. Contiguous channels of a point are vectors. */
#include "kernels/plain/plain.h"
#include "kernels/plain/shared.h"

enum { MOST_AXES = WEFT_K_RANK - 2, MOST_TAPS = 1 << 2 * MOST_AXES, POINTS = 32, POINT_TAPS = 4, CHANNELS = 16 };
_Static_assert(WEFT_K_TAPS == 4, "MOST_TAPS is WEFT_K_TAPS to the power of MOST_AXES");

/* Of one point; the last axis counts fastest. */
struct taps {
    int count;
    int64_t place[MOST_TAPS]; /* from the image's first element of a channel */
    double weight[MOST_TAPS];
};

/* Points of one image with POINT_TAPS taps each. */
struct points {
    int count;
    int64_t to[POINTS];       /* in the result, from its first element of a channel */
    int64_t place[POINTS][POINT_TAPS];
    double weight[POINTS][POINT_TAPS];
};

struct sampler {
    struct weft_k_sampling how;
    const struct weft_array *image, *grid, *out;
    const void *x, *coordinates;
    void *y;
    bool by_channel;          /* points are collected */
};

static double coordinate(const struct sampler *s, int64_t place)
{
    return s->grid->dtype == WEFT_K_F32 ? (double)((const float *)s->coordinates)[place]
                                        : weft_k_at(s->grid->dtype, s->coordinates, place).real;
}

/* Each tap becomes those of one more axis. From the last on: it is stored behind all that are still to be read. */
static void spread_taps(struct taps *taps, int n, const int64_t *step, const double *weight)
{
    for (int i = taps->count - 1; i >= 0; i--) {
        const int64_t place = taps->place[i];
        const double outer = taps->weight[i];
        for (int k = 0; k < n; k++) {
            taps->place[i * n + k] = place + step[k];
            taps->weight[i * n + k] = outer * weight[k];
        }
    }
    taps->count *= n;
}

/* Of the point whose coordinates begin at `place` of the grid. */
static void find_taps(const struct sampler *s, int64_t place, struct taps *taps)
{
    const int spatial = s->image->rank - 2, most = weft_k_taps(s->how.form);
    const int64_t step = s->grid->stride[s->grid->rank - 1];
    taps->count = 1;
    taps->place[0] = 0, taps->weight[0] = 1;
    for (int axis = 0; axis < spatial; axis++) { /* the last axis comes first in the grid */
        int64_t element[WEFT_K_TAPS];
        double weight[WEFT_K_TAPS];
        int n = 0;
        weft_k_sample_axis(&s->how, s->image->extent[2 + axis], coordinate(s, place + (spatial - 1 - axis) * step),
                           element, weight);
        for (int k = 0; k < most; k++) {
            if (element[k] >= 0 && weight[k] != 0) {
                element[n] = element[k] * s->image->stride[2 + axis];
                weight[n++] = weight[k];
            }
        }
        spread_taps(taps, n, element, weight);
    }
}

/* y[c·step] = the sum over taps of channel c, one chain in double; from here on in f32. */
static void sum_channels(const struct taps *taps, const float *x, int64_t x_step, float *y, int64_t y_step,
                         int64_t channels)
{
    int64_t c = 0;
    for (; x_step == 1 && c + CHANNELS <= channels; c += CHANNELS) { /* the loops inside are vectors */
        double sum[CHANNELS] = {0};
        for (int k = 0; k < taps->count; k++)
            for (int i = 0; i < CHANNELS; i++)
                sum[i] += taps->weight[k] * (double)x[taps->place[k] + c + i];
        for (int i = 0; i < CHANNELS; i++)
            y[(c + i) * y_step] = (float)sum[i];
    }
    for (; c < channels; c++) {
        double sum = 0;
        for (int k = 0; k < taps->count; k++)
            sum += taps->weight[k] * (double)x[taps->place[k] + c * x_step];
        y[c * y_step] = (float)sum;
    }
}

static void sum_any(const struct taps *taps, const struct sampler *s, int64_t from, int64_t to)
{
    for (int64_t c = 0; c < s->out->extent[1]; c++) {
        double sum = 0;
        for (int k = 0; k < taps->count; k++)
            sum += taps->weight[k] *
                   weft_k_at(s->image->dtype, s->x, from + c * s->image->stride[1] + taps->place[k]).real;
        weft_k_put(s->out->dtype, s->y, to + c * s->out->stride[1], (union weft_k_number){.real = sum});
    }
}

/* All points that were collected, of the image that begins at `from`. */
static void sum_points(struct points *points, const struct sampler *s, int64_t from)
{
    const float *x = (const float *)s->x + from;
    float *y = s->y;
    for (int64_t c = 0; c < s->out->extent[1]; c++, x += s->image->stride[1], y += s->out->stride[1])
        for (int i = 0; i < points->count; i++) {
            const int64_t *const place = points->place[i];
            const double *const weight = points->weight[i];
            double sum = 0;
            for (int k = 0; k < POINT_TAPS; k++)
                sum += weight[k] * (double)x[place[k]];
            y[points->to[i]] = (float)sum;
        }
    points->count = 0;
}

/* One point, or the 32 that are there with it. */
static void take_point(const struct sampler *s, const struct taps *taps, int64_t from, int64_t to,
                       struct points *points)
{
    if (s->by_channel && taps->count == POINT_TAPS) {
        const int i = points->count++;
        points->to[i] = to;
        for (int k = 0; k < POINT_TAPS; k++) {
            points->place[i][k] = taps->place[k];
            points->weight[i][k] = taps->weight[k];
        }
        if (points->count == POINTS)
            sum_points(points, s, from);
    } else if (s->image->dtype == WEFT_K_F32) {
        sum_channels(taps, (const float *)s->x + from, s->image->stride[1], (float *)s->y + to, s->out->stride[1],
                     s->out->extent[1]);
    } else {
        sum_any(taps, s, from, to);
    }
}

/* A unit is a point, with all channels. */
void weft_plain_run_grid_sample(const struct weft_plain *plain, const struct weft_plain_data *data, int64_t begin,
                                int64_t end)
{
    struct sampler s = {.how = {.form = (enum weft_k_form)plain->attr[0].integer[0],
                                .border = (enum weft_k_border)plain->attr[1].integer[0],
                                .corners = plain->attr[2].integer[0] != 0},
                        .image = &plain->in[0], .grid = &plain->in[1], .out = &plain->out[0],
                        .x = data->in[0], .coordinates = data->in[1], .y = data->out[0]};
    s.by_channel = s.image->dtype == WEFT_K_F32 && s.image->stride[1] != 1;
    struct weft_array units = *s.out; /* without channels */
    units.extent[1] = 1;
    struct points points;
    struct taps taps;
    points.count = taps.count = 0;
    const bool empty = weft_array_elements(s.image) == 0; /* a sum of nothing */
    int64_t index[WEFT_K_RANK];
    weft_array_index(&units, units.rank, begin, index);
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t n = index[0], from = n * s.image->stride[0], to = weft_array_place(s.out, s.out->rank, index);
        int64_t point = n * s.grid->stride[0];
        for (int axis = 2; axis < units.rank; axis++)
            point += index[axis] * s.grid->stride[axis - 1];
        if (!empty)
            find_taps(&s, point, &taps);
        take_point(&s, &taps, from, to, &points);
        for (int axis = units.rank - 1; axis >= 0 && ++index[axis] == units.extent[axis]; axis--)
            index[axis] = 0;
        if (index[0] != n || unit + 1 == end)
            sum_points(&points, &s, from);
    }
}

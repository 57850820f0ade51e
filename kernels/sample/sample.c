/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c: images read between their elements: which points a part has, and which loop sums their channels. */
#include "kernels/sample/sample.h"
#include "kernels/walk.h"

static const struct weft_sample_level *const levels[] = {
#define SAMPLE(level, cpu) &weft_sample_level__##level,
#include "kernels/sample/sample.def"
};

static const struct weft_sample_level *best_level(uint32_t cpu)
{
    const struct weft_sample_level *best = levels[0];
    for (size_t i = 1; i < sizeof levels / sizeof levels[0]; i++)
        if (!(levels[i]->cpu & ~cpu))
            best = levels[i];
    return best;
}

const char *weft_sample_name(const struct weft_sample *s) { return best_level(s->cpu)->name; }

uint32_t weft_sample_cpu(const struct weft_sample *s) { return best_level(s->cpu)->cpu; }

bool weft_sample_by_pixel(const struct weft_sample *s)
{
    return s->channels > 1 && s->in_channel == 1 && s->out_channel == 1;
}

/* Rows of points that are one in both arrays become one row. */
static void merge_rows(struct weft_sample *s)
{
    if (s->points[0] != 1 &&
        (s->grid[0] != s->grid[1] * s->points[1] || s->out_point[0] != s->out_point[1] * s->points[1]))
        return;
    s->points[1] *= s->points[0];
    s->points[0] = 1;
}

/* A point takes about what moving 64 bytes does, an element of a channel 4, and 16 of a plane, where it is looked for.
 */
enum { POINT_BYTES = 64, PIXEL_BYTES = 4, PLANE_BYTES = 16, GRAIN = 16 };

void weft_sample_prepare(struct weft_sample *s, int workers)
{
    merge_rows(s);
    const int64_t units = s->images * s->points[0] * s->points[1];
    const int64_t each = POINT_BYTES + s->channels * (weft_sample_by_pixel(s) ? PIXEL_BYTES : PLANE_BYTES);
    const int64_t most = (units + GRAIN - 1) / GRAIN;
    s->parts = weft_parts_for(units * each, workers);
    s->parts = s->parts <= most ? s->parts : most < 1 ? 1 : (int32_t)most;
}

/* What the arrays of an image begin with. */
struct image {
    const float *x, *grid;
    float *y;
};

/* `n` points of a row, from `first` on. */
static void sample_run(const struct weft_sample *s, const struct weft_sample_level *level, const struct image *image,
                       const struct weft_sample_axis axis[2], int64_t row, int64_t first, int n)
{
    double coordinate[2][WEFT_SAMPLE_POINTS];
    struct weft_sample_points points;
    const float *g = image->grid + row * s->grid[0] + first * s->grid[1];
    for (int i = 0; i < n; i++, g += s->grid[1]) {
        coordinate[0][i] = (double)g[s->grid_axis]; /* the last axis comes first */
        coordinate[1][i] = (double)g[0];
    }
    level->find(axis, coordinate, n, &points);
    const int64_t down = axis[0].extent > 1 ? axis[0].stride : 0, right = axis[1].extent > 1 ? axis[1].stride : 0;
    const struct weft_sample_channels how = {.taps = weft_sample_taps(axis), .tap = {0, right, down, down + right},
                                             .count = s->channels, .in = s->in_channel, .out = s->out_channel,
                                             .out_point = s->out_point[1], .pairs = right == 1};
    float *const y = image->y + row * s->out_point[0] + first * s->out_point[1];
    if (weft_sample_by_pixel(s))
        level->pixels(&how, &points, y, image->x);
    else
        level->planes(&how, &points, y, image->x);
}

/* Images without elements: sums of nothing. */
static void clear_run(const struct weft_sample *s, float *y, int n)
{
    for (int i = 0; i < n; i++, y += s->out_point[1])
        for (int64_t c = 0; c < s->channels; c++)
            y[c * s->out_channel] = 0;
}

void weft_sample_run(const struct weft_sample *s, float *out, const float *in, const float *grid, int part, int parts)
{
    const struct weft_sample_level *const level = best_level(s->cpu);
    struct weft_sample_axis axis[2];
    for (int i = 0; i < 2; i++)
        axis[i] = (struct weft_sample_axis){
            .how = {.form = s->nearest ? WEFT_K_NEAREST : WEFT_K_LINEAR, .border = (enum weft_k_border)s->border,
                    .corners = s->corners}, .extent = s->extent[i], .stride = s->in[i]};
    int64_t begin, end;
    weft_share(s->images * s->points[0] * s->points[1], GRAIN, part, parts, &begin, &end);
    while (begin < end) {
        const int64_t row = begin / s->points[1], first = begin % s->points[1], n = row / s->points[0];
        int64_t count = s->points[1] - first < end - begin ? s->points[1] - first : end - begin;
        count = count < WEFT_SAMPLE_POINTS ? count : WEFT_SAMPLE_POINTS;
        const struct image image = {in + n * s->in_image, grid + n * s->grid_image, out + n * s->out_image};
        if (s->extent[0] > 0 && s->extent[1] > 0)
            sample_run(s, level, &image, axis, row % s->points[0], first, (int)count);
        else
            clear_run(s, image.y + row % s->points[0] * s->out_point[0] + first * s->out_point[1], (int)count);
        begin += count;
    }
}

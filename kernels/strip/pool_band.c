/* SPDX-License-Identifier: Apache-2.0 */
/* pool_band.c: windows band by band. The contract: pool_band.h.
 *
 * How many rows a band has is chosen once: as many as fit into the nearer share of a cache with what they read; more of
 * them, up to the farther one, as long as bands make much of the operand twice. Below a slice of a plane bands are
 * rows of one slice, then whole slices, then whole planes: what a band reads is a box in each case. Channels that lie
 * side by side are cut only where a single row of results would not fit. */
#include "kernels/strip/pool_band.h"
#include "kernels/strip/pool.h"

#include <string.h>

enum { NEAR = 64 << 10, FAR = 128 << 10, FEWEST_CHANNELS = 64 };
#define MUCH_AGAIN 1.125 /* of the operand, over once */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t in_at(const struct weft_pool *pool, int i) { return weft_pool_axis(pool, pool->in_extent, i, 1); }
static int64_t out_at(const struct weft_pool *pool, int i) { return weft_pool_axis(pool, pool->out_extent, i, 1); }

/* How many places along axis i of the operand `count` results read at most. */
static int64_t reads_of(const struct weft_pool *pool, int i, int64_t count)
{
    const int64_t reach = (weft_pool_axis(pool, pool->kernel, i, 1) - 1) * weft_pool_axis(pool, pool->dilation, i, 1);
    return least((count - 1) * weft_pool_axis(pool, pool->stride, i, 1) + reach + 1, in_at(pool, i));
}

/* --- how large ---------------------------------------------------------------------------------------------------- */

static size_t result_bytes(const struct weft_pool_bands *b)
{
    return (size_t)(b->rows * out_at(&b->pool, 2) * b->channels) * sizeof(float);
}

/* Sets what follows from the number of rows and channels of a band. */
static void set_reads(struct weft_pool_bands *b)
{
    const struct weft_pool *const pool = &b->pool;
    const int64_t slice = out_at(pool, 1);
    const bool whole = b->rows >= b->height;
    b->read[0] = whole ? in_at(pool, 0) : reads_of(pool, 0, most(b->rows / slice, 1));
    b->read[1] = b->rows >= slice ? in_at(pool, 1) : reads_of(pool, 1, b->rows);
    const int64_t pixels = b->read[0] * b->read[1] * in_at(pool, 2) * (whole ? b->rows / b->height : 1);
    b->in_bytes = b->makes ? (size_t)(pixels * b->channels) * sizeof(float) : 0;
    b->out_bytes = b->apart ? result_bytes(b) : 0;
    const int64_t rows = least(b->rows, b->height), bands = rows >= slice ? (b->height + rows - 1) / rows
                                                             : b->height / slice * ((slice + rows - 1) / rows);
    const double there = (double)in_at(pool, 0) * (double)in_at(pool, 1);
    b->read_again = there > 0 && b->makes ? most(1, bands) * (double)b->read[0] * (double)b->read[1] / there : 1;
    b->made_again = b->read_again;
    if (there > 0 && b->makes && rows < slice && b->channels >= (b->inside ? pool->c : 1))
        b->made_again = (double)out_at(pool, 0) * (double)b->read[0] / (double)in_at(pool, 0);
}

static size_t bytes_of(const struct weft_pool_bands *b) { return b->in_bytes + result_bytes(b); }

/* The next larger number of rows. */
static int64_t grow(const struct weft_pool_bands *b)
{
    const int64_t slice = out_at(&b->pool, 1);
    return b->rows < slice       ? least(2 * b->rows, slice)
           : b->rows < b->height ? least(2 * b->rows, b->height) / slice * slice
                                 : 2 * b->rows;
}

static void choose_size(struct weft_pool_bands *b)
{
    const size_t near = b->near ? b->near : NEAR, far = b->far ? b->far : FAR;
    const int64_t all = b->height * b->planes;
    b->channels = b->inside ? b->pool.c : 1;
    b->rows = least(b->form == WEFT_POOL_PLANES_OF_ONE ? WEFT_POOL_PLANES : 1, all);
    for (set_reads(b); bytes_of(b) > far && b->channels > FEWEST_CHANNELS; set_reads(b))
        b->channels = (b->channels / 2 + FEWEST_CHANNELS - 1) / FEWEST_CHANNELS * FEWEST_CHANNELS;
    while (b->rows < all) {
        const struct weft_pool_bands before = *b;
        b->rows = grow(b);
        set_reads(b);
        if (bytes_of(b) <= near || (before.read_again > MUCH_AGAIN && bytes_of(b) <= far))
            continue;
        *b = before;
        break;
    }
}

/* Strides of an array of which scratch memory has the boxes of bands: width, rows, slices, planes. */
static void set_strides(const struct weft_pool_bands *b, int64_t *stride, int64_t width, int64_t rows, int64_t slices)
{
    const int spatial = b->pool.spatial;
    const int64_t axis[] = {rows * width * b->channels, width * b->channels, b->channels};
    const int64_t plane = slices * axis[0];
    for (int i = 0; i < spatial; i++)
        stride[2 + i] = axis[3 - spatial + i];
    stride[1] = b->inside ? 1 : plane;
    stride[0] = b->inside ? plane : b->pool.c * plane;
}

void weft_pool_prepare_bands(struct weft_pool_bands *b, int workers)
{
    struct weft_pool *const pool = &b->pool;
    const bool is_read = b->makes || pool->in_stride[1] == 1, is_written = (b->apart && !b->makes) ||
                                                                          pool->out_stride[1] == 1;
    b->inside = is_read && is_written && pool->c >= WEFT_POOL_INSIDE;
    b->planes = b->inside ? pool->n : pool->n * pool->c;
    b->height = out_at(pool, 0) * out_at(pool, 1);
    b->rows = b->channels = 0;
    b->in_bytes = b->out_bytes = 0;
    b->read_again = b->made_again = 1;
    b->form = b->inside ? WEFT_POOL_CHANNELS : WEFT_POOL_ROWS;
    pool->parts = 1;
    if (b->height * b->planes == 0 || out_at(pool, 2) == 0 || pool->c == 0)
        return;
    if (!b->inside && b->height * out_at(pool, 2) == 1 && (b->makes || pool->in_stride[1 + pool->spatial] == 1) &&
        pool->dilation[pool->spatial - 1] == 1)
        b->form = WEFT_POOL_PLANES_OF_ONE;
    choose_size(b);
    if (b->makes)
        set_strides(b, pool->in_stride, in_at(pool, 2), b->read[1], b->read[0]);
    if (b->apart)
        set_strides(b, pool->out_stride, out_at(pool, 2), out_at(pool, 1), out_at(pool, 0));
    const int64_t made = b->makes ? b->planes * (b->inside ? pool->c : 1) * in_at(pool, 0) * in_at(pool, 1) *
                                        in_at(pool, 2) : 0;
    pool->parts = weft_pool_parts(pool, (enum weft_pool_form)b->form, weft_pool_taps(pool) + made, workers);
}

double weft_pool_count_bands(const struct weft_pool_bands *b)
{
    if (b->rows == 0)
        return 0;
    const double cuts = (double)((b->inside ? b->pool.c : 1) + b->channels - 1) / (double)b->channels;
    return (double)(b->planes * b->height) / (double)b->rows * cuts;
}

/* --- one after another -------------------------------------------------------------------------------------------- */

/* What results [from, to) of axis i read: ret[0] to ret[1]. */
static void find_read(const struct weft_pool *pool, int i, int64_t from, int64_t to, int64_t *ret)
{
    const int64_t stride = weft_pool_axis(pool, pool->stride, i, 1), pad = weft_pool_axis(pool, pool->pad, i, 0);
    const int64_t reach = (weft_pool_axis(pool, pool->kernel, i, 1) - 1) * weft_pool_axis(pool, pool->dilation, i, 1);
    ret[0] = least(most(from * stride - pad, 0), in_at(pool, i));
    ret[1] = most(ret[0], least((to - 1) * stride - pad + reach + 1, in_at(pool, i)));
}

/* From left.at on. */
static void find_band(const struct weft_pool_bands *b, struct weft_pool_band *band)
{
    const struct weft_pool *const pool = &b->pool;
    const int64_t slice = out_at(pool, 1), left = least(b->rows, band->left.end - band->left.at);
    const int64_t in_plane = band->left.at % b->height, first = in_plane / slice, row = in_plane % slice;
    int64_t rows = least(left, slice - row), past = first + 1;
    band->at = band->left.at;
    band->plane = band->at / b->height;
    band->planes = 1;
    if (in_plane == 0 && left >= b->height) {
        band->planes = left / b->height;
        rows = band->planes * b->height;
        past = out_at(pool, 0);
    } else if (row == 0 && left >= slice) {
        past = first + least(left / slice, out_at(pool, 0) - first);
        rows = (past - first) * slice;
    }
    band->end = band->at + rows;
    if (in_plane == 0 && rows >= b->height) { /* rows that no window reads are there too: planes are whole */
        band->read[0][0] = band->read[1][0] = 0;
        band->read[0][1] = in_at(pool, 0), band->read[1][1] = in_at(pool, 1);
    } else {
        find_read(pool, 0, first, past, band->read[0]);
        find_read(pool, 1, row, row + least(rows, slice), band->read[1]);
    }
}

static void find_shifts(const struct weft_pool_bands *b, struct weft_pool_band *band)
{
    const struct weft_pool *const pool = &b->pool;
    const int64_t row = in_at(pool, 2) * b->channels;
    band->in_shift = ((band->plane * b->read[0] + band->read[0][0]) * b->read[1] + band->read[1][0]) * row +
                     band->channel;
    band->out_shift = band->at * out_at(pool, 2) * b->channels + band->channel;
}

bool weft_pool_first_band(const struct weft_pool_bands *b, int part, int parts, struct weft_pool_band *ret)
{
    if (b->rows == 0)
        return false;
    const struct weft_pool_share share = weft_pool_share(&b->pool, (enum weft_pool_form)b->form, part, parts);
    *ret = (struct weft_pool_band){.at = share.at, .end = share.at, .channel = share.channel,
                                   .left = {share.at, share.end, share.channel, share.past}};
    if (share.at >= share.end || share.channel >= share.past)
        return false;
    find_band(b, ret);
    ret->channels = least(b->channels, share.past - share.channel);
    find_shifts(b, ret);
    return true;
}

/* Rows that are in scratch memory already, if the band before is the one in front of this one in its plane. */
static void find_kept(const struct weft_pool_bands *b, const struct weft_pool_band *before, struct weft_pool_band *band)
{
    const bool same = band->planes == 1 && before->planes == 1 && band->plane == before->plane &&
                      band->read[0][0] == before->read[0][0] && band->read[0][1] == before->read[0][1] &&
                      band->left.past - band->left.channel <= b->channels;
    const int64_t kept = least(before->read[1][1], band->read[1][1]) - band->read[1][0];
    band->kept = same && b->makes && before->read[1][0] <= band->read[1][0] && kept > 0 ? kept : 0;
    band->moved = band->read[1][0] - before->read[1][0];
}

void weft_pool_move_kept(const struct weft_pool_bands *b, const struct weft_pool_band *band, float *scratch)
{
    const int64_t row = in_at(&b->pool, 2) * b->channels;
    for (int64_t slice = 0; slice < band->read[0][1] - band->read[0][0] && band->moved; slice++) {
        float *const to = scratch + slice * b->read[1] * row;
        memmove(to, to + band->moved * row, (size_t)(band->kept * row) * sizeof *to);
    }
}

bool weft_pool_next_band(const struct weft_pool_bands *b, struct weft_pool_band *band)
{
    const struct weft_pool_band before = *band;
    band->channel += band->channels;
    if (band->channel >= band->left.past) {
        band->channel = band->left.channel;
        band->left.at = band->end;
        if (band->left.at >= band->left.end)
            return false;
        find_band(b, band);
    }
    band->channels = least(b->channels, band->left.past - band->channel);
    find_kept(b, &before, band);
    find_shifts(b, band);
    return true;
}

void weft_pool_run_band(const struct weft_pool_bands *b, const struct weft_pool_band *band, float *out, const float *in)
{
    const struct weft_pool_share share = {band->at, band->end, band->channel, band->channel + band->channels};
    weft_pool_run_share(&b->pool, (enum weft_pool_form)b->form, out, in, &share);
}

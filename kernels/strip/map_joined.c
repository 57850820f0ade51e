/* SPDX-License-Identifier: Apache-2.0 */
/* map_joined.c: elementwise ops on short rows. Each row would be a call for a few vectors, which costs several times
 * what it computes:
 *
 *   y[p,c] = x[p,c] · s[c]       pixels of 24 channels; s begins again for each pixel
 *   y[p,c] = relu(x[p,c])        where y is a part of a concat: its rows have gaps between them
 *   y[p,g,c] = x[p,g,c] - m[g]   8 groups of 3 channels: two short axes
 *
 * The axis around such rows and the rows become one axis. It runs in stretches of several rows: operands that begin
 * again are written out once, several times over; rows with gaps are put together before, the result's taken apart
 * after. The buffers stay in L1. */
#include "kernels/relayout/relayout.h"
#include "kernels/strip/strip.h"
#include "kernels/walk.h"

#include <string.h>

/* Bytes of a buffer. Not 4096: it would lie at the same place of a page as an array all along, and loads would wait for
 * stores. */
#define BUFFER_BYTES 3968
#define LEAST_ROWS   4 /* in a buffer, where operands begin again: fewer would save too few calls */
#define LEAST_GAPPED 8 /* the same where rows have gaps, which takes copies */
#define LEAST_USES   4 /* of what is written out */
#define PREFETCH_BYTES 4096 /* of rows between the one that is copied and the one that is asked for */

/* How many elements a buffer holds: whole rows. */
static int64_t buffer_length(const struct weft_map *map, int64_t period)
{
    int widest = 1;
    for (int a = 0; a <= map->inputs; a++)
        widest = map->bytes[a] > widest ? map->bytes[a] : widest;
    return BUFFER_BYTES / widest / period * period;
}

/* How the rows of one array follow each other. */
enum rows { JOINED, AGAIN, GAPPED, OTHERWISE };

static enum rows rows_of(const struct weft_k_axis *outer, const struct weft_k_axis *middle,
                         const struct weft_k_axis *inner, int a, int64_t period)
{
    const bool one = middle == inner || middle->stride[a] == inner->stride[a] * inner->extent;
    if (one && outer->stride[a] == inner->stride[a] * period)
        return JOINED;
    if (a > 0 && outer->stride[a] == 0)
        return AGAIN;
    return one && inner->stride[a] == 1 ? GAPPED : OTHERWISE;
}

static bool join(struct weft_map *map, struct weft_k_axis *axes, int rank, int pieces)
{
    if (rank <= pieces)
        return false;
    struct weft_k_axis *const outer = &axes[rank - 1 - pieces];
    const struct weft_k_axis *const inner = &axes[rank - 1], *const middle = &axes[rank - pieces];
    if (inner->extent == 0 || inner->extent > BUFFER_BYTES || middle->extent == 0 || middle->extent > BUFFER_BYTES)
        return false;
    const int64_t period = pieces == 1 ? inner->extent : inner->extent * middle->extent;
    const int64_t length = buffer_length(map, period);
    map->again = map->gapped = 0;
    for (int a = 0; a <= map->inputs; a++) {
        const enum rows rows = rows_of(outer, middle, inner, a, period);
        if (rows == OTHERWISE)
            return false;
        map->again |= rows == AGAIN ? 1u << a : 0;
        map->gapped |= rows == GAPPED ? 1u << a : 0;
    }
    const int64_t least = pieces == 2 ? 1 : map->gapped ? LEAST_GAPPED : LEAST_ROWS; /* two axes: very short calls */
    if (length < least * period || outer->extent < LEAST_USES * (length / period))
        return false;
    for (int a = 0; a <= map->inputs; a++) {
        map->within[a][0] = middle->stride[a], map->within[a][1] = inner->stride[a];
        map->row[a] = outer->stride[a];
        outer->stride[a] = (map->again | map->gapped) >> a & 1 ? 0 : inner->stride[a];
    }
    map->period = (int32_t)period;
    map->piece = (int32_t)inner->extent;
    outer->extent *= period;
    return true;
}

int weft_map_join(struct weft_map *map, struct weft_k_axis *axes, int rank)
{
    map->period = 0;
    return join(map, axes, rank, 1) ? 1 : join(map, axes, rank, 2) ? 2 : 0;
}

/* Writes an operand out, as often as `most` elements ask for. */
static void write_out(const struct weft_map *map, int a, const char *from, char *to, int64_t most)
{
    const int bytes = map->bytes[a];
    const int64_t period = map->period, length = buffer_length(map, period);
    for (int64_t done = 0; done < period; done += map->piece)
        weft_copy_strided(bytes, to + done * bytes, 1, from + done / map->piece * map->within[a][0] * bytes,
                          map->within[a][1], map->piece);
    for (int64_t done = period; done < length && done < most; done += period)
        memcpy(to + done * bytes, to, (size_t)(period * bytes));
}

static void copy_row(char *to, const char *from, int64_t bytes)
{
    int64_t i = 0;
    for (; i + 16 <= bytes; i += 16) /* shorter than a call of memcpy */
        memcpy(to + i, from + i, 16);
    if (i < bytes)
        memcpy(to + i, from + i, (size_t)(bytes - i));
}

/* Processors foresee lines that follow each other, not rows with gaps: of memory beyond the caches each row would be
 * waited for. Addresses past the end are never read. */
static void prefetch_row(const char *row, int64_t distance, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)row + (uintptr_t)(distance + i)));
}

/* Elements [first, first + n) between a buffer, where they follow each other, and an array with gaps, which is only
 * read unless they go `back`. */
static void copy_gapped(const struct weft_map *map, int a, char *array, char *buffer, int64_t first, int64_t n,
                        bool back)
{
    const int64_t bytes = map->bytes[a], period = map->period, row = map->row[a] * bytes;
    const int64_t ahead = (PREFETCH_BYTES / (period * bytes) + 1) * row;
    int64_t skip = first % period;
    array += first / period * row;
    for (int64_t done = 0; done < n; array += row, skip = 0) {
        const int64_t count = n - done < period - skip ? n - done : period - skip;
        char *const place = array + skip * bytes, *const packed = buffer + done * bytes;
        prefetch_row(place, ahead, count * bytes);
        copy_row(back ? place : packed, back ? packed : place, count * bytes);
        done += count;
    }
}

void weft_map_run_joined(const struct weft_map *map, struct weft_strip_args *args, int64_t first)
{
    _Alignas(64) char buffer[1 + WEFT_K_MAX_IN][BUFFER_BYTES];
    const int64_t length = buffer_length(map, map->period), total = args->n;
    int64_t phase = first % map->period;
    struct weft_strip_args part = *args;
    for (int a = 0; a <= map->inputs; a++)
        part.stride[a] = (map->again | map->gapped) >> a & 1 ? 1 : args->stride[a];
    for (int a = 1; a <= map->inputs; a++)
        if (map->again >> a & 1)
            write_out(map, a, args->in[a - 1], buffer[a], phase + total);
    for (int64_t at = 0; at < total; at += part.n, phase = 0) {
        part.n = total - at < length - phase ? total - at : length - phase;
        for (int a = 1; a <= map->inputs; a++) {
            const int64_t bytes = map->bytes[a];
            part.in[a - 1] = map->again >> a & 1    ? buffer[a] + phase * bytes
                             : map->gapped >> a & 1 ? buffer[a]
                                                    : (const char *)args->in[a - 1] + at * args->stride[a] * bytes;
            if (map->gapped >> a & 1)
                copy_gapped(map, a, (char *)args->in[a - 1], buffer[a], first + at, part.n, false);
        }
        part.out = map->gapped & 1 ? buffer[0] : (char *)args->out + at * args->stride[0] * map->bytes[0];
        map->kernel->fn(&part);
        if (map->gapped & 1)
            copy_gapped(map, 0, args->out, buffer[0], first + at, part.n, true);
    }
}

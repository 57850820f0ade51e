/* SPDX-License-Identifier: Apache-2.0 */
/* map.c: one elementwise op over strided arrays: loops around a strip kernel.
 *
 * prepare puts the axes in the order of the result's strides, merges neighbours that are one in all arrays, and takes
 * for the innermost loop the axis on which most arrays are contiguous or constant. run walks its share of the elements,
 * counted in that order, a run of the innermost axis at a time; so parts are even whatever the shape, and where a part
 * begins or ends cannot matter, since elements do not depend on each other.
 *
 * A short innermost axis along which some operands are the same for each index of the next axis (a scale for each of 24
 * channels, pixels of 24 channels) would cost a call for a few vectors. There the two axes become one, and a run gets
 * those operands written out several times over in a buffer that stays in L1. The same with two short axes (a scale for
 * each of 8 groups of 3 channels).
 *
 * The strip kernels check strides, not this file: a transposed operand works and is gathered. Making it fast is the
 * business of layouts, or of a relayout before. */
#include "kernels/relayout/relayout.h"
#include "kernels/walk.h"

#include <string.h>

#define GRAIN        64   /* parts begin at multiples of it: whole cache lines of f32 */
/* Of each operand that is written out several times. Not 4096: it would lie at the same place of a page as the result
 * all along, and loads would wait for stores. */
#define REPEAT_BYTES 3968
#define LEAST_COPIES 4    /* of one short axis: fewer would save too few calls */
#define LEAST_USES   4    /* of what is written out */

/* What an innermost axis is worth: contiguous arrays, the result above all, and long enough to pay for the call. */
static int64_t worth(const struct weft_axis *axis, int arrays)
{
    int64_t score = axis->stride[0] == 1 ? 8 : 0;
    for (int a = 1; a < arrays; a++)
        score += axis->stride[a] == 1 ? 4 : axis->stride[a] == 0 ? 3 : 0;
    return score * (axis->extent < 64 ? axis->extent : 64);
}

/* How many elements are written out of operands that begin again after `period`. */
static int64_t written_out(const struct weft_map *map, int64_t period)
{
    int widest = 1;
    for (int a = 0; a <= map->inputs; a++)
        widest = map->bytes[a] > widest ? map->bytes[a] : widest;
    return REPEAT_BYTES / widest / period * period;
}

/* Makes one axis of the innermost `pieces` axes (1 or 2) and the one around them, if they are one in the result and
 * each operand either is one as well or begins again; sets the period. */
static bool join_repeated(struct weft_map *map, struct weft_axis *axes, int rank, int pieces)
{
    if (rank <= pieces)
        return false;
    struct weft_axis *const outer = &axes[rank - 1 - pieces];
    const struct weft_axis *const inner = &axes[rank - 1], *const middle = &axes[rank - pieces];
    if (inner->extent == 0 || inner->extent > REPEAT_BYTES || middle->extent > REPEAT_BYTES || middle->extent == 0)
        return false;
    const int64_t period = pieces == 1 ? inner->extent : inner->extent * middle->extent;
    const int64_t length = written_out(map, period);
    const int64_t least = pieces == 1 ? LEAST_COPIES : 1; /* two short axes are short calls whatever their product */
    if (length < least * period || outer->extent * period < LEAST_USES * length)
        return false;
    map->again = 0;
    for (int a = 0; a <= map->inputs; a++) {
        const bool one = outer->stride[a] == inner->stride[a] * period &&
                         (pieces == 1 || middle->stride[a] == inner->stride[a] * inner->extent);
        if (!one && (a == 0 || outer->stride[a] != 0))
            return false;
        map->again |= one ? 0 : 1u << a;
    }
    for (int a = 0; a <= map->inputs; a++) {
        const bool again = map->again >> a & 1;
        map->within[a][0] = middle->stride[a], map->within[a][1] = inner->stride[a];
        outer->stride[a] = again ? 0 : inner->stride[a];
    }
    map->period = (int32_t)period;
    map->piece = (int32_t)inner->extent;
    outer->extent *= period;
    return true;
}

void weft_map_prepare(struct weft_map *map, int workers)
{
    struct weft_axis axes[WEFT_K_RANK] = {{0}};
    const int arrays = 1 + map->inputs;
    int64_t total = 1, bytes = 0;
    for (int i = 0; i < map->rank; i++) {
        axes[i].extent = map->extent[i];
        total *= map->extent[i];
        for (int a = 0; a < arrays; a++)
            axes[i].stride[a] = map->stride[a][i];
    }
    weft_axes_sort(axes, map->rank);
    int rank = weft_axes_merge(axes, map->rank, arrays);
    if (!rank)
        axes[rank++] = (struct weft_axis){1, {1, 1, 1, 1}};
    map->period = 0;
    if (join_repeated(map, axes, rank, 1)) {
        rank--;
    } else if (join_repeated(map, axes, rank, 2)) {
        rank -= 2;
    } else {
        int best = rank - 1;
        for (int i = rank - 2; i >= 0; i--)
            if (worth(&axes[i], arrays) > worth(&axes[best], arrays))
                best = i;
        weft_axes_move(axes, best, rank - 1);
    }
    map->rank = rank;
    for (int i = 0; i < rank; i++) {
        map->extent[i] = axes[i].extent;
        for (int a = 0; a < arrays; a++)
            map->stride[a][i] = axes[i].stride[a];
    }
    for (int a = 0; a < arrays; a++)
        bytes += map->bytes[a];
    map->parts = weft_parts_for(total * bytes, workers);
}

/* Writes operand i out, as often as `most` elements ask for. */
static void write_out(const struct weft_map *map, int i, const void *from, char *to, int64_t most)
{
    const int64_t *const stride = map->within[1 + i];
    const int bytes = map->bytes[1 + i];
    const int64_t period = map->period, length = written_out(map, period);
    for (int64_t done = 0; done < period; done += map->piece)
        weft_copy_strided(bytes, to + done * bytes, 1, (const char *)from + done / map->piece * stride[0] * bytes,
                          stride[1], map->piece);
    for (int64_t done = period; done < length && done < most; done += period)
        memcpy(to + done * bytes, to, (size_t)(period * bytes));
}

/* Runs args->n elements, the first of which is number `phase` of a period. */
static void run_repeated(const struct weft_map *map, struct weft_strip_args *args, int64_t phase)
{
    _Alignas(64) char written[WEFT_K_MAX_IN][REPEAT_BYTES];
    const int64_t length = written_out(map, map->period), total = args->n;
    for (int i = 0; i < map->inputs; i++)
        if (map->again >> (1 + i) & 1)
            write_out(map, i, args->in[i], written[i], phase + total);
    for (int64_t at = 0; at < total; at += args->n, phase = 0) {
        args->n = total - at < length - phase ? total - at : length - phase;
        for (int i = 0; i < map->inputs; i++) {
            if (map->again >> (1 + i) & 1)
                args->in[i] = written[i] + phase * map->bytes[1 + i], args->stride[1 + i] = 1;
        }
        map->kernel->fn(args);
        args->out = (char *)args->out + args->n * args->stride[0] * map->bytes[0];
        for (int i = 0; i < map->inputs; i++)
            args->in[i] = (const char *)args->in[i] + args->n * args->stride[1 + i] * map->bytes[1 + i];
    }
}

void weft_map_run(const struct weft_map *map, void *out, const void *const *in, int part, int parts)
{
    struct weft_walk walk = {.rank = map->rank, .arrays = 1 + map->inputs, .at = {out}};
    struct weft_strip_args args = {.param = {map->param[0], map->param[1]}};
    const int inner = map->rank - 1;
    int64_t total = 1;
    for (int i = 0; i <= inner; i++)
        total *= walk.extent[i] = map->extent[i];
    int64_t at, end;
    weft_share(total, GRAIN, part, parts, &at, &end);
    if (at >= end)
        return;
    for (int a = 0; a < walk.arrays; a++) {
        if (a)
            walk.at[a] = (char *)in[a - 1];
        for (int i = 0; i <= inner; i++)
            walk.step[a][i] = map->stride[a][i] * map->bytes[a];
        args.stride[a] = map->stride[a][inner];
    }
    weft_walk_seek(&walk, at);
    for (;;) {
        const int64_t run = map->extent[inner] - walk.index[inner];
        args.n = run < end - at ? run : end - at;
        args.out = walk.at[0];
        for (int a = 1; a < walk.arrays; a++)
            args.in[a - 1] = walk.at[a];
        at += args.n;
        if (map->period)
            run_repeated(map, &args, walk.index[inner] % map->period);
        else
            map->kernel->fn(&args);
        if (at >= end)
            return;
        weft_walk_next(&walk, inner - 1);
    }
}

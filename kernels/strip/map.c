/* SPDX-License-Identifier: Apache-2.0 */
/* map.c: one elementwise op over strided arrays: loops around a strip kernel.
 *
 * prepare puts the axes in the order of the result's strides, merges neighbours that are one in all arrays, and takes
 * for the innermost loop the axis on which most arrays are contiguous or constant. run walks its share of the elements,
 * counted in that order, a run of the innermost axis at a time; so parts are even whatever the shape, and where a part
 * begins or ends cannot matter, since elements do not depend on each other.
 *
 * A short innermost axis would cost a call for a few vectors: map_joined.c has what is done about it.
 *
 * The strip kernels check strides, not this file: a transposed operand works and is gathered. Making it fast is the
 * business of layouts, or of a relayout before. */
#include "kernels/strip/strip.h"
#include "kernels/walk.h"

#define GRAIN 64 /* parts begin at multiples of it: whole cache lines of f32 */

/* What an innermost axis is worth: contiguous arrays, the result above all, and long enough to pay for the call. */
static int64_t worth(const struct weft_k_axis *axis, int arrays)
{
    int64_t score = axis->stride[0] == 1 ? 8 : 0;
    for (int a = 1; a < arrays; a++)
        score += axis->stride[a] == 1 ? 4 : axis->stride[a] == 0 ? 3 : 0;
    return score * (axis->extent < 64 ? axis->extent : 64);
}

void weft_map_prepare(struct weft_map *map, int workers)
{
    struct weft_k_axis axes[WEFT_K_RANK] = {{0}};
    const int arrays = 1 + map->inputs;
    int64_t total = 1, bytes = 0;
    for (int i = 0; i < map->rank; i++) {
        axes[i].extent = map->extent[i];
        total *= map->extent[i];
        for (int a = 0; a < arrays; a++)
            axes[i].stride[a] = map->stride[a][i];
    }
    weft_k_axes_sort(axes, map->rank);
    int rank = weft_k_axes_merge(axes, map->rank, arrays);
    if (!rank)
        axes[rank++] = (struct weft_k_axis){1, {1, 1, 1, 1}};
    const int joined = weft_map_join(map, axes, rank);
    rank -= joined;
    if (!joined) {
        int best = rank - 1;
        for (int i = rank - 2; i >= 0; i--)
            if (worth(&axes[i], arrays) > worth(&axes[best], arrays))
                best = i;
        weft_k_axes_move(axes, best, rank - 1);
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

void weft_map_run(const struct weft_map *map, void *out, const void *const *in, int part, int parts)
{
    struct weft_k_walk walk = {.rank = map->rank, .arrays = 1 + map->inputs, .at = {out}};
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
    weft_k_walk_seek(&walk, at);
    for (;;) {
        const int64_t run = map->extent[inner] - walk.index[inner];
        args.n = run < end - at ? run : end - at;
        args.out = walk.at[0];
        for (int a = 1; a < walk.arrays; a++)
            args.in[a - 1] = walk.at[a];
        at += args.n;
        if (map->period)
            weft_map_run_joined(map, &args, walk.index[inner]);
        else
            map->kernel->fn(&args);
        if (at >= end)
            return;
        weft_k_walk_next(&walk, inner - 1);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* relayout.c: copies between strided arrays: changes of layout.
 *
 * After sorting by the result's strides and merging, a copy is one of three things, cheapest first:
 *   runs        both arrays are contiguous along the innermost axis: memcpy after memcpy
 *   transpose   the result is contiguous along one axis and the operand along another: tiles of TILE_ROWS x
 *               TILE_COLUMNS through registers
 *   strided     anything else (a broadcast, a step, a reversed axis): a loop of single elements, writing in order
 * The axis along which a transposed operand is contiguous is put next to the innermost, and that is how run recognises
 * the case.
 *
 * Large transposes of 4-byte elements stream their result past the caches: it would not be there any more when the
 * consumer comes. */
#include "kernels/relayout/relayout.h"
#include "kernels/walk.h"

#include <string.h>

#define GRAIN        64
#define TILE_ROWS    256
#define TILE_COLUMNS 32
#define STREAM_BYTES (8 << 20)

enum form { RUNS, TRANSPOSE, STRIDED };

static enum form form_of(const struct weft_copy *copy)
{
    const int inner = copy->rank - 1;
    if (copy->out_stride[inner] == 1 && copy->in_stride[inner] == 1)
        return RUNS;
    if (inner > 0 && copy->out_stride[inner] == 1 && copy->in_stride[inner - 1] == 1 && copy->in_stride[inner] != 0)
        return TRANSPOSE;
    return STRIDED;
}

static const struct tile {
    const char *name;
    uint32_t cpu;
    int32_t bytes;
    weft_relayout_tile_fn fn;
} tiles[] = {
#define RELAYOUT(id, function, level, cpu, bytes)                                                                      \
    {"weft_relayout_" #id "__" #level, cpu, bytes, weft_relayout_##function##__##level},
#include "kernels/relayout/relayout.def"
};

static const struct tile *best_tile(const struct weft_copy *copy)
{
    const struct tile *best = tiles;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        if (tiles[i].bytes == copy->bytes && !(tiles[i].cpu & ~copy->cpu))
            best = &tiles[i];
    return best;
}

const char *weft_copy_name(const struct weft_copy *copy)
{
    switch (form_of(copy)) {
    case RUNS:
        return "weft_relayout_runs__ref";
    case TRANSPOSE:
        return best_tile(copy)->name;
    default:
        return "weft_relayout_strided__ref";
    }
}

void weft_copy_prepare(struct weft_copy *copy, int workers)
{
    struct weft_axis axes[WEFT_K_RANK] = {{0}};
    int64_t total = 1;
    for (int i = 0; i < copy->rank; i++) {
        axes[i] = (struct weft_axis){copy->extent[i], {copy->out_stride[i], copy->in_stride[i]}};
        total *= copy->extent[i];
    }
    weft_axes_sort(axes, copy->rank);
    int rank = weft_axes_merge(axes, copy->rank, 2);
    if (!rank)
        axes[rank++] = (struct weft_axis){1, {1, 1}};
    if (axes[rank - 1].stride[0] == 1 && axes[rank - 1].stride[1] != 1)
        for (int i = rank - 2; i >= 0; i--)
            if (axes[i].stride[1] == 1) {
                weft_axes_move(axes, i, rank - 2);
                break;
            }
    copy->rank = rank;
    for (int i = 0; i < rank; i++) {
        copy->extent[i] = axes[i].extent;
        copy->out_stride[i] = axes[i].stride[0];
        copy->in_stride[i] = axes[i].stride[1];
    }
    copy->parts = weft_parts_for(2 * total * copy->bytes, workers);
}

/* --- single elements
 * ------------------------------------------------------------------------------------------------------ */

#define STRIDED_COPY(name, type, loose)                                                                                \
    static void name(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n)                    \
    {                                                                                                                  \
        type *const out = to;                                                                                          \
        const loose *const in = from;                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i * to_stride] = in[i * from_stride];                                                                  \
    }
STRIDED_COPY(copy_8, uint8_t, uint8_t)
STRIDED_COPY(copy_16, uint16_t, weft_loose_u16)
STRIDED_COPY(copy_32, uint32_t, weft_loose_u32)
STRIDED_COPY(copy_64, uint64_t, weft_loose_u64)

void weft_copy_strided(int bytes, void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n)
{
    (bytes == 1 ? copy_8 : bytes == 2 ? copy_16 : bytes == 4 ? copy_32 : copy_64)(to, to_stride, from, from_stride, n);
}

/* --- the loops
 * ---------------------------------------------------------------------------------------------------------- */

static struct weft_walk walk_of(const struct weft_copy *copy, void *out, const void *in)
{
    struct weft_walk walk = {.rank = copy->rank, .arrays = 2, .at = {out, (char *)in}};
    for (int i = 0; i < copy->rank; i++) {
        walk.extent[i] = copy->extent[i];
        walk.step[0][i] = copy->out_stride[i] * copy->bytes;
        walk.step[1][i] = copy->in_stride[i] * copy->bytes;
    }
    return walk;
}

static void run_lines(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    struct weft_walk walk = walk_of(copy, out, in);
    const int inner = copy->rank - 1;
    const bool runs = form_of(copy) == RUNS;
    int64_t total = 1, at, end;
    for (int i = 0; i <= inner; i++)
        total *= copy->extent[i];
    weft_share(total, GRAIN, part, parts, &at, &end);
    if (at >= end)
        return;
    weft_walk_seek(&walk, at);
    for (;;) {
        const int64_t rest = copy->extent[inner] - walk.index[inner], n = rest < end - at ? rest : end - at;
        if (runs)
            memcpy(walk.at[0], walk.at[1], (size_t)(n * copy->bytes));
        else
            weft_copy_strided(copy->bytes, walk.at[0], copy->out_stride[inner], walk.at[1], copy->in_stride[inner], n);
        at += n;
        if (at >= end)
            return;
        weft_walk_next(&walk, inner - 1);
    }
}

/* The two innermost axes become axes of tiles; rows run along the innermost, on which the result is contiguous. */
static void run_tiles(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    struct weft_walk walk = walk_of(copy, out, in);
    const int rows = copy->rank - 1, columns = rows - 1;
    const int64_t out_stride = copy->out_stride[columns], in_stride = copy->in_stride[rows];
    const weft_relayout_tile_fn tile = best_tile(copy)->fn;
    int64_t total = copy->bytes, units = 1, at, end;
    for (int i = 0; i <= rows; i++) {
        const int64_t size = i == rows ? TILE_ROWS : i == columns ? TILE_COLUMNS : 1;
        total *= copy->extent[i];
        walk.extent[i] = (copy->extent[i] + size - 1) / size;
        units *= walk.extent[i];
        walk.step[0][i] *= size, walk.step[1][i] *= size;
    }
    weft_share(units, 1, part, parts, &at, &end);
    if (at >= end)
        return;
    weft_walk_seek(&walk, at);
    for (; at < end; at++) {
        const int64_t r = walk.index[rows] * TILE_ROWS, c = walk.index[columns] * TILE_COLUMNS;
        const int64_t height = copy->extent[rows] - r < TILE_ROWS ? copy->extent[rows] - r : TILE_ROWS;
        const int64_t width = copy->extent[columns] - c < TILE_COLUMNS ? copy->extent[columns] - c : TILE_COLUMNS;
        tile(walk.at[0], out_stride, walk.at[1], in_stride, height, width, total >= STREAM_BYTES);
        weft_walk_next(&walk, rows);
    }
}

void weft_copy_run(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    if (form_of(copy) == TRANSPOSE)
        run_tiles(copy, out, in, part, parts);
    else
        run_lines(copy, out, in, part, parts);
}

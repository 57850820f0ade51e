/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.c: copies that are cut into tiles along two axes: transposes, and short runs that change places.
 *
 * A transpose has rows along the innermost axis, where the result is contiguous, and columns along the axis before it,
 * where the operand is. A tile makes WEFT_TILE_RUN bytes of each of WEFT_TILE_COLUMNS rows of the result: some lines
 * side by side in both arrays, for the sake of memory, and little enough for the first cache. Tiles follow each other
 * along the rows of the result, and each asks for the operand of the next.
 *
 * Results that stream are made in place where rows begin at lines and vectors are lines, else in a buffer on the stack
 * that is drained line by line (move_level.c). A part is a range of tiles. */
#include "kernels/relayout/tiles.h"

struct tiling {
    struct weft_walk walk, ahead; /* over tiles; `ahead` is one further */
    int rows, columns;            /* axes */
    int64_t height, width;        /* of a tile, elements */
    int64_t at, end;
};

/* False if the part has no tiles. */
static bool begin(struct tiling *t, const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    int64_t units = 1;
    t->walk = weft_copy_walk(copy, out, in);
    t->walk.rank = t->rows + 1;
    for (int i = 0; i < t->walk.rank; i++) {
        const int64_t size = i == t->rows ? t->height : i == t->columns ? t->width : 1;
        t->walk.extent[i] = (copy->extent[i] + size - 1) / size;
        t->walk.step[0][i] *= size, t->walk.step[1][i] *= size;
        units *= t->walk.extent[i];
    }
    weft_share(units, 1, part, parts, &t->at, &t->end);
    if (t->at >= t->end)
        return false;
    weft_walk_seek(&t->walk, t->at);
    t->ahead = t->walk;
    weft_walk_next(&t->ahead, t->rows);
    return true;
}

static bool next(struct tiling *t)
{
    t->walk = t->ahead;
    weft_walk_next(&t->ahead, t->rows);
    return ++t->at < t->end;
}

static int64_t size_at(const struct weft_walk *walk, int axis, int64_t size, int64_t extent)
{
    const int64_t rest = extent - walk->index[axis] * size;
    return rest < size ? rest : size;
}

static void transpose(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    struct tiling t = {.rows = copy->rank - 1,
                       .columns = copy->rank - 2,
                       .height = WEFT_TILE_RUN / copy->bytes,
                       .width = WEFT_TILE_COLUMNS};
    if (!begin(&t, copy, out, in, part, parts))
        return;
    const struct weft_mover *const mover = weft_mover_find(copy->cpu);
    const weft_tile_fn make = weft_tile_find(copy);
    const int64_t rows = copy->extent[t.rows], columns = copy->extent[t.columns];
    const int64_t out_step = copy->out_stride[t.columns] * copy->bytes, in_step = copy->in_stride[t.rows] * copy->bytes;
    const bool long_rows = rows * copy->bytes >= WEFT_TILE_RUN;
    const int64_t first = t.at;
    char buffer[WEFT_TILE_COLUMNS * WEFT_BUFFER_PITCH + WEFT_LINE] __attribute__((aligned(WEFT_LINE)));
    do {
        struct weft_tile tile = {t.walk.at[0], t.walk.at[1], out_step, in_step,
                                 size_at(&t.walk, t.rows, t.height, rows),
                                 size_at(&t.walk, t.columns, t.width, columns), NULL};
        const char *const ahead = t.at + 1 < t.end ? t.ahead.at[1] : NULL;
        const bool in_lines = mover->whole_lines && ((uintptr_t)tile.out | (uintptr_t)out_step) % WEFT_LINE == 0;
        if (in_lines || !long_rows || copy->stream != WEFT_STREAM_ALWAYS) {
            tile.ahead = ahead;
            make(&tile, in_lines && copy->stream != WEFT_STREAM_NEVER);
            continue;
        }
        tile.out = buffer + WEFT_LINE, tile.out_step = WEFT_BUFFER_PITCH;
        make(&tile, false);
        mover->drain(&(struct weft_drain){
            .out = t.walk.at[0], .out_step = out_step, .rows = tile.columns, .bytes = tile.rows * copy->bytes,
            .buffer = buffer, .first = t.at == first || t.walk.index[t.rows] == 0,
            .last = t.at + 1 == t.end || t.walk.index[t.rows] + 1 == t.walk.extent[t.rows],
            .ahead = ahead, .ahead_step = in_step, .ahead_rows = size_at(&t.ahead, t.rows, t.height, rows),
            .ahead_bytes = size_at(&t.ahead, t.columns, t.width, columns) * copy->bytes});
    } while (next(&t));
    if (copy->stream != WEFT_STREAM_NEVER)
        mover->fence();
}

/* Runs by the square: as many each way as make a few lines side by side in both arrays. */
static void blocked(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    const int inner = copy->rank - 1;
    const int64_t run = copy->extent[inner] * copy->bytes;
    const int64_t side = run < WEFT_TILE_RUN / 8 ? 32 : WEFT_TILE_RUN * 4 / run;
    struct tiling t = {.rows = inner - 1, .columns = inner - 2, .height = side, .width = side};
    if (!begin(&t, copy, out, in, part, parts))
        return;
    const struct weft_mover *const mover = weft_mover_find(copy->cpu);
    const int64_t rows = copy->extent[t.rows], columns = copy->extent[t.columns];
    const int64_t out_column = copy->out_stride[t.columns] * copy->bytes;
    const int64_t in_column = copy->in_stride[t.columns] * copy->bytes;
    const int64_t out_row = copy->out_stride[t.rows] * copy->bytes, in_row = copy->in_stride[t.rows] * copy->bytes;
    const bool stream = copy->stream == WEFT_STREAM_ALWAYS && run % WEFT_LINE == 0;
    do {
        const int64_t height = size_at(&t.walk, t.rows, t.height, rows);
        const int64_t width = size_at(&t.walk, t.columns, t.width, columns);
        for (int64_t c = 0; c < width; c++)
            mover->rows(t.walk.at[0] + c * out_column, out_row, t.walk.at[1] + c * in_column, in_row, height, run,
                        stream);
    } while (next(&t));
    if (stream)
        mover->fence();
}

void weft_copy_tiles(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    if (copy->form == WEFT_COPY_TRANSPOSE)
        transpose(copy, out, in, part, parts);
    else
        blocked(copy, out, in, part, parts);
}

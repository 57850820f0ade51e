/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.c: copies that are cut into tiles along two axes: transposes, and short runs that change places.
 *
 * A transpose has rows along the innermost axis, where the result is contiguous, and columns along the axis before it,
 * where the operand is. A tile makes WEFT_TILE_RUN bytes of each of WEFT_TILE_COLUMNS rows of the result: some lines
 * side by side in both arrays, for the sake of memory, and little enough for the first cache. Each tile asks for the
 * operand of the next.
 *
 * Results that stream are made in place where rows begin at lines and vectors are lines; tiles then follow each other
 * along the rows of the operand, which memory serves best. Else they are made in a buffer on the stack that is drained
 * line by line (move_level.c), and tiles follow the rows of the result.
 *
 * A part is a slice of the result along its outermost axis that is long enough: as few places as can be where two
 * threads write next to each other. Where parts of rows were shared out, each core fetched the lines behind its own
 * ahead, which the other was writing: two threads then took up to three times as long as one. */
#include "kernels/relayout/tiles.h"

#define NARROW_SIDE 512 /* of a tile that is moved element by element: its other side is short */
#define EVEN_ENOUGH 0.9 /* the mean part over the largest */

struct tiling {
    struct weft_k_walk walk, ahead; /* over tiles; `ahead` is one further */
    int rows, columns;            /* axes of the walk */
    int64_t height, width;        /* of a tile, elements */
    int64_t at, end;
};

/* The last of `rank` axes of the copy has the rows, the one before it the columns. Tiles follow each other along the
 * columns or along the rows. False if there are no tiles. */
static bool begin(struct tiling *t, const struct weft_copy *copy, int rank, bool along_columns, void *out,
                  const void *in)
{
    t->walk = weft_copy_walk(copy, out, in);
    t->walk.rank = rank;
    t->rows = rank - (along_columns ? 2 : 1), t->columns = rank - (along_columns ? 1 : 2);
    for (int i = rank - 2; i < rank; i++) {
        const int axis = i == t->rows ? rank - 1 : rank - 2;
        const int64_t size = i == t->rows ? t->height : t->width;
        t->walk.extent[i] = (copy->extent[axis] + size - 1) / size;
        t->walk.step[0][i] = copy->out_stride[axis] * copy->bytes * size;
        t->walk.step[1][i] = copy->in_stride[axis] * copy->bytes * size;
    }
    t->at = 0, t->end = 1;
    for (int i = 0; i < rank; i++)
        t->end *= t->walk.extent[i];
    if (t->end <= 0) /* of more parts than there are slices some have none */
        return false;
    weft_k_walk_seek(&t->walk, 0);
    t->ahead = t->walk;
    weft_k_walk_next(&t->ahead, rank - 1);
    return true;
}

static bool next(struct tiling *t)
{
    t->walk = t->ahead;
    weft_k_walk_next(&t->ahead, t->walk.rank - 1);
    return ++t->at < t->end;
}

static int64_t size_at(const struct weft_k_walk *walk, int axis, int64_t size, int64_t extent)
{
    const int64_t rest = extent - walk->index[axis] * size;
    return rest < size ? rest : size;
}

/* Do all rows of the result begin at lines? */
static bool in_lines(const struct weft_copy *copy, const void *out)
{
    uintptr_t all = (uintptr_t)out;
    for (int i = 0; i < copy->rank - 1; i++)
        all |= (uintptr_t)(copy->out_stride[i] * copy->bytes);
    return all % WEFT_LINE == 0;
}

static void transpose(const struct weft_copy *copy, void *out, const void *in)
{
    const struct weft_mover *const mover = weft_mover_find(copy->cpu);
    const weft_tile_fn make = weft_tile_find(copy);
    const int row_axis = copy->rank - 1, column_axis = copy->rank - 2;
    const int64_t rows = copy->extent[row_axis], columns = copy->extent[column_axis];
    const int64_t out_step = copy->out_stride[column_axis] * copy->bytes;
    const int64_t in_step = copy->in_stride[row_axis] * copy->bytes;
    const bool stream = copy->stream != WEFT_STREAM_NEVER && mover->whole_lines && in_lines(copy, out);
    const bool buffered = !stream && copy->stream == WEFT_STREAM_ALWAYS && rows * copy->bytes >= WEFT_TILE_RUN;
    struct tiling t = {.height = WEFT_TILE_RUN / copy->bytes, .width = WEFT_TILE_COLUMNS};
    if (!begin(&t, copy, copy->rank, !buffered, out, in))
        return;
    const int64_t first = t.at;
    char buffer[WEFT_TILE_COLUMNS * WEFT_BUFFER_PITCH + WEFT_LINE] __attribute__((aligned(WEFT_LINE)));
    do {
        const int64_t height = size_at(&t.walk, t.rows, t.height, rows);
        const int64_t width = size_at(&t.walk, t.columns, t.width, columns);
        const char *const ahead = t.at + 1 < t.end ? t.ahead.at[1] : NULL;
        if (!buffered) {
            make(&(struct weft_tile){t.walk.at[0], t.walk.at[1], out_step, in_step, height, width, ahead}, stream);
            continue;
        }
        make(&(struct weft_tile){buffer + WEFT_LINE, t.walk.at[1], WEFT_BUFFER_PITCH, in_step, height, width, NULL},
             false);
        mover->drain(&(struct weft_drain){
            .out = t.walk.at[0], .out_step = out_step, .rows = width, .bytes = height * copy->bytes, .buffer = buffer,
            .first = t.at == first || t.walk.index[t.rows] == 0,
            .last = t.at + 1 == t.end || t.walk.index[t.rows] + 1 == t.walk.extent[t.rows],
            .ahead = ahead, .ahead_step = in_step, .ahead_rows = size_at(&t.ahead, t.rows, t.height, rows),
            .ahead_bytes = size_at(&t.ahead, t.columns, t.width, columns) * copy->bytes});
    } while (next(&t));
    if (stream || buffered)
        mover->fence();
}

/* Runs by the square: as many each way as make a few lines side by side in both arrays. */
static void blocked(const struct weft_copy *copy, void *out, const void *in)
{
    const int inner = copy->rank - 1, row_axis = inner - 1, column_axis = inner - 2;
    const int64_t run = copy->extent[inner] * copy->bytes;
    const int64_t side = run < WEFT_TILE_RUN / 8 ? 32 : WEFT_TILE_RUN * 4 / run;
    struct tiling t = {.height = side, .width = side};
    if (!begin(&t, copy, inner, true, out, in))
        return;
    const struct weft_mover *const mover = weft_mover_find(copy->cpu);
    const int64_t rows = copy->extent[row_axis], columns = copy->extent[column_axis];
    const int64_t out_column = copy->out_stride[column_axis] * copy->bytes;
    const int64_t in_column = copy->in_stride[column_axis] * copy->bytes;
    const int64_t out_row = copy->out_stride[row_axis] * copy->bytes, in_row = copy->in_stride[row_axis] * copy->bytes;
    const bool stream = weft_copy_streams_runs(copy, out, run);
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

/* Single elements: `count` tiles one after the other, the longer axis of a tile inside. A tile may be as small as 16 by
 * 2 (pixels that change places with channels), so that finding each with a walk took longer than moving it. */
struct narrow_tiles {
    struct weft_tile tile;
    int64_t count, out_next, in_next; /* bytes from one tile to the next */
};

#define NARROW_TILES(name, type)                                                                                       \
    static void name(const struct narrow_tiles *all)                                                                   \
    {                                                                                                                  \
        const struct weft_tile *const t = &all->tile;                                                                  \
        const int64_t out_step = t->out_step / (int64_t)sizeof(type), in_step = t->in_step / (int64_t)sizeof(type);    \
        for (int64_t i = 0; i < all->count; i++) {                                                                     \
            type *const out = (type *)(void *)(t->out + i * all->out_next);                                            \
            const type *const in = (const type *)(const void *)(t->in + i * all->in_next);                             \
            if (t->rows >= t->columns)                                                                                 \
                for (int64_t c = 0; c < t->columns; c++)                                                               \
                    for (int64_t r = 0; r < t->rows; r++)                                                              \
                        out[c * out_step + r] = in[r * in_step + c];                                                   \
            else                                                                                                       \
                for (int64_t r = 0; r < t->rows; r++)                                                                  \
                    for (int64_t c = 0; c < t->columns; c++)                                                           \
                        out[c * out_step + r] = in[r * in_step + c];                                                   \
        }                                                                                                              \
    }
struct sixteen {
    weft_loose_u64 half[2];
};
NARROW_TILES(narrow_8, uint8_t)
NARROW_TILES(narrow_16, weft_loose_u16)
NARROW_TILES(narrow_32, weft_loose_u32)
NARROW_TILES(narrow_64, weft_loose_u64)
NARROW_TILES(narrow_128, struct sixteen)

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef double pair __attribute__((aligned(4), may_alias)); /* two neighbours */
typedef double two_pairs __attribute__((vector_size(16)));

/* Rows of two columns: four pairs become a vector of either column. */
static void narrow_pairs(const struct narrow_tiles *all)
{
    const struct weft_tile *const t = &all->tile;
    const int64_t step = t->in_step / (int64_t)sizeof(float), rows = t->rows;
    for (int64_t i = 0; i < all->count; i++) {
        weft_loose_f32 *const left = (weft_loose_f32 *)(void *)(t->out + i * all->out_next);
        weft_loose_f32 *const right = (weft_loose_f32 *)(void *)(t->out + i * all->out_next + t->out_step);
        const weft_loose_f32 *const in = (const weft_loose_f32 *)(const void *)(t->in + i * all->in_next);
#define PAIR_AT(r) *(const pair *)(const void *)(in + (r) * step)
        int64_t r = 0;
        for (; r + 4 <= rows; r += 4) {
            const four a = (four)(two_pairs){PAIR_AT(r), PAIR_AT(r + 1)};
            const four b = (four)(two_pairs){PAIR_AT(r + 2), PAIR_AT(r + 3)};
            *(four *)(void *)(left + r) = __builtin_shufflevector(a, b, 0, 2, 4, 6);
            *(four *)(void *)(right + r) = __builtin_shufflevector(a, b, 1, 3, 5, 7);
        }
#undef PAIR_AT
        for (; r < rows; r++)
            left[r] = in[r * step], right[r] = in[r * step + 1];
    }
}

static void narrow(const struct weft_copy *copy, void *out, const void *in)
{
    const bool pairs = copy->bytes == 4 && copy->extent[copy->rank - 2] == 2;
    void (*const make)(const struct narrow_tiles *) = pairs             ? narrow_pairs
                                                      : copy->bytes == 1 ? narrow_8
                                                      : copy->bytes == 2 ? narrow_16
                                                      : copy->bytes == 4 ? narrow_32
                                                      : copy->bytes == 8 ? narrow_64
                                                                         : narrow_128;
    const int row_axis = copy->rank - 1, column_axis = copy->rank - 2, next_axis = copy->rank - 3;
    struct tiling t = {.height = NARROW_SIDE, .width = NARROW_SIDE};
    struct weft_copy one = *copy;
    struct narrow_tiles tiles = {.count = 1};
    if (next_axis >= 0) {
        tiles.count = copy->extent[next_axis];
        tiles.out_next = copy->out_stride[next_axis] * copy->bytes;
        tiles.in_next = copy->in_stride[next_axis] * copy->bytes;
        one.extent[next_axis] = tiles.count > 0;
    }
    if (!begin(&t, &one, copy->rank, true, out, in))
        return;
    do {
        tiles.tile = (struct weft_tile){t.walk.at[0], t.walk.at[1], copy->out_stride[column_axis] * copy->bytes,
                                        copy->in_stride[row_axis] * copy->bytes,
                                        size_at(&t.walk, t.rows, t.height, copy->extent[row_axis]),
                                        size_at(&t.walk, t.columns, t.width, copy->extent[column_axis]), NULL};
        make(&tiles);
    } while (next(&t));
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* What is not cut along axis i: a few lines of the array that is contiguous along it. */
static int64_t grain_of(const struct weft_copy *copy, int i)
{
    const bool contiguous = copy->in_stride[i] == 1 || copy->out_stride[i] == 1;
    return contiguous && copy->bytes < WEFT_LINE ? WEFT_LINE / copy->bytes : 1;
}

/* The outermost axis of the result of which no part gets much more than another, or else the one that is best. */
static int axis_to_cut(const struct weft_copy *copy, int parts)
{
    int best = 0;
    double most = 0;
    bool seen[WEFT_K_RANK] = {false};
    for (int turn = 0; turn < copy->rank; turn++) {
        int axis = -1;
        for (int i = 0; i < copy->rank; i++)
            if (!seen[i] && (axis < 0 || copy->out_stride[i] > copy->out_stride[axis]))
                axis = i;
        seen[axis] = true;
        const int64_t grain = grain_of(copy, axis), grains = (copy->extent[axis] + grain - 1) / grain;
        const double even = (double)grains / (double)((grains + parts - 1) / parts * parts);
        if (even > most)
            most = even, best = axis;
        if (even >= EVEN_ENOUGH)
            return axis;
    }
    return best;
}

void weft_copy_tiles(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    struct weft_copy slice = *copy;
    if (parts > 1) {
        const int axis = axis_to_cut(copy, parts);
        int64_t first, end;
        weft_share(copy->extent[axis], grain_of(copy, axis), part, parts, &first, &end);
        slice.extent[axis] = end - first;
        out = (char *)out + first * copy->out_stride[axis] * copy->bytes;
        in = (const char *)in + first * copy->in_stride[axis] * copy->bytes;
    }
    if (copy->form == WEFT_COPY_TRANSPOSE)
        transpose(&slice, out, in);
    else if (copy->form == WEFT_COPY_NARROW)
        narrow(&slice, out, in);
    else
        blocked(&slice, out, in);
}

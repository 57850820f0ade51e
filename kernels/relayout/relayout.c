/* SPDX-License-Identifier: Apache-2.0 */
/* relayout.c: copies between strided arrays: changes of layout.
 *
 * After sorting by the result's strides and merging, a copy is one of these, cheapest first:
 *   runs        both arrays are contiguous along the innermost axis: rows that are moved as they are
 *   transpose   the result is contiguous along one axis and the operand along another: tiles through registers
 *               (tiles.c)
 *   weave       the same with a short side that is whole in its array, or small matrices: a few vectors at a time
 *               (weave.c)
 *   narrow      the same where blocks of registers would be empty for the most part: element by element
 *   blocked     short runs, of which neighbours in the operand are not neighbours in the result: tiles of runs, so
 *               that lines which hold parts of several are still at hand when the next part is wanted
 *   strided     anything else (a broadcast, a step, a reversed axis): lines, writing in order (spread_level.c)
 * A run of 2 to 16 bytes is an element of its own: channels by twos or fours are transposed in registers, too.
 * The axis along which the operand is contiguous is put next to the innermost: those two are the axes of tiles. If it
 * is shorter than a line, that which goes on with the line (of a pixel shuffle: the channels) comes next.
 *
 * Large results go past the caches: beside the operand they would hardly be there any more when the consumer comes,
 * and a plain store reads each line before it writes it. "Large" is an eighth of the last cache, and a quarter where
 * rows do not begin at lines, since streaming costs more there. */
#include "kernels/relayout/tiles.h"
#include "kernels/relayout/weave.h"

#define GRAIN       64
#define SHORT_RUN   256 /* bytes: fewer than four lines, of which those at the ends are shared with neighbours */
#define LONG_RUN    4096
#define GUESS_CACHE (32 << 20) /* when nobody said */

static const struct tile {
    const char *name;
    uint32_t cpu;
    int32_t bytes;
    weft_tile_fn fn;
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

weft_tile_fn weft_tile_find(const struct weft_copy *copy) { return best_tile(copy)->fn; }
/* Are blocks of registers faster than single elements? Where loads and stores have masks, blocks that are filled to
 * more than an eighth are. Without masks the rows and columns of a block that is not whole are moved by calls of
 * memcpy, each of which takes as long as CALL elements: 52 ns instead of 40 for 4 x 8 floats (Intel, AVX2). */
static bool fills_blocks(const struct weft_copy *copy)
{
    enum { CALL = 6 };

    const struct tile *const tile = best_tile(copy);
    const int64_t size = (tile->cpu & WEFT_CPU_AVX512 ? 64 : tile->cpu & WEFT_CPU_AVX2 ? 32 : 16) / copy->bytes;
    const int64_t rows = copy->extent[copy->rank - 1], columns = copy->extent[copy->rank - 2];
    const int64_t blocks = (rows + size - 1) / size * ((columns + size - 1) / size);
    if (!(tile->cpu & WEFT_CPU_AVX512) && (rows < size || columns < size))
        return rows * columns > CALL * (rows + columns);
    return 8 * rows * columns > blocks * size * size;
}

const struct weft_mover *weft_mover_find(uint32_t cpu)
{
    static const struct weft_mover *const movers[] = {WEFT_LEVELS(&weft_mover)};
    return movers[weft_level_of(cpu)];
}

const char *weft_copy_name(const struct weft_copy *copy)
{
    switch (copy->form) {
    case WEFT_COPY_RUNS:
    case WEFT_COPY_BLOCKED:
        return weft_mover_find(copy->cpu)->runs;
    case WEFT_COPY_TRANSPOSE:
        return best_tile(copy)->name;
    case WEFT_COPY_WEAVE:
        return weft_weave_name(copy);
    case WEFT_COPY_NARROW:
        return "weft_relayout_narrow__ref";
    default:
        return "weft_relayout_strided__ref";
    }
}

uint32_t weft_copy_cpu(const struct weft_copy *copy)
{
    switch (copy->form) {
    case WEFT_COPY_RUNS:
    case WEFT_COPY_BLOCKED:
        return weft_mover_find(copy->cpu)->cpu;
    case WEFT_COPY_TRANSPOSE:
        return best_tile(copy)->cpu;
    case WEFT_COPY_WEAVE:
        return weft_weave_cpu(copy);
    default:
        return 0;
    }
}

/* --- prepare ------------------------------------------------------------------------------------------------------ */

/* The axis before `end` with that stride of the operand, or -1. */
static int axis_with(const struct weft_k_axis *axes, int end, int64_t stride)
{
    for (int i = end - 1; i >= 0; i--)
        if (axes[i].stride[1] == stride)
            return i;
    return -1;
}

/* Innermost runs that are as long as a larger element: the axes without them if that makes a transpose, else `rank`. */
static int widen(struct weft_k_axis *axes, int rank, int32_t *bytes)
{
    const int64_t n = axes[rank - 1].extent, run = n * *bytes;
    const int inner = rank - 2;
    if (inner < 1 || run > 16 || (run & (run - 1)) || axes[inner].stride[0] != n || axes[inner].stride[1] == 0 ||
        axis_with(axes, inner, n) < 0)
        return rank;
    for (int i = 0; i <= inner; i++)
        if (axes[i].stride[0] % n || axes[i].stride[1] % n)
            return rank;
    for (int i = 0; i <= inner; i++)
        axes[i].stride[0] /= n, axes[i].stride[1] /= n;
    *bytes = (int32_t)run;
    return rank - 1;
}

/* The nearest neighbours in the operand, among axes [0, end). */
static int nearest(const struct weft_k_axis *axes, int end)
{
    int best = end - 1;
    for (int i = end - 1; i >= 0; i--)
        if (axes[i].stride[1] > 0 && (axes[best].stride[1] <= 0 || axes[i].stride[1] < axes[best].stride[1]))
            best = i;
    return best;
}

static enum weft_copy_form arrange(struct weft_k_axis *axes, int *rank, int32_t *bytes)
{
    if (axes[*rank - 1].stride[0] != 1)
        return WEFT_COPY_STRIDED;
    if (axes[*rank - 1].stride[1] == 1) {
        const int before = *rank;
        *rank = widen(axes, *rank, bytes);
        if (*rank == before) {
            const int near = nearest(axes, *rank - 1);
            if (*rank < 3 || near == *rank - 2 || axes[*rank - 1].extent * *bytes >= SHORT_RUN)
                return WEFT_COPY_RUNS;
            weft_k_axes_move(axes, near, *rank - 3);
            return WEFT_COPY_BLOCKED;
        }
    }
    const int near = axis_with(axes, *rank - 1, 1);
    if (near < 0 || axes[*rank - 1].stride[1] == 0)
        return WEFT_COPY_STRIDED;
    weft_k_axes_move(axes, near, *rank - 2);
    const int64_t short_side = axes[*rank - 2].extent;
    const int next = short_side * *bytes < WEFT_LINE ? axis_with(axes, *rank - 2, short_side) : -1;
    if (next >= 0) /* the rest of the operand's lines is wanted while they are near */
        weft_k_axes_move(axes, next, *rank - 3);
    return WEFT_COPY_TRANSPOSE;
}

void weft_copy_prepare(struct weft_copy *copy, int workers)
{
    struct weft_k_axis axes[WEFT_K_RANK] = {{0}};
    int64_t total = copy->bytes;
    for (int i = 0; i < copy->rank; i++) {
        axes[i] = (struct weft_k_axis){copy->extent[i], {copy->out_stride[i], copy->in_stride[i]}};
        total *= copy->extent[i];
    }
    weft_k_axes_sort(axes, copy->rank);
    int rank = weft_k_axes_merge(axes, copy->rank, 2);
    if (!rank)
        axes[rank++] = (struct weft_k_axis){1, {1, 1}};
    copy->form = (uint8_t)arrange(axes, &rank, &copy->bytes);
    copy->rank = rank;
    for (int i = 0; i < rank; i++) {
        copy->extent[i] = axes[i].extent;
        copy->out_stride[i] = axes[i].stride[0];
        copy->in_stride[i] = axes[i].stride[1];
    }
    const int64_t cache = copy->cache ? (int64_t)copy->cache : GUESS_CACHE;
    if (copy->form == WEFT_COPY_TRANSPOSE && weft_weave_kind(copy) != WEFT_WEAVE_NONE)
        copy->form = WEFT_COPY_WEAVE;
    else if (copy->form == WEFT_COPY_TRANSPOSE && !fills_blocks(copy))
        copy->form = WEFT_COPY_NARROW;
    copy->stream = total >= cache / 4 ? WEFT_STREAM_ALWAYS : total >= cache / 8 ? WEFT_STREAM_LINES : WEFT_STREAM_NEVER;
    copy->parts = weft_parts_for(2 * total, workers);
}

/* --- single elements ---------------------------------------------------------------------------------------------- */

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

/* --- lines -------------------------------------------------------------------------------------------------------- */

struct weft_k_walk weft_copy_walk(const struct weft_copy *copy, void *out, const void *in)
{
    struct weft_k_walk walk = {.rank = copy->rank, .arrays = 2, .at = {out, (char *)in}};
    for (int i = 0; i < copy->rank; i++) {
        walk.extent[i] = copy->extent[i];
        walk.step[0][i] = copy->out_stride[i] * copy->bytes;
        walk.step[1][i] = copy->in_stride[i] * copy->bytes;
    }
    return walk;
}

/* Do runs stream? Those that are not made of lines would write the lines at their ends twice: only if they are long. */
bool weft_copy_streams_runs(const struct weft_copy *copy, const void *out, int64_t run)
{
    uintptr_t all = (uintptr_t)out | (uintptr_t)run;
    for (int i = 0; i < copy->rank - 1; i++)
        all |= (uintptr_t)(copy->out_stride[i] * copy->bytes);
    return all % WEFT_LINE == 0 ? copy->stream != WEFT_STREAM_NEVER
                                : copy->stream == WEFT_STREAM_ALWAYS && run >= LONG_RUN;
}

/* Runs or lines along the innermost axis, as many rows at once as the next axis has; parts begin anywhere. */
static void run_lines(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    struct weft_k_walk walk = weft_copy_walk(copy, out, in);
    const struct weft_mover *const mover = weft_mover_find(copy->cpu);
    const int inner = copy->rank - 1;
    const int64_t n = copy->extent[inner], outer = inner > 0 ? copy->extent[inner - 1] : 1;
    const bool stream = weft_copy_streams_runs(copy, out, n * copy->bytes);
    int64_t total = 1, at, end;
    for (int i = 0; i <= inner; i++)
        total *= copy->extent[i];
    weft_share(total, GRAIN, part, parts, &at, &end);
    if (at >= end)
        return;
    weft_k_walk_seek(&walk, at);
    for (;;) {
        const int64_t rest = n - walk.index[inner], count = rest < end - at ? rest : end - at;
        int64_t rows = 1;
        if (inner > 0 && count == n) {
            const int64_t left = outer - walk.index[inner - 1], most = (end - at) / n;
            rows = left < most ? left : most;
        }
        const int64_t out_step = inner > 0 ? walk.step[0][inner - 1] : 0;
        const int64_t in_step = inner > 0 ? walk.step[1][inner - 1] : 0, step = copy->out_stride[inner];
        if (copy->form == WEFT_COPY_RUNS)
            mover->rows(walk.at[0], out_step, walk.at[1], in_step, rows, count * copy->bytes, stream);
        else if (step == 1)
            mover->spread(walk.at[0], out_step, walk.at[1], in_step, rows, count, copy->in_stride[inner], copy->bytes);
        else
            for (int64_t r = 0; r < rows; r++)
                weft_copy_strided(copy->bytes, walk.at[0] + r * out_step, step, walk.at[1] + r * in_step,
                                  copy->in_stride[inner], count);
        at += rows * count;
        if (at >= end)
            break;
        if (inner > 0)
            walk.index[inner - 1] += rows - 1, walk.at[0] += (rows - 1) * walk.step[0][inner - 1],
                walk.at[1] += (rows - 1) * walk.step[1][inner - 1];
        weft_k_walk_next(&walk, inner - 1);
    }
    if (stream)
        mover->fence();
}

void weft_copy_run(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    if (copy->form == WEFT_COPY_RUNS || copy->form == WEFT_COPY_STRIDED)
        run_lines(copy, out, in, part, parts);
    else if (copy->form == WEFT_COPY_WEAVE)
        weft_weave_copy(copy, out, in, part, parts);
    else
        weft_copy_tiles(copy, out, in, part, parts);
}

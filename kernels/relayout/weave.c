/* SPDX-License-Identifier: Apache-2.0 */
/* weave.c: which transposes are woven, their tables, and how parts share them. */
#include "kernels/relayout/weave.h"
#include "kernels/relayout/tiles.h"

#include <string.h>

enum { SPAN = 4096, MATRICES = 64 }; /* along the long axis, that a part takes at least */
enum { FEWEST = 2048 };              /* elements that are worth a table */

static bool wide_vectors(const struct weft_copy *copy)
{
    return (copy->cpu & WEFT_CPU_AVX512) && (copy->cpu & WEFT_CPU_AVX2) && copy->bytes > 1;
}

/* Are `side` streams cheaper than blocks of registers? Shuffles for a vector, times `side`. A block makes as many
 * vectors as it has rows, in a round for each power of two, however few of them are wanted. */
static bool weave_pays(const struct weft_copy *copy, int64_t side)
{
    const int size = (copy->cpu & WEFT_CPU_AVX512 ? 64 : 32) / copy->bytes;
    int rounds = 0;
    while (1 << rounds < size)
        rounds++;
    const int64_t shuffles = wide_vectors(copy) ? side * (side - 1) : 2 * side * side;
    return side <= WEFT_WEAVE_MOST && copy->bytes <= (wide_vectors(copy) ? 16 : 8) && shuffles <= size * rounds;
}

/* Rows and columns of the last two axes: the result is contiguous along rows, the operand along columns. */
enum weft_weave_kind weft_weave_kind(const struct weft_copy *copy)
{
    const int row_axis = copy->rank - 1, column_axis = copy->rank - 2;
    const int64_t rows = copy->extent[row_axis], columns = copy->extent[column_axis];
    const int vector = wide_vectors(copy) ? 64 : 16, group = vector / copy->bytes;
    int64_t elements = 1;
    for (int i = 0; i < copy->rank; i++)
        elements *= copy->extent[i];
    if (!(copy->cpu & WEFT_CPU_AVX2) || rows < 2 || columns < 2 || elements < FEWEST)
        return WEFT_WEAVE_NONE;
    const bool in_dense = copy->in_stride[row_axis] == columns, out_dense = copy->out_stride[column_axis] == rows;
    const int64_t bytes = rows * columns * copy->bytes;
    if (vector == 64 && in_dense && out_dense && bytes % vector == 0 && bytes <= 4 * vector &&
        rows * copy->bytes < vector && columns * copy->bytes < vector)
        return WEFT_WEAVE_MATRICES;
    if (in_dense && weave_pays(copy, columns) && rows >= group)
        return WEFT_WEAVE_DEAL;
    return out_dense && weave_pays(copy, rows) && columns >= group ? WEFT_WEAVE_WEAVE : WEFT_WEAVE_NONE;
}

const char *weft_weave_name(const struct weft_copy *copy)
{
    return copy->cpu & WEFT_CPU_AVX512 ? "weft_relayout_weave__avx512" : "weft_relayout_weave__avx2";
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Which element of the group's operand, counted vector by vector, is element `to` of its result. */
static int source(enum weft_weave_kind kind, int to, int group, int rows, int columns)
{
    switch (kind) {
    case WEFT_WEAVE_DEAL:
        return to % group * columns + to / group;
    case WEFT_WEAVE_WEAVE:
        return to % rows * group + to / rows;
    default:
        return to % rows * columns + to / rows;
    }
}

static void write_index(unsigned char *index, int unit, int at, int place)
{
    if (unit == 2)
        memcpy(index + 2 * at, &(uint16_t){(uint16_t)place}, 2);
    else
        memcpy(index + 4 * at, &(uint32_t){(uint32_t)place}, 4);
}

/* Element `lane` of vector o comes from element `place` of vector `from`. */
static void set_place(struct weft_weave *w, int o, int lane, int from, int place)
{
    if (w->vector == 16) {
        for (int i = 0; i < w->vectors; i++)
            for (int b = 0; b < w->bytes; b++)
                w->index[o][i][lane * w->bytes + b] = i == from ? (unsigned char)(place * w->bytes + b) : 0x80;
        return;
    }
    const int unit = w->bytes == 2 ? 2 : 4, units = w->vector / unit, each = w->bytes / unit;
    for (int i = 1; i < w->vectors || i == 1; i++)
        for (int b = 0; b < each; b++) {
            const int here = lane * each + b, there = place * each + b;
            write_index(w->index[o][i], unit, here, i == from ? units + there : i == 1 && from == 0 ? there : here);
        }
}

static void weave_table(struct weft_weave *w, const struct weft_copy *copy, enum weft_weave_kind kind)
{
    const int rows = (int)copy->extent[copy->rank - 1], columns = (int)copy->extent[copy->rank - 2];
    const int64_t out_step = copy->out_stride[copy->rank - 2] * copy->bytes;
    const int64_t in_step = copy->in_stride[copy->rank - 1] * copy->bytes;
    w->bytes = copy->bytes, w->vector = wide_vectors(copy) ? 64 : 16;
    const int lanes = w->vector / w->bytes;
    const bool deal = kind == WEFT_WEAVE_DEAL, weave = kind == WEFT_WEAVE_WEAVE;
    w->vectors = deal ? columns : weave ? rows : rows * columns * w->bytes / w->vector;
    w->group = deal || weave ? lanes : 1;
    w->in_vector = weave ? in_step : w->vector, w->out_vector = deal ? out_step : w->vector;
    w->in_element = deal ? in_step : w->bytes, w->out_element = weave ? out_step : w->bytes;
    for (int o = 0; o < w->vectors; o++)
        for (int lane = 0; lane < lanes; lane++) {
            const int from = source(kind, o * lanes + lane, lanes, rows, columns);
            set_place(w, o, lane, from / lanes, from % lanes);
        }
}

/* --- the copy ----------------------------------------------------------------------------------------------------- */

/* The walk goes over the other axes, and along the long one in steps of a span: of matrices the axis before them. */
void weft_weave_copy(const struct weft_copy *copy, void *out, const void *in, int part, int parts)
{
    const enum weft_weave_kind kind = weft_weave_kind(copy);
    const bool matrices = kind == WEFT_WEAVE_MATRICES;
    const int row_axis = copy->rank - 1, column_axis = copy->rank - 2;
    struct weft_weave w;
    struct weft_k_walk walk = weft_copy_walk(copy, out, in);
    weave_table(&w, copy, kind);
    int64_t n = 1, at, end, units = 1;
    walk.rank = copy->rank - 2;
    if (matrices && walk.rank > 0) {
        walk.rank--;
        n = copy->extent[walk.rank];
        w.in_element = walk.step[1][walk.rank], w.out_element = walk.step[0][walk.rank];
    } else if (!matrices) {
        n = copy->extent[kind == WEFT_WEAVE_DEAL ? row_axis : column_axis];
    }
    /* The last axis of the walk has the spans; each is at least a group. */
    const int64_t least = matrices ? MATRICES : SPAN, spans = n / least > 1 ? n / least : 1;
    walk.extent[walk.rank] = spans, walk.step[0][walk.rank] = walk.step[1][walk.rank] = 0;
    walk.rank++;
    for (int i = 0; i < walk.rank; i++)
        units *= walk.extent[i];
    weft_share(units, 1, part, parts, &at, &end);
    if (at >= end)
        return;
    weft_k_walk_seek(&walk, at);
    weft_weave_fn *const run = copy->cpu & WEFT_CPU_AVX512 ? weft_weave__avx512 : weft_weave__avx2;
    for (; at < end; at++) {
        const int64_t span = walk.index[walk.rank - 1], from = n * span / spans, to = n * (span + 1) / spans;
        run(&w, walk.at[0] + from * w.out_element, walk.at[1] + from * w.in_element, to - from);
        weft_k_walk_next(&walk, walk.rank - 1);
    }
}

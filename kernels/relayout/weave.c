/* SPDX-License-Identifier: Apache-2.0 */
/* weave.c: which transposes are woven, their tables, and how parts share them. */
#include "kernels/relayout/weave.h"
#include "kernels/relayout/tiles.h"

#include <string.h>

enum { SPAN = 4096, MATRICES = 64 }; /* along the long axis, that a part takes at least */
enum { FEWEST = 2048, TABLE = 64 };  /* elements that are worth a table, all in all and for an element of it */

static bool wide_vectors(const struct weft_copy *copy)
{
    return weft_level_of(copy->cpu) == 2 && copy->bytes > 1;
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

/* Is there enough for a table? It has side² vectors; what it gains falls to next to nothing at a side of 8. */
static bool table_pays(const struct weft_copy *copy, int64_t side, int64_t elements)
{
    const int64_t table = side * side * 64 / copy->bytes;
    return !wide_vectors(copy) || copy->bytes != 4 || elements * (WEFT_WEAVE_MOST + 1 - side) >= TABLE * table;
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
    if (weft_level_of(copy->cpu) == 0 || rows < 2 || columns < 2 || elements < FEWEST)
        return WEFT_WEAVE_NONE;
    const bool in_dense = copy->in_stride[row_axis] == columns, out_dense = copy->out_stride[column_axis] == rows;
    const int64_t bytes = rows * columns * copy->bytes;
    if (vector == 64 && in_dense && out_dense && bytes % vector == 0 && bytes <= 4 * vector &&
        rows * copy->bytes < vector && columns * copy->bytes < vector)
        return WEFT_WEAVE_MATRICES;
    if (in_dense && rows >= group && weave_pays(copy, columns) && table_pays(copy, columns, elements))
        return WEFT_WEAVE_DEAL;
    const bool weaves = out_dense && columns >= group && weave_pays(copy, rows) && table_pays(copy, rows, elements);
    return weaves ? WEFT_WEAVE_WEAVE : WEFT_WEAVE_NONE;
}

const char *weft_weave_name(const struct weft_copy *copy)
{
    return copy->cpu & WEFT_CPU_AVX512 ? "weft_relayout_weave__avx512" : "weft_relayout_weave__avx2";
}

uint32_t weft_weave_cpu(const struct weft_copy *copy) { return weft_level_cpu(copy->cpu); }

/* A level that weft_weave_kind found something to do for: the baseline has none. */
static weft_weave_fn *weave_of(uint32_t cpu)
{
#ifdef __x86_64__
    return weft_level_of(cpu) == 2 ? weft_weave__avx512 : weft_weave__avx2;
#else
    (void)cpu;
    return NULL;
#endif
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Where each element, or each part of one, comes from: a vector of the operand, and a place in it. */
struct places {
    uint16_t from[WEFT_WEAVE_MOST * 64], place[WEFT_WEAVE_MOST * 64];
};

/* Element `to` of the group's result is element r · scale + q of its operand, where to = q · period + r; elements are
 * of `each` parts. Counted along instead of divided: tables are made for each copy, and small ones take their time. */
static void find_places(struct places *places, int elements, int lanes, int each, int period, int scale)
{
    int r = 0, q = 0, log = 0;
    while (1 << log < lanes)
        log++;
    for (int to = 0; to < elements; to++) {
        const int element = r * scale + q;
        for (int part = 0; part < each; part++) {
            places->from[to * each + part] = (uint16_t)(element >> log);
            places->place[to * each + part] = (uint16_t)((element & (lanes - 1)) * each + part);
        }
        r++;
        q += r == period;
        r = r == period ? 0 : r;
    }
}

/* The bytes of vector `from` among 16 places; 0x80 makes a byte of 0. */
static void fill_bytes(unsigned char *ret, const uint16_t *from, const uint16_t *place, int wanted)
{
    for (int i = 0; i < 16; i++)
        ret[i] = from[i] == wanted ? (unsigned char)place[i] : 0x80;
}

/* What is there stays but for what vector `wanted` has; the first two are put together at once. */
static void fill_parts(unsigned char *ret, const uint16_t *from, const uint16_t *place, int wanted, int unit)
{
    const int parts = 64 / unit;
    uint16_t narrow[32];
    uint32_t wide[16];
    for (int i = 0; i < parts; i++) {
        const int stays = wanted == 1 && from[i] == 0 ? place[i] : i;
        narrow[i] = (uint16_t)(from[i] == wanted ? parts + place[i] : stays);
    }
    for (int i = 0; i < 16; i++)
        wide[i] = narrow[i];
    memcpy(ret, unit == 2 ? (void *)narrow : (void *)wide, 64);
}

static void weave_table(struct weft_weave *w, const struct weft_copy *copy, enum weft_weave_kind kind)
{
    const int rows = (int)copy->extent[copy->rank - 1], columns = (int)copy->extent[copy->rank - 2];
    const int64_t out_step = copy->out_stride[copy->rank - 2] * copy->bytes;
    const int64_t in_step = copy->in_stride[copy->rank - 1] * copy->bytes;
    w->bytes = copy->bytes, w->vector = wide_vectors(copy) ? 64 : 16;
    const int lanes = w->vector / w->bytes, unit = w->vector == 16 ? 1 : w->bytes == 2 ? 2 : 4;
    const int parts = w->vector / unit;
    const bool deal = kind == WEFT_WEAVE_DEAL, weave = kind == WEFT_WEAVE_WEAVE;
    struct places places;
    w->vectors = deal ? columns : weave ? rows : rows * columns * w->bytes / w->vector;
    w->group = deal || weave ? lanes : 1;
    w->in_vector = weave ? in_step : w->vector, w->out_vector = deal ? out_step : w->vector;
    w->in_element = deal ? in_step : w->bytes, w->out_element = weave ? out_step : w->bytes;
    find_places(&places, w->vectors * lanes, lanes, w->bytes / unit, deal ? lanes : rows, weave ? lanes : columns);
    for (int o = 0; o < w->vectors; o++) {
        const uint16_t *const from = places.from + o * parts, *const place = places.place + o * parts;
        for (int i = unit == 1 ? 0 : 1; i < w->vectors || (unit > 1 && i == 1); i++)
            if (unit == 1)
                fill_bytes(w->index[o][i], from, place, i);
            else
                fill_parts(w->index[o][i], from, place, i, unit);
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
    weft_weave_fn *const run = weave_of(copy->cpu);
    for (; at < end; at++) {
        const int64_t span = walk.index[walk.rank - 1], from = n * span / spans, to = n * (span + 1) / spans;
        run(&w, walk.at[0] + from * w.out_element, walk.at[1] + from * w.in_element, to - from);
        weft_k_walk_next(&walk, walk.rank - 1);
    }
}

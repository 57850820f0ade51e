/* SPDX-License-Identifier: Apache-2.0 */
/* by_place.c: gathers and scatters of single elements and of contiguous blocks.
 *
 * The work is less to move them than to bring their indices into range. So a chunk of a line of indices becomes
 * places in the indexed array first, vectors at a time (gather_level.c), then these are looked up; and where an axis
 * does not move in the indices (heads of an attention that share relative positions), each of its lines is looked up
 * by the same places. Axes are put in that order: those that move in the indices, the others, the line. */
#include "kernels/gather/gather.h"
#include "kernels/walk.h"

#include <string.h>

#define CHUNK       512  /* places, which stay in the first-level cache beside what they point to */
#define SHORT       16   /* indices, for fewer of which places are not shared by the elements of a block */
#define CHUNK_BYTES 4096 /* of the result, so that there are several chunks for each part */

const struct weft_gather_loops *weft_gather_loops_find(uint32_t cpu)
{
    static const struct weft_gather_loops *const loops[] = {WEFT_LEVELS(&weft_gather_loops)};
    return loops[weft_level_of(cpu)];
}

/* Axes of a block in which neighbours are apart, in one of the arrays, become axes that do not move in the indices.
 * False if that does not pay, or if there is no place for them. */
static bool open_block(struct weft_gather *g)
{
    const int last = g->inner - 1;
    const bool whole = g->inner > 0 && g->plain_block[last] == 1 && g->indexed_block[last] == 1;
    const int opened = g->inner - whole;
    int64_t longest = 0;
    for (int i = 0; i < g->outer; i++)
        longest = g->index[i] && g->extent[i] > longest ? g->extent[i] : longest;
    if (opened > 0 && (longest < SHORT || g->outer + opened > WEFT_K_RANK))
        return false;
    for (int i = 0; i < opened; i++) {
        g->extent[g->outer] = g->block[i];
        g->plain[g->outer] = g->plain_block[i];
        g->indexed[g->outer] = g->indexed_block[i];
        g->index[g->outer++] = 0;
    }
    if (whole) {
        g->block[0] = g->block[last];
        g->plain_block[0] = g->indexed_block[0] = 1;
    }
    g->inner = whole;
    return true;
}

bool weft_gather_arrange(struct weft_gather *g)
{
    struct weft_k_axis axes[WEFT_K_RANK] = {{0}};
    int line = -1;
    bool moves = false;
    for (int i = 0; i < g->outer; i++)
        moves |= g->index[i] != 0;
    if (!moves || !open_block(g))
        return false;
    for (int i = 0; i < g->outer; i++)
        axes[i] = (struct weft_k_axis){g->extent[i], {g->plain[i], g->indexed[i], g->index[i]}};
    weft_k_axes_sort(axes, g->outer);
    for (int i = 0; i < g->outer; i++)
        line = axes[i].stride[2] ? i : line;
    weft_k_axes_move(axes, line, g->outer - 1);
    for (int i = 0, moving = 0; i < g->outer - 1; i++)
        if (axes[i].stride[2])
            weft_k_axes_move(axes, i, moving++);
    g->outer = weft_k_axes_merge(axes, g->outer, 3);
    g->shared = 0;
    for (int i = 0; i < g->outer; i++) {
        g->extent[i] = axes[i].extent;
        g->plain[i] = axes[i].stride[0];
        g->indexed[i] = axes[i].stride[1];
        g->index[i] = axes[i].stride[2];
        g->shared += !g->index[i];
    }
    return true;
}

/* Lines that go through the places of one: `arrays` of result, operand and indices, over axes [first, end). */
static struct weft_k_walk walk_over(const struct weft_gather *g, int first, int end, int arrays, int64_t *ret_count)
{
    struct weft_k_walk walk = {.rank = end - first, .arrays = arrays};
    *ret_count = 1;
    for (int i = 0; i < walk.rank; i++) {
        walk.extent[i] = g->extent[first + i];
        walk.step[0][i] = g->plain[first + i] * g->bytes;
        walk.step[1][i] = g->indexed[first + i] * g->bytes;
        walk.step[2][i] = g->index[first + i] * (g->index_dtype == WEFT_K_I64 ? 8 : 4);
        *ret_count *= walk.extent[i];
    }
    return walk;
}

void weft_gather_by_place(const struct weft_gather *g, void *out, const void *in, const void *index, int part,
                          int parts)
{
    const struct weft_gather_loops *const loops = weft_gather_loops_find(g->cpu);
    const bool wide = g->index_dtype == WEFT_K_I64;
    const int last = g->outer - 1, moving = last - g->shared;
    const int64_t size = g->bytes * (g->inner ? g->block[0] : 1), most = size < CHUNK_BYTES ? CHUNK_BYTES / size : 1;
    const int64_t n = g->extent[last], room = most < CHUNK ? most : CHUNK, chunks = (n + room - 1) / room;
    int64_t place[CHUNK], lines, sharing, unit, end;
    struct weft_k_walk over = walk_over(g, 0, moving, 3, &lines), along = walk_over(g, moving, last, 2, &sharing);
    weft_share(lines * chunks * sharing, 1, part, parts, &unit, &end);
    if (unit >= end)
        return;
    over.at[0] = out, over.at[1] = (char *)in, over.at[2] = (char *)index;
    weft_k_walk_seek(&over, unit / sharing / chunks);
    while (unit < end) {
        const int64_t chunk = unit / sharing % chunks, first = chunk * room;
        const int64_t round = sharing - unit % sharing, count = round < end - unit ? round : end - unit;
        const int64_t some = n - first < room ? n - first : room;
        const struct weft_gather_line line = {.n = some, .limit = g->limit[0], .step = g->step[0],
                                              .first = first * g->indexed[last], .along = g->indexed[last],
                                              .index = g->index[last]};
        loops->places(&line, wide, place, over.at[2] + first * g->index[last] * (wide ? 8 : 4));
        along.at[0] = over.at[0] + first * g->plain[last] * g->bytes, along.at[1] = over.at[1];
        weft_k_walk_seek(&along, sharing - round);
        for (int64_t i = 0; i < count; i++) {
            if (g->inner)
                loops->copy_blocks(g->bytes, size, along.at[0], g->plain[last] * g->bytes, along.at[1], place, some);
            else
                loops->look_up(g->bytes, along.at[0], g->plain[last], along.at[1], place, some);
            weft_k_walk_next(&along, along.rank - 1);
        }
        unit += count;
        if (chunk == chunks - 1 && count == round)
            weft_k_walk_next(&over, over.rank - 1);
    }
}

/* --- scatters ----------------------------------------------------------------------------------------------------- */

bool weft_scatter_goes_by_place(const struct weft_gather *g)
{
    const int last = g->inner - 1;
    if (!g->outer || (g->combine && g->inner > 1))
        return false;
    return !g->inner || (g->plain_block[last] == 1 && g->indexed_block[last] == 1);
}

/* Blocks of `size` bytes, `step` bytes apart, to their places, those that have one, in order. */
static inline __attribute__((always_inline)) void store_each(int bytes, int64_t size, char *to, const char *from,
                                                             int64_t step, const int64_t *place, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (place[i] != WEFT_NOWHERE)
            memcpy(to + place[i] * bytes, from + i * step, (size_t)size);
}

static void scatter_to(const struct weft_gather *g, char *to, const char *from, int64_t step, const int64_t *place,
                       int64_t n)
{
    const int bytes = g->bytes;
    const int64_t size = bytes * (g->inner ? g->block[0] : 1);
    if (g->inner > 1)
        for (int64_t i = 0; i < n; i++) {
            if (place[i] != WEFT_NOWHERE)
                weft_gather_move_block(g, 0, to + place[i] * bytes, from + i * step);
        }
    else if (size == 4)
        store_each(bytes, 4, to, from, step, place, n);
    else if (size == 8)
        store_each(bytes, 8, to, from, step, place, n);
    else
        store_each(bytes, size, to, from, step, place, n);
}

/* Combines the rows of a line whose numbers are in [low, high). What is not is dropped without a branch: which part an
 * index belongs to is as good as random. */
static void combine_to(const struct weft_gather *g, const struct weft_gather_line *line, int64_t low, int64_t high,
                       float *to, const float *from, const int64_t *number)
{
    const struct weft_combining c = {g->combine, g->inner ? g->block[0] : 1, g->plain[g->outer - 1]};
    int64_t place[CHUNK], row[CHUNK], kept = 0;
    for (int64_t i = 0; i < line->n; i++) {
        const bool mine = number[i] >= low && number[i] < high;
        place[kept] = line->first + i * line->along + (mine ? number[i] : 0) * g->step[0];
        row[kept] = i;
        kept += mine;
    }
    weft_gather_loops_find(g->cpu)->combine(&c, to, from, place, row, kept);
}

/* Lines go along the last axis, in the order of the indices: the last of equal ones wins. */
void weft_scatter_by_place(const struct weft_gather *g, void *out, const void *in, const void *index, int part,
                           int parts)
{
    const struct weft_gather_loops *const loops = weft_gather_loops_find(g->cpu);
    const bool wide = g->index_dtype == WEFT_K_I64;
    const int last = g->outer - 1, number = wide ? 8 : 4;
    struct weft_k_walk walk = {.rank = last, .arrays = 3, .at = {out, (char *)in, (char *)index}};
    int64_t place[CHUNK], lines = 1, end = 0;
    int64_t low = 0, high = g->limit[0];
    if (g->split < 0 && g->combine)
        weft_share(g->limit[0], 1, part, parts, &low, &high);
    else if (g->split < 0 && part > 0)
        return;
    for (int i = 0; i < g->outer; i++) { /* the part's range along each axis */
        int64_t begin = 0, past = g->extent[i];
        if (i == g->split)
            weft_share(g->extent[i], 1, part, parts, &begin, &past);
        walk.at[0] += begin * g->indexed[i] * g->bytes;
        walk.at[1] += begin * g->plain[i] * g->bytes;
        walk.at[2] += begin * g->index[i] * number;
        if (i == last) {
            end = past - begin;
            continue;
        }
        walk.extent[i] = past - begin;
        walk.step[0][i] = g->indexed[i] * g->bytes;
        walk.step[1][i] = g->plain[i] * g->bytes;
        walk.step[2][i] = g->index[i] * number;
        lines *= walk.extent[i];
    }
    for (int64_t l = 0; l < lines; l++, weft_k_walk_next(&walk, last - 1))
        for (int64_t first = 0; first < end; first += CHUNK) {
            const struct weft_gather_line line = {.n = end - first < CHUNK ? end - first : CHUNK, .limit = g->limit[0],
                                                  .step = g->step[0], .first = first * g->indexed[last],
                                                  .along = g->indexed[last], .index = g->index[last],
                                                  .strict = !g->clamp};
            const char *const numbers = walk.at[2] + first * g->index[last] * number;
            if (g->combine) {
                const struct weft_gather_line alone = {.n = line.n, .limit = line.limit, .step = 1,
                                                       .index = line.index, .strict = line.strict};
                loops->places(&alone, wide, place, numbers);
                combine_to(g, &line, low, high, (float *)(void *)walk.at[0],
                           (const float *)(void *)walk.at[1] + first * g->plain[last], place);
                continue;
            }
            loops->places(&line, wide, place, numbers);
            scatter_to(g, walk.at[0], walk.at[1] + first * g->plain[last] * g->bytes,
                       g->plain[last] * g->bytes, place, line.n);
        }
}

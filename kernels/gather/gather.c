/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c: copies whose places come from an array of indices.
 *
 * One descriptor for all of them: gathers of rows, of elements, by several numbers, and the same backwards as scatters.
 * Two loops: a block of any form for each index; and, for single elements and contiguous blocks of usual gathers, where
 * reading the indices and bringing them into range is the work, by places (by_place.c).
 *
 * Parts of a gather are ranges of indices. Parts of a scatter must not meet in one element, so they are ranges of an
 * outer axis that also moves in the indexed array; where there is none, a scatter that replaces is one part, in the
 * order of the indices: the last of equal ones wins. One that combines by place (sums over the edges of a graph) has
 * ranges of the numbers then: each part goes through all indices and keeps those that are its own, in order. */
#include "kernels/gather/gather.h"
#include "kernels/relayout/relayout.h"
#include "kernels/walk.h"

#include <string.h>

#define APART 1024 /* floats between the lines of parts that combine: else they write the same lines of a cache */

const char *weft_gather_name(const struct weft_gather *g)
{
    const struct weft_gather_loops *const loops = weft_gather_loops_find(g->cpu);
    if (g->scatter)
        return g->combine ? (g->by_place ? loops->combined : "weft_scatter_combine_each_f32__ref")
               : g->by_place ? loops->scatter : "weft_scatter_blocks__ref";
    return !g->by_place ? "weft_gather_blocks__ref" : g->inner ? loops->blocks : loops->elements;
}

/* Blocks of other indices go one by one. */
uint32_t weft_gather_cpu(const struct weft_gather *g)
{
    return g->by_place ? weft_gather_loops_find(g->cpu)->cpu : 0;
}

/* Axes that are one in both arrays are joined; the order stays. */
static void merge_block(struct weft_gather *g)
{
    struct weft_k_axis axes[WEFT_K_RANK] = {{0}};
    for (int i = 0; i < g->inner; i++)
        axes[i] = (struct weft_k_axis){g->block[i], {g->plain_block[i], g->indexed_block[i]}};
    g->inner = weft_k_axes_merge(axes, g->inner, 2);
    for (int i = 0; i < g->inner; i++) {
        g->block[i] = axes[i].extent;
        g->plain_block[i] = axes[i].stride[0];
        g->indexed_block[i] = axes[i].stride[1];
    }
}

static void drop_single_axes(struct weft_gather *g)
{
    int kept = 0;
    for (int i = 0; i < g->outer; i++) {
        if (g->extent[i] == 1)
            continue;
        g->extent[kept] = g->extent[i];
        g->plain[kept] = g->plain[i];
        g->indexed[kept] = g->indexed[i];
        g->index[kept++] = g->index[i];
    }
    g->outer = kept;
}

/* An axis along which one index serves neighbours in both arrays: they are a block. */
static void make_block(struct weft_gather *g)
{
    for (int i = 0; i < g->outer && g->inner == 0; i++) {
        if (g->index[i] != 0 || g->plain[i] != 1 || g->indexed[i] != 1)
            continue;
        g->block[g->inner] = g->extent[i];
        g->plain_block[g->inner] = g->indexed_block[g->inner] = 1;
        g->inner++;
        g->extent[i] = 1;
        drop_single_axes(g);
    }
}

void weft_gather_prepare(struct weft_gather *g, int workers)
{
    drop_single_axes(g);
    const bool usual = (g->index_dtype == WEFT_K_I64 || g->index_dtype == WEFT_K_I32) && g->numbers == 1;
    if (!g->scatter || (g->combine && usual && g->from_end))
        make_block(g);
    merge_block(g);
    g->by_place = g->from_end && usual &&
                  (g->scatter ? weft_scatter_goes_by_place(g) : weft_gather_arrange(g));
    int64_t indices = 1, block = 1;
    g->split = -1;
    for (int i = 0; i < g->outer; i++) {
        indices *= g->extent[i];
        if (g->indexed[i] != 0 && (g->split < 0 || g->extent[i] > g->extent[g->split]))
            g->split = i;
    }
    for (int i = 0; i < g->inner; i++)
        block *= g->block[i];
    const bool combines = g->combine && g->by_place;
    if (combines && g->split >= 0 && g->indexed[g->split] < APART)
        g->split = -1;
    const int64_t alone = combines ? g->limit[0] : 1; /* parts without an axis */
    const int64_t most = g->scatter ? (g->split < 0 ? alone : g->extent[g->split]) : indices;
    const int32_t parts = weft_parts_for(indices * block * 2 * g->bytes, workers);
    g->parts = parts > most ? (int32_t)(most > 0 ? most : 1) : parts;
}

/* --- blocks ----------------------------------------------------------------------------------------------------- */

void weft_gather_move_block(const struct weft_gather *g, int axis, char *out, const char *in)
{
    const int64_t *to = g->scatter ? g->indexed_block : g->plain_block;
    const int64_t *from = g->scatter ? g->plain_block : g->indexed_block;
    if (axis >= g->inner)
        weft_copy_strided(g->bytes, out, 1, in, 1, 1);
    else if (axis + 1 < g->inner)
        for (int64_t i = 0; i < g->block[axis]; i++)
            weft_gather_move_block(g, axis + 1, out + i * to[axis] * g->bytes, in + i * from[axis] * g->bytes);
    else if (to[axis] == 1 && from[axis] == 1)
        memcpy(out, in, (size_t)(g->block[axis] * g->bytes));
    else
        weft_copy_strided(g->bytes, out, to[axis], in, from[axis], g->block[axis]);
}

static void combine_block(const struct weft_gather *g, int axis, float *out, const float *in)
{
    if (axis >= g->inner) {
        *out = weft_combined(g->combine, *out, *in);
        return;
    }
    const int64_t to = g->indexed_block[axis], from = g->plain_block[axis], n = g->block[axis];
    if (axis + 1 < g->inner)
        for (int64_t i = 0; i < n; i++)
            combine_block(g, axis + 1, out + i * to, in + i * from);
    else
        for (int64_t i = 0; i < n; i++)
            out[i * to] = weft_combined(g->combine, out[i * to], in[i * from]);
}

/* Where an index points to; false if it lies outside of what is scattered to. Gathers take the nearest place. */
static bool resolve(const struct weft_gather *g, const void *index, int64_t at, int64_t *ret)
{
    int64_t place = 0;
    for (int k = 0; k < g->numbers; k++) {
        int64_t i = weft_gather_number(g->index_dtype, index, at + k * g->number_stride);
        if (g->from_end && i < 0)
            i += g->limit[k];
        if (g->scatter && !g->clamp && (i < 0 || i >= g->limit[k]))
            return false;
        i = i < 0 ? 0 : i >= g->limit[k] ? g->limit[k] - 1 : i;
        place += i * g->step[k];
    }
    *ret = place;
    return true;
}

static void one_index(const struct weft_gather *g, char *out, const char *in, const void *index, const int64_t *at)
{
    int64_t plain = 0, indexed = 0, number = 0, place;
    for (int i = 0; i < g->outer; i++) {
        plain += at[i] * g->plain[i];
        indexed += at[i] * g->indexed[i];
        number += at[i] * g->index[i];
    }
    if (!resolve(g, index, number, &place))
        return;
    indexed += place;
    char *const to = out + (g->scatter ? indexed : plain) * g->bytes;
    const char *const from = in + (g->scatter ? plain : indexed) * g->bytes;
    if (g->combine)
        combine_block(g, 0, (float *)(void *)to, (const float *)(const void *)from);
    else
        weft_gather_move_block(g, 0, to, from);
}

static void run_blocks(const struct weft_gather *g, void *out, const void *in, const void *index, int part, int parts)
{
    int64_t first[WEFT_K_RANK] = {0}, end[WEFT_K_RANK], at[WEFT_K_RANK], begin, past, total = 1;
    for (int i = 0; i < g->outer; i++) {
        end[i] = g->extent[i];
        total *= g->extent[i];
    }
    if (g->scatter && g->split >= 0) {
        weft_share(g->extent[g->split], 1, part, parts, &first[g->split], &end[g->split]);
        total = total ? total / g->extent[g->split] * (end[g->split] - first[g->split]) : 0;
    }
    begin = 0, past = g->scatter && g->split < 0 && part > 0 ? 0 : total;
    if (!g->scatter)
        weft_share(total, 1, part, parts, &begin, &past);
    int64_t rest = begin;
    for (int i = g->outer - 1; i >= 0 && begin < past; i--) {
        const int64_t extent = end[i] - first[i];
        at[i] = first[i] + rest % extent;
        rest /= extent;
    }
    for (; begin < past; begin++) {
        one_index(g, out, in, index, at);
        for (int i = g->outer - 1; i >= 0 && ++at[i] == end[i]; i--)
            at[i] = first[i];
    }
}

void weft_gather_run(const struct weft_gather *g, void *out, const void *in, const void *index, int part, int parts)
{
    if (g->by_place && g->scatter)
        weft_scatter_by_place(g, out, in, index, part, parts);
    else if (g->by_place)
        weft_gather_by_place(g, out, in, index, part, parts);
    else
        run_blocks(g, out, in, index, part, parts);
}

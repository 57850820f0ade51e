/* SPDX-License-Identifier: Apache-2.0 */
/* split_concat_parts.c: which operands of a concat hold what a slice takes.
 *
 *   %c: f32[24] = concat %a, %b, %z axis=0       begins at  0, 8, 16, ends at 24
 *   %s: f32[6] = slice %c start=[9] end=[15]     lies within operand 1, which begins at 8
 *
 * A narrow concat is searched from its start. Of a wide one it is noted once where its operands begin, in scratch
 * memory that lasts as long as the pass: thousands of slices of one concat of thousands then take a search of log(n)
 * steps each. That finds what begins at a number, and what begins just where an operand does, be it a symbol; a slice
 * that begins at another expression is compared with operand after operand. Extents of operands never change, and
 * numbers of nodes are not used again, so what is noted stays right. */
#include "passes/split_concat.h"

#include <stdlib.h>

enum { NARROW = 16 };

/* Where an operand begins, to be found by the expression. */
struct place {
    weft_dim begin;
    unsigned operand;
};

struct parts {
    bool unknown;          /* expressions cannot say it */
    weft_dim *begin;       /* of each operand, and where the last one ends */
    unsigned operands;
    unsigned numbers;      /* so many of them, from the first on, are numbers */
    struct place *place;   /* sorted by bits; of equal ones the first operand comes last */
};

/* In root->pass_memory. */
struct memory {
    const struct weft_graph *graph;
    struct parts **of_node;
    uint32_t capacity;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->begin.bits != y->begin.bits)
        return x->begin.bits < y->begin.bits ? -1 : 1;
    return x->operand > y->operand ? -1 : x->operand < y->operand;
}

/* Where the operands begin, and where the last one ends; false where expressions cannot say it. */
static bool find_begins(struct weft_graph *g, weft_node concat, unsigned axis, weft_dim *begin)
{
    const unsigned operands = g->node[concat.id].operands;
    begin[0] = weft_dim_of(0);
    weft_dims_try(g->dims);
    for (unsigned i = 0; i < operands; i++)
        begin[i + 1] = weft_dim_add(g->dims, begin[i], weft_type_of(g, weft_operand(g, concat, i))->extent[axis]);
    return !weft_dims_tried(g->dims);
}

static struct parts *note_parts(struct weft_graph *g, weft_node concat, unsigned axis)
{
    struct parts *parts = weft_new(&g->root->scratch, struct parts, 1);
    parts->operands = g->node[concat.id].operands;
    parts->begin = weft_new(&g->root->scratch, weft_dim, parts->operands + 1u);
    parts->unknown = !find_begins(g, concat, axis, parts->begin);
    if (parts->unknown)
        return parts;
    parts->place = weft_new(&g->root->scratch, struct place, parts->operands);
    for (unsigned i = 0; i < parts->operands; i++)
        parts->place[i] = (struct place){parts->begin[i], i};
    while (parts->numbers <= parts->operands && weft_dim_is_constant(parts->begin[parts->numbers]))
        parts->numbers++;
    qsort(parts->place, parts->operands, sizeof *parts->place, compare_places);
    return parts;
}

static const struct parts *parts_of(struct weft_graph *g, weft_node concat, unsigned axis)
{
    struct memory *memory = g->root->pass_memory;
    if (!memory)
        memory = g->root->pass_memory = weft_new(&g->root->scratch, struct memory, 1);
    if (memory->graph != g)
        *memory = (struct memory){.graph = g};
    memory->of_node =
        weft_grow(&g->root->scratch, memory->of_node, &memory->capacity, concat.id + 1, sizeof *memory->of_node);
    if (!memory->of_node[concat.id])
        memory->of_node[concat.id] = note_parts(g, concat, axis);
    return memory->of_node[concat.id];
}

/* The last of begin[0..count) that is not above `limit`; all are numbers, and begin[0] is 0. */
static unsigned last_at_most(const weft_dim *begin, unsigned count, int64_t limit)
{
    unsigned low = 0, high = count;
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        if (weft_dim_value(begin[middle]) <= limit)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool among_numbers(const struct parts *parts, weft_dim start, weft_dim end, struct weft_holders *ret)
{
    if (!weft_dim_is_constant(start) || !weft_dim_is_constant(end) || weft_dim_value(start) < 0 ||
        weft_dim_value(end) > weft_dim_value(parts->begin[parts->numbers - 1]))
        return false;
    const unsigned known = parts->numbers - 1; /* operands of which beginning and end are numbers */
    /* The first that ends at or behind the end: the one behind the last that ends before it. */
    const unsigned before = last_at_most(parts->begin, parts->numbers, weft_dim_value(end) - 1);
    ret->last = weft_dim_value(end) > 0 ? before : 0;
    ret->first = last_at_most(parts->begin, known, weft_dim_value(start));
    if (ret->first > ret->last)
        ret->first = ret->last;
    ret->before = parts->begin[ret->first];
    return true;
}

static bool where_one_begins(struct weft_dims *dims, const struct parts *parts, weft_dim start, weft_dim end,
                             struct weft_holders *ret)
{
    unsigned low = 0, high = parts->operands;
    while (low < high) { /* behind all whose bits are not above those of the start: the first operand of equal ones */
        const unsigned middle = low + (high - low) / 2;
        if (parts->place[middle].begin.bits <= start.bits)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || !weft_dim_same(parts->place[low - 1].begin, start))
        return false;
    unsigned i = parts->place[low - 1].operand;
    while (i + 1 < parts->operands && weft_dim_same(parts->begin[i + 1], start) && !weft_dim_same(end, start))
        i++; /* operands without elements */
    *ret = (struct weft_holders){i, i, start};
    return weft_dim_at_most(dims, end, parts->begin[i + 1]);
}

/* From the first operand on: the last one that is known to begin at or before the start, and the first behind it that
 * is known to end at or behind the end. */
static bool search(struct weft_dims *dims, const weft_dim *begin, unsigned operands, weft_dim start, weft_dim end,
                   struct weft_holders *ret)
{
    bool found = false;
    for (unsigned i = 0; i < operands; i++) {
        if (weft_dim_at_most(dims, begin[i], start)) {
            *ret = (struct weft_holders){i, operands - 1, begin[i]};
            found = true;
        }
        if (found && weft_dim_at_most(dims, end, begin[i + 1])) {
            ret->last = i;
            return true;
        }
    }
    return found;
}

bool weft_find_holders(struct weft_graph *g, weft_node concat, unsigned axis, weft_dim start, weft_dim end,
                       struct weft_holders *ret)
{
    const unsigned operands = g->node[concat.id].operands;
    if (operands <= NARROW) {
        weft_dim begin[NARROW + 1];
        return find_begins(g, concat, axis, begin) && search(g->dims, begin, operands, start, end, ret);
    }
    const struct parts *parts = parts_of(g, concat, axis);
    return !parts->unknown &&
           (among_numbers(parts, start, end, ret) || where_one_begins(g->dims, parts, start, end, ret) ||
            search(g->dims, parts->begin, operands, start, end, ret));
}

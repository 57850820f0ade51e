/* SPDX-License-Identifier: Apache-2.0 */
/* labelling_order.c: min-fill elimination orders.
 *
 * Eliminating a node makes neighbours of all its neighbours. Who is a neighbour of whom is a hash set of pairs; each
 * node also has a list, from which those that have gone are only dropped when it is walked. A heap holds a node under
 * the fill that it had when it was last looked at; when it comes up, its fill is counted again, and if that is more by
 * now it goes back. A fill that has become less is noticed at the neighbours of the node that went, and elsewhere when
 * its turn comes: that makes the order a little worse now and then, and the work near-linear. */
#include "sched/labelling.h"

#include <string.h>

enum { COUNTED = 16 }; /* neighbours up to which the fill is counted */

struct list {
    uint32_t *item;
    uint32_t count, capacity, live;
};

struct entry {
    uint64_t fill;
    uint32_t node;
};

struct ordering {
    struct weft_arena *arena;
    uint32_t nodes;
    struct list *near;
    uint8_t *gone;
    uint64_t *pair;      /* hash set: smaller << 32 | larger, + 1; 0: free */
    uint32_t pairs, size;
    struct entry *heap;
    uint32_t count, capacity;
    uint64_t *fill;      /* by node: of its newest entry */
};

/* --- pairs -------------------------------------------------------------------------------------------------------- */

static uint64_t key_of(uint32_t a, uint32_t b) { return (a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a) + 1; }

static uint64_t *slot_of(const struct ordering *o, uint64_t key)
{
    uint32_t at = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (o->size - 1);
    while (o->pair[at] && o->pair[at] != key)
        at = (at + 1) & (o->size - 1);
    return &o->pair[at];
}

static void grow_pairs(struct ordering *o)
{
    const uint64_t *old = o->pair;
    const uint32_t size = o->size;
    o->size = 2 * size;
    o->pair = weft_new(o->arena, uint64_t, o->size);
    for (uint32_t i = 0; i < size; i++)
        if (old[i])
            *slot_of(o, old[i]) = old[i];
}

static bool are_near(const struct ordering *o, uint32_t a, uint32_t b) { return *slot_of(o, key_of(a, b)) != 0; }

static void append(struct ordering *o, uint32_t to, uint32_t node)
{
    struct list *list = &o->near[to];
    list->item = weft_grow(o->arena, list->item, &list->capacity, list->count + 1, sizeof *list->item);
    list->item[list->count++] = node;
    list->live++;
}

static void join(struct ordering *o, uint32_t a, uint32_t b)
{
    if (a == b || are_near(o, a, b))
        return;
    if (2 * (o->pairs + 1) > o->size)
        grow_pairs(o);
    *slot_of(o, key_of(a, b)) = key_of(a, b);
    o->pairs++;
    append(o, a, b);
    append(o, b, a);
}

/* Drops from the list those that have gone. */
static struct list *look_at(struct ordering *o, uint32_t node)
{
    struct list *list = &o->near[node];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count && list->count > list->live; i++)
        if (!o->gone[list->item[i]])
            list->item[kept++] = list->item[i];
    if (list->count > list->live)
        list->count = kept;
    return list;
}

/* --- the heap: least fill, then least number ---------------------------------------------------------------------- */

static bool is_before(struct entry a, struct entry b)
{
    return a.fill != b.fill ? a.fill < b.fill : a.node < b.node;
}

static void push(struct ordering *o, struct entry e)
{
    o->heap = weft_grow(o->arena, o->heap, &o->capacity, o->count + 1, sizeof *o->heap);
    uint32_t at = o->count++;
    for (; at > 0 && is_before(e, o->heap[(at - 1) / 2]); at = (at - 1) / 2)
        o->heap[at] = o->heap[(at - 1) / 2];
    o->heap[at] = e;
}

static struct entry pop(struct ordering *o)
{
    const struct entry top = o->heap[0], last = o->heap[--o->count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < o->count; child = 2 * at + 1) {
        child += child + 1 < o->count && is_before(o->heap[child + 1], o->heap[child]);
        if (!is_before(o->heap[child], last))
            break;
        o->heap[at] = o->heap[child];
        at = child;
    }
    o->heap[at] = last;
    return top;
}

static uint64_t count_fill(struct ordering *o, uint32_t node)
{
    const uint64_t live = o->near[node].live;
    if (live > COUNTED || live < 2)
        return live * (live - (live > 0)) / 2;
    const struct list *list = look_at(o, node);
    uint64_t fill = 0;
    for (uint32_t i = 1; i < list->count; i++)
        for (uint32_t k = 0; k < i; k++)
            fill += !are_near(o, list->item[i], list->item[k]);
    return fill;
}

static void note(struct ordering *o, uint32_t node)
{
    o->fill[node] = count_fill(o, node);
    push(o, (struct entry){o->fill[node], node});
}

/* --- the order ---------------------------------------------------------------------------------------------------- */

static void eliminate(struct ordering *o, uint32_t node)
{
    const struct list *list = look_at(o, node);
    const uint32_t count = list->count;
    o->gone[node] = 1;
    for (uint32_t i = 0; i < count; i++)
        o->near[list->item[i]].live--;
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            join(o, list->item[i], list->item[k]);
    for (uint32_t i = 0; i < count; i++)
        note(o, list->item[i]);
}

uint32_t *weft_labelling_order(struct weft_arena *arena, uint32_t nodes, const uint32_t *pair, uint32_t pairs)
{
    struct ordering o = {.arena = arena, .nodes = nodes};
    uint32_t *order = weft_new(arena, uint32_t, nodes), done = 0;
    o.near = weft_new(arena, struct list, nodes);
    o.gone = weft_new(arena, uint8_t, nodes);
    o.fill = weft_new(arena, uint64_t, nodes);
    for (o.size = 32; o.size < 2 * pairs;)
        o.size *= 2;
    o.pair = weft_new(arena, uint64_t, o.size);
    o.heap = weft_grow(arena, NULL, &o.capacity, 2 * nodes + 1, sizeof *o.heap); /* each, and many once more */
    for (uint32_t i = 0; i < pairs; i++)
        join(&o, pair[2 * i], pair[2 * i + 1]);
    for (uint32_t i = 0; i < nodes; i++)
        note(&o, i);
    while (done < nodes) {
        const struct entry next = pop(&o);
        if (o.gone[next.node] || next.fill != o.fill[next.node]) /* an entry of former days */
            continue;
        const uint64_t now = count_fill(&o, next.node);
        if (now > next.fill) {
            o.fill[next.node] = now;
            push(&o, (struct entry){now, next.node});
            continue;
        }
        eliminate(&o, next.node);
        order[done++] = next.node;
    }
    return order;
}

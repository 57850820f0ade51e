/* SPDX-License-Identifier: Apache-2.0 */
/* min_cut.c: minimum cuts by maximum flow, after Dinic (1970).
 *
 * A round measures how far every place is from the near end along edges with something left, then sends as much as it
 * can along paths on which each step is one farther. The rounds end when the far end cannot be reached. From then on
 * whatever can still reach the far end is far, and all else is near: that is the cheapest cut with the fewest places on
 * the far side.
 *
 * Both searches keep their state in arrays, since a chain of nodes may be as long as the graph. The bound on steps
 * keeps whoever calls near-linear: graphs of tensors have few sources that meet, and a handful of rounds is all it
 * takes. Why not a heuristic that moves one node after another: a value that is read twice pays only when both readers
 * move, and then for both at once. */
#include "passes/min_cut.h"

#include <string.h>

#define MAX_STEPS_PER_EDGE 256

void weft_cut_open(struct weft_cut *cut, struct weft_arena *arena, uint32_t places)
{
    *cut = (struct weft_cut){.arena = arena, .places = places};
    cut->first = weft_new(arena, uint32_t, places);
    cut->depth = weft_new(arena, uint32_t, places);
    cut->cursor = weft_new(arena, uint32_t, places);
    cut->path = weft_new(arena, uint32_t, places);
}

static void add_edge(struct weft_cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    cut->edge = weft_grow(cut->arena, cut->edge, &cut->capacity, cut->edges + 1, sizeof *cut->edge);
    cut->edge[cut->edges] = (struct weft_cut_edge){.to = to, .next = cut->first[from], .left = capacity};
    cut->first[from] = ++cut->edges;
}

void weft_cut_edge(struct weft_cut *cut, uint32_t from, uint32_t to, int64_t capacity)
{
    add_edge(cut, from, to, capacity);
    add_edge(cut, to, from, 0);
}

/* Breadth first from `start` along edges with something left, or against them; `path` serves as the queue. */
static void search(struct weft_cut *cut, uint32_t start, bool against)
{
    uint32_t head = 0, tail = 0;
    memset(cut->depth, 0, cut->places * sizeof *cut->depth);
    cut->depth[start] = 1;
    cut->path[tail++] = start;
    while (head < tail) {
        const uint32_t place = cut->path[head++];
        for (uint32_t e = cut->first[place]; e; e = cut->edge[e - 1].next) {
            const uint32_t to = cut->edge[e - 1].to;
            if (cut->depth[to] || cut->edge[against ? (e - 1) ^ 1 : e - 1].left == 0)
                continue;
            cut->depth[to] = cut->depth[place] + 1;
            cut->path[tail++] = to;
        }
    }
}

/* Sends what fits along the path of `length` edges; returns how many of them stay usable from the start. */
static uint32_t send(struct weft_cut *cut, uint32_t length)
{
    int64_t amount = INT64_MAX;
    uint32_t full = length;
    for (uint32_t i = 0; i < length; i++)
        if (cut->edge[cut->path[i]].left < amount)
            amount = cut->edge[cut->path[i]].left;
    for (uint32_t i = length; i > 0; i--) {
        cut->edge[cut->path[i - 1]].left -= amount;
        cut->edge[cut->path[i - 1] ^ 1].left += amount;
        if (cut->edge[cut->path[i - 1]].left == 0)
            full = i - 1;
    }
    return full;
}

/* All paths of this round. The walk goes forwards along edges that lead one deeper, and back where there is none. */
static bool send_all(struct weft_cut *cut, uint64_t *steps, uint64_t limit)
{
    memcpy(cut->cursor, cut->first, cut->places * sizeof *cut->cursor);
    uint32_t place = 0, length = 0;
    while ((*steps)++ < limit) {
        if (place == 1) {
            *steps += length;
            length = send(cut, length);
            place = cut->edge[cut->path[length] ^ 1].to;
            continue;
        }
        const uint32_t e = cut->cursor[place];
        if (e == 0) {
            if (place == 0)
                return true;
            place = cut->edge[cut->path[--length] ^ 1].to;
            cut->cursor[place] = cut->edge[cut->cursor[place] - 1].next;
        } else if (cut->edge[e - 1].left > 0 && cut->depth[cut->edge[e - 1].to] == cut->depth[place] + 1) {
            cut->path[length++] = e - 1;
            place = cut->edge[e - 1].to;
        } else {
            cut->cursor[place] = cut->edge[e - 1].next;
        }
    }
    return false;
}

bool weft_cut_solve(struct weft_cut *cut)
{
    const uint64_t limit = MAX_STEPS_PER_EDGE * ((uint64_t)cut->edges + cut->places);
    uint64_t steps = 0;
    for (;;) {
        search(cut, 0, /* against= */ false);
        steps += cut->edges;
        if (!cut->depth[1])
            break;
        if (!send_all(cut, &steps, limit))
            return false;
    }
    search(cut, 1, /* against= */ true);
    return true;
}

bool weft_cut_is_near(const struct weft_cut *cut, uint32_t place) { return cut->depth[place] == 0; }

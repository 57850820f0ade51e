/* SPDX-License-Identifier: Apache-2.0 */
/* chooser.h: the labelling problem of memory formats, between the file that poses it and the one that answers. */
#ifndef WEFT_SCHED_CHOOSER_H
#define WEFT_SCHED_CHOOSER_H

#include "sched/format.h"

enum { WEFT_MOST_SETS = WEFT_MAX_FORMATS * (WEFT_MAX_FORMATS + 1) / 2 };

/* Of one graph; the problem is that of the top and all bodies, costs as often as each is run. */
struct weft_chooser {
    struct weft_formats *formats;
    struct weft_graph *graph;
    struct weft_labelling *labelling;
    struct weft_chooser *all;    /* by weft_formats.index */
    uint32_t *node;          /* by value: of the labelling, + 1; 0: none */
    uint32_t *set;           /* by value: the node for what is read, + 1; 0: as written */
    const struct weft_format_choice **choice; /* by value: how it may be written, as many as its node has choices */
    const int64_t **convert; /* by value: [from][to] of its list */
    const int64_t **read;    /* by operand slot: [choice of the result][layout of its list]; NULL: nothing to choose */
};

static inline const struct weft_format_list *list_of(const struct weft_chooser *c, weft_val v)
{
    return &c->formats->list[v.id];
}

/* The layout in which choice number `at` writes it, as number of the list. */
static inline uint32_t written_in(const struct weft_chooser *c, weft_val v, uint32_t at)
{
    return c->choice[v.id][at].format;
}

static inline uint32_t choices_of(const struct weft_chooser *c, weft_val v)
{
    return c->labelling->node[c->node[v.id] - 1].choices;
}

/* The labelling's node for what readers of v find. */
static inline uint32_t found_of(const struct weft_chooser *c, weft_val v)
{
    return (c->set[v.id] ? c->set[v.id] : c->node[v.id]) - 1;
}

/* The value whose choice says what operand `index` of a node costs in each layout, and its graph
 * (weft_format_handed_to). */
const struct weft_chooser *weft_chooser_reader(const struct weft_chooser *c, weft_node node, uint32_t index,
                                               weft_val *ret_value);

/* Adds the nodes of a graph's values, and when all graphs have theirs, the edges; what is promised for results of the
 * top comes with weft_chooser_return. */
void weft_chooser_add_values(struct weft_chooser *c);
void weft_chooser_pose(struct weft_chooser *c);
/* What goes into the bodies of a node and out of them (format_pose_port.c). */
void weft_chooser_tie_bodies(struct weft_chooser *c, weft_node node);

/* Adds to the problem what result i of the graph costs in each layout. */
void weft_chooser_return(struct weft_chooser *c, uint32_t i);

/* ps, by layout of the list of the graph's result i. */
void weft_chooser_price_return(const struct weft_chooser *c, uint32_t i, int64_t *ret_price);

/* ps to have all layouts of a set where the node writes `from`. */
int64_t weft_chooser_set_cost(const struct weft_chooser *c, weft_val v, uint32_t from, uint32_t set);

/* The cheapest way for a reader with prices by layout of the list, where the value is there as choice `at` of its node
 * says; and which layout it then reads. */
int64_t weft_chooser_read(const struct weft_chooser *c, weft_val v, uint32_t at, const int64_t *price,
                          uint32_t *ret_layout);

#endif

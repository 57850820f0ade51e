/* SPDX-License-Identifier: Apache-2.0 */
/* scopes.h: a graph as the tree of scopes that its source has, and layers of it that repeat. Needs: ir, no Graphviz.
 *
 *   nodes  "/encoder/layer.0/fc/MatMul", "/encoder/layer.0/Relu", "/encoder/layer.1/fc/MatMul", …
 *   tree   encoder ─┬─ layer.0 ─┬─ fc: matmul      a repeat of 12 copies with a period of 1 item:
 *                   │           └─ relu            layer.0 stands for layer.1 … layer.11
 *                   ├─ layer.1 …
 *
 * An item of a scope is another scope or a unit: a node, or a group with all its nodes, which stands where the scopes
 * of its nodes meet. Items are in the order of their first nodes. A scope that holds one item is that item; the name of
 * one that holds a unit stays at the unit. */
#ifndef WEFT_SCOPES_H
#define WEFT_SCOPES_H

#include "ir/ir.h"

struct weft_scope_item {
    uint32_t scope;              /* or 0: a unit */
    const char *name;            /* "layer.3", as it stands in the source; of a unit: that of its scope, or "" */
    const char *full;            /* "encoder.layer.3", or "" */
    weft_node *node;             /* all nodes in it, in order */
    uint32_t nodes;
    const char *difference;      /* to the item before it of a like name, if it is no copy of that: "…", or NULL */
};

struct weft_name_scope {
    const char *full;            /* "encoder.layer.3", "" of the graph */
    uint32_t parent, place;      /* scope 0, the graph, is its own; which item of it */
    struct weft_scope_item *item;
    uint32_t items, item_capacity;
};

/* items [first, first + count) of a scope repeat each other `period` items later; the last copy may be cut short. */
struct weft_repeat {
    uint32_t scope, first, count, period;
    uint32_t copies;             /* with the last one, cut or not */
    uint32_t shown;              /* the copy that stands for all */
};

struct weft_scopes {
    const struct weft_graph *graph;
    struct weft_arena *arena;
    const bool *skipped;         /* by node: not in the tree; or NULL */
    const char *const *text;     /* by value: "%x" */

    struct weft_name_scope *scope;
    uint32_t scopes, scope_capacity;
    struct weft_repeat *repeat;  /* those of a scope one behind the other, in order */
    uint32_t repeats, repeat_capacity;
    weft_node *stand_in;         /* by node: itself, or the node of a shown copy that stands for it */
    uint32_t *of, *place;        /* by node: the scope that its unit is an item of, and which item */
};

/* Marks what is known before the run: constants, and views, relayouts and casts of them. By node, all false before. */
void weft_scopes_skip_known(const struct weft_graph *graph, bool *ret_skipped);
/* Builds the tree from graph, arena, skipped, text. Under weft_protected, as are the others. */
void weft_scopes_build(struct weft_scopes *scopes);
/* Finds repeats and differences. A copy that contains a scope or node called one of `expand`, or is called so itself,
 * is the shown one. */
void weft_scopes_repeat(struct weft_scopes *scopes, const char *const *expand, size_t expands);
/* The repeat that begins at an item or covers it, or NULL. */
const struct weft_repeat *weft_scopes_repeat_at(const struct weft_scopes *scopes, uint32_t scope, uint32_t item);
/* Is an item, found by its repeat, in the copy that is shown? */
static inline bool weft_repeat_shows(const struct weft_repeat *repeat, uint32_t item)
{
    return (item - repeat->first) / repeat->period == repeat->shown;
}
/* "layer.0 … layer.11": what a repeat stands for. */
const char *weft_repeat_name(const struct weft_scopes *scopes, const struct weft_repeat *repeat);
/* Are two nodes in the same repeat, but not in the same copy of it? */
bool weft_scopes_are_in_copies(const struct weft_scopes *scopes, weft_node a, weft_node b);
/* Is an item called so: by the name of its scope, or by that of a node or value in it? */
bool weft_scopes_is_called(const struct weft_scopes *scopes, const struct weft_scope_item *item, const char *name);
/* Is a scope called so: by its full name, or by the last parts of it? */
bool weft_scope_is_named(const char *full, const char *name);

#endif

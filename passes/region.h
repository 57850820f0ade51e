/* SPDX-License-Identifier: Apache-2.0 */
/* region.h: what stands between two reshapes and is computed over other axes instead (region.c).
 *
 * A region is all that is reached from the result of a reshape through elementwise ops. It can be rewritten if it ends
 * in reductions and in reshapes that the pass takes, at least one of these, and if all that comes in from aside is a
 * constant of equal elements, or a bcast or another reshape that the pass takes. merge_axes and split_reshape differ in
 * the axes:
 *
 *                     is over                        is computed over
 *   merge_axes        axes that are pieces           the axes that the reshape split
 *   split_reshape     axes that the reshape merged   pieces of both
 */
#ifndef WEFT_REGION_H
#define WEFT_REGION_H

#include "passes/passes.h"

/* What a pass says of regions; `user` is its own. */
struct weft_region_pass {
    const char *name, *does;  /* what the first reshape does with axes, for the remark: "splits" */
    bool elementwise;         /* must have an elementwise op */
    /* Does a region begin with this reshape? What follows is asked of that region. */
    bool (*open)(void *user, weft_node reshape);
    /* The shape that its values have, and the one that they get. */
    const struct weft_type *(*from)(const void *user);
    struct weft_type (*to)(const void *user);
    /* May it end in a reshape to this type; in this reduction; may the result of this bcast or reshape come in? */
    bool (*ends)(const void *user, const struct weft_type *type);
    bool (*folds)(const void *user, weft_node reduction);
    bool (*enters)(const void *user, weft_node def);
    /* Built: what comes in by this bcast or reshape (also the first one); a reduction of what it is of now. */
    weft_val (*bring)(void *user, struct weft_builder *b, weft_node def);
    weft_val (*fold)(void *user, struct weft_builder *b, weft_node reduction, weft_val x);
};

/* Rewrites every region of the graph; true if there was one. */
bool weft_rewrite_regions(struct weft_graph *graph, const struct weft_region_pass *pass, void *user);

#endif

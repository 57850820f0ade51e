/* SPDX-License-Identifier: Apache-2.0 */
/* alternative.h: other ways to compute a node: subgraphs that take its place where that is predicted to be faster. */
#ifndef WEFT_PUBLIC_ALTERNATIVE_H
#define WEFT_PUBLIC_ALTERNATIVE_H

#include "weft/edit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel computes a node (target.h), a pass rewrites a graph for good (passes.h). An alternative is a subgraph that
 * is weighed: pass `choose_alternatives` has it built on trial, predicts how long it takes, and puts it in the place of
 * the node if that is less than the node is predicted to take, and less than all other alternatives.
 *
 *   graph @trial(%a: f32[8,65536], %b: f32[65536,8]) {          build adds what computes the same, and returns that:
 *     %y: f32[8,8] = matmul %a, %b                              two slices of k, whose products are added up
 *     return %y                                                   %p: f32[2,8,8] = matmul %a2, %b2
 *   }                                                             %s: f32[8,8] = sum %p axes=[0]
 *                                                                 return %s
 *
 * The trial is a graph of that node alone. What the node reads is a parameter, stored as layouts were chosen, or a
 * constant (weft_value_read: types, hints of symbolic sizes, layouts, constants). It belongs to weft and is there
 * during the call. What is built goes through all passes, so it may consist of any ops without bodies (`if`, `loop`),
 * and needs no layouts; kernels are chosen, and what one kernel computes is grouped, before it is priced. So is the
 * node itself, in a trial of its own. Sizes with symbols are priced at their hints; what is built must be right for
 * all. weft does not ask about nodes that run bodies, are in a group or have a kernel of the caller's, nor about those
 * whose sizes come out of data; about nodes in bodies it asks as about all others. The functions below may
 * compile graphs of the context, the trial too, to measure them: nothing is asked about those.
 *
 * The pass runs when layouts are chosen and before groups are formed, and only in plans that have groups (not with
 * WEFT_COMPILE_NO_FUSE). Remarks say what was weighed and what was chosen. An alternative may round otherwise than the
 * node, and which one is taken depends on prices and threads: where bits must not, weft_pipeline_options.skip leaves
 * out the pass, and WEFT_SKIP=choose_alternatives.NAME one of them. WEFT_ALTERNATIVE=NAME, or `all`, takes it wherever
 * it can be built, whatever it costs, to measure it and to test it. weft's own are in passes/alternatives.def.
 * Worked example: examples/alternative.c. */
struct weft_alternative {
    size_t size;
    const char *name;    /* letters, digits and _; up to 63; no other alternative's */
    const char *op;      /* of the nodes that it is for, "matmul" */
    void *user;          /* passed on; lives as long as the context */
    /* Is it worth a trial? A look at the node in its graph, which may not be changed. NULL: always. */
    bool (*fits)(void *user, const struct weft_graph *graph, weft_node node);
    /* Further nodes of the graph, behind `node`, that the subgraph computes as well: written to `ret_node`, which has
     * room for so many; returns their number. None reads another's result, and what they read is there before `node`,
     * or a constant; else the alternative is refused, with a remark. NULL: none. */
    size_t (*beside)(void *user, const struct weft_graph *graph, weft_node node, weft_node *ret_node, size_t room);
    /* Builds it: appends nodes to the trial and declares new results with weft_return, in the order and of the types of
     * those that are there: the results of node[0], then of those beside it. Returns 1 if it did, 0 if it cannot for
     * this node, or a negative status, which ends the call that ran the pass, with a message that names alternative and
     * node; so does a call that is refused, or results of other types (WEFT_ERR_INVALID), whatever it returns. */
    int (*build)(void *user, struct weft_graph *trial, const weft_node *node, size_t nodes);
    /* How long the subgraph takes, in nanoseconds, with all threads of the target and symbols at their hints; NULL: as
     * long as weft predicts for its parts, which it cannot for custom functions. An alternative whose cost is negative,
     * NaN, or ten seconds or more is not taken, and a remark says so. */
    double (*cost_ns)(void *user, const struct weft_graph *graph, weft_node node);
};
/* Registers an alternative with a context for good; strings are copied. Of equally fast ones the first is taken. */
WEFT_API int weft_register_alternative(struct weft_context *context, const struct weft_alternative *alternative);

#ifdef __cplusplus
}
#endif
#endif

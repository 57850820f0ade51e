/* SPDX-License-Identifier: Apache-2.0 */
/* fuse: nodes that one kernel computes faster than several become a group.
 *
 *   %m: f32[64] = mean %x axes=[1]                         fuse @mean_sub {
 *   %b: f32[64,768] = bcast %m dims=[0]              →       %m: f32[64]{-} = mean %x axes=[1]
 *   %y: f32[64,768] = sub %x, %b                             %b: f32[64,768]{-} = bcast %m dims=[0]
 *                                                            %y: f32[64,768] = sub %x, %b
 *                                                          }
 *
 * Elementwise ops, reductions, scans and the views between them; what finishes a contraction, and what folds all pixels
 * of a convolution's result (sched/epilogue.h); what stays outside, and why, is a remark (sched/group.h).
 * What only the group reads is never stored: {-}. Needs: layouts, since how values lie says what a kernel takes; so it
 * comes last. Not done: contractions with what comes before them, movement ops, windows. */
#include "passes/passes.h"
#include "sched/group.h"

bool weft_pass_fuse(struct weft_graph *graph, const struct weft_target *target)
{
    return weft_group_nodes(graph, target, "fuse");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* dce: drop nodes whose results nobody uses.
 *
 *   %a: f32[8] = exp %x                        %b: f32[8] = neg %x
 *   %b: f32[8] = neg %x                  →     return %b
 *   return %b
 *
 * One walk against the order of execution. A node is dead if none of its results is an operand or returned; erasing
 * it takes a use from each of its operands, and those are defined earlier, where the walk still has to come. So
 * chains vanish in one walk, in time linear in the graph.
 *
 * Why not mark from the returns and sweep: use counts are kept by every edit anyway, and the walk needs no memory.
 *
 * No op has side effects: a mutated parameter is a returned value. Parameters stay, used or not, because they are
 * the caller's. A node with one dead and one live result stays whole. Needs: nothing.
 * Not done: an op that finds out a size stays, even if nothing mentions the size. Some of several results:
 * dead_results. */
#include "passes/passes.h"

static bool is_dead(const struct weft_graph *graph, weft_node node)
{
    if (weft_op_of(graph, node)->traits & WEFT_DATA) /* it defines a symbol, which types elsewhere may mention */
        return false;
    for (unsigned i = 0; i < graph->node[node.id].results; i++) {
        const struct weft_value *value = &graph->value[weft_result(graph, node, i).id];
        if (value->uses || value->returns)
            return false;
    }
    return true;
}

bool weft_pass_dce(struct weft_graph *graph, const struct weft_target *target)
{
    bool changed = false;
    for (weft_node node = graph->last, previous; node.id; node = previous) {
        previous = graph->node[node.id].previous;
        const weft_val result = graph->node[node.id].results > 0 ? weft_result(graph, node, 0) : WEFT_NO_VALUE;
        if (!is_dead(graph, node) || !weft_permit(graph, "dce", result))
            continue;
        if (result.id && graph->value[result.id].name) /* what other passes left behind has none */
            weft_add_remark(graph, "dce", result, "dropped", "nothing uses it");
        weft_erase_node(graph, node);
        changed = true;
    }
    return changed;
}

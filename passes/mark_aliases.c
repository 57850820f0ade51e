/* SPDX-License-Identifier: Apache-2.0 */
/* mark_aliases: say which values are computed in the memory of others.
 *
 *   %a: f32[64] = relu %x                                  %a: f32[64] = relu %x ! in=%c
 *   %d: f32[64] = mul %y, %y                         →     %d: f32[64] = mul %y, %y ! in=%e
 *   %e: f32[64] = exp %d                                   %e: f32[64] = exp %d ! in=%c
 *   %c: f32[128] = concat %a, %e axis=0                    %c: f32[128] = concat %a, %e axis=0
 *
 * What is decided, in which order, and what is refused: sched/alias.h. A plan decides anew, since it also knows its
 * kernels and, in bodies, how outer values lie; so what stands in a text is for readers and for frameworks with kernels
 * of their own, and a text that claims what is wrong does no harm.
 * A node that makes the new value of a `mut` parameter is moved behind the readers of the old one, where that can be.
 * Comes last, when the layouts of all values are decided. Needs: ORDER. Keeps: nothing. Graphs that are grouped or
 * planned already are left alone, which includes those that were marked. What a kernel of the caller's computes has
 * memory of its own: nobody knows whether it writes with gaps, or over what it reads. */
#include "passes/passes.h"
#include "sched/alias.h"

#include <string.h>

static bool is_ready(const struct weft_graph *g)
{
    weft_foreach_node(g, n) {
        if (g->node[n.id].group || (g->node[n.id].plan && g->node[n.id].plan->count))
            return false;
    }
    return true;
}

bool weft_pass_mark_aliases(struct weft_graph *graph, const struct weft_target *target)
{
    static const char *const key[] = {"in"};
    if (!is_ready(graph))
        return weft_progress(graph, false, 0);
    const struct weft_alias_query query = {.graph = graph, .keep_kernels = true};
    struct weft_aliases aliases;
    bool changed = weft_delay_updates(graph);
    weft_find_aliases(&query, &aliases);
    for (uint32_t i = 1; i < graph->values; i++) {
        const struct weft_alias *alias = &aliases.of[i];
        if (alias->kind == WEFT_ALIAS_OWN)
            continue;
        const char *const value[] = {weft_alias_word(graph, &aliases, alias->in)};
        weft_set_plan(graph, weft_def(graph, (weft_val){.id = i}), NULL, 1, key, value);
        changed = true;
    }
    return weft_progress(graph, changed, 0);
}

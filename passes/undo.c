/* SPDX-License-Identifier: Apache-2.0 */
/* undo.c: taking back what was decided about a node, where a pass makes its reason untrue. */
#include "passes/passes.h"

static void leave_group(struct weft_graph *g, weft_node n)
{
    g->node[n.id].group = 0;
    for (uint32_t i = 0; i < g->node[n.id].results; i++) {
        const weft_val v = weft_result(g, n, i);
        if (weft_layout_of(g, v).kind == WEFT_REGISTER)
            g->value[v.id].layout = 0;
    }
}

void weft_undo_decision(struct weft_graph *g, const char *who, weft_node n, const char *reason)
{
    const uint32_t group = g->node[n.id].group;
    if (!weft_is_decided(g, n))
        return;
    weft_add_remark(g, who, weft_result(g, n, 0), "undone", "%s was decided for %s",
                    group ? "its group" : "its kernel", reason);
    g->node[n.id].plan = NULL;
    for (weft_node m = g->node[n.id].previous; group && m.id && g->node[m.id].group == group;
         m = g->node[m.id].previous)
        leave_group(g, m);
    for (weft_node m = n; group && m.id && g->node[m.id].group == group; m = g->node[m.id].next)
        leave_group(g, m);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* undo.c: taking back what was decided about a node, where a pass makes its reason untrue. */
#include "passes/passes.h"

void weft_undo_decision(struct weft_graph *g, const char *who, weft_node n, const char *reason)
{
    const uint32_t group = g->node[n.id].group;
    if (!weft_is_decided(g, n))
        return;
    weft_add_remark(g, who, weft_result(g, n, 0), "undone", "%s was decided for %s",
                    group ? "its group" : "its kernel", reason);
    g->node[n.id].plan = NULL;
    if (group)
        weft_open_group(g, n);
}

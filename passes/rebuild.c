/* SPDX-License-Identifier: Apache-2.0 */
/* rebuild.c: what passes share that compute the same over other axes: a node once more with other operands, nodes in
 * the order in which they run, a size as numbers; and how many nodes run a body. The contracts: passes.h. */
#include "passes/passes.h"

#include <stdlib.h>

uint32_t *weft_count_holders(struct weft_graph *graph)
{
    uint32_t *count = weft_new(&graph->root->scratch, uint32_t, graph->bodies + 1);
    weft_foreach_node(graph, n)
        for (unsigned i = 0; i < graph->node[n.id].attrs; i++)
            if (graph->node[n.id].attr[i].kind == WEFT_ATTR_GRAPH)
                count[graph->node[n.id].attr[i].graph->index]++;
    return count;
}

weft_val weft_rebuild_reduction(struct weft_builder *b, weft_node n, weft_val x, unsigned axes, const int64_t *axis)
{
    struct weft_graph *const g = b->graph;
    struct weft_attr attr[WEFT_REBUILD_ATTRS + 1];
    unsigned attrs = 0;
    weft_assert(g->node[n.id].attrs <= WEFT_REBUILD_ATTRS);
    for (unsigned i = 0; i < g->node[n.id].attrs; i++)
        if (g->node[n.id].attr[i].key != WEFT_ATTR_axes && g->node[n.id].attr[i].key != WEFT_ATTR_keepdims)
            attr[attrs++] = g->node[n.id].attr[i];
    attr[attrs++] = weft_attr_of_ints(g, WEFT_ATTR_axes, axes, axis);
    return weft_build(b, weft_opcode_of(g, n), 1, &x, attrs, attr, NULL);
}

weft_val weft_rebuild(struct weft_builder *b, weft_node n, const weft_val *operand, const struct weft_type *type)
{
    const struct weft_node_info *const info = &b->graph->node[n.id];
    return weft_build(b, info->op, info->operands, operand, info->attrs, info->attr,
                      weft_op_of(b->graph, n)->traits & WEFT_STATED ? type : NULL);
}

weft_val weft_rebuild_elementwise(struct weft_builder *b, weft_node n, const weft_val *operand,
                                  const struct weft_type *shape)
{
    struct weft_type type = *shape;
    type.dtype = weft_type_of(b->graph, weft_result(b->graph, n, 0))->dtype;
    return weft_rebuild(b, n, operand, &type);
}

static int by_place(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void weft_sort_nodes(struct weft_graph *graph, struct weft_arena *arena, weft_node *node, uint32_t count)
{
    uint64_t *const key = weft_new(arena, uint64_t, count);
    weft_require(graph, WEFT_ORDER);
    for (uint32_t i = 0; i < count; i++)
        key[i] = (uint64_t)graph->position[node[i].id] << 32 | node[i].id;
    qsort(key, count, sizeof *key, by_place);
    for (uint32_t i = 0; i < count; i++)
        node[i] = (weft_node){.id = (uint32_t)key[i]};
}

weft_val weft_build_size(struct weft_builder *b, const struct weft_type *type, weft_dim size)
{
    if (weft_dim_is_constant(size))
        return weft_build_splat(b, type, (double)weft_dim_value(size));
    const struct weft_type scalar = {.dtype = WEFT_I64};
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &size);
    const weft_val number = weft_build(b, WEFT_OP_extents, 0, NULL, 1, &value, &scalar);
    return weft_build_bcast(b, weft_build_cast(b, number, type->dtype), type, NULL);
}

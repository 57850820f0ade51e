/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c: layouts and groups that plans do not have. Each gets an error that names the value or the group. */
#include "plan/plan.h"
#include "sched/target.h"

/* Does a node take values in blocks: a kernel of the caller's, a relayout, a view of the array that the blocks are? */
static bool takes_blocks(const struct weft_graph *g, weft_node n, const struct weft_target *target)
{
    return weft_target_kernel_noted(target, g, n) || weft_opcode_of(g, n) == WEFT_OP_relayout || weft_is_view(g, n);
}

/* Is the value in blocks between nodes that take them? Else weft's kernels would have to walk them. */
static bool is_among_callers(const struct weft_graph *g, weft_val v, const struct weft_target *target)
{
    if (!target->planned || g->value[v.id].is_param || g->value[v.id].returns ||
        !takes_blocks(g, weft_def(g, v), target))
        return false;
    for (uint32_t use = g->value[v.id].first_use; use; use = g->slot[use - 1].next)
        if (!takes_blocks(g, g->slot[use - 1].node, target))
            return false;
    return true;
}

/* Why a plan cannot have a value stored so, or NULL. */
static const char *find_fault(const struct weft_graph *g, weft_val v, const struct weft_target *target,
                              const int64_t *symbols)
{
    const struct weft_layout layout = weft_own_layout(g, v);
    const struct weft_type *type = weft_type_of(g, v);
    struct weft_tensor tensor = {.rank = type->rank};
    weft_dim stride[WEFT_MAX_RANK];
    if (weft_dtype_bits(type->dtype) < 8 && !weft_layout_is_row_major(&layout))
        return "elements smaller than a byte are stored row-major only";
    if (layout.align > 64 && g->parent && (g->value[v.id].is_param || g->value[v.id].returns))
        return "is aligned to more than 64 bytes: plans keep that for nothing that goes into a body or out of it";
    if (weft_is_split(g, v) && is_among_callers(g, v, target))
        return NULL;
    if (!weft_layout_logical_strides(g->dims, &layout, type, stride)) /* lower_blocks had to leave it */
        return layout.axes > WEFT_MAX_RANK
                   ? weft_arena_format(&g->root->scratch, "is stored along %d axes: plans take up to %d", layout.axes,
                                       WEFT_MAX_RANK)
               : g->value[v.id].is_param || g->value[v.id].returns
                   ? "is stored with split axes: plans take none for parameters and results"
               : !layout.dense ? "is stored with split axes and strides: plans take one or the other"
                               : "is stored with split axes: plans take none whose extents are not constant";
    for (int axis = 0; axis < type->rank && !layout.dense; axis++) {
        const int64_t extent = weft_dim_evaluate(g->dims, type->extent[axis], symbols);
        tensor.extent[axis] = extent > 0 ? extent : 0;
        tensor.stride[axis] = weft_dim_evaluate(g->dims, stride[axis], symbols);
    }
    return layout.dense || weft_frame_fits(&tensor, 0) ? NULL : "is stored over more than memory can be";
}

static bool check_layouts(const struct weft_graph *g, const struct weft_target *target, const int64_t *symbols)
{
    bool legal = true;
    for (uint32_t i = 1; i < g->values; i++) {
        const weft_val v = {.id = i};
        const char *fault = g->node[weft_def(g, v).id].dead ? NULL : find_fault(g, v, target, symbols);
        legal &= !fault;
        if (fault)
            weft_error(g->context, WEFT_ERR_UNSUPPORTED,
                       &(struct weft_place){.file = g->file, .where = weft_value_text(g, v)}, "%s", fault);
    }
    return legal;
}

static bool check_groups(const struct weft_graph *g, const struct weft_target *target)
{
    const struct weft_scheduling scheduling = {g, target, &g->root->scratch};
    const struct weft_units units = weft_units_find(g, &g->root->scratch);
    bool legal = true;
    for (uint32_t i = 1; i < units.count; i++) {
        const char *const why = weft_select_refuses(&scheduling, &units.unit[i]);
        if (!why)
            continue;
        legal = false;
        weft_error(g->context, WEFT_ERR_UNSUPPORTED,
                   &(struct weft_place){.file = g->file, .line = g->node[units.unit[i].first.id].line, .column = 1},
                   "group @%s: no kernel computes these nodes as one: %s", g->group[units.unit[i].group].name, why);
    }
    return legal;
}

/* Recursion is as deep as bodies are nested. */
bool weft_plan_check(const struct weft_graph *g, const struct weft_target *target, const int64_t *symbols)
{
    bool legal = (g->groups == 1 || check_groups(g, target)) & check_layouts(g, target, symbols);
    weft_foreach_node(g, n)
        for (unsigned k = 0; g->bodies > 0 && k < g->node[n.id].attrs; k++)
            if (g->node[n.id].attr[k].kind == WEFT_ATTR_GRAPH)
                legal &= weft_plan_check(g->node[n.id].attr[k].graph, target, symbols);
    return legal;
}

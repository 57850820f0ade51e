/* SPDX-License-Identifier: Apache-2.0 */
/* alias_root.c: which value has to be stored otherwise, so that an operand is where it should be; and what speaks
 * against it, whoever asks. */
#include "sched/alias.h"

#define CACHE_LINE 64

const char *weft_alias_root(const struct weft_graph *g, weft_val *v, struct weft_layout *layout)
{
    for (;;) {
        const weft_node def = weft_def(g, *v);
        if (!def.id)
            return "it is a parameter";
        struct weft_layout inner;
        if (!weft_is_view(g, def))
            return NULL;
        if (!(weft_op_of(g, def)->traits & WEFT_BIJECTIVE))
            return "it is a part or a repetition of another value";
        if (layout && !weft_viewed_layout(g, def, layout, &inner))
            return "no strides of what it reshapes give it these";
        if (layout)
            *layout = inner;
        *v = weft_operand(g, def, 0);
    }
}

/* --- the producer and its rows ------------------------------------------------------------------------------------ */

/* Axes that have more than one element, from outermost to innermost. */
static int order_of(const struct weft_layout *layout, const struct weft_type *type, int *ret)
{
    int count = 0;
    for (int i = 0; i < layout->axes; i++)
        if (!weft_dim_is(type->extent[layout->axis[i].axis], 1))
            ret[count++] = layout->axis[i].axis;
    return count;
}

static bool writes_gaps(const struct weft_aliasing *a, weft_node def)
{
    if (a->query->strided)
        return a->query->strided(a->query->user, def);
    return weft_opcode_of(a->graph, def) != WEFT_OP_custom;
}

static const char *check_rows(const struct weft_aliasing *a, weft_val root, const struct weft_layout *layout)
{
    const struct weft_graph *g = a->graph;
    const struct weft_type *type = weft_type_of(g, root);
    const struct weft_layout own = weft_own_layout(g, root);
    int have[WEFT_MAX_STORAGE], want[WEFT_MAX_STORAGE];
    weft_dim stride[WEFT_MAX_RANK];
    if (!weft_layout_logical_strides(g->dims, layout, type, stride))
        return "it would be stored with split axes";
    const int axes = order_of(&own, type, have);
    bool same = axes == order_of(layout, type, want);
    for (int i = 0; same && i < axes; i++)
        same = have[i] == want[i];
    if (!same)
        return "it is stored with its axes in another order";
    if (a->query->exact && a->query->exact(a->query->user, weft_def(g, root))) {
        struct weft_layout at = *layout;
        at.offset = weft_dim_of(0);
        if (!weft_layout_equal(g->dims, &at, &own, type))
            return "a kernel of the caller's takes no gaps";
    }
    const int64_t run = weft_layout_run(g->dims, layout, type), full = weft_layout_run(g->dims, &own, type);
    if (run < full && weft_dtype_bytes(type->dtype, run) < CACHE_LINE)
        return "its rows would be too short";
    return run < full && !writes_gaps(a, weft_def(g, root)) ? "its kernel writes without gaps only" : NULL;
}

/* Plans relayout constants when they are made, where the result has memory of its own (plan/load.c): to save that
 * memory would be to do it again in each run. */
static bool is_loaded(const struct weft_graph *g, weft_val root)
{
    return weft_def_opcode(g, root) == WEFT_OP_relayout && weft_type_is_constant(weft_type_of(g, root)) &&
           weft_is_const(g, weft_moved_from(g, root));
}

static bool has_no_place(const struct weft_graph *g, weft_node def)
{
    return g->node[def.id].results != 1 || (weft_op_of(g, def)->traits & (WEFT_CONTROL | WEFT_DATA));
}

bool weft_alias_stays(const struct weft_graph *g, weft_val v)
{
    return weft_alias_root(g, &v, NULL) || weft_is_const(g, v) || g->value[v.id].returns ||
           has_no_place(g, weft_def(g, v));
}

static const char *check_producer(const struct weft_aliasing *a, weft_val root, int kind)
{
    const struct weft_graph *g = a->graph;
    const weft_node def = weft_def(g, root);
    if (weft_is_const(g, root))
        return "it is a constant";
    if (kind == WEFT_ALIAS_OVER && is_loaded(g, root))
        return "it is a relayout of a constant, done when the plan is made";
    if (a->result->of[root.id].kind != WEFT_ALIAS_OWN)
        return "it is computed inside another result";
    if (kind != WEFT_ALIAS_UPDATED && (g->value[root.id].returns || a->result->of[root.id].layout))
        return "it is returned";
    if (has_no_place(g, def))
        return "its producer has several results, or sizes that come out of data";
    return NULL;
}

/* --- its views ---------------------------------------------------------------------------------------------------- */

/* Does every view of the root that is one at home stay one? */
static bool views_stay(struct weft_aliasing *a, weft_val root, const struct weft_layout *layout, weft_val operand,
                       const struct weft_layout *place)
{
    const struct weft_graph *g = a->graph;
    uint32_t count = 0;
    bool arrives = false;
    a->seen = weft_grow(&a->graph->root->scratch, a->seen, &a->seen_capacity, 1, sizeof *a->seen);
    a->seen[count++] = (struct weft_seen){root, weft_own_layout(g, root), *layout};
    for (uint32_t i = 0; i < count; i++) {
        const weft_val v = a->seen[i].value;
        arrives |= weft_is(v, operand) && weft_same_places(g, weft_type_of(g, v), place, &a->seen[i].wanted);
        for (uint32_t use = g->value[v.id].first_use; use; use = g->slot[use - 1].next) {
            const weft_node user = g->slot[use - 1].node;
            struct weft_seen next = {.value = weft_result(g, user, 0)};
            if (!weft_is_view(g, user) || !weft_view_layout(g, user, &a->seen[i].own, &next.own))
                continue;
            if (!weft_view_layout(g, user, &a->seen[i].wanted, &next.wanted))
                return false;
            a->seen = weft_grow(&a->graph->root->scratch, a->seen, &a->seen_capacity, count + 1, sizeof *a->seen);
            a->seen[count++] = next;
        }
    }
    return arrives;
}

const char *weft_alias_check_root(struct weft_aliasing *a, weft_val root, const struct weft_layout *layout,
                                  weft_val operand, const struct weft_layout *place, int kind)
{
    const char *reason = check_producer(a, root, kind);
    reason = reason ? reason : check_rows(a, root, layout);
    return reason || views_stay(a, root, layout, operand, place) ? reason : "another view of it would become a copy";
}

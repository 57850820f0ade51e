/* SPDX-License-Identifier: Apache-2.0 */
/* destination.c: values that are computed inside of the result that would copy them.
 *
 *   %a: f32[1,16,8,8] = relu %x                          a block of its own                concat + 0 bytes
 *   %b: f32[1,16,4,16] = neg %y                          a block of its own           →    concat + 4096 bytes
 *   %r: f32[1,16,8,8] = reshape %b                       a view of %b                      a view of %b
 *   %c: f32[1,32,8,8] = concat %a, %r axis=1             copies 8192 bytes                 copies nothing
 *
 * A concat, and a padding with a number, has a slot in its result for each operand: the result's layout, sliced. An
 * operand wants its slot to be its home. What is computed is seldom the operand itself but a value that the operand
 * reshapes or transposes, and the layout that this value, the root, needs is the slot's seen through the views
 * backwards: %b above needs the strides (8192, 64, 16, 1) from offset 1024. Nothing else knows of this: kernels write
 * to a storage at an offset with strides as always, and frame.c evaluates both for the sizes at hand.
 *
 * Wishes are granted by falling bytes saved, at the sizes of the hints. A result that is itself an operand is larger
 * than what is in it, so it has its home before its own operands ask; and of two concats that want one value, which
 * then save the same, the later one gets it. Who loses is copied, as before, and a remark says why:
 *
 *   - the root is a parameter or a constant: it lives where its caller or its file has it; it is returned: the caller
 *     has memory for it; it has a home in another result, also by a wish that was granted before;
 *   - a slice or a broadcast is between: the root is more or less than the operand;
 *   - its layout is stated, and stores the axes in another order than the slot: its producer would write across;
 *   - its kernel does not say of itself that it writes rows with gaps at full speed (weft_step_kind.strided); or its
 *     rows in the slot are shorter than a cache line, where it has longer ones at home;
 *   - another user reshapes it, which would be no view any more: then there would be a copy for a copy;
 *   - its extents come out of data, so that its place would be known too late.
 *
 * Why here and not in a pass: what a home is worth depends on homes of parameters and results and on kernels, which
 * passes do not know. A pass that marks aliases in general (results in place of operands, caches updated in place)
 * can take over: it would replace collect() by its own wishes, and grant() holds for each of them, since it only asks
 * for a layout in a storage. Not done: an operand that several slots or results want is computed once and copied, not
 * computed twice; results in memory between the slots of strided callers. */
#include "runtime/runtime.h"

#include <stdlib.h>

#define CACHE_LINE 64

struct wish {
    weft_node node;   /* whose result has the slot */
    uint32_t operand;
    weft_dim along;   /* where the operand begins */
    int64_t bytes;    /* saved */
    uint32_t rank;    /* of the node in the order of execution */
};

/* --- slots -------------------------------------------------------------------------------------------------------- */

/* The part of the result that begins at `start` along the axis of a concat, or that a padding surrounds, as a layout in
 * the result's storage. */
static bool slot_of(const struct weft_plan *plan, weft_node n, weft_dim along, struct weft_layout *ret)
{
    const struct weft_graph *g = plan->graph;
    const weft_val result = weft_result(g, n, 0);
    const struct weft_type *type = weft_type_of(g, result);
    const bool pad = weft_opcode_of(g, n) == WEFT_OP_pad;
    weft_dim start[WEFT_MAX_RANK], step[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type->rank; i++) {
        start[i] = pad ? weft_attr_at(g, n, WEFT_ATTR_pad, i) : weft_dim_of(0);
        step[i] = weft_dim_of(1);
    }
    if (!pad)
        start[weft_attr_int(g, n, WEFT_ATTR_axis)] = along;
    return weft_layout_slice(g->dims, plan->home[result.id].layout, type, start, step, ret);
}

/* Where the operand behind this one begins along the axis of a concat. */
static weft_dim behind(const struct weft_graph *g, weft_node n, uint32_t operand, weft_dim along)
{
    if (weft_opcode_of(g, n) == WEFT_OP_pad)
        return along;
    const struct weft_type *type = weft_type_of(g, weft_operand(g, n, operand));
    return weft_dim_add(g->dims, along, type->extent[weft_attr_int(g, n, WEFT_ATTR_axis)]);
}

/* Same places, but for axes of extent 1, which have none. */
static bool same_places(const struct weft_graph *g, const struct weft_type *type, const struct weft_layout *a,
                        const struct weft_layout *b)
{
    weft_dim one[WEFT_MAX_RANK], two[WEFT_MAX_RANK];
    if (!weft_layout_logical_strides(g->dims, a, type, one) || !weft_layout_logical_strides(g->dims, b, type, two))
        return false;
    bool same = weft_dim_same(a->offset, b->offset);
    for (int i = 0; same && i < type->rank; i++)
        same = weft_dim_is(type->extent[i], 1) || weft_dim_same(one[i], two[i]);
    return same;
}

/* A padding that adds on all sides, or nothing; cut elements have no place in the result. */
static bool pads_only(const struct weft_graph *g, weft_node n)
{
    if (weft_attr_find(g, n, WEFT_ATTR_form))
        return false;
    for (unsigned i = 0; i < 2u * weft_type_of(g, weft_result(g, n, 0))->rank; i++) {
        int64_t low, high;
        weft_dim_range(g->dims, weft_attr_at(g, n, WEFT_ATTR_pad, i), &low, &high);
        if (low < 0)
            return false;
    }
    return true;
}

static uint32_t slots_of(const struct weft_graph *g, weft_node n)
{
    const int opcode = weft_opcode_of(g, n);
    if ((opcode != WEFT_OP_concat && opcode != WEFT_OP_pad) ||
        weft_dtype_bits(weft_type_of(g, weft_result(g, n, 0))->dtype) < 8)
        return 0;
    return opcode == WEFT_OP_concat ? g->node[n.id].operands : pads_only(g, n) ? 1 : 0;
}

const bool *weft_home_inside(const struct weft_plan *plan, weft_node n)
{
    const struct weft_graph *g = plan->graph;
    const uint32_t result = plan->home[weft_result(g, n, 0).id].storage, slots = slots_of(g, n);
    bool *inside = NULL;
    weft_dim along = weft_dim_of(0);
    for (uint32_t i = 0; i < slots; i++) {
        const weft_val v = weft_operand(g, n, i);
        struct weft_layout slot;
        if (plan->home[v.id].storage == result && slot_of(plan, n, along, &slot) &&
            same_places(g, weft_type_of(g, v), &slot, plan->home[v.id].layout)) {
            inside = inside ? inside : weft_new(g->arena, bool, slots);
            inside[i] = true;
        }
        along = behind(g, n, i, along);
    }
    return inside;
}

/* --- wishes ------------------------------------------------------------------------------------------------------- */

static int64_t bytes_of(const struct weft_graph *g, weft_val v)
{
    const struct weft_type *type = weft_type_of(g, v);
    return weft_dtype_bytes(type->dtype, weft_dim_hint(g->dims, weft_type_elements(g->dims, type)));
}

static struct wish *collect(const struct weft_graph *g, uint32_t *ret_count)
{
    uint32_t count = 0, capacity = 0, rank = 0;
    struct wish *wish = NULL;
    weft_foreach_node(g, n) {
        rank++;
        const uint32_t more = slots_of(g, n);
        wish = more ? weft_grow(g->arena, wish, &capacity, count + more, sizeof *wish) : wish;
        weft_dim along = weft_dim_of(0);
        for (uint32_t i = 0; i < more; i++) {
            wish[count++] = (struct wish){
                .node = n, .operand = i, .along = along, .bytes = bytes_of(g, weft_operand(g, n, i)), .rank = rank};
            along = behind(g, n, i, along);
        }
    }
    *ret_count = count;
    return wish;
}

static int by_bytes(const void *first, const void *second)
{
    const struct wish *a = first, *b = second;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return a->operand < b->operand ? -1 : a->operand > b->operand;
}

/* --- what speaks against it --------------------------------------------------------------------------------------- */

static bool depends_on_data(const struct weft_graph *g, const struct weft_type *type)
{
    for (uint32_t s = 0; s < weft_symbol_count(g->dims); s++)
        for (int i = 0; weft_symbol_at(g->dims, s)->data && i < type->rank; i++)
            if (weft_dim_mentions(g->dims, type->extent[i], s))
                return true;
    return false;
}

/* Walks from the operand to the value that is computed, and with it from the slot to the layout that this value needs.
 * A constant message if there is no such value or layout. */
static const char *find_root(const struct weft_graph *g, weft_val *v, struct weft_layout *layout)
{
    for (;;) {
        const weft_node def = weft_def(g, *v);
        if (!def.id)
            return "it is a parameter";
        const int opcode = weft_opcode_of(g, def);
        struct weft_layout inner;
        if (opcode == WEFT_OP_slice || opcode == WEFT_OP_bcast)
            return "it is a part or a repetition of another value";
        if (opcode != WEFT_OP_transpose && opcode != WEFT_OP_reshape)
            return NULL;
        const weft_val operand = weft_operand(g, def, 0);
        int perm[WEFT_MAX_RANK];
        for (int i = 0; opcode == WEFT_OP_transpose && i < weft_type_of(g, *v)->rank; i++)
            perm[i] = (int)weft_dim_value(weft_attr_at(g, def, WEFT_ATTR_perm, (unsigned)i));
        const bool found = opcode == WEFT_OP_transpose
                               ? weft_layout_untranspose(layout, perm, &inner)
                               : weft_layout_reshape(g->dims, layout, weft_type_of(g, *v), weft_type_of(g, operand),
                                                     &inner);
        if (!found)
            return "no strides of what it reshapes give it these";
        *layout = inner;
        *v = operand;
    }
}

/* Axes that have more than one element, from outermost to innermost. */
static int order_of(const struct weft_layout *layout, const struct weft_type *type, int *ret)
{
    int count = 0;
    for (int i = 0; i < layout->axes; i++)
        if (!weft_dim_is(type->extent[layout->axis[i].axis], 1))
            ret[count++] = layout->axis[i].axis;
    return count;
}

static const char *check_rows(const struct weft_graph *g, weft_val root, const struct weft_layout *layout)
{
    const struct weft_type *type = weft_type_of(g, root);
    const struct weft_layout own = weft_home_layout(g, root);
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
    const int64_t run = weft_layout_run(g->dims, layout, type), full = weft_layout_run(g->dims, &own, type);
    return run < full && weft_dtype_bytes(type->dtype, run) < CACHE_LINE ? "its rows would be too short" : NULL;
}

static const char *check_producer(const struct weft_plan *plan, weft_val root)
{
    const struct weft_graph *g = plan->graph;
    const weft_node def = weft_def(g, root);
    const uint16_t traits = weft_op_of(g, def)->traits;
    if (weft_is_const(g, root))
        return "it is a constant";
    if (plan->home[root.id].storage)
        return plan->storage[plan->home[root.id].storage].kind == WEFT_IN_RETURN && g->value[root.id].returns
                   ? "it is returned"
                   : "it is computed inside another result";
    if (g->node[def.id].results != 1 || (traits & (WEFT_CONTROL | WEFT_DATA)))
        return "its producer has several results, or sizes that come out of data";
    struct weft_step step = {.node = def, .out = root};
    if (!weft_step_choose(plan, def, &step))
        step.kind = &weft_step_reference;
    return step.kind->strided ? NULL : "its kernel writes without gaps only";
}

/* A value and how it would be stored, beside how it is stored at home. */
struct seen {
    weft_val value;
    struct weft_layout own, wanted;
};

/* Does every view of the root that is one at home stay one? The operand is the root or one of them, and comes to lie in
 * the slot. */
static bool views_stay(const struct weft_plan *plan, weft_val root, const struct weft_layout *layout, weft_val operand,
                       const struct weft_layout *slot)
{
    const struct weft_graph *g = plan->graph;
    struct weft_arena *scratch = &g->root->scratch;
    uint32_t count = 0, capacity = 0;
    struct seen *seen = weft_grow(scratch, NULL, &capacity, 1, sizeof *seen);
    bool arrives = false;
    seen[count++] = (struct seen){root, weft_home_layout(g, root), *layout};
    for (uint32_t i = 0; i < count; i++) {
        const weft_val v = seen[i].value;
        arrives |= weft_is(v, operand) && same_places(g, weft_type_of(g, v), slot, &seen[i].wanted);
        for (uint32_t use = g->value[v.id].first_use; use; use = g->slot[use - 1].next) {
            const weft_node user = g->slot[use - 1].node;
            struct seen next = {.value = weft_result(g, user, 0)};
            if (!(weft_op_of(g, user)->traits & WEFT_VIEW) || !weft_home_view_layout(g, user, &seen[i].own, &next.own))
                continue;
            if (!weft_home_view_layout(g, user, &seen[i].wanted, &next.wanted))
                return false;
            seen = weft_grow(scratch, seen, &capacity, count + 1, sizeof *seen);
            seen[count++] = next;
        }
    }
    return arrives;
}

/* --- granting ----------------------------------------------------------------------------------------------------- */

static const char *try_to_grant(struct weft_plan *plan, const struct wish *wish, weft_val *ret_root)
{
    const struct weft_graph *g = plan->graph;
    const weft_val result = weft_result(g, wish->node, 0);
    const weft_val operand = weft_operand(g, wish->node, wish->operand);
    weft_val root = operand;
    struct weft_layout slot, layout;
    *ret_root = root;
    if (depends_on_data(g, weft_type_of(g, result)) || depends_on_data(g, weft_type_of(g, root)))
        return "its place depends on sizes that come out of data";
    if (!plan->home[result.id].storage)
        weft_home_block(plan, result);
    if (!slot_of(plan, wish->node, wish->along, &slot))
        return "the result is stored with split axes";
    layout = slot;
    const char *reason = find_root(g, &root, &layout);
    *ret_root = root;
    reason = reason ? reason : check_producer(plan, root);
    reason = reason ? reason : check_rows(g, root, &layout);
    if (!reason && !views_stay(plan, root, &layout, operand, &slot))
        reason = "another view of it would become a copy";
    if (!reason && !weft_permit(plan->graph, "plan.destination", root))
        reason = "no more rewrites are allowed";
    if (!reason)
        weft_home_set(plan, root, plan->home[result.id].storage, &layout);
    return reason;
}

void weft_home_destinations(struct weft_plan *plan)
{
    struct weft_graph *g = plan->graph;
    uint32_t count;
    struct wish *wish = collect(g, &count);
    if (count > 1)
        qsort(wish, count, sizeof *wish, by_bytes);
    for (uint32_t i = 0; i < count; i++) {
        weft_val root;
        weft_dims_try(g->dims);
        const char *reason = try_to_grant(plan, &wish[i], &root);
        const weft_val result = weft_result(g, wish[i].node, 0);
        if (weft_dims_tried(g->dims) && !reason) {
            plan->home[root.id].storage = 0;
            reason = "its place has no expression";
        }
        weft_add_remark_at(g, "plan.destination", plan->label[weft_operand(g, wish[i].node, wish[i].operand).id],
                           reason ? "refused" : "done", reason ? "copied into %%%s: %s" : "computed inside %%%s%s",
                           plan->label[result.id], reason ? reason : "");
        weft_arena_empty(&g->root->scratch);
    }
    weft_arena_close(&g->root->scratch);
}

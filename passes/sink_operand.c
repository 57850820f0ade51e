/* SPDX-License-Identifier: Apache-2.0 */
/* sink_operand.c: the operands of a node that is computed from straight forms.
 *
 *   %y = mul %t, %b     %t is turned, %b: f32[4,2,3] = bcast %v dims=[1] is not
 *                       but %b straight is f32[2,3,4] = bcast %v dims=[0]: the axes are only named otherwise
 *
 * A value that is not turned is *free* where its straight form costs nothing: a uniform constant, a count of indices, a
 * repeated value whose carried axes keep their order, and a stored constant, whose transpose is computed in advance. Of
 * a constant that others read as it is there will be two copies, so it must be small. */
#include "passes/sink_transpose.h"

#define FREE_COPY_BYTES ((int64_t)64 << 10) /* fold_const computes a copy of so many bytes */
#define FREE_BYTES ((int64_t)16 << 20)      /* and takes so much trouble for a constant that the copy replaces */

bool weft_turn_agrees(const struct weft_type *type, const struct weft_turn *turn, const struct weft_turn *want)
{
    const struct weft_turn settled = weft_turn_settle(type, want);
    for (unsigned i = 0; i < type->rank; i++)
        if (settled.axis[i] != turn->axis[i])
            return false;
    return true;
}

/* Do the axes that a bcast carries keep their order if its result is straightened? */
static bool carries_in_order(const struct weft_graph *g, weft_node bcast, const struct weft_turn *want)
{
    const struct weft_type *type = weft_type_of(g, weft_operand(g, bcast, 0));
    int previous = -1;
    for (unsigned i = 0; i < type->rank; i++) {
        if (weft_dim_is(type->extent[i], 1))
            continue;
        const int axis = want->axis[weft_dim_value(weft_attr_at(g, bcast, WEFT_ATTR_dims, i))];
        if (axis < previous)
            return false;
        previous = axis;
    }
    return true;
}

static bool straight_bcast(struct weft_graph *g, weft_val v, const struct weft_turn *want)
{
    return carries_in_order(g, weft_def(g, v), want);
}

static weft_val build_bcast(struct weft_builder *b, weft_val v, const struct weft_turn *want,
                            const struct weft_type *type)
{
    const struct weft_graph *g = b->graph;
    const weft_node def = weft_def(g, v);
    const weft_val x = weft_operand(g, def, 0);
    int axis[WEFT_MAX_RANK];
    for (unsigned i = 0; i < weft_type_of(g, x)->rank; i++)
        axis[i] = want->axis[weft_dim_value(weft_attr_at(g, def, WEFT_ATTR_dims, i))];
    return weft_build_bcast(b, x, type, axis);
}

static bool straight_const(struct weft_graph *g, weft_val v, const struct weft_turn *want)
{
    struct weft_element element;
    if (weft_const_splat(g, v, &element))
        return true;
    return weft_const_data(g, v) && weft_type_is_constant(weft_type_of(g, v)) &&
           weft_constant_bytes(g, v) <= (weft_has_one_use(g, v) ? FREE_BYTES : FREE_COPY_BYTES);
}

static weft_val build_const(struct weft_builder *b, weft_val v, const struct weft_turn *want,
                            const struct weft_type *type)
{
    struct weft_element element;
    int perm[WEFT_MAX_RANK];
    if (weft_const_splat(b->graph, v, &element))
        return weft_build_element(b, type, &element);
    for (unsigned i = 0; i < type->rank; i++)
        perm[want->axis[i]] = (int)i;
    return weft_build_transpose(b, v, perm);
}

static bool straight_iota(struct weft_graph *g, weft_val v, const struct weft_turn *want) { return true; }

static weft_val build_iota(struct weft_builder *b, weft_val v, const struct weft_turn *want,
                           const struct weft_type *type)
{
    const int64_t axis = weft_attr_int(b->graph, weft_def(b->graph, v), WEFT_ATTR_axis);
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, want->axis[axis]);
    return weft_build(b, WEFT_OP_iota, 0, NULL, 1, &attr, type);
}

static const struct free_form {
    bool (*is_free)(struct weft_graph *, weft_val, const struct weft_turn *want);
    weft_val (*build)(struct weft_builder *, weft_val, const struct weft_turn *want, const struct weft_type *straight);
} free_form[WEFT_OP_COUNT] = {
#define FREE(op) [WEFT_OP_##op] = {straight_##op, build_##op},
#include "passes/sink.def"
};

bool weft_sink_is_free(struct weft_graph *g, weft_val v, const struct weft_turn *want)
{
    const struct free_form *form = &free_form[weft_def_opcode(g, v)];
    return form->is_free && form->is_free(g, v, want);
}

/* A straight form may have axes of extent 1 elsewhere than where they are wanted. */
static weft_val move_units(struct weft_builder *b, weft_val x, const struct weft_type *type)
{
    return weft_type_same(weft_type_of(b->graph, x), type) ? x : weft_build_reshape(b, x, type);
}

static weft_val build_operand(struct weft_builder *b, weft_val v, weft_val straight, const struct weft_turn *want)
{
    const struct weft_type type = weft_turn_straight(weft_type_of(b->graph, v), want);
    return straight.id ? move_units(b, straight, &type)
                       : free_form[weft_def_opcode(b->graph, v)].build(b, v, want, &type);
}

static bool is_renamed(const struct weft_sink_plan *plan, int key)
{
    for (unsigned i = 0; i < plan->attrs; i++)
        if (plan->attr[i].key == key)
            return true;
    return false;
}

weft_val weft_sink_build(struct weft_builder *b, weft_node n, const struct weft_sink_plan *plan,
                         const weft_val *straight)
{
    struct weft_graph *g = b->graph;
    const unsigned operands = g->node[n.id].operands, attrs = g->node[n.id].attrs;
    weft_val *operand = weft_new(&g->root->scratch, weft_val, operands);
    struct weft_attr *attr = weft_new(&g->root->scratch, struct weft_attr, attrs + plan->attrs);
    for (unsigned i = 0; i < operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        operand[i] = plan->all || straight[i].id ? build_operand(b, v, straight[i], &plan->want) : v;
    }
    unsigned count = 0;
    for (unsigned i = 0; i < attrs; i++)
        if (!is_renamed(plan, g->node[n.id].attr[i].key))
            attr[count++] = g->node[n.id].attr[i];
    for (unsigned i = 0; i < plan->attrs; i++)
        attr[count++] = plan->attr[i];
    const bool stated = weft_op_of(g, n)->traits & WEFT_STATED;
    const uint32_t first_new = g->nodes;
    const weft_val built =
        weft_build(b, weft_opcode_of(g, n), operands, operand, count, attr, stated ? &plan->stated : NULL);
    weft_assert(first_new + 1 == g->nodes);
    g->node[first_new].name = g->node[n.id].name; /* messages about it point to where the old one came from */
    g->node[first_new].line = g->node[n.id].line;
    const struct weft_type type = weft_turn_straight(weft_type_of(g, weft_result(g, n, 0)), &plan->turn);
    return move_units(b, built, &type);
}

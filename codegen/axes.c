/* SPDX-License-Identifier: Apache-2.0 */
/* axes.c: union and find over the axes of all nodes of a group. The contract: axes.h. */
#include "codegen/axes.h"

#include "codegen/pointwise.h"
#include "ir/places.h"

#include <string.h>

enum { AXES = WEFT_MOST_MEMBERS * WEFT_SPACE_AXES };

struct weft_members *weft_members_open(const struct weft_graph *graph, uint32_t cpu, struct weft_arena *arena)
{
    struct weft_members *const m = weft_new(arena, struct weft_members, 1);
    *m = (struct weft_members){.graph = graph, .cpu = cpu, .arena = arena};
    m->member = weft_new(arena, struct weft_member *, graph->nodes);
    m->search = weft_new(arena, uint32_t, graph->nodes);
    m->place = weft_new(arena, uint32_t, graph->nodes);
    m->read = weft_new(arena, uint32_t, graph->values);
    m->reader = weft_new(arena, uint32_t, graph->values);
    m->parent = weft_new(arena, uint16_t, AXES);
    m->before = weft_new(arena, uint16_t, AXES);
    m->number = weft_new(arena, int8_t, AXES);
    m->of = weft_arena_new(arena, WEFT_MOST_MEMBERS * sizeof *m->of);
    return m;
}

/* --- a node ------------------------------------------------------------------------------------------------------- */

static bool is_number(const struct weft_graph *g, weft_val v)
{
    const struct weft_constant *const constant = g->node[weft_def(g, v).id].constant;
    return constant && constant->kind == WEFT_CONST_SPLAT;
}

bool weft_is_looked_up(int op)
{
    return op == WEFT_OP_gather || op == WEFT_OP_pad || op == WEFT_OP_concat || op == WEFT_OP_flip ||
           op == WEFT_OP_resize;
}

/* Pieces of equal elements are no arrays, and mostly paddings. */
static const char *refuse_pieces(const struct weft_graph *g, weft_node n)
{
    bool number = false;
    for (uint32_t k = 0; k < g->node[n.id].operands; k++)
        number |= is_number(g, weft_operand(g, n, k));
    return number ? "joins equal elements" : g->node[n.id].operands < 2 ? "joins nothing" : NULL;
}

static const char *refuse_look_up(const struct weft_graph *g, weft_node n)
{
    const int op = weft_opcode_of(g, n);
    if (is_number(g, weft_operand(g, n, 0)))
        return "looks up equal elements";
    if (op == WEFT_OP_concat)
        return refuse_pieces(g, n);
    if (op == WEFT_OP_flip || op == WEFT_OP_resize)
        return NULL; /* what its index maps say */
    const int index = weft_type_of(g, weft_operand(g, n, 1))->dtype;
    if (op == WEFT_OP_gather)
        return index == WEFT_I64 || index == WEFT_I32 ? NULL : "has indices of other types than i64 and i32";
    return weft_attr_find(g, n, WEFT_ATTR_form)        ? "pads by elements"
           : !is_number(g, weft_operand(g, n, 1)) ? "pads by a number that is not constant" : NULL;
}

static const char *kind_of(const struct weft_members *m, weft_node n, uint8_t *ret_kind)
{
    const struct weft_graph *g = m->graph;
    const int op = weft_opcode_of(g, n);
    const uint32_t traits = weft_op_of(g, n)->traits;
    enum weft_reduce_op fold;
    const uint32_t most = op == WEFT_OP_concat ? WEFT_MEMBER_INS : WEFT_FORM_INS;
    if (g->node[n.id].results != 1 || g->node[n.id].operands < 1 || g->node[n.id].operands > most)
        return "has more operands or results than a kernel of several nodes takes";
    const int in = weft_type_of(g, weft_operand(g, n, 0))->dtype, out = weft_type_of(g, weft_result(g, n, 0))->dtype;
    if (weft_dtype_bits(in) < 8 || weft_dtype_bits(out) < 8)
        return "has elements smaller than a byte";
    if (traits & WEFT_ELEMENTWISE) {
        *ret_kind = WEFT_MEMBER_MAP;
        return weft_pointwise_kernel(g, n, m->cpu, &g->root->scratch) ? NULL
                                                                      : "no strip kernel takes these element types";
    }
    if ((traits & WEFT_REDUCTION) && weft_pointwise_fold(op, &fold)) {
        *ret_kind = WEFT_MEMBER_FOLD;
        return weft_reduce_supports(in, out, m->cpu) ? NULL : "no reduction kernel takes these element types";
    }
    if (traits & WEFT_SCAN) {
        *ret_kind = WEFT_MEMBER_SCAN;
        return weft_along_supports(WEFT_K_CUMSUM, in) ? NULL : "no scan kernel takes these element types";
    }
    if (weft_is_looked_up(op)) {
        *ret_kind = WEFT_MEMBER_LOOK_UP;
        return refuse_look_up(g, n);
    }
    if (op == WEFT_OP_fold_chunks) {
        *ret_kind = WEFT_MEMBER_CHUNKS;
        return weft_reduce_supports(in, out, m->cpu) ? NULL : "no reduction kernel takes these element types";
    }
    *ret_kind = WEFT_MEMBER_VIEW;
    return op == WEFT_OP_bcast || op == WEFT_OP_transpose || op == WEFT_OP_reshape
               ? NULL : "is no elementwise op, reduction, scan or view of whole axes";
}

/* Single axes, as they stand, or one index. */
static bool read_map(const struct weft_index_map *map, int8_t *axis)
{
    for (int i = 0; i < map->rank; i++) {
        const struct weft_index *at = &map->at[i];
        const bool one = at->terms == 0 && weft_dim_is(at->base, 0) && !at->data && !at->is_near;
        axis[i] = (int8_t)weft_index_axis(at);
        if (axis[i] < 0 && !one)
            return false;
    }
    return true;
}

/* What is looked up: besides those, single axes from another place on, outside of which nothing is read, or backwards,
 * or several results to an element, and what another operand says. */
static bool read_look_up(const struct weft_graph *g, weft_node n, const struct weft_index_map *map,
                         struct weft_member *member)
{
    bool plain = true;
    struct weft_floored floored;
    member->indexed = -1;
    member->joins = weft_opcode_of(g, n) == WEFT_OP_concat;
    for (int i = 0; i < map->rank && plain; i++) {
        const struct weft_index *at = &map->at[i];
        const bool steps = at->terms && (weft_dim_is(at->term[0].step, 1) || weft_dim_is(at->term[0].step, -1));
        const bool moves = at->border || at->is_near || !weft_dim_is(at->base, 0);
        plain = at->border <= WEFT_BORDER_SKIPPED &&
                (at->is_near ? weft_resize_floors(g, n, i, &floored)
                 : at->data  ? !at->terms && !moves && member->indexed < 0
                             : at->terms == 0 || (at->terms == 1 && steps));
        member->operand[0][i] = (int8_t)(at->terms ? at->term[0].axis : -1);
        member->indexed = (int8_t)(at->data ? i : member->indexed);
        member->moved |= (uint8_t)(moves << i);
        member->guarded |= at->data || at->border || (at->is_near && plain && floored.over > 1);
    }
    return plain;
}

/* The operand's axes. What it makes has no place in them along the axis that is cut. */
static void read_chunks(const struct weft_members *m, weft_node n, struct weft_member *member)
{
    const struct weft_type *type = weft_type_of(m->graph, weft_operand(m->graph, n, 0));
    const int cut = (int)weft_attr_int(m->graph, n, WEFT_ATTR_axis);
    member->axes = (int8_t)type->rank;
    for (int i = 0; i < type->rank; i++) {
        member->extent[i] = type->extent[i];
        member->operand[0][i] = (int8_t)i;
        member->result[i] = (int8_t)(i == cut ? -1 : i);
    }
}

static const char *read_axes(const struct weft_members *m, weft_node n, uint8_t kind, struct weft_member *member)
{
    const struct weft_graph *g = m->graph;
    struct weft_space space;
    struct weft_index_map map;
    if (!weft_index_space(g, n, &space))
        return "has axes that are not known";
    member->axes = (int8_t)space.axes;
    for (int i = 0; i < space.axes; i++) {
        member->extent[i] = space.axis[i].extent;
        member->folded |= (uint16_t)((space.axis[i].role == WEFT_AXIS_REDUCED) << i);
        member->scanned |= (uint16_t)((space.axis[i].role == WEFT_AXIS_SCANNED) << i);
    }
    bool plain = weft_index_map(g, (struct weft_pin){n, .result = true}, &map) && read_map(&map, member->result);
    for (uint32_t i = 0; i < g->node[n.id].operands && plain && !member->joins; i++)
        plain = weft_index_map(g, (struct weft_pin){n, .index = i}, &map) &&
                (kind == WEFT_MEMBER_LOOK_UP && i == 0 ? read_look_up(g, n, &map, member)
                                                       : read_map(&map, member->operand[i]));
    return plain ? NULL
           : weft_opcode_of(g, n) == WEFT_OP_resize ? "weighs elements, or its index is no quotient of the place"
                                                    : "splits or joins axes";
}

const struct weft_member *weft_member_of(struct weft_members *m, weft_node n)
{
    if (m->member[n.id])
        return m->member[n.id];
    struct weft_member *const member = weft_new(m->arena, struct weft_member, 1);
    uint8_t kind = WEFT_MEMBER_NONE;
    member->why = kind_of(m, n, &kind);
    if (!member->why && kind == WEFT_MEMBER_CHUNKS)
        read_chunks(m, n, member);
    else if (!member->why)
        member->why = read_axes(m, n, kind, member);
    member->kind = member->why ? WEFT_MEMBER_NONE : kind;
    m->member[n.id] = member;
    return member;
}

/* --- a group ------------------------------------------------------------------------------------------------------ */

/* Axis a of the node at place p is element p · WEFT_SPACE_AXES + a of a forest. */
static uint16_t find(uint16_t *parent, uint32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return (uint16_t)i;
}

static const weft_dim *extent_at(const struct weft_members *m, const weft_node *node, uint32_t i)
{
    return &m->member[node[i / WEFT_SPACE_AXES].id]->extent[i % WEFT_SPACE_AXES];
}

/* What the node at place p reads of the node at place q, as operand k. */
static const char *join(struct weft_members *m, const weft_node *node, uint16_t *parent, uint32_t p, uint32_t k,
                        uint32_t q)
{
    const struct weft_member *reader = m->member[node[p].id], *maker = m->member[node[q].id];
    if (reader->kind == WEFT_MEMBER_LOOK_UP)
        return reader->joins ? "joins what the group computes"
               : k           ? "has indices that the group computes" : "looks up what the group computes";
    const int rank = weft_type_of(m->graph, weft_operand(m->graph, node[p], k))->rank;
    for (int i = 0; i < rank; i++) {
        const int a = weft_member_operand(reader, k)[i], b = maker->result[i];
        if (a < 0 || b < 0) {
            const int other = a < 0 ? b : a;
            const struct weft_member *has = a < 0 ? maker : reader;
            if (other >= 0 && !weft_dim_is(has->extent[other], 1))
                return "reads one index of a value that has several";
            continue;
        }
        parent[find(parent, p * WEFT_SPACE_AXES + (uint32_t)a)] = find(parent, q * WEFT_SPACE_AXES + (uint32_t)b);
    }
    return NULL;
}

/* Does some node have two axes that are one by now? */
static bool is_mixed(const struct weft_members *m, const weft_node *node, uint32_t count, uint16_t *parent)
{
    for (uint32_t p = 0; p < count; p++) {
        const struct weft_member *member = m->member[node[p].id];
        for (int a = 0; a < member->axes; a++)
            for (int b = 0; b < a; b++)
                if (find(parent, p * WEFT_SPACE_AXES + (uint32_t)a) == find(parent, p * WEFT_SPACE_AXES + (uint32_t)b))
                    return true;
    }
    return false;
}

/* Two nodes that read one value from outside go over it together, unless that would make two axes of a node one. */
static void share(struct weft_members *m, const weft_node *node, uint32_t count, uint16_t *parent, uint32_t p,
                  uint32_t k, uint32_t q, uint32_t j)
{
    const struct weft_member *a = m->member[node[p].id], *b = m->member[node[q].id];
    const int8_t *const of_a = weft_member_operand(a, k), *const of_b = weft_member_operand(b, j);
    const int rank = weft_type_of(m->graph, weft_operand(m->graph, node[p], k))->rank;
    bool joins = false;
    memcpy(m->before, parent, count * WEFT_SPACE_AXES * sizeof *parent);
    for (int i = 0; i < rank; i++) {
        const bool moves = ((k == 0 || a->joins) && a->moved >> i & 1) || ((j == 0 || b->joins) && b->moved >> i & 1);
        if (of_a[i] < 0 || of_b[i] < 0 || moves)
            continue;
        const uint16_t mine = find(parent, p * WEFT_SPACE_AXES + (uint32_t)of_a[i]);
        const uint16_t other = find(parent, q * WEFT_SPACE_AXES + (uint32_t)of_b[i]);
        joins |= mine != other;
        parent[mine] = other;
    }
    if (joins && is_mixed(m, node, count, parent))
        memcpy(parent, m->before, count * WEFT_SPACE_AXES * sizeof *parent);
}

static void share_operands(struct weft_members *m, const weft_node *node, uint32_t count, uint16_t *parent)
{
    const struct weft_graph *g = m->graph;
    for (uint32_t p = 0; p < count; p++)
        for (uint32_t k = 0; k < g->node[node[p].id].operands; k++) {
            const weft_val v = weft_operand(g, node[p], k);
            if (weft_member_place(m, weft_def(g, v)) != UINT32_MAX || weft_is_const(g, v))
                continue;
            const uint32_t first = m->reader[v.id];
            if (m->read[v.id] == m->searches && first / WEFT_MEMBER_INS != p)
                share(m, node, count, parent, p, k, first / WEFT_MEMBER_INS, first % WEFT_MEMBER_INS);
            if (m->read[v.id] == m->searches)
                continue;
            m->read[v.id] = m->searches;
            m->reader[v.id] = WEFT_MEMBER_INS * p + k;
        }
}

/* Numbers the axes that are left, in order of appearance; those of extent 1 are none. */
static const char *number_axes(struct weft_members *m, const weft_node *node, uint32_t count, uint16_t *parent,
                               struct weft_group_axes *ret, weft_val *ret_where)
{
    int8_t *const number = m->number;
    for (uint32_t p = 0; p < count; p++) {
        const struct weft_member *member = m->member[node[p].id];
        uint16_t seen = 0;
        *ret_where = weft_result(m->graph, node[p], 0);
        for (int a = 0; a < member->axes; a++) {
            const uint32_t root = find(parent, p * WEFT_SPACE_AXES + (uint32_t)a);
            ret->of[p][a] = -1;
            if (weft_dim_is(*extent_at(m, node, root), 1))
                continue;
            if (number[root] < 0) {
                if (ret->axes == WEFT_FORM_AXES)
                    return "would have more than 16 axes";
                ret->extent[ret->axes] = *extent_at(m, node, root);
                number[root] = (int8_t)ret->axes++;
            }
            if (seen >> number[root] & 1)
                return "would read a value in two orders at once";
            seen |= (uint16_t)(1u << number[root]);
            ret->of[p][a] = number[root];
            ret->folded |= (uint16_t)((member->folded >> a & 1) << number[root]);
            ret->scanned |= (uint16_t)((member->scanned >> a & 1) << number[root]);
        }
    }
    return NULL;
}

const char *weft_group_axes_find(struct weft_members *m, const weft_node *node, uint32_t count,
                                 struct weft_group_axes *ret, weft_val *ret_where)
{
    const struct weft_graph *g = m->graph;
    uint16_t *const parent = m->parent;
    *ret = (struct weft_group_axes){.of = m->of};
    weft_assert(count <= WEFT_MOST_MEMBERS);
    m->searches++;
    for (uint32_t p = 0; p < count; p++) {
        const struct weft_member *member = weft_member_of(m, node[p]);
        m->search[node[p].id] = m->searches;
        m->place[node[p].id] = p;
        *ret_where = weft_result(g, node[p], 0);
        if (!member->kind)
            return member->why;
        for (int a = 0; a < member->axes; a++) {
            const uint32_t own = p * WEFT_SPACE_AXES + (uint32_t)a;
            parent[own] = (uint16_t)own;
            m->number[own] = -1;
        }
        for (uint32_t k = 0; k < g->node[node[p].id].operands; k++) {
            const uint32_t q = weft_member_place(m, weft_def(g, weft_operand(g, node[p], k)));
            const char *const why = q == UINT32_MAX ? NULL : join(m, node, parent, p, k, q);
            if (why)
                return why;
        }
    }
    share_operands(m, node, count, parent);
    return number_axes(m, node, count, parent, ret, ret_where);
}

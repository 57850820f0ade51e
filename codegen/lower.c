/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c: groups as kernels over one box of points. The contract: lower.h. */
#include "codegen/lower.h"

#include "codegen/composites.h"
#include "codegen/pointwise.h"
#include "codegen/widths.h"
#include "ir/places.h"

#include <string.h>

static uint8_t kind_of(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    return m->member[fit->node[p].id]->kind;
}

/* --- the form ----------------------------------------------------------------------------------------------------- */

struct lowering {
    const struct weft_members *m;
    const struct weft_fit *fit;
    struct weft_form *form;
    uint32_t *op;           /* by place: its instruction + 1 */
    bool *stored;           /* by place: a store has that instruction */
    const struct weft_composite *composite; /* by place */
    uint32_t begin;         /* first instruction of the stage */
};

static uint32_t array_of(struct lowering *l, weft_val v, enum weft_form_use use)
{
    const struct weft_type *type = weft_type_of(l->m->graph, v);
    for (uint32_t i = 0; i < l->form->arrays; i++)
        if (weft_is(l->form->array[i].value, v))
            return i;
    struct weft_form_array array = {.use = (uint8_t)use, .dtype = (uint8_t)type->dtype, .rank = (uint8_t)type->rank,
                                    .value = v, .name = weft_arena_format(l->form->arena, "%c%u",
                                                                          use == WEFT_FORM_IN ? 'x' : 'y',
                                                                          l->form->arrays)};
    memcpy(array.extent, type->extent, sizeof array.extent);
    return weft_form_add_array(l->form, array);
}

static bool same_axes(const struct weft_index_map *map, int rank, const int8_t *axis)
{
    bool same = map->rank == rank;
    for (int i = 0; i < rank && same; i++)
        same = !map->at[i].data && !map->at[i].border && !map->at[i].over && weft_dim_is(map->at[i].base, 0) &&
               (!map->at[i].terms || weft_dim_is(map->at[i].term[0].step, 1)) &&
               (map->at[i].terms ? map->at[i].term[0].axis : -1) == axis[i];
    return same;
}

static uint16_t bits_of(int rank, const int8_t *axis)
{
    uint16_t bits = 0;
    for (int i = 0; i < rank; i++)
        bits |= axis[i] >= 0 ? (uint16_t)(1u << axis[i]) : 0;
    return bits;
}

static uint32_t add_const(struct lowering *l, weft_val v, const struct weft_constant *constant)
{
    const int dtype = weft_type_of(l->m->graph, v)->dtype;
    return weft_form_add_op(l->form, (struct weft_form_op){
        .kind = WEFT_FORM_CONST, .dtype = (uint8_t)weft_inside_dtype(dtype),
        .number = constant->integer ? 0 : weft_rounded(dtype, constant->real),
        .integer = constant->integer ? constant->splat : 0});
}

/* A load that the stage has already serves once more. */
static uint32_t add_load(struct lowering *l, weft_val v, const int8_t *axis)
{
    struct weft_form *const form = l->form;
    const struct weft_graph *g = l->m->graph;
    const struct weft_constant *constant = g->node[weft_def(g, v).id].constant;
    if (constant && constant->kind == WEFT_CONST_SPLAT)
        return add_const(l, v, constant);
    const uint32_t array = array_of(l, v, WEFT_FORM_IN);
    const int rank = form->array[array].rank;
    for (uint32_t i = l->begin; i < form->ops; i++)
        if (form->op[i].kind == WEFT_FORM_LOAD && form->op[i].array == array &&
            same_axes(&form->map[form->op[i].map], rank, axis))
            return i;
    const uint32_t map = weft_form_add_map(form, rank, axis);
    return weft_form_add_op(form, (struct weft_form_op){.kind = WEFT_FORM_LOAD, .dtype = form->array[array].dtype,
                                                        .array = array, .map = map, .axes = bits_of(rank, axis)});
}

static void axes_at(const struct lowering *l, uint32_t p, uint32_t k, int8_t *ret)
{
    const int8_t *const of = weft_member_operand(l->m->member[l->fit->node[p].id], k);
    for (int i = 0; i < weft_type_of(l->m->graph, weft_operand(l->m->graph, l->fit->node[p], k))->rank; i++)
        ret[i] = (int8_t)(of[i] < 0 ? -1 : l->fit->axes.of[p][of[i]]);
}

/* Where a resize reads along an axis. */
static void divide_index(const struct lowering *l, weft_node n, int axis, struct weft_index *index)
{
    struct weft_floored floored;
    const bool divides = weft_resize_floors(l->m->graph, n, axis, &floored);
    weft_assert(divides);
    index->base = weft_dim_of(floored.first);
    index->over = floored.over > 1 ? floored.over : 0;
    if (index->terms)
        index->term[0].step = weft_dim_of(floored.step);
}

/* Where a look-up reads its operand k: by the index that op `in` makes, from a place on, backwards, or each element
 * several times. */
static uint32_t add_look_up_map(struct lowering *l, uint32_t p, uint32_t k, weft_dim behind, int rank)
{
    const weft_node n = l->fit->node[p];
    const struct weft_member *const member = l->m->member[n.id];
    struct weft_index_map from;
    int8_t at[WEFT_MAX_RANK];
    axes_at(l, p, k, at);
    const uint32_t to = weft_form_add_map(l->form, rank, at);
    const bool known = weft_index_map_behind(l->m->graph, (struct weft_pin){n, .index = k}, behind, &from);
    weft_assert(known);
    for (int i = 0; i < rank; i++) {
        struct weft_index *const index = &l->form->map[to].at[i];
        if (i == member->indexed)
            *index = (struct weft_index){.data = 1, .base = weft_dim_of(0)};
        index->base = from.at[i].base;
        index->border = from.at[i].border;
        if (from.at[i].is_near)
            divide_index(l, n, i, index);
        else if (index->terms)
            index->term[0].step = from.at[i].term[0].step;
    }
    return to;
}

/* The pieces of a concat, one over the other: each is a part of the result. */
static uint32_t add_pieces(struct lowering *l, uint32_t p)
{
    const struct weft_graph *g = l->m->graph;
    const weft_node n = l->fit->node[p];
    weft_dim behind = weft_dim_of(0);
    uint32_t last = 0;
    for (uint32_t k = 0; k < g->node[n.id].operands; k++) {
        const struct weft_pin pin = {n, .index = k};
        int8_t at[WEFT_MAX_RANK];
        const uint32_t array = array_of(l, weft_operand(g, n, k), WEFT_FORM_IN);
        const int rank = l->form->array[array].rank;
        struct weft_form_op op = {.kind = WEFT_FORM_LOAD, .dtype = l->form->array[array].dtype, .array = array,
                                  .map = add_look_up_map(l, p, k, behind, rank)};
        axes_at(l, p, k, at);
        op.axes = bits_of(rank, at);
        op.falls_back = k > 0;
        if (op.falls_back)
            op.in[op.ins++] = last;
        if (k + 1 == g->node[n.id].operands)
            op.node = n;
        last = weft_form_add_op(l->form, op);
        behind = weft_index_behind(g, pin, behind);
    }
    return last;
}

/* What is looked up; each stage looks it up again. */
static uint32_t add_look_up(struct lowering *l, uint32_t p)
{
    struct weft_form *const form = l->form;
    const struct weft_graph *g = l->m->graph;
    const weft_node n = l->fit->node[p];
    const bool has_index = l->m->member[n.id]->indexed >= 0;
    struct weft_form_op op = {.kind = WEFT_FORM_LOAD, .node = n};
    for (uint32_t i = l->begin; i < form->ops; i++)
        if (form->op[i].node.id == n.id)
            return i;
    if (l->m->member[n.id]->joins)
        return add_pieces(l, p);
    int8_t at[WEFT_MAX_RANK];
    if (has_index) {
        axes_at(l, p, 1, at);
        op.in[op.ins++] = add_load(l, weft_operand(g, n, 1), at);
        op.axes = form->op[op.in[0]].axes;
    }
    op.array = array_of(l, weft_operand(g, n, 0), WEFT_FORM_IN);
    op.dtype = form->array[op.array].dtype;
    op.map = add_look_up_map(l, p, 0, weft_dim_of(0), form->array[op.array].rank);
    axes_at(l, p, 0, at);
    op.axes |= bits_of(form->array[op.array].rank, at);
    if (weft_opcode_of(g, n) == WEFT_OP_pad) {
        const struct weft_constant *const fill = g->node[weft_def(g, weft_operand(g, n, 1)).id].constant;
        op.number = fill->integer ? 0 : weft_rounded(op.dtype, fill->real);
        op.integer = fill->integer ? fill->splat : 0;
    }
    return weft_form_add_op(form, op);
}

/* A cast with nothing to do inside of a group. Like a view it is gone through, so that each stage widens what it loads
 * instead of keeping wide numbers. */
static bool is_passed(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    const struct weft_graph *g = m->graph;
    const weft_node n = fit->node[p];
    return weft_opcode_of(g, n) == WEFT_OP_cast && !fit->member[p].out &&
           weft_inside_dtype(weft_type_of(g, weft_operand(g, n, 0))->dtype) ==
               weft_type_of(g, weft_result(g, n, 0))->dtype;
}

/* The instruction that makes operand k of the node at place p, as it lies; views on the way are gone through. */
static uint32_t source_of(struct lowering *l, uint32_t p, uint32_t k)
{
    const struct weft_graph *g = l->m->graph;
    for (;;) {
        const weft_val v = weft_operand(g, l->fit->node[p], k);
        const uint32_t q = weft_member_place(l->m, weft_def(g, v));
        if (q == UINT32_MAX) {
            int8_t at[WEFT_MAX_RANK];
            axes_at(l, p, k, at);
            return add_load(l, v, at);
        }
        if (kind_of(l->m, l->fit, q) == WEFT_MEMBER_LOOK_UP)
            return add_look_up(l, q);
        if (kind_of(l->m, l->fit, q) != WEFT_MEMBER_VIEW && !is_passed(l->m, l->fit, q))
            return l->op[q] - 1;
        p = q;
        k = 0;
    }
}

/* Does the node compare two values that data makes? */
static bool compares(const struct weft_graph *g, weft_node n)
{
    const int op = weft_opcode_of(g, n);
    return (op == WEFT_OP_eq || op == WEFT_OP_ne || op == WEFT_OP_lt || op == WEFT_OP_le || op == WEFT_OP_gt ||
            op == WEFT_OP_ge) &&
           !weft_is_const(g, weft_operand(g, n, 0)) && !weft_is_const(g, weft_operand(g, n, 1));
}

/* Values that are compared are rounded (widths.h). */
static uint32_t operand_of(struct lowering *l, uint32_t p, uint32_t k)
{
    const struct weft_graph *g = l->m->graph;
    const weft_node n = l->fit->node[p];
    const int dtype = weft_type_of(g, weft_operand(g, n, k))->dtype;
    uint32_t op = source_of(l, p, k);
    if (weft_dtype_is_half(dtype) && compares(g, n))
        op = weft_form_narrow(l->form, op, dtype);
    return weft_form_widen(l->form, l->begin, op);
}

/* A cast whose result is stored, and that its operand is already: made by an instruction of this stage that no other
 * store has. */
static bool is_made(const struct lowering *l, uint32_t p, uint32_t op, int dtype)
{
    const struct weft_form_op *const maker = &l->form->op[op];
    bool made = weft_opcode_of(l->m->graph, l->fit->node[p]) == WEFT_OP_cast && maker->dtype == dtype &&
                op >= l->begin && maker->kind == WEFT_FORM_MAP;
    for (uint32_t q = 0; q < p && made; q++)
        made = !l->stored[q] || l->op[q] != op + 1;
    return made;
}

static void add_member(struct lowering *l, uint32_t p)
{
    const struct weft_graph *g = l->m->graph;
    const weft_node n = l->fit->node[p];
    if (kind_of(l->m, l->fit, p) == WEFT_MEMBER_LOOK_UP) {
        l->op[p] = add_look_up(l, p) + 1;
        return;
    }
    const int dtype = weft_type_of(g, weft_result(g, n, 0))->dtype;
    const bool cuts = kind_of(l->m, l->fit, p) == WEFT_MEMBER_CHUNKS;
    const bool folds = cuts || kind_of(l->m, l->fit, p) == WEFT_MEMBER_FOLD;
    const bool scans = kind_of(l->m, l->fit, p) == WEFT_MEMBER_SCAN;
    struct weft_form_op op = {.kind = folds ? WEFT_FORM_FOLD : scans ? WEFT_FORM_SCAN : WEFT_FORM_MAP, .node = n,
                              .dtype = (uint8_t)weft_inside_dtype(dtype),
                              .ins = (uint8_t)g->node[n.id].operands,
                              .axes = l->fit->member[p].axes};
    const struct weft_composite *const whole = &l->composite[p];
    if (whole->word)
        op.ins = 1;
    for (unsigned k = 0; k < op.ins; k++)
        op.in[k] = whole->word ? operand_of(l, whole->at, whole->operand) : operand_of(l, p, k);
    if (cuts || weft_opcode_of(g, n) == WEFT_OP_cast)
        op.dtype = (uint8_t)dtype;
    if (is_made(l, p, op.in[0], dtype)) {
        l->op[p] = op.in[0] + 1;
        return;
    }
    if (whole->word) {
        op.word = whole->word;
    } else if (folds) {
        enum weft_reduce_op fold = WEFT_K_SUM;
        if (cuts)
            fold = weft_pointwise_chunks(g, n);
        else
            weft_pointwise_fold(weft_opcode_of(g, n), &fold);
        op.fold = (uint8_t)fold;
        op.over = cuts ? (uint16_t)(1u << l->fit->cut) : l->fit->all & (uint16_t)~l->fit->outer;
    } else if (scans) {
        op.fold = (uint8_t)weft_pointwise_scan(weft_opcode_of(g, n));
        op.over = l->fit->axes.scanned;
        op.exclusive = weft_attr_int(g, n, WEFT_ATTR_exclusive) != 0;
        op.reverse = weft_attr_int(g, n, WEFT_ATTR_reverse) != 0;
    } else {
        op.word = weft_pointwise_kernel(g, n, l->m->cpu, &g->root->scratch)->op;
        weft_pointwise_params(g, n, op.param);
    }
    l->op[p] = weft_form_add_op(l->form, op) + 1;
}

static void add_store(struct lowering *l, uint32_t p)
{
    const weft_node n = l->fit->node[p];
    const weft_val v = weft_result(l->m->graph, n, 0);
    const struct weft_member *member = l->m->member[n.id];
    const int rank = weft_type_of(l->m->graph, v)->rank;
    const uint32_t array = array_of(l, v, WEFT_FORM_OUT);
    int8_t at[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        at[i] = member->result[i] < 0 ? -1 : l->fit->axes.of[p][member->result[i]];
    if (member->kind == WEFT_MEMBER_CHUNKS) /* the number of the chunk */
        at[weft_attr_int(l->m->graph, n, WEFT_ATTR_axis)] = (int8_t)l->fit->axes.axes;
    const uint32_t map = weft_form_add_map(l->form, rank, at);
    const uint32_t op = weft_form_narrow(l->form, l->op[p] - 1, l->form->array[array].dtype);
    l->stored[p] = op == l->op[p] - 1;
    weft_form_add_op(l->form, (struct weft_form_op){
        .kind = WEFT_FORM_STORE, .dtype = l->form->array[array].dtype, .ins = 1, .in = {op},
        .axes = l->form->op[op].axes, .array = array, .map = map});
}

static bool is_in(const struct lowering *l, uint32_t p, unsigned stage, bool inside)
{
    const struct weft_fit_member *member = &l->fit->member[p];
    if (kind_of(l->m, l->fit, p) == WEFT_MEMBER_LOOK_UP && !member->out)
        return false;
    return kind_of(l->m, l->fit, p) != WEFT_MEMBER_VIEW && !is_passed(l->m, l->fit, p) &&
           !l->composite[p].inside && member->stage == stage && member->inside == inside;
}

/* What is stored outside: results of folds of this stage, and of nodes outside. */
static bool is_stored_in(const struct lowering *l, uint32_t p, unsigned stage, bool inside)
{
    const bool folds = kind_of(l->m, l->fit, p) == WEFT_MEMBER_FOLD;
    return l->fit->member[p].out && is_in(l, p, stage, inside || folds) && !(inside && folds) &&
           kind_of(l->m, l->fit, p) != WEFT_MEMBER_CHUNKS;
}

static void add_stage(struct lowering *l, unsigned stage, bool inside)
{
    bool any = false;
    for (uint32_t p = 0; p < l->fit->count; p++)
        any |= is_in(l, p, stage, inside) || is_stored_in(l, p, stage, inside);
    if (!any)
        return;
    weft_form_add_stage(l->form, (struct weft_form_stage){
        .kind = WEFT_FORM_SWEEP, .axes = inside ? l->fit->all : l->fit->outer});
    l->begin = l->form->ops;
    for (uint32_t p = 0; p < l->fit->count; p++) {
        if (is_in(l, p, stage, inside))
            add_member(l, p);
        if (is_stored_in(l, p, stage, inside))
            add_store(l, p);
    }
}

/* What chunks came to. */
static void store_chunks(struct lowering *l)
{
    weft_form_add_stage(l->form, (struct weft_form_stage){
        .kind = WEFT_FORM_SWEEP, .axes = l->fit->all & (uint16_t)~(1u << l->fit->cut)});
    for (uint32_t p = 0; p < l->fit->count; p++)
        if (kind_of(l->m, l->fit, p) == WEFT_MEMBER_CHUNKS)
            add_store(l, p);
}

enum { MOST_WORDS = 6 }; /* of a kernel's name */

const char *weft_lower_name(const struct weft_graph *g, const weft_node *node, uint32_t count,
                            struct weft_arena *arena)
{
    struct weft_text text = {.context = g->context, .arena = arena};
    uint32_t words = 0;
    weft_text_add(&text, "weft");
    for (uint32_t p = 0; p < count; p++)
        if (!weft_is_view(g, node[p]) && words++ < MOST_WORDS)
            weft_text_format(&text, "_%s", weft_op_of(g, node[p])->name);
    if (words > MOST_WORDS)
        weft_text_format(&text, "_and_%u", words - MOST_WORDS);
    const weft_val last = weft_result(g, node[count - 1], 0);
    weft_text_format(&text, "_%s", weft_dtype_name(weft_type_of(g, last)->dtype));
    return text.data;
}

static const char *const axis_names[WEFT_FORM_AXES] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                       "i", "j", "k", "l", "m", "n", "o", "p"};

struct weft_form *weft_lower(struct weft_members *m, const struct weft_fit *fit, struct weft_arena *arena)
{
    struct lowering l = {.m = m, .fit = fit};
    l.form = weft_form_new(arena, m->graph->dims, weft_lower_name(m->graph, fit->node, fit->count, arena));
    l.composite = weft_composites_find(m, fit, &m->graph->root->scratch);
    l.op = weft_new(&m->graph->root->scratch, uint32_t, fit->count);
    l.stored = weft_new(&m->graph->root->scratch, bool, fit->count);
    for (uint32_t i = 0; i < fit->axes.axes; i++)
        weft_form_add_axis(l.form, axis_names[i], fit->axes.extent[i]);
    struct weft_form_phase phase = {.axes = fit->outer};
    if (fit->cut >= 0) {
        struct weft_dims *const dims = m->graph->dims;
        phase.by[fit->cut] = fit->chunk;
        const uint32_t pieces = weft_form_add_axis(l.form, axis_names[fit->axes.axes],
                                                   weft_dim_ceil_div(dims, fit->axes.extent[fit->cut], fit->chunk));
        l.form->axis[pieces].pieces_of = fit->cut;
        l.form->axis[pieces].by = fit->chunk;
    }
    weft_form_add_phase(l.form, phase);
    for (unsigned s = 0; s < fit->stages; s++) {
        add_stage(&l, s, /* inside= */ true);
        add_stage(&l, s, /* inside= */ false);
    }
    if (fit->cut >= 0)
        store_chunks(&l);
    return l.form;
}

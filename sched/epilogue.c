/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.c: which nodes finish a contraction or window, and by what. The contract: epilogue.h. */
#include "sched/prologue.h"

#include "codegen/pointwise.h"
#include "codegen/strips.h"

#include <math.h>
#include <string.h>

/* --- which nodes go together -------------------------------------------------------------------------------------- */

/* Splits the list; two heads are not finished at once. */
static const char *split(const struct weft_graph *g, const weft_node *node, uint32_t count, struct weft_group_fit *ret,
                         uint32_t *ret_rest, weft_val *ret_where)
{
    uint32_t rest = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_head = weft_epilogue_takes(g, node[i]);
        if (is_head && ret->head.id) {
            *ret_where = weft_result(g, node[i], 0);
            return weft_epilogue_has_bands(g, ret->head) || weft_epilogue_has_bands(g, node[i])
                       ? "would be the second contraction or window" : "would be the second contraction";
        }
        if (is_head)
            ret->head = node[i];
        else
            ret->rest[rest++] = node[i];
    }
    *ret_rest = rest;
    return NULL;
}

static uint8_t kind_at(const struct weft_members *m, const struct weft_fit *fit, uint32_t p)
{
    return m->member[fit->node[p].id]->kind;
}

/* The axis of the fit along a dimension of what the node at place p makes, or reads as operand k. */
static int axis_of(const struct weft_fit *fit, uint32_t p, const int8_t *map, int dim)
{
    return map[dim] < 0 ? -1 : fit->axes.of[p][map[dim]];
}

/* Do others read a view of the contraction's result that stands among the rest? */
static bool shows_view(const struct weft_members *m, const struct weft_group_fit *group)
{
    const struct weft_graph *g = m->graph;
    const struct weft_fit *const fit = &group->fit;
    bool shows = false;
    for (uint32_t p = 0; p < fit->count && !shows; p++) {
        weft_node n = fit->node[p];
        while (n.id && n.id != group->head.id && weft_is_view(g, n))
            n = weft_def(g, weft_operand(g, n, 0));
        shows = fit->member[p].out && weft_is_view(g, fit->node[p]) && n.id == group->head.id;
    }
    return shows;
}

/* Every reader of the contraction's result goes over it in the same way, and has a point for each element. */
static const char *read_head(const struct weft_members *m, struct weft_group_fit *ret)
{
    const struct weft_graph *g = m->graph;
    const struct weft_fit *const fit = &ret->fit;
    const weft_val v = weft_result(g, ret->head, 0);
    const int rank = weft_type_of(g, v)->rank;
    bool any = false;
    ret->raw = g->value[v.id].returns > 0 || shows_view(m, ret);
    for (uint32_t use = g->value[v.id].first_use; use; use = g->slot[use - 1].next) {
        const uint32_t p = weft_member_place(m, g->slot[use - 1].node);
        if (p == UINT32_MAX) {
            ret->raw |= g->slot[use - 1].node.id != ret->fold.id;
            continue;
        }
        for (uint32_t k = 0; k < g->node[fit->node[p].id].operands; k++)
            for (int d = 0; d < rank && weft_is(weft_operand(g, fit->node[p], k), v); d++) {
                const int axis = axis_of(fit, p, weft_member_operand(m->member[fit->node[p].id], k), d);
                if (any && axis != ret->axis[d])
                    return "is read in two orders at once";
                ret->axis[d] = (int8_t)axis;
            }
        any = true;
    }
    uint16_t axes = 0;
    for (int d = 0; d < rank; d++)
        axes |= ret->axis[d] < 0 ? 0 : (uint16_t)(1u << ret->axis[d]);
    return !any                    ? "shares no more than what it reads"
           : axes != fit->all ? "has fewer axes than what follows it" : NULL;
}

/* What is reduced are columns of a product, whose rows somebody has whole. */
static const char *check_rows(const struct weft_members *m, const struct weft_group_fit *group)
{
    const struct weft_graph *g = m->graph;
    const struct weft_fit *const fit = &group->fit;
    const int8_t axis = group->axis[weft_type_of(g, weft_result(g, group->head, 0))->rank - 1];
    return !group->rows                                       ? NULL
           : weft_epilogue_has_bands(g, group->head)          ? "is a window, whose results are reduced"
           : weft_opcode_of(g, group->head) != WEFT_OP_matmul ? "is a convolution, whose results are reduced"
           : axis < 0 || fit->axes.folded != 1u << axis       ? "has results that are reduced by columns"
           : fit->cut >= 0 || fit->axes.scanned               ? "is followed by scans or chunks" : NULL;
}

/* Is an operand of the head computed by one of the rest? */
static bool computes_operand(const struct weft_graph *g, const struct weft_group_fit *group, uint32_t rest)
{
    bool computes = false;
    for (uint32_t i = 0; i < g->node[group->head.id].operands; i++)
        for (uint32_t k = 0; k < rest && !computes; k++)
            computes = weft_def(g, weft_operand(g, group->head, i)).id == group->rest[k].id;
    return computes;
}

const char *weft_group_fit_find(struct weft_members *m, const weft_node *node, uint32_t count,
                                struct weft_group_fit *ret, weft_val *ret_where)
{
    const struct weft_graph *g = m->graph;
    uint32_t rest = count;
    ret->head = WEFT_NO_NODE;
    ret->out = WEFT_NO_VALUE;
    ret->fold = WEFT_NO_NODE;
    ret->befores = 0;
    ret->raw = ret->rows = ret->is_alone = false;
    *ret_where = weft_result(g, node[count - 1], 0);
    const char *why = count > WEFT_MOST_MEMBERS ? "would have more than 64 nodes"
                                                : split(g, node, count, ret, &rest, ret_where);
    if (why)
        return why;
    if (!ret->head.id)
        return weft_fit_find(m, node, count, &ret->fit, ret_where);
    if (rest == 0)
        return "is one node";
    rest = weft_prologue_take(g, ret, rest);
    why = ret->befores ? weft_prologue_check(m, ret, ret_where) : NULL;
    if (why || rest == 0) {
        weft_group_fit_show_head(g, ret);
        return why;
    }
    *ret_where = weft_result(g, ret->head, 0);
    if (computes_operand(g, ret, rest)) /* first: of nodes on both sides the fit would find fault with others */
        return "reads its operands from memory, and the group would compute one";
    rest = weft_epilogue_take_fold(g, ret, rest);
    why = weft_fit_find(m, ret->rest, rest, &ret->fit, ret_where);
    if (why)
        return why;
    *ret_where = weft_result(g, ret->head, 0);
    ret->rows = ret->fit.axes.folded != 0;
    if (!ret->rows && (ret->fit.uneven || ret->fit.outer != ret->fit.all))
        return "is followed by nodes over other axes";
    why = read_head(m, ret);
    why = why ? why : check_rows(m, ret);
    if (!why)
        why = weft_epilogue_find_outs(m, ret, ret_where);
    if (why || !ret->fold.id)
        return why;
    *ret_where = weft_result(g, ret->fold, 0);
    return weft_epilogue_check_fold(m, ret);
}

/* --- what kernels do in registers --------------------------------------------------------------------------------- */

struct peeling {
    const struct weft_members *m;
    const struct weft_group_fit *group;
    struct weft_epilogue *e;
    bool gone[WEFT_MOST_MEMBERS]; /* by place of the fit */
    weft_val v;                   /* what stands in registers */
};

/* The place of the only reader of a value, or UINT32_MAX. */
static uint32_t reader_of(const struct peeling *s, weft_val v)
{
    const struct weft_graph *g = s->m->graph;
    const uint32_t use = g->value[v.id].first_use;
    return g->value[v.id].returns || !use || g->slot[use - 1].next
               ? UINT32_MAX : weft_member_place(s->m, g->slot[use - 1].node);
}

/* A constant of one axis, each number repeated along all others: which dimension of the contraction's result has it, or
 * -1. */
static int bias_dim(const struct peeling *s, uint32_t p, uint32_t k)
{
    const struct weft_graph *g = s->m->graph;
    const struct weft_fit *const fit = &s->group->fit;
    const weft_val v = weft_operand(g, fit->node[p], k);
    const weft_node view = weft_def(g, v);
    if (weft_opcode_of(g, view) != WEFT_OP_bcast || weft_member_place(s->m, view) != UINT32_MAX)
        return -1;
    const weft_val source = weft_operand(g, view, 0);
    const struct weft_type *const type = weft_type_of(g, source);
    const struct weft_attr *const dims = weft_attr_find(g, view, WEFT_ATTR_dims);
    int found = -1;
    if (!weft_is_const(g, source) || !dims || g->value[source.id].layout) /* numbers side by side */
        return -1;
    for (int i = 0; i < type->rank; i++) {
        if (weft_dim_is(type->extent[i], 1))
            continue;
        const int to = (int)weft_dim_value(dims->integers[i]);
        const int axis = axis_of(fit, p, s->m->member[fit->node[p].id]->operand[k], to);
        for (int d = 0; d < weft_type_of(g, weft_result(g, s->group->head, 0))->rank; d++)
            if (axis >= 0 && s->group->axis[d] == axis)
                found = found < 0 ? d : WEFT_MAX_RANK;
    }
    return found < WEFT_MAX_RANK ? found : -1;
}

/* The last dimension of a product, the channels of a convolution. */
static bool is_bias_dim(const struct peeling *s, int dim)
{
    const struct weft_graph *g = s->m->graph;
    const int rank = weft_type_of(g, weft_result(g, s->group->head, 0))->rank;
    return weft_opcode_of(g, s->group->head) == WEFT_OP_matmul ? dim == rank - 1 : dim == 1;
}

static bool peel_bias(struct peeling *s, uint32_t p)
{
    const struct weft_graph *g = s->m->graph;
    const weft_node n = s->group->fit.node[p];
    if (weft_opcode_of(g, n) != WEFT_OP_add || s->e->bias.id || s->e->residual.id || s->e->clamp.given)
        return false;
    const uint32_t k = weft_is(weft_operand(g, n, 0), s->v) ? 1 : 0;
    if (!is_bias_dim(s, bias_dim(s, p, k)))
        return false;
    s->e->bias = weft_operand(g, n, k);
    return true;
}

/* By dimension of the contraction's result: that of what `map` of member p describes which has the axis. False if one
 * is missing. */
static bool find_mapped_dims(const struct peeling *s, uint32_t p, const int8_t *map, int rank,
                             int8_t ret[WEFT_MAX_RANK])
{
    bool all = true;
    for (int d = 0; d < weft_type_of(s->m->graph, weft_result(s->m->graph, s->group->head, 0))->rank; d++) {
        ret[d] = -1;
        for (int i = 0; i < rank && s->group->axis[d] >= 0; i++)
            if (axis_of(&s->group->fit, p, map, i) == s->group->axis[d])
                ret[d] = (int8_t)i;
        all = all && (s->group->axis[d] < 0 || ret[d] >= 0);
    }
    return all;
}

/* The same of a member's result, or of the contraction's own. */
static void find_dims(const struct peeling *s, weft_val v, int8_t ret[WEFT_MAX_RANK])
{
    const struct weft_graph *g = s->m->graph;
    const int rank = weft_type_of(g, weft_result(g, s->group->head, 0))->rank;
    const uint32_t p = weft_member_place(s->m, weft_def(g, v));
    if (p != UINT32_MAX)
        find_mapped_dims(s, p, s->m->member[s->group->fit.node[p].id]->result, weft_type_of(g, v)->rank, ret);
    for (int d = 0; d < rank && p == UINT32_MAX; d++)
        ret[d] = (int8_t)(s->group->axis[d] >= 0 ? d : -1);
}

/* Do their elements lie in one order? Then neighbours of one are neighbours of the other. */
static bool lie_alike(const struct weft_graph *g, weft_val a, weft_val b)
{
    const struct weft_layout x = weft_layout_of(g, a), y = weft_layout_of(g, b);
    return weft_layout_equal(g->dims, &x, &y, weft_type_of(g, a));
}

/* Kernels that add it, or do what comes close: not those of windows over single channels, and of adjoints. */
static bool is_dense(const struct weft_graph *g, weft_node head)
{
    const enum weft_opcode op = weft_opcode_of(g, head);
    return op == WEFT_OP_matmul ||
           (op == WEFT_OP_conv && weft_attr_int(g, head, WEFT_ATTR_groups) == 1 &&
            !weft_dim_is(weft_type_of(g, weft_operand(g, head, 0))->extent[1], 1));
}

/* A number for each result that is there before the contraction runs, and lies as the results will. */
static bool peel_residual(struct peeling *s, uint32_t p)
{
    const struct weft_graph *g = s->m->graph;
    const weft_node n = s->group->fit.node[p];
    if (weft_opcode_of(g, n) != WEFT_OP_add || s->e->residual.id || s->e->clamp.given || !is_dense(g, s->group->head))
        return false;
    const uint32_t k = weft_is(weft_operand(g, n, 0), s->v) ? 1 : 0;
    const weft_val v = weft_operand(g, n, k);
    const weft_node def = weft_def(g, v);
    const struct weft_type *const type = weft_type_of(g, v);
    const struct weft_member *const member = s->m->member[n.id];
    int8_t dim[WEFT_MAX_RANK] = {0}, out[WEFT_MAX_RANK] = {0};
    if (weft_member_place(s->m, def) != UINT32_MAX || weft_is_view(g, def) || type->dtype != WEFT_F32 ||
        !lie_alike(g, v, s->group->out) || !find_mapped_dims(s, p, member->operand[k], type->rank, dim))
        return false;
    find_dims(s, s->group->out, out);
    if (type->rank != weft_type_of(g, s->group->out)->rank || memcmp(dim, out, sizeof dim) != 0)
        return false;
    memcpy(s->e->r_dim, dim, sizeof dim);
    s->e->residual = v;
    return true;
}

/* The number that operand 1 is everywhere. */
static bool bound_of(const struct peeling *s, weft_node n, float *ret)
{
    const struct weft_graph *g = s->m->graph;
    weft_val v = weft_operand(g, n, 1);
    if (weft_opcode_of(g, weft_def(g, v)) == WEFT_OP_bcast)
        v = weft_operand(g, weft_def(g, v), 0);
    const struct weft_constant *const constant = g->node[weft_def(g, v).id].constant;
    if (weft_is(v, s->v) || !constant || constant->kind != WEFT_CONST_SPLAT || constant->integer)
        return false;
    *ret = (float)constant->real;
    return !isnan(*ret);
}

/* With the bits of the node (kernels.h, struct weft_clamp): `max` of two zeros gives its second operand, so that of 0
 * is a clamp that adds +0; where a bound is -0, or the upper one any zero, kernels of the node alone are right. */
static bool peel_clamp(struct peeling *s, uint32_t p)
{
    const struct weft_graph *g = s->m->graph;
    const weft_node n = s->group->fit.node[p];
    struct weft_clamp *const clamp = &s->e->clamp;
    float bound = 0;
    switch (weft_opcode_of(g, n)) {
    case WEFT_OP_relu:
        if (clamp->given)
            return false;
        *clamp = (struct weft_clamp){.given = true, .low = 0, .high = INFINITY, .zero = 0};
        return true;
    case WEFT_OP_max:
        if (clamp->given || !bound_of(s, n, &bound) || (bound == 0 && signbit(bound)))
            return false;
        *clamp = (struct weft_clamp){.given = true, .low = bound, .high = INFINITY, .zero = bound == 0 ? 0.0f : -0.0f};
        return true;
    case WEFT_OP_min:
        if ((clamp->given && clamp->high < INFINITY) || !bound_of(s, n, &bound) || bound == 0 ||
            (clamp->given && bound < clamp->low))
            return false;
        if (!clamp->given)
            *clamp = (struct weft_clamp){.given = true, .low = -INFINITY, .zero = -0.0f};
        clamp->high = bound;
        return true;
    default: return false;
    }
}

/* Follows the result as long as kernels do in registers what is done with it; views of the same elements on the way go
 * with the node behind them. */
static void peel(struct peeling *s)
{
    const struct weft_graph *g = s->m->graph;
    const struct weft_fit *const fit = &s->group->fit;
    bool passed[WEFT_MOST_MEMBERS] = {false};
    for (weft_val seen = s->v;;) {
        const uint32_t p = reader_of(s, seen);
        if (p == UINT32_MAX)
            return;
        const weft_val result = weft_result(g, fit->node[p], 0);
        if (kind_at(s->m, fit, p) == WEFT_MEMBER_VIEW) {
            passed[p] = true;
            seen = result;
            continue;
        }
        const weft_val before = s->v;
        s->v = seen;
        if (!peel_bias(s, p) && !peel_residual(s, p) && !peel_clamp(s, p)) {
            s->v = before;
            return;
        }
        for (uint32_t q = 0; q < fit->count; q++) {
            s->gone[q] |= passed[q];
            passed[q] = false;
        }
        s->gone[p] = true;
        s->v = seen = result;
    }
}

/* --- the step ----------------------------------------------------------------------------------------------------- */

/* The form of what is left, and what it reads. Ends what `members` knows of the group's own fit: dimensions are found
 * before. */
static const char *lower_rest(const struct weft_scheduling *s, struct weft_members *members, struct peeling *peeling,
                              struct weft_epilogue *e)
{
    const struct weft_fit *const fit = &peeling->group->fit;
    weft_node *const left = weft_new(s->arena, weft_node, fit->count);
    uint32_t count = 0;
    struct weft_fit rest;
    weft_val where;
    for (uint32_t p = 0; p < fit->count; p++)
        if (!peeling->gone[p])
            left[count++] = fit->node[p];
    if (count == 0)
        return NULL;
    const char *const why = weft_fit_find(members, left, count, &rest, &where);
    if (why)
        return why;
    struct weft_form *const form = weft_lower(members, &rest, s->arena);
    form->name = e->name;
    e->form = form;
    while (e->c < form->arrays && !weft_is(form->array[e->c].value, peeling->v))
        e->c++;
    return e->c == form->arrays ? "does not read the contraction" : weft_strips_refuse(form);
}

/* What a step with a prologue reads instead of its operand 0: of a contraction what the form reads first stands in the
 * place of that, since the weights stay operand 1. */
static void read_makes(const struct weft_form *makes, bool keeps_place, const weft_val *operand, uint32_t operands,
                       struct weft_step *step)
{
    uint32_t first = 0;
    while (first < makes->arrays && makes->array[first].use != WEFT_FORM_IN)
        first++;
    step->ins = 0;
    if (keeps_place)
        step->in[step->ins++] = first < makes->arrays ? makes->array[first].value : operand[1];
    for (uint32_t i = 1; i < operands; i++)
        step->in[step->ins++] = operand[i];
    for (uint32_t i = keeps_place ? first + 1 : 0; i < makes->arrays; i++)
        if (makes->array[i].use == WEFT_FORM_IN)
            step->in[step->ins++] = makes->array[i].value;
}

static void read_values(const struct weft_scheduling *s, const struct weft_epilogue *e, struct weft_step *step)
{
    const struct weft_form *const makes = weft_step_makes_form(step);
    const uint32_t arrays = (e->form ? e->form->arrays : 0) + (makes ? makes->arrays : 0);
    const weft_val *const operand = step->in;
    const uint32_t operands = step->ins;
    weft_val *const in = weft_new(s->arena, weft_val, operands + 2 + arrays);
    step->in = in;
    step->ins = 0;
    if (makes)
        read_makes(makes, !weft_step_has(step, WEFT_STEP_BANDS), operand, operands, step);
    for (uint32_t i = 0; !makes && i < operands; i++)
        in[step->ins++] = operand[i];
    if (e->bias.id)
        in[step->ins++] = e->bias;
    if (e->residual.id)
        in[step->ins++] = e->residual;
    for (uint32_t i = 0; e->form && i < e->form->arrays; i++)
        if (e->form->array[i].use == WEFT_FORM_IN && i != e->c)
            in[step->ins++] = e->form->array[i].value;
}

bool weft_epilogue_choose(const struct weft_scheduling *s, struct weft_members *members,
                          const struct weft_group_fit *group, uint32_t count, const weft_val *out,
                          struct weft_step *step)
{
    *step = weft_step_of(s->graph, group->head, s->arena);
    if (!weft_select_family(s, step))
        return false;
    if (!weft_step_has(step, WEFT_STEP_FINISHES))
        return weft_schedule_refuse(step, "its kernel finishes no results");
    struct weft_epilogue *const e = weft_new(s->arena, struct weft_epilogue, 1);
    struct peeling peeling = {.m = members, .group = group, .e = e, .v = weft_result(s->graph, group->head, 0)};
    if (!weft_step_has(step, WEFT_STEP_BANDS))
        peel(&peeling);
    find_dims(&peeling, peeling.v, e->c_dim);
    struct weft_epilogue_outs outs = {.count = count, .out = out};
    for (uint32_t i = 0; i < count; i++)
        find_dims(&peeling, out[i], outs.dim[i]);
    e->name = weft_group_fit_name(s->graph, group, s->arena);
    const char *why = lower_rest(s, members, &peeling, e);
    if (!why && group->befores)
        step->prologue = weft_prologue_choose(s, members, group, &why);
    if (why)
        return weft_schedule_refuse(step, why);
    weft_epilogue_write(s, group, peeling.v, &outs, e, step);
    if (e->is_aside && group->fold.id)
        return weft_schedule_refuse(step, "reduces pixels that are stored elsewhere than the kernel leaves them");
    e->rows = group->rows;
    step->epilogue = e;
    read_values(s, e, step);
    return true;
}

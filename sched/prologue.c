/* SPDX-License-Identifier: Apache-2.0 */
/* prologue.c: what computes the operand of a head. The contract: prologue.h. */
#include "sched/prologue.h"

#include "codegen/emit.h"
#include "codegen/strips.h"
#include "sched/format.h"

enum { LINE = 64 };

/* --- which nodes -------------------------------------------------------------------------------------------------- */

static bool reads(const struct weft_graph *g, weft_node n, weft_node maker)
{
    bool any = false;
    for (uint32_t i = 0; i < g->node[n.id].operands; i++)
        any |= weft_def(g, weft_operand(g, n, i)).id == maker.id;
    return any;
}

/* Its rows are those of the result. */
static bool is_product(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *const a = weft_type_of(g, weft_operand(g, n, 0)),
                           *const c = weft_type_of(g, weft_result(g, n, 0));
    bool same = a->rank == c->rank && !weft_attr_int(g, n, WEFT_ATTR_trans_a);
    for (int d = 0; d < c->rank - 1 && same; d++)
        same = weft_dim_same(a->extent[d], c->extent[d]);
    return same;
}

/* One tap that moves by one, without padding and groups (weft_conv_is_made). */
static bool is_point(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *const w = weft_type_of(g, weft_operand(g, n, 1));
    const unsigned spatial = (unsigned)w->rank - 2;
    bool is = weft_attr_int(g, n, WEFT_ATTR_groups) == 1;
    for (unsigned i = 0; i < spatial; i++)
        is = is && weft_dim_is(w->extent[2 + i], 1) && weft_dim_is(weft_attr_at(g, n, WEFT_ATTR_stride, i), 1) &&
             weft_dim_is(weft_attr_at(g, n, WEFT_ATTR_pad, i), 0) &&
             weft_dim_is(weft_attr_at(g, n, WEFT_ATTR_pad, i + spatial), 0);
    return is;
}

bool weft_prologue_fits(const struct weft_graph *g, weft_node head)
{
    const enum weft_opcode op = weft_opcode_of(g, head);
    return weft_epilogue_has_bands(g, head) || (op == WEFT_OP_matmul && is_product(g, head)) ||
           (op == WEFT_OP_conv && is_point(g, head));
}

uint32_t weft_prologue_take(const struct weft_graph *g, struct weft_group_fit *group, uint32_t rest)
{
    bool is_before[WEFT_MOST_MEMBERS] = {false};
    uint32_t left = 0;
    group->befores = 0;
    if (!weft_prologue_fits(g, group->head))
        return rest;
    for (uint32_t i = rest; i-- > 0;) { /* from the last to the first: readers are known before */
        is_before[i] = reads(g, group->head, group->rest[i]);
        for (uint32_t k = i + 1; k < rest && !is_before[i]; k++)
            is_before[i] = is_before[k] && reads(g, group->rest[k], group->rest[i]);
    }
    for (uint32_t i = 0; i < rest; i++)
        if (is_before[i])
            group->before[group->befores++] = group->rest[i];
        else
            group->rest[left++] = group->rest[i];
    return left;
}

/* --- whether they fit --------------------------------------------------------------------------------------------- */

/* By dimension of a member's result: the axis of the fit, or -1. */
static int axis_of(const struct weft_members *m, const struct weft_fit *fit, weft_val v, int dim)
{
    const uint32_t p = weft_member_place(m, weft_def(m->graph, v));
    const int8_t axis = m->member[fit->node[p].id]->result[dim];
    return axis < 0 ? -1 : fit->axes.of[p][axis];
}

/* What the operand is a view of. */
static weft_val source_of(const struct weft_graph *g, weft_val v)
{
    while (weft_is_view(g, weft_def(g, v)))
        v = weft_operand(g, weft_def(g, v), 0);
    return v;
}

/* Does anybody but nodes in front of the head, and the head itself, read what they make? */
static bool is_read_by_others(const struct weft_members *m, const struct weft_group_fit *group, weft_val *ret_where)
{
    const struct weft_graph *g = m->graph;
    for (uint32_t i = 0; i < group->befores; i++) {
        const weft_val v = weft_result(g, group->before[i], 0);
        bool others = g->value[v.id].returns > 0;
        for (uint32_t use = g->value[v.id].first_use; use && !others; use = g->slot[use - 1].next) {
            const weft_node n = g->slot[use - 1].node;
            others = n.id != group->head.id && weft_member_place(m, n) == UINT32_MAX;
        }
        *ret_where = v;
        if (others)
            return true;
    }
    return false;
}

static const char *check_kinds(const struct weft_members *m, const struct weft_group_fit *group, weft_val *ret_where)
{
    for (uint32_t i = 0; i < group->befores; i++) {
        const uint8_t kind = m->member[group->before[i].id]->kind;
        *ret_where = weft_result(m->graph, group->before[i], 0);
        if (kind != WEFT_MEMBER_VIEW && kind != WEFT_MEMBER_MAP)
            return "is no elementwise op, and so not computed for the rows that a kernel reads";
    }
    return NULL;
}

const char *weft_prologue_check(struct weft_members *m, const struct weft_group_fit *group, weft_val *ret_where)
{
    const struct weft_graph *g = m->graph;
    struct weft_fit fit;
    const char *why = weft_fit_find(m, group->before, group->befores, &fit, ret_where);
    if (!why)
        why = check_kinds(m, group, ret_where);
    if (why)
        return why;
    for (uint32_t i = 1; i < g->node[group->head.id].operands; i++) {
        *ret_where = weft_operand(g, group->head, i);
        if (weft_member_place(m, weft_def(g, *ret_where)) != UINT32_MAX)
            return "is another operand of the kernel than its first";
    }
    if (is_read_by_others(m, group, ret_where))
        return "is read by others than the kernel too, who would compute it again";
    const weft_val operand = weft_operand(g, group->head, 0), source = source_of(g, operand);
    *ret_where = operand;
    if (weft_member_place(m, weft_def(g, operand)) == UINT32_MAX ||
        weft_member_place(m, weft_def(g, source)) == UINT32_MAX || fit.uneven || fit.outer != fit.all)
        return "is computed from values over other axes, too";
    uint16_t axes = 0;
    for (int d = 0; d < weft_type_of(g, operand)->rank; d++) {
        const int axis = axis_of(m, &fit, operand, d);
        axes |= axis < 0 ? 0 : (uint16_t)(1u << axis);
    }
    return axes != fit.all || fit.member[weft_member_place(m, weft_def(g, source))].axes != fit.all
               ? "has fewer axes than what it is computed from" : NULL;
}

/* --- the form ----------------------------------------------------------------------------------------------------- */

const struct weft_prologue *weft_prologue_choose(const struct weft_scheduling *s, struct weft_members *m,
                                                 const struct weft_group_fit *group, const char **ret_why)
{
    const struct weft_graph *g = s->graph;
    const weft_val operand = weft_operand(g, group->head, 0), source = source_of(g, operand);
    struct weft_prologue *const prologue = weft_new(s->arena, struct weft_prologue, 1);
    struct weft_fit fit;
    weft_val where;
    *ret_why = weft_fit_find(m, group->before, group->befores, &fit, &where);
    if (*ret_why)
        return NULL;
    for (int d = 0; d < weft_type_of(g, operand)->rank; d++) {
        const int axis = axis_of(m, &fit, operand, d);
        prologue->dim[d] = -1;
        for (int i = 0; i < weft_type_of(g, source)->rank && axis >= 0; i++)
            if (axis_of(m, &fit, source, i) == axis)
                prologue->dim[d] = (int8_t)i;
    }
    prologue->form = weft_lower(m, &fit, s->arena);
    while (prologue->out < prologue->form->arrays && !weft_is(prologue->form->array[prologue->out].value, source))
        prologue->out++;
    weft_assert(prologue->out < prologue->form->arrays); /* the head reads it from outside of the fit */
    *ret_why = weft_strips_refuse(prologue->form);
    return *ret_why ? NULL : prologue;
}

/* --- bound -------------------------------------------------------------------------------------------------------- */

struct weft_tensor weft_prologue_operand(const struct weft_bind *bind)
{
    return bind->step->prologue ? weft_bind_tensor(bind, weft_operand(bind->graph, bind->step->node, 0)) : bind->in[0];
}

size_t weft_prologue_bytes(const struct weft_step *step)
{
    return step->prologue ? (weft_strips_bytes(step->prologue->form) + LINE - 1) / LINE * LINE : 0;
}

/* The operand with the dimensions that the form knows. */
static struct weft_tensor as_array(const struct weft_prologue *prologue, const struct weft_tensor *operand, int rank)
{
    struct weft_tensor array = {.dtype = operand->dtype, .rank = rank};
    for (int d = 0; d < rank; d++)
        array.extent[d] = 1;
    for (int d = 0; d < operand->rank; d++)
        if (prologue->dim[d] >= 0) {
            array.extent[prologue->dim[d]] = operand->extent[d];
            array.stride[prologue->dim[d]] = operand->stride[d];
        }
    return array;
}

struct weft_program *weft_prologue_bind(struct weft_bind *bind, const struct weft_tensor *operand, const int8_t *order,
                                        int rows, int columns, void *memory, size_t *ret_scratch)
{
    const struct weft_prologue *const prologue = bind->step->prologue;
    const struct weft_form *const form = prologue->form;
    struct weft_tensor tensor[WEFT_PROGRAM_ARGUMENTS];
    struct weft_strips_box box = {.array = prologue->out};
    for (uint32_t i = 0; i < form->arrays; i++)
        tensor[i] = i == prologue->out ? as_array(prologue, operand, form->array[i].rank)
                                       : weft_bind_tensor(bind, form->array[i].value);
    for (int i = 0; i < rows + columns; i++)
        if (prologue->dim[order[i]] >= 0) {
            box.dim[box.rows + box.columns] = prologue->dim[order[i]];
            box.rows += i < rows;
            box.columns += i >= rows;
        }
    struct weft_program *const program =
        weft_strips_make_pieces(form, &box, weft_bind_cpu(bind), bind->symbols, tensor, memory);
    program->shape = weft_emit_refuse(form, program) ? 0 : weft_emit_shape(program);
    *ret_scratch = (bind->scratch + LINE - 1) / LINE * LINE;
    bind->scratch = *ret_scratch + program->scratch;
    return program;
}

/* --- what it takes ------------------------------------------------------------------------------------------------ */

enum { SOON = 4, LINE_NS = 3 /* a short line (Zen 3, lines of 16 to 64) */, APART_NS = 1 };

/* A quarter of the prices, which are of passes that wait for every line (Zen 4: relu in front of windows, 0.8 M
 * elements, took 10 us more than its pass). */
double weft_prologue_near_ns(const struct weft_bind *bind, double elements)
{
    const double ps = (double)weft_price_of(bind->target, WEFT_PRICE_read_private) +
                      (double)weft_price_of(bind->target, WEFT_PRICE_write_private);
    return elements / SOON * (double)sizeof(float) * ps * 1e-6 * weft_prices_of(bind->target)->threads;
}

/* What the form reads is read while nothing is multiplied. */
static double read_ns(const struct weft_bind *bind)
{
    const struct weft_form *const form = bind->step->prologue->form;
    double ps = 0;
    for (uint32_t i = 0; i < form->arrays; i++) {
        const struct weft_tensor tensor = weft_bind_tensor(bind, form->array[i].value);
        double bytes = (double)weft_dtype_bits(tensor.dtype) / 8;
        for (int d = 0; d < tensor.rank; d++)
            bytes *= tensor.stride[d] != 0 || tensor.extent[d] == 0 ? (double)tensor.extent[d] : 1;
        const enum weft_price level = weft_format_level(bind->target, WEFT_PRICE_read_private, (int64_t)bytes);
        if (form->array[i].use == WEFT_FORM_IN)
            ps += bytes * weft_price_of(bind->target, level) * 1e-3;
    }
    return ps * 1e-3 * weft_prices_of(bind->target)->threads;
}

/* Elements that do not lie side by side along the columns of pieces, as images whose channels are planes where pieces
 * have rows of channels (Zen 3, 480 x 14 x 14: 40 us of 215). */
static double apart_ns(const struct weft_program *p)
{
    double elements = 1, ns = 0;
    for (int i = 0; i < p->outer_rank; i++)
        elements *= (double)p->outer[i];
    for (int i = 0; i < p->inner_rank; i++)
        elements *= (double)p->inner[i];
    for (int v = 0; v < p->values; v++) {
        const int64_t step = p->inner_rank > 0 ? p->value[v].inner[p->inner_rank - 1] : 0;
        ns += weft_program_is_memory(&p->value[v]) && step * step > 1 ? elements * APART_NS : 0;
    }
    return ns;
}

double weft_prologue_ns(const struct weft_bind *bind, const struct weft_program *program, double made, double pieces,
                        double lines)
{
    const struct weft_tensor operand = weft_prologue_operand(bind);
    return made * (weft_program_arithmetic_ns(program) + read_ns(bind) + apart_ns(program)) +
           weft_program_pieces_ns(program, pieces) + lines * LINE_NS +
           weft_prologue_near_ns(bind, made * weft_tensor_elements(&operand));
}

/* --- running ------------------------------------------------------------------------------------------------------ */

void weft_prologue_begin(struct weft_prologue_run *run, const struct weft_program *program, size_t scratch,
                         struct weft_call *call)
{
    const struct weft_prologue *const prologue = call->step->prologue;
    struct weft_tier *const tier = call->step->tier;
    for (uint32_t i = 0; i < prologue->form->arrays; i++)
        run->argument[i] = i == prologue->out ? NULL : call->tensor(call, prologue->form->array[i].value).data;
    weft_program_code *const code = weft_tier_code(tier ? tier + 1 : NULL, program);
    weft_program_begin_pieces(&run->pieces, program, code, run->argument, (char *)call->scratch + scratch);
}

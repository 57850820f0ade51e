/* SPDX-License-Identifier: Apache-2.0 */
/* select.c: who schedules an op, and the kind of step that computes a node. */
#include "sched/alias.h"
#include "sched/select.h"
#include "sched/target.h"

static const struct weft_scheduler *const scheduler_of[WEFT_OP_COUNT] = {
#define SCHEDULER(name)
#define SCHEDULE(op, scheduler, kind) [WEFT_OP_##op] = &weft_scheduler_##scheduler,
#include "sched/schedulers.def"
#undef SCHEDULE
};

static const struct weft_step_kind *const kind_of[WEFT_OP_COUNT] = {
#define SCHEDULE(op, scheduler, kind) [WEFT_OP_##op] = &weft_step_##kind,
#include "sched/schedulers.def"
#undef SCHEDULE
#undef SCHEDULER
};

const struct weft_scheduler *weft_scheduler_of(int opcode)
{
    return scheduler_of[opcode]                          ? scheduler_of[opcode]
           : weft_ops[opcode].traits & WEFT_ELEMENTWISE ? &weft_scheduler_pointwise
                                                         : &weft_scheduler_other;
}

const struct weft_step_kind *weft_select_kind(int opcode)
{
    return kind_of[opcode] ? kind_of[opcode] : &weft_step_map;
}

/* What a kernel of the caller's computes, in a plan for its target. */
static bool select_own(const struct weft_scheduling *s, const struct weft_unit *unit, struct weft_step *step)
{
    const struct weft_target_kernel *const own =
        s->target->planned ? weft_target_kernel_noted(s->target, s->graph, unit->first) : NULL;
    if (!own)
        return false;
    *step = weft_step_of(s->graph, unit->first, s->arena);
    if (unit->nodes > 1) {
        step->out = unit->out;
        step->outs = unit->outs;
        weft_step_read(step, s->arena, unit->ins, unit->in);
    }
    step->kind = &weft_step_own;
    step->own = own;
    return true;
}

bool weft_select_unit(const struct weft_scheduling *s, const struct weft_unit *unit, struct weft_step *step)
{
    if (select_own(s, unit, step))
        return true;
    if (unit->nodes > 1)
        return weft_select_group(s, unit, step);
    *step = weft_step_of(s->graph, unit->first, s->arena);
    return weft_select_step(s, step);
}

const char *weft_select_refuses(const struct weft_scheduling *s, const struct weft_unit *unit)
{
    struct weft_step step;
    const bool is_recorded = s->graph->node[unit->first.id].choices; /* whoever formed the group has asked already */
    return unit->nodes == 1 || is_recorded || select_own(s, unit, &step) || weft_select_group(s, unit, &step)
               ? NULL : step.why;
}

bool weft_schedule_refuse(struct weft_step *step, const char *why)
{
    step->why = why;
    return false;
}

bool weft_select_family(const struct weft_scheduling *s, struct weft_step *step)
{
    const int op = weft_opcode_of(s->graph, step->node);
    return weft_scheduler_of(op)->choose(s, step, weft_select_kind(op));
}

/* Between blocks and anything else, which plans for kernels of the caller's have. */
static bool converts_blocks(const struct weft_scheduling *s, const struct weft_step *step)
{
    const struct weft_graph *const g = s->graph;
    return s->target->planned && weft_opcode_of(g, step->node) == WEFT_OP_relayout &&
           (weft_is_split(g, weft_operand(g, step->node, 0)) || weft_is_split(g, step->out[0]));
}

bool weft_select_step(const struct weft_scheduling *s, struct weft_step *step)
{
    if (converts_blocks(s, step)) {
        step->kind = &weft_step_blocks;
        return true;
    }
    if (weft_select_family(s, step))
        return true;
    step->kind = weft_step_is_plain(s->graph, step->node) ? &weft_step_plain : &weft_step_reference;
    return step->kind == &weft_step_plain;
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

enum { LARGEST = 1 << 12 }; /* that a size is made in order to find one at which something is computed */

/* Some sizes twice as large as these and larger still, within their ranges; false if there are none. */
static bool raise(const struct weft_dims *dims, int64_t *symbols)
{
    bool raised = false;
    for (uint32_t i = 0; i < weft_symbol_count(dims); i++) {
        const struct weft_symbol_info *info = weft_symbol_at(dims, i);
        const int64_t before = symbols[i], most = info->high < LARGEST ? info->high : LARGEST;
        if (info->data || before >= most)
            continue;
        symbols[i] = 2 * before + 1 < most ? 2 * before + 1 : most;
        raised = true;
    }
    weft_symbols_at_bounds(dims, symbols);
    return raised;
}

struct weft_bind weft_select_bind(const struct weft_select *s, const struct weft_step *step, const int64_t *symbols)
{
    struct weft_bind bind = {.graph = s->graph, .step = step, .target = s->target, .places = s->places,
                             .symbols = symbols, .workers = s->workers, .parts = 1};
    bind.out = weft_bind_tensor(&bind, step->out[0]);
    for (uint32_t i = 0; i < step->ins && i < WEFT_STEP_POINTERS; i++)
        bind.in[i] = weft_bind_tensor(&bind, step->in[i]);
    return bind;
}

static int64_t elements_of(const struct weft_graph *g, weft_val v)
{
    return weft_dim_value(weft_type_elements(g->dims, weft_type_of(g, v)));
}

/* What is moved into more memory than it takes is moved in each run (plan/load.c). */
bool weft_select_packs(const struct weft_graph *g, const struct weft_step_kind *kind, weft_val v)
{
    struct weft_element element;
    int64_t moved = 0;
    if (!kind->plan_pack || !weft_type_is_constant(weft_type_of(g, v)))
        return false;
    bool copied = false;
    for (weft_node n = weft_def(g, v); weft_is_moved(g, n); n = weft_def(g, v)) {
        if (!weft_axes_are_constant(g, n))
            return false;
        copied |= !weft_is_view(g, n);
        const int64_t elements = weft_is_view(g, n) ? 0 : elements_of(g, v);
        moved = elements > moved ? elements : moved;
        v = weft_operand(g, n, 0);
    }
    if (g->value[v.id].is_static) /* a copy of it is made in each run */
        return !copied;
    return weft_is_const(g, v) && moved <= (weft_const_splat(g, v, &element) ? 1 : elements_of(g, v));
}

bool weft_select_pack(const struct weft_select *s, const struct weft_step *step, struct weft_step_pack *ret)
{
    if (step->ins < 2 || !weft_select_packs(s->graph, step->kind, step->in[1]))
        return false;
    const struct weft_dims *dims = s->graph->dims;
    const size_t count = weft_symbol_count(dims);
    int64_t *const symbols = weft_new(&s->graph->root->scratch, int64_t, count + 1);
    for (size_t i = 0; i < count; i++)
        symbols[i] = s->symbols[i];
    for (;;) {
        const struct weft_bind bind = weft_select_bind(s, step, symbols);
        if (step->kind->plan_pack(&bind, ret))
            return true;
        if (weft_tensor_elements(&bind.out) > 0 || !raise(dims, symbols))
            return false;
    }
}

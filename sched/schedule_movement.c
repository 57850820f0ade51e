/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_movement.c: ops that move elements: copies, views that are none, what is put together, what follows from
 * places alone; and what their operands cost where they lie otherwise. */
#include "sched/alias.h"
#include "sched/format.h"
#include "sched/select.h"

enum { VIEW_FIRST = 2 * WEFT_FORMAT_TIE }; /* a view that is then converted says so, rather than be no view */

/* --- kinds -------------------------------------------------------------------------------------------------------- */

bool weft_schedule_move(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (weft_dtype_bits(weft_type_of(s->graph, step->out[0])->dtype) < 8)
        return weft_schedule_refuse(step, "kernels that copy move whole bytes, and its elements are smaller");
    step->kind = kind;
    return true;
}

bool weft_schedule_copy(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (!weft_schedule_move(s, step, kind))
        return false;
    step->ins = 1;
    return true;
}

static bool choose_iota(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    if (!weft_iota_supports(weft_type_of(s->graph, step->out[0])->dtype))
        return weft_schedule_refuse(step, "its kernel counts in types of whole bytes");
    step->kind = kind;
    return true;
}

/* Padding with a number is a fill and a copy; the other forms repeat elements. */
static bool choose_pad(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    const bool repeats = weft_attr_find(s->graph, step->node, WEFT_ATTR_form) != NULL;
    if (repeats && weft_type_of(s->graph, step->out[0])->rank == 0)
        return weft_schedule_refuse(step, "a table of places needs an axis");
    return repeats ? weft_schedule_copy(s, step, &weft_step_table) : weft_schedule_move(s, step, kind);
}

/* --- views and copies --------------------------------------------------------------------------------------------- */

/* How the operand of a reshape lies in memory: nothing is stored along axes that are repeated. */
static struct weft_layout memory_of(const struct weft_formats *f, weft_val value, uint32_t number)
{
    struct weft_graph *g = f->graph;
    const struct weft_type *type = weft_type_of(g, value);
    struct weft_layout layout = weft_layout_at(g, number, type->rank);
    const uint32_t stored = weft_format_stored_axes(g, value);
    weft_dim step = weft_dim_of(1);
    if (stored == UINT32_MAX || !layout.dense)
        return layout;
    layout.dense = false;
    for (int i = layout.axes - 1; i >= 0; i--) {
        const bool is_stored = stored >> layout.axis[i].axis & 1;
        layout.stride[i] = is_stored ? step : weft_dim_of(0);
        if (is_stored)
            step = weft_dim_mul(g->dims, step, weft_layout_axis_extent(g->dims, &layout, i, type));
    }
    return layout;
}

/* Where a reshape of what lies so is a view, and how; else it is a copy. */
static bool views(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, struct weft_layout *ret)
{
    struct weft_graph *g = f->graph;
    const struct weft_layout stored = memory_of(f, weft_pin_value(g, operand), layout);
    const struct weft_pin pin = {.node = operand.node, .result = true};
    if (stored.dense)
        return weft_carry_layout(g, operand, &stored, pin, WEFT_NEW_OUTERMOST, ret);
    if (!weft_view_layout(g, operand.node, &stored, ret))
        return false;
    weft_layout_canonical(g->dims, ret, weft_type_of(g, weft_result(g, operand.node, 0)));
    return true;
}

bool weft_format_is_copied(const struct weft_formats *f, struct weft_pin operand, uint32_t layout)
{
    struct weft_layout view;
    return weft_opcode_of(f->graph, operand.node) == WEFT_OP_reshape && !views(f, operand, layout, &view);
}

/* A view is where its operand is; in another order it is a copy. What is stored with gaps, or not at all along some
 * axes, may be no view where the same order without gaps is one. */
static int64_t reshape_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    struct weft_graph *g = f->graph;
    const weft_val from = weft_pin_value(g, operand), to = weft_result(g, operand.node, 0);
    struct weft_layout view;
    if (!views(f, operand, layout, &view)) {
        const struct weft_layout stored = weft_layout_at(g, layout, weft_type_of(g, from)->rank);
        const struct weft_layout wanted = weft_layout_at(g, result, weft_type_of(g, to)->rank);
        return weft_format_copy_ps(f, from, &stored, to, &wanted);
    }
    const uint32_t number = weft_intern_layout(g, &view, weft_type_of(g, to));
    const int64_t ps = weft_format_convert_ps(f, to, number, result);
    return ps == 0 || (!view.dense && weft_format_has_order(f, to, number, result)) ? 0 : VIEW_FIRST + ps;
}

/* The same of a transpose or slice. What is wanted with gaps is a copy also where the order is the same. */
static int64_t view_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    struct weft_graph *g = f->graph;
    const enum weft_format_agreement agreement = weft_format_agreement_of(g, operand, layout, result);
    const weft_val from = weft_pin_value(g, operand), to = weft_result(g, operand.node, 0);
    const struct weft_type *type = weft_type_of(g, to);
    const struct weft_layout stored = weft_layout_at(g, layout, weft_type_of(g, from)->rank);
    const struct weft_pin pin = {.node = operand.node, .result = true};
    struct weft_layout view;
    if (agreement == WEFT_SAME_ORDER && weft_layout_peek(g, result, type->rank)->dense)
        return 0;
    if (!weft_carry_layout(g, operand, &stored, pin, WEFT_NEW_OUTERMOST, &view))
        return VIEW_FIRST + weft_format_convert_ps(f, from, layout, 0) + weft_format_convert_ps(f, to, 0, result);
    const int64_t ps = weft_format_convert_ps(f, to, weft_intern_layout(g, &view, type), result);
    return ps ? VIEW_FIRST + ps : 0;
}

/* A relayout that is there costs what one would that is put in, an address that it makes included; between layouts
 * that are the same it goes away. */
static int64_t moved_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const weft_val value = weft_pin_value(f->graph, operand);
    const int rank = weft_type_of(f->graph, value)->rank;
    const struct weft_layout from = weft_layout_at(f->graph, layout, rank), to = weft_layout_at(f->graph, result, rank);
    return layout == result ? 0 : weft_format_relayout_ps(f, value, &from, &to);
}

/* A repetition that is no view: what it writes is copied. */
static int64_t repeated_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val to = weft_result(g, operand.node, 0);
    const enum weft_format_agreement agreement = weft_format_agreement_of(g, operand, layout, result);
    const int64_t copied = weft_dtype_bytes(weft_type_of(g, to)->dtype, weft_format_elements(g, to));
    return agreement == WEFT_SAME_ORDER
               ? 0 : weft_format_step_ps(f) + weft_format_move_ps(f, copied, agreement == WEFT_SAME_RUNS
                                                                                ? WEFT_PRICE_convert_runs_near
                                                                                : WEFT_PRICE_convert_transpose_near);
}

/* --- what is put together ----------------------------------------------------------------------------------------- */

bool weft_format_is_cut(const struct weft_graph *g, weft_node n)
{
    const struct weft_attr *pad = weft_opcode_of(g, n) == WEFT_OP_pad ? weft_attr_find(g, n, WEFT_ATTR_pad) : NULL;
    bool adds = !pad || weft_attr_find(g, n, WEFT_ATTR_form);
    for (uint32_t i = 0; !adds && i < pad->count; i++)
        adds = !weft_dim_is_constant(pad->integers[i]) || weft_dim_value(pad->integers[i]) > 0;
    return !adds;
}

/* A piece of what is put together: in the order of the whole it may yet turn out to be in its place, and across that
 * it is never. */
static int64_t piece_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const enum weft_format_agreement agreement = weft_format_agreement_of(f->graph, operand, layout, result);
    const int64_t bytes = weft_format_bytes(f, weft_pin_value(f->graph, operand));
    const int64_t across = weft_format_move_ps(f, bytes, WEFT_PRICE_convert_general_near);
    if (agreement != WEFT_SAME_ORDER)
        return across + WEFT_FORMAT_TIE;
    const int64_t joined = weft_format_join_ps(f, operand, layout, result);
    return joined < across ? joined : across;
}

static int64_t pad_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    if (weft_format_is_cut(f->graph, operand.node))
        return view_ps(f, operand, layout, result);
    return weft_attr_find(f->graph, operand.node, WEFT_ATTR_form) ? weft_format_across_ps(f, operand, layout, result)
                                                                  : piece_ps(f, operand, layout, result);
}

/* --- schedulers --------------------------------------------------------------------------------------------------- */

const struct weft_scheduler weft_scheduler_copy = {.name = "copy", .choose = weft_schedule_copy};
const struct weft_scheduler weft_scheduler_reshape = {
    .name = "reshape", .choose = weft_schedule_copy, .own_pins = true, .read_ps = reshape_ps};
const struct weft_scheduler weft_scheduler_relayout = {
    .name = "relayout", .choose = weft_schedule_copy, .own_pins = true, .read_ps = moved_ps};
const struct weft_scheduler weft_scheduler_view = {.name = "view", .choose = weft_schedule_copy, .read_ps = view_ps};
const struct weft_scheduler weft_scheduler_broadcast = {
    .name = "broadcast", .choose = weft_schedule_copy, .read_ps = repeated_ps};
const struct weft_scheduler weft_scheduler_concat = {
    .name = "concat", .choose = weft_schedule_move, .read_ps = piece_ps};
const struct weft_scheduler weft_scheduler_pad = {.name = "pad", .choose = choose_pad, .read_ps = pad_ps};
const struct weft_scheduler weft_scheduler_iota = {.name = "iota", .choose = choose_iota};

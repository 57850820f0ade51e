/* SPDX-License-Identifier: Apache-2.0 */
/* format_price.c: what layouts cost, in picoseconds.
 *
 * An op that reads an operand in the order in which it writes its result streams both. In another order it either
 * walks one of them with strides, or somebody converts the operand first; which of the two is cheaper is found out by
 * who asks, for this page prices both. What one order is, format_order.c says.
 *
 * Costs are bytes at the speed of the memory that a value of that size lives in, times a factor for the kind of
 * access; the rates are the target's (prices.h). They are there to rank layouts, not to foretell times. What the ops of
 * a family cost their scheduler says (schedule_*.c). */
#include "sched/format.h"
#include "sched/select.h"

enum { LITTLE_BYTES = 64 << 10 }; /* as much as folding may add */
enum { DOUBT = 4 };         /* of what another order than row-major is said to save, so much is not believed: 1 / 4 */

/* --- bytes -------------------------------------------------------------------------------------------------------- */

int64_t weft_format_elements(const struct weft_graph *g, weft_val value)
{
    const struct weft_type *type = weft_type_of(g, value);
    double elements = 1;
    for (int i = 0; i < type->rank; i++) {
        const int64_t extent = weft_dim_hint(g->dims, type->extent[i]);
        elements *= extent > 0 ? (double)extent : 0; /* what is none for these hints is empty */
    }
    const double most = 1e15;
    return (int64_t)(elements < most ? elements : most);
}

weft_val weft_format_stored(const struct weft_graph *g, weft_val v)
{
    while (weft_def(g, v).id && weft_def_opcode(g, v) == WEFT_OP_bcast)
        v = weft_operand(g, weft_def(g, v), 0);
    return v;
}

uint32_t weft_format_stored_axes(const struct weft_graph *g, weft_val v)
{
    const weft_node n = weft_def(g, v);
    if (!n.id || weft_opcode_of(g, n) != WEFT_OP_bcast)
        return UINT32_MAX;
    const struct weft_type *from = weft_type_of(g, weft_operand(g, n, 0));
    uint32_t axes = 0;
    for (int i = 0; i < from->rank; i++)
        if (!weft_dim_is(from->extent[i], 1))
            axes |= 1u << weft_dim_value(weft_attr_at(g, n, WEFT_ATTR_dims, (unsigned)i));
    return axes;
}

int64_t weft_format_bytes(const struct weft_formats *f, weft_val value)
{
    const struct weft_graph *g = f->graph;
    struct weft_element element;
    value = weft_format_stored(g, value);
    if (weft_is_const(g, value) && weft_const_splat(g, value, &element))
        return 0;
    return weft_dtype_bytes(weft_type_of(g, value)->dtype, weft_format_elements(g, value));
}

enum weft_price weft_format_level(const struct weft_target *target, enum weft_price first, int64_t bytes)
{
    const bool fits_l2 = bytes <= (int64_t)target->l2 / 2, fits_l3 = bytes <= (int64_t)target->l3 / 2;
    return first + (fits_l2 ? 0 : fits_l3 ? 1 : 2); /* without a shared cache all else is in memory */
}

int64_t weft_format_rate_ps(const struct weft_formats *f, double count, enum weft_price price)
{
    const double most = 1e15; /* sums of many stay numbers */
    const double ps = count * weft_price_of(f->target, price) * 1e-3;
    return (int64_t)(ps < most ? ps : most);
}

int64_t weft_format_doubted_ps(int64_t row_major, int64_t other)
{
    return other < row_major ? other + (row_major - other) / DOUBT : other;
}

int64_t weft_format_extra_ps(const struct weft_formats *f, enum weft_price first, int64_t bytes,
                             enum weft_price percent)
{
    const int32_t factor = weft_price_of(f->target, percent);
    return factor <= 100 ? 0 : weft_format_rate_ps(f, (double)bytes * (factor - 100) * 1e-2,
                                                   weft_format_level(f->target, first, bytes));
}

bool weft_format_is_loaded(const struct weft_graph *g, weft_val v)
{
    struct weft_element element;
    return weft_is_const(g, v) && !weft_const_splat(g, v, &element) && weft_type_is_constant(weft_type_of(g, v));
}

/* Of a table a run reads a few rows: the whole of it in another order would have to be made, and read across. */
static bool is_table(const struct weft_graph *g, weft_val v)
{
    const struct weft_operand *use = g->value[v.id].first_use ? &g->slot[g->value[v.id].first_use - 1] : NULL;
    return use && weft_opcode_of(g, use->node) == WEFT_OP_gather && weft_is(weft_operand(g, use->node, 0), v);
}

bool weft_format_converts_once(const struct weft_formats *f, weft_val v)
{
    const struct weft_graph *g = f->graph;
    return weft_format_is_loaded(g, v) && !g->value[v.id].returns && !is_table(g, v) &&
           (f->target->kernel || g->value[v.id].uses == 1 || weft_format_bytes(f, v) <= LITTLE_BYTES);
}

int64_t weft_format_turn_ps(const struct weft_formats *f, weft_val value)
{
    return weft_format_move_ps(f, weft_format_bytes(f, value), WEFT_PRICE_convert_transpose_near);
}

/* --- ops ---------------------------------------------------------------------------------------------------------- */

int64_t weft_format_write_ps(const struct weft_formats *f, weft_val value, uint32_t layout)
{
    const struct weft_graph *g = f->graph;
    const weft_node n = weft_def(g, value);
    const struct weft_pin pin = {.node = n, .result = true, .index = g->value[value.id].result};
    const struct weft_scheduler *const scheduler = weft_scheduler_of(weft_opcode_of(g, n));
    if (scheduler->result_ps)
        return scheduler->result_ps(f, pin, layout);
    if (scheduler->own_pins)
        return scheduler->write_ps ? scheduler->write_ps(f, n, layout) : 0; /* see weft_format_read_ps */
    if (weft_op_of(g, n)->traits & WEFT_CONTROL)
        return weft_format_port_write_ps(f, value, layout);
    if (weft_pin_kind_of(g, pin) != WEFT_PIN_MAPPED) /* a stated layout is there, whatever the op is */
        return layout == 0 || (f->list[value.id].is_fact && layout == f->list[value.id].layout[0])
                   ? 0 : WEFT_LABEL_NEVER;
    return scheduler->write_ps ? scheduler->write_ps(f, n, layout) : 0;
}

/* What a conversion for somebody else has made, where a node of one operand might read the parameter itself. */
static bool reads_copy(const struct weft_formats *f, struct weft_pin operand, uint32_t layout)
{
    const weft_val v = weft_pin_value(f->graph, operand);
    const struct weft_format_list *list = &f->list[v.id];
    return list->is_fact && f->graph->value[v.id].uses > 1 && layout != list->layout[0] &&
           f->graph->node[operand.node.id].operands == 1;
}

int64_t weft_format_across_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const enum weft_format_agreement agreement = weft_format_agreement_of(f->graph, operand, layout, result);
    return agreement == WEFT_SAME_ORDER
               ? 0 : weft_format_extra_ps(f, WEFT_PRICE_read_private,
                                          weft_format_bytes(f, weft_pin_value(f->graph, operand)),
                                          agreement == WEFT_SAME_RUNS ? WEFT_PRICE_access_runs
                                                                      : WEFT_PRICE_access_along);
}

static int64_t read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const struct weft_scheduler *const scheduler = weft_scheduler_of(weft_opcode_of(g, operand.node));
    if (!scheduler->own_pins) {
        if (weft_op_of(g, operand.node)->traits & WEFT_CONTROL && operand.index > 0)
            return weft_format_port_read_ps(f, operand, layout, result);
        const enum weft_pin_kind kind = weft_pin_kind_of(g, operand);
        if (kind == WEFT_PIN_PLAIN)
            return weft_format_convert_ps(f, weft_pin_value(g, operand), layout, 0);
        if (kind == WEFT_PIN_ANY)
            return 0;
    }
    return scheduler->read_ps ? scheduler->read_ps(f, operand, layout, result)
                              : weft_format_across_ps(f, operand, layout, result);
}

int64_t weft_format_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    return read_ps(f, operand, layout, result) + (reads_copy(f, operand, layout) ? WEFT_FORMAT_TIE : 0);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

bool weft_format_promised(const struct weft_formats *f, uint32_t i, uint32_t *ret_layout)
{
    struct weft_graph *g = f->graph;
    const struct weft_return_slot *slot = &g->ret[i];
    if (f->outer) {
        *ret_layout = f->promise ? f->promise[i] : 0;
        return f->promise;
    }
    const weft_val who = slot->mut.id ? slot->mut : slot->value;
    struct weft_layout layout = weft_layout_of(g, who);
    if (layout.kind != WEFT_STORED || layout.strength != WEFT_REQUIRED)
        return false;
    *ret_layout = g->value[who.id].layout;
    return true;
}

int64_t weft_format_return_ps(const struct weft_formats *f, uint32_t i, uint32_t layout)
{
    uint32_t promised;
    const int64_t ps = weft_format_promised(f, i, &promised)
                           ? weft_format_convert_ps(f, f->graph->ret[i].value, layout, promised) : 0;
    return ps ? ps + WEFT_FORMAT_TIE : 0; /* as any other conversion that is a step */
}

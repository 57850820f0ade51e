/* SPDX-License-Identifier: Apache-2.0 */
/* format_price.c: what layouts cost, in picoseconds.
 *
 * An op that reads an operand in the order in which it writes its result streams both. In another order it either
 * walks one of them with strides, or somebody converts the operand first; which of the two is cheaper is found out by
 * who asks, for this page prices both. What one order is, format_order.c says.
 *
 * Costs are bytes at the speed of the memory that a value of that size lives in, times a factor for the kind of
 * access; the rates are the target's (prices.h). They are there to rank layouts, not to foretell times. What kernels
 * cost in either order of channels is in format_kernel.c. */
#include "sched/alias.h"
#include "sched/format.h"

enum { MIXED_WINDOW = 2 };  /* a window that reads in one order and writes in another, beside row-major */
enum { LITTLE_BYTES = 64 << 10 }; /* as much as folding may add */
enum { DOUBT = 4 };         /* of what another order than row-major is said to save, so much is not believed: 1 / 4 */
enum { VIEW_FIRST = 2 * WEFT_FORMAT_TIE }; /* a view that is then converted says so, rather than be no view */

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

/* A product reads and writes matrices whose rows or whose columns are contiguous; others it copies first, and writes an
 * element at a time. */
static int64_t matrix_ps(const struct weft_formats *f, struct weft_pin pin, uint32_t layout)
{
    const weft_val value = weft_pin_value(f->graph, pin);
    const int rank = weft_type_of(f->graph, value)->rank;
    const int fastest = weft_format_fastest_axis(f, value, layout);
    if (fastest == WEFT_NO_DIM || fastest >= rank - 2)
        return 0;
    return !pin.result ? weft_format_move_ps(f, weft_format_bytes(f, value), WEFT_PRICE_convert_single_near)
                       : weft_format_extra_ps(f, WEFT_PRICE_write_private, weft_format_bytes(f, value),
                                              WEFT_PRICE_access_strided);
}

static int64_t product_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const int64_t turned = matrix_ps(f, operand, layout);
    return (turned ? turned : weft_format_product_read_ps(f, operand, layout, result)) +
           (weft_format_mixes_rows(f, operand, layout, result) ? 0 : WEFT_FORMAT_TIE);
}

int64_t weft_format_write_ps(const struct weft_formats *f, weft_val value, uint32_t layout)
{
    const struct weft_graph *g = f->graph;
    const weft_node n = weft_def(g, value);
    const struct weft_pin pin = {.node = n, .result = true, .index = g->value[value.id].result};
    if (weft_opcode_of(g, n) == WEFT_OP_reshape)
        return 0; /* see weft_format_read_ps */
    if (weft_opcode_of(g, n) == WEFT_OP_custom)
        return weft_format_custom_ps(f, pin, layout);
    if (weft_op_of(g, n)->traits & WEFT_CONTROL)
        return weft_format_port_write_ps(f, value, layout);
    if (weft_pin_kind_of(g, pin) != WEFT_PIN_MAPPED) /* a stated layout is there, whatever the op is */
        return layout == 0 || (f->list[value.id].is_fact && layout == f->list[value.id].layout[0])
                   ? 0 : WEFT_LABEL_NEVER;
    const int op = weft_opcode_of(g, n);
    if (op == WEFT_OP_matmul || op == WEFT_OP_attention)
        return matrix_ps(f, pin, layout) + weft_format_product_write_ps(f, n, layout);
    if (op == WEFT_OP_conv || op == WEFT_OP_conv_transpose)
        return weft_format_conv_write_ps(f, n, layout);
    if (weft_ops[op].traits & WEFT_ELEMENTWISE)
        return weft_format_walk_write_ps(f, n, layout);
    const bool pools = op == WEFT_OP_max_pool || op == WEFT_OP_mean_pool; /* the one kernel that blocks go through */
    if (layout == 0 ||
        (pools ? weft_format_has_channels_inside(f, value, layout) : weft_format_is_last(f, value, layout)))
        return weft_format_kernel_ps(f, n, /* last= */ layout != 0);
    return weft_format_kernel_ps(f, n, /* last= */ false) +
           (weft_format_is_window(op) ? weft_format_convert_ps(f, value, 0, layout) : 0);
}

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
static int64_t view_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result,
                       enum weft_format_agreement agreement)
{
    struct weft_graph *g = f->graph;
    const weft_val from = weft_pin_value(g, operand), to = weft_result(g, operand.node, 0);
    const struct weft_type *type = weft_type_of(g, to);
    const struct weft_layout stored = weft_layout_at(g, layout, weft_type_of(g, from)->rank);
    const struct weft_pin pin = {.node = operand.node, .result = true};
    struct weft_layout view;
    if (agreement == WEFT_SAME_ORDER && weft_layout_at(g, result, type->rank).dense)
        return 0;
    if (!weft_carry_layout(g, operand, &stored, pin, WEFT_NEW_OUTERMOST, &view))
        return VIEW_FIRST + weft_format_convert_ps(f, from, layout, 0) + weft_format_convert_ps(f, to, 0, result);
    const int64_t ps = weft_format_convert_ps(f, to, weft_intern_layout(g, &view, type), result);
    return ps ? VIEW_FIRST + ps : 0;
}

/* A relayout that is there costs what one would that is put in, an address that it makes included; between layouts
 * that are the same it goes away. */
static int64_t moved_ps(const struct weft_formats *f, weft_val value, uint32_t layout, uint32_t result)
{
    const int rank = weft_type_of(f->graph, value)->rank;
    const struct weft_layout from = weft_layout_at(f->graph, layout, rank), to = weft_layout_at(f->graph, result, rank);
    return layout == result ? 0 : weft_format_relayout_ps(f, value, &from, &to);
}

/* What a conversion for somebody else has made, where a node of one operand might read the parameter itself. */
static bool reads_copy(const struct weft_formats *f, struct weft_pin operand, uint32_t layout)
{
    const weft_val v = weft_pin_value(f->graph, operand);
    const struct weft_format_list *list = &f->list[v.id];
    return list->is_fact && f->graph->value[v.id].uses > 1 && layout != list->layout[0] &&
           f->graph->node[operand.node.id].operands == 1;
}

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
static int64_t piece_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result,
                        enum weft_format_agreement agreement)
{
    const int64_t bytes = weft_format_bytes(f, weft_pin_value(f->graph, operand));
    const int64_t across = weft_format_move_ps(f, bytes, WEFT_PRICE_convert_general_near);
    if (agreement != WEFT_SAME_ORDER)
        return across + WEFT_FORMAT_TIE;
    const int64_t joined = weft_format_join_ps(f, operand, layout, result);
    return joined < across ? joined : across;
}

static int64_t read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val value = weft_pin_value(g, operand), to = weft_result(g, operand.node, 0);
    const int op = weft_opcode_of(g, operand.node);
    if (op == WEFT_OP_reshape)
        return reshape_ps(f, operand, layout, result);
    if (op == WEFT_OP_custom)
        return weft_format_custom_ps(f, operand, layout);
    if (weft_op_of(g, operand.node)->traits & WEFT_CONTROL && operand.index > 0)
        return weft_format_port_read_ps(f, operand, layout, result);
    if (op == WEFT_OP_relayout)
        return moved_ps(f, value, layout, result);
    const enum weft_pin_kind kind = weft_pin_kind_of(g, operand);
    if (kind == WEFT_PIN_PLAIN)
        return weft_format_convert_ps(f, value, layout, 0);
    if (kind == WEFT_PIN_ANY)
        return 0;
    if (op == WEFT_OP_matmul || op == WEFT_OP_attention)
        return product_read_ps(f, operand, layout, result);
    if (op == WEFT_OP_conv || op == WEFT_OP_conv_transpose)
        return weft_format_conv_read_ps(f, operand, layout, result);
    if (weft_op_of(g, operand.node)->traits & WEFT_ELEMENTWISE)
        return weft_format_walk_read_ps(f, operand, layout, result);
    const int64_t bytes = weft_format_bytes(f, value);
    const enum weft_format_agreement agreement = weft_format_agreement_of(g, operand, layout, result);
    if (op == WEFT_OP_transpose || op == WEFT_OP_slice || weft_format_is_cut(g, operand.node))
        return view_ps(f, operand, layout, result, agreement);
    if (op == WEFT_OP_concat || (op == WEFT_OP_pad && !weft_attr_find(g, operand.node, WEFT_ATTR_form)))
        return piece_ps(f, operand, layout, result, agreement);
    if (weft_ops[op].traits & WEFT_SCAN)
        return weft_format_scan_ps(f, operand, layout, result);
    const bool reduces = weft_step_is_reduction(g, operand.node);
    const int64_t lines = reduces ? weft_format_reduce_ps(f, operand, layout) : 0;
    if (agreement == WEFT_SAME_ORDER)
        return lines;
    if (weft_format_is_window(op)) /* loops for neighbours on one side only: several times the time of either order */
        return MIXED_WINDOW * weft_format_kernel_ps(f, operand.node, /* last= */ false);
    if (op == WEFT_OP_bcast) { /* then it is no view */
        const int64_t copied = weft_dtype_bytes(weft_type_of(g, to)->dtype, weft_format_elements(g, to));
        return weft_format_step_ps(f) + weft_format_move_ps(f, copied, agreement == WEFT_SAME_RUNS
                                                               ? WEFT_PRICE_convert_runs_near
                                                               : WEFT_PRICE_convert_transpose_near);
    }
    return lines + weft_format_extra_ps(f, WEFT_PRICE_read_private, bytes,
                                        agreement == WEFT_SAME_RUNS ? WEFT_PRICE_access_runs
                                                                    : WEFT_PRICE_access_along);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* format_kernel.c: what kernels cost that know two orders: row-major and channels-last.
 *
 *   %y = conv %x, %w      products of y · rate of the form that the kernel is likely to take (1x1, transforms, …)
 *   %p = max_pool %y      taps of p · rate, by whether its rows fill a vector
 *   %c = concat %p, %q    in place: nothing where pieces are long; writing with gaps where they are short
 *                         (channels-last); a copy where they are shorter than a cache line, or live elsewhere
 *
 * The kernel itself decides by more than is looked at here, when sizes are known; what matters is which order is
 * faster, and by how much beside a conversion. */
#include "sched/format.h"

#include <string.h>

enum { WIDE_ROW = 16, SMALL_WINDOW = 9, TRANSFORMED_CHANNELS = 16, TRANSFORMED_RESULTS = 8 };
enum { COPIED_RUN = 64, LONG_RUN = 4096 }; /* bytes of a piece that is copied below, written at full speed from */

bool weft_format_is_window(int op)
{
    return op == WEFT_OP_conv || op == WEFT_OP_conv_transpose || op == WEFT_OP_max_pool || op == WEFT_OP_mean_pool ||
           op == WEFT_OP_resize;
}

static int64_t extent_at(const struct weft_graph *g, weft_val v, int axis)
{
    const int64_t extent = weft_dim_hint(g->dims, weft_type_of(g, v)->extent[axis]);
    return extent > 0 ? extent : 0;
}

static bool has_wide_rows(const struct weft_graph *g, weft_val v)
{
    return extent_at(g, v, weft_type_of(g, v)->rank - 1) >= WIDE_ROW;
}

/* The row of an order, given that of row-major. */
static enum weft_price in_order(enum weft_price first, bool last) { return first + last; }

/* --- convolutions ------------------------------------------------------------------------------------------------- */

static int64_t taps_of(const struct weft_graph *g, weft_val weight)
{
    int64_t taps = 1;
    for (int i = 2; i < weft_type_of(g, weight)->rank; i++)
        taps *= extent_at(g, weight, i);
    return taps;
}

static bool is_transformed(const struct weft_graph *g, weft_node n)
{
    const weft_val weight = weft_operand(g, n, 1);
    if (weft_opcode_of(g, n) != WEFT_OP_conv || weft_type_of(g, weight)->rank != 4 ||
        extent_at(g, weight, 0) < TRANSFORMED_RESULTS || extent_at(g, weight, 1) < TRANSFORMED_CHANNELS)
        return false;
    for (int i = 0; i < 2; i++)
        if (extent_at(g, weight, 2 + i) != 3 || !weft_dim_is(weft_attr_at(g, n, WEFT_ATTR_stride, (unsigned)i), 1) ||
            !weft_dim_is(weft_attr_at(g, n, WEFT_ATTR_dilation, (unsigned)i), 1))
            return false;
    return true;
}

static enum weft_price conv_price(const struct weft_graph *g, weft_node n)
{
    const weft_val weight = weft_operand(g, n, 1);
    const int64_t groups = weft_attr_int(g, n, WEFT_ATTR_groups), taps = taps_of(g, weight);
    const bool wide = has_wide_rows(g, weft_result(g, n, 0));
    if (groups > 1 && groups == extent_at(g, weft_operand(g, n, 0), 1))
        return taps <= SMALL_WINDOW ? wide ? WEFT_PRICE_depth_small_wide_first : WEFT_PRICE_depth_small_narrow_first
               : wide               ? WEFT_PRICE_depth_large_wide_first
                                    : WEFT_PRICE_depth_large_narrow_first;
    return groups > 1             ? WEFT_PRICE_conv_grouped_first
           : taps == 1            ? WEFT_PRICE_conv_point_first
           : is_transformed(g, n) ? WEFT_PRICE_conv_winograd_first
                                  : WEFT_PRICE_conv_direct_first;
}

/* Each result of a convolution has the weights of its filter; each operand of an adjoint adds to its own. */
static double conv_products(const struct weft_graph *g, weft_node n)
{
    const weft_val weight = weft_operand(g, n, 1);
    const int64_t filters = extent_at(g, weight, 0);
    const weft_val each = weft_opcode_of(g, n) == WEFT_OP_conv ? weft_result(g, n, 0) : weft_operand(g, n, 0);
    return filters > 0 ? (double)weft_format_elements(g, each) * (double)weft_format_elements(g, weight) /
                             (double)filters : 0;
}

/* --- windows and resizes ------------------------------------------------------------------------------------------ */

static double pool_taps(const struct weft_graph *g, weft_node n)
{
    const weft_val result = weft_result(g, n, 0);
    double taps = (double)weft_format_elements(g, result);
    for (int i = 2; i < weft_type_of(g, result)->rank; i++)
        taps *= (double)weft_dim_hint(g->dims, weft_attr_at(g, n, WEFT_ATTR_kernel, (unsigned)(i - 2)));
    return taps;
}

static bool repeats(const struct weft_graph *g, weft_node n)
{
    return strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "nearest") == 0;
}

int64_t weft_format_kernel_ps(const struct weft_formats *f, weft_node n, bool last)
{
    const struct weft_graph *g = f->graph;
    const weft_val result = weft_result(g, n, 0);
    enum weft_price first;
    double count;
    switch (weft_opcode_of(g, n)) {
    case WEFT_OP_conv: case WEFT_OP_conv_transpose:
        first = conv_price(g, n);
        count = conv_products(g, n);
        break;
    case WEFT_OP_max_pool: case WEFT_OP_mean_pool:
        first = has_wide_rows(g, result) ? WEFT_PRICE_pool_wide_first : WEFT_PRICE_pool_narrow_first;
        count = pool_taps(g, n);
        break;
    case WEFT_OP_resize:
        first = repeats(g, n) ? WEFT_PRICE_repeat_first : WEFT_PRICE_blend_first;
        count = (double)weft_format_elements(g, result);
        break;
    default:
        return 0;
    }
    return weft_format_rate_ps(f, count, in_order(first, last));
}

/* --- concats ------------------------------------------------------------------------------------------------------ */

/* Bytes of a piece: what lies inside of the axis that is joined, in the result's order. 0: it is moved by elements. */
static int64_t piece_bytes(const struct weft_graph *g, struct weft_pin operand, uint32_t result)
{
    const weft_val from = weft_pin_value(g, operand);
    const struct weft_type *type = weft_type_of(g, from);
    const struct weft_layout layout = weft_layout_at(g, result, type->rank);
    const int64_t joined = weft_attr_int(g, operand.node, WEFT_ATTR_axis);
    const bool is_last = operand.index + 1 == g->node[operand.node.id].operands;
    double piece = 1;
    for (int i = layout.axes - 1; i >= 0; i--) {
        const struct weft_axis *axis = &layout.axis[i];
        const int64_t extent = weft_dim_hint(g->dims, type->extent[axis->axis]);
        const int64_t digit = (extent + axis->div - 1) / axis->div;
        piece *= (double)(axis->mod && axis->mod < digit ? axis->mod : digit);
        if (axis->axis == joined && !axis->mod && extent % axis->div && !is_last)
            return 0; /* what follows begins within a block */
        if (axis->axis == joined && !axis->mod)
            break;
    }
    const double most = 1e15;
    return weft_dtype_bytes(type->dtype, (int64_t)(piece < most ? piece : most));
}

/* sched/alias.h: parameters, constants and results have places of their own. */
static bool lives_elsewhere(const struct weft_graph *g, weft_val v)
{
    while (weft_is_view(g, weft_def(g, v))) {
        const int op = weft_def_opcode(g, v);
        if (op == WEFT_OP_slice || op == WEFT_OP_bcast)
            return true;
        v = weft_operand(g, weft_def(g, v), 0);
    }
    return g->value[v.id].is_param || weft_is_const(g, v) || g->value[v.id].returns;
}

enum { LIVES_ELSEWHERE = 1, IS_ELEMENTWISE = 2 };

uint32_t weft_format_piece_kind(const struct weft_graph *g, weft_val v)
{
    const bool is_elementwise = weft_op_of(g, weft_def(g, v))->traits & WEFT_ELEMENTWISE;
    return (lives_elsewhere(g, v) ? LIVES_ELSEWHERE : 0) | (is_elementwise ? IS_ELEMENTWISE : 0);
}

int64_t weft_format_join_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val from = weft_pin_value(g, operand);
    const struct weft_format_list *list = &f->list[from.id];
    const bool is_copy = g->value[from.id].is_param && g->value[from.id].uses == 1 && list->is_fact &&
                         layout != list->layout[0]; /* a relayout, which may be computed in place */
    const int64_t bytes = weft_format_bytes(f, from), piece = piece_bytes(g, operand, result);
    const uint32_t kind = weft_format_piece_kind(g, from);
    /* convolutions and windows write rows in any case */
    if (piece >= COPIED_RUN && (is_copy || !(kind & LIVES_ELSEWHERE)))
        return piece >= LONG_RUN || !(kind & IS_ELEMENTWISE)
                   ? 0 : weft_format_extra_ps(f, WEFT_PRICE_write_private, bytes, WEFT_PRICE_access_gaps);
    return weft_format_stream_ps(f, WEFT_PRICE_copy_private, bytes,
                                 piece >= COPIED_RUN ? WEFT_PRICE_convert_runs : WEFT_PRICE_convert_transpose);
}

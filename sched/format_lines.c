/* SPDX-License-Identifier: Apache-2.0 */
/* format_lines.c: what ops pay that go along axes: sums, means, extremes; scans.
 *
 *   %s = sum %x         over the innermost axis: what a line of terms takes besides them
 *   %s = sum %x         over another one, the innermost has 4: each row of results takes a vector, a quarter full
 *   %c = cumsum %x      along the innermost axis of both, or along another one, the innermost being the same: what an
 *                       element takes more than in the other way (kernels/along/price.c)
 *   %c = cumsum %x      along the innermost axis of one of them: element by element
 *
 * The kernel of reductions is asked which loops it takes, with sizes at their hints. A few lines or rows are no reason
 * to leave an order.
 *
 * What will be in a group takes less: there a row is loaded once for all ops, and no call is made for each. Groups are
 * formed when layouts are there, so this goes by what nodes are and read:
 *
 *   %m = mean %x            %d reads the mean of its rows once more for each element: %m and %d go along
 *   %d = sub %x, %m */
#include "sched/format.h"

#include "codegen/pointwise.h"
#include "kernels/along/scan.h"

enum { FEW_LINES = 8 };     /* fewer side by side wait for each other's sums */
enum { GROUP_SHARE = 4 };   /* lines and calls take 1 / 4 in a group: sched/step_strips.c */

/* --- groups ------------------------------------------------------------------------------------------------------- */

static bool folds(const struct weft_graph *g, weft_node n)
{
    enum weft_reduce_op op;
    return n.id && weft_pointwise_fold(weft_opcode_of(g, n), &op);
}

static bool is_elementwise(const struct weft_graph *g, weft_node n)
{
    return weft_op_of(g, n)->traits & WEFT_ELEMENTWISE;
}

enum { FEW = 4 }; /* ops on a way that is looked at */

/* Does an operand repeat what a reduction made of rows, or what elementwise ops made of that? */
static bool repeats_fold(const struct weft_graph *g, weft_val v)
{
    const weft_val stored = weft_format_stored(g, v);
    weft_node n = weft_def(g, stored);
    for (int i = 0; i < FEW && !weft_is(v, stored) && n.id && !folds(g, n) &&
                    (is_elementwise(g, n) || weft_is_view(g, n)) && g->node[n.id].operands > 0; i++)
        n = weft_def(g, weft_operand(g, n, 0));
    return !weft_is(v, stored) && folds(g, n);
}

/* Does an elementwise op read it, repeated, or what at most so many ops make of it? */
static bool is_repeated(const struct weft_graph *g, weft_val v, int most)
{
    bool repeated = false;
    for (uint32_t use = g->value[v.id].first_use; use && most > 0 && !repeated; use = g->slot[use - 1].next) {
        const weft_node reader = g->slot[use - 1].node;
        const weft_val made = weft_result(g, reader, 0);
        const uint32_t inner = weft_opcode_of(g, reader) == WEFT_OP_bcast ? g->value[made.id].first_use : 0;
        repeated = inner ? is_elementwise(g, g->slot[inner - 1].node)
                         : (is_elementwise(g, reader) || weft_is_view(g, reader)) && is_repeated(g, made, most - 1);
    }
    return repeated;
}

/* Is it made by elementwise ops, at most so many, of which one reads such an operand? */
static bool follows_fold(const struct weft_graph *g, weft_val v, int most)
{
    const weft_node n = weft_def(g, v);
    bool follows = false;
    for (uint32_t i = 0; n.id && most > 0 && i < g->node[n.id].operands && !follows && is_elementwise(g, n); i++)
        follows = repeats_fold(g, weft_operand(g, n, i)) || follows_fold(g, weft_operand(g, n, i), most - 1);
    return follows;
}

/* And an elementwise op goes along where nothing but such a node reads it. */
static bool goes_along(const struct weft_graph *g, weft_node n, int most)
{
    if (folds(g, n))
        return is_repeated(g, weft_result(g, n, 0), FEW) || follows_fold(g, weft_operand(g, n, 0), FEW);
    if (!is_elementwise(g, n))
        return false;
    bool along = false;
    for (uint32_t i = 0; i < g->node[n.id].operands; i++)
        along |= repeats_fold(g, weft_operand(g, n, i));
    const struct weft_value *const made = &g->value[weft_result(g, n, 0).id];
    const bool has_one_reader = made->first_use && !g->slot[made->first_use - 1].next && !made->returns;
    return along || (most > 0 && has_one_reader && goes_along(g, g->slot[made->first_use - 1].node, most - 1));
}

bool weft_format_goes_along(const struct weft_graph *g, weft_node n) { return goes_along(g, n, FEW); }

int64_t weft_format_in_group_ps(const struct weft_formats *f, weft_node n, int64_t ps)
{
    return weft_format_goes_along(f->graph, n) ? ps / GROUP_SHARE : ps;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

int64_t weft_format_reduce_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout)
{
    const struct weft_graph *g = f->graph;
    const weft_node n = operand.node;
    const weft_val value = weft_pin_value(g, operand);
    struct weft_reduce reduce;
    if (weft_format_elements(g, value) == 0 || !weft_format_reduce(f, n, layout, 0, &reduce))
        return 0;
    weft_reduce_prepare(&reduce, 1);
    const double lines = weft_step_reduce_lines(&reduce, (double)weft_format_elements(g, value),
                                                (double)weft_format_elements(g, weft_result(g, n, 0)));
    const int64_t ps = weft_format_rate_ps(f, lines, WEFT_PRICE_reduce_line);
    return weft_format_beyond_little(weft_format_in_group_ps(f, n, ps));
}

/* What an element takes more along lines than across them, or the other way round, for all elements. */
static int64_t scan_arithmetic_ps(const struct weft_formats *f, weft_node n, weft_val x, bool along_line)
{
    const struct weft_graph *g = f->graph;
    const struct weft_type *const type = weft_type_of(g, x);
    const int axis = (int)weft_attr_int(g, n, WEFT_ATTR_axis);
    const struct weft_along along = {
        .op = weft_step_along_op(weft_opcode_of(g, n)), .dtype = type->dtype, .cpu = f->target->cpu,
        .n = weft_dim_hint(g->dims, type->extent[axis]), .in_step = 1, .out_step = 1};
    const struct weft_scan_rates rates = weft_scan_rates_of(&along);
    const double more = along_line ? rates.line_ns - rates.beside_ns : rates.beside_ns - rates.line_ns;
    const double ps = 1e3 * more * (double)weft_format_elements(g, x) / weft_prices_of(f->target)->threads;
    return ps > 0 ? (int64_t)ps : 0;
}

int64_t weft_format_scan_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val x = weft_pin_value(g, operand), y = weft_result(g, operand.node, 0);
    const int axis = (int)weft_attr_int(g, operand.node, WEFT_ATTR_axis);
    const int from = weft_format_fastest_axis(f, x, layout), to = weft_format_fastest_axis(f, y, result);
    const bool together = from == to && from != axis && from != WEFT_NO_DIM;
    if (together && weft_dim_hint(g->dims, weft_type_of(g, x)->extent[from]) >= FEW_LINES)
        return scan_arithmetic_ps(f, operand.node, x, /* along_line= */ false);
    if (from == axis && to == axis)
        return scan_arithmetic_ps(f, operand.node, x, /* along_line= */ true);
    return weft_format_extra_ps(f, WEFT_PRICE_read_private, weft_format_bytes(f, x),
                                from == axis || together ? WEFT_PRICE_access_from_lines
                                                         : WEFT_PRICE_access_to_lines);
}

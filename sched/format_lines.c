/* SPDX-License-Identifier: Apache-2.0 */
/* format_lines.c: what ops pay that go along axes: sums, means, extremes; scans.
 *
 *   %s = sum %x         over the innermost axis: what a line of terms takes besides them
 *   %s = sum %x         over another one, the innermost has 4: each row of results takes a vector, a quarter full
 *   %c = cumsum %x      along the innermost axis, of x or of the result: element by element
 *   %c = cumsum %x      along another one, the innermost being the same in both: in vectors, like memory
 *
 * The kernel of reductions is asked which loops it takes, with sizes at their hints. A few lines or rows are no reason
 * to leave an order. */
#include "sched/format.h"

enum { FEW_LINES = 8 };     /* fewer side by side wait for each other's sums */

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
    return weft_format_beyond_little(weft_format_rate_ps(f, lines, WEFT_PRICE_reduce_line));
}

int64_t weft_format_scan_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val x = weft_pin_value(g, operand), y = weft_result(g, operand.node, 0);
    const int axis = (int)weft_attr_int(g, operand.node, WEFT_ATTR_axis);
    const int from = weft_format_fastest_axis(f, x, layout), to = weft_format_fastest_axis(f, y, result);
    const bool together = from == to && from != axis && from != WEFT_NO_DIM;
    if (together && weft_dim_hint(g->dims, weft_type_of(g, x)->extent[from]) >= FEW_LINES)
        return 0;
    return weft_format_extra_ps(f, WEFT_PRICE_read_private, weft_format_bytes(f, x),
                                from == axis || together ? WEFT_PRICE_access_from_lines
                                                         : WEFT_PRICE_access_to_lines);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* format_port.c: how layouts go into the bodies of `if` and `loop`, and out of them.
 *
 *   %y = loop %n, %x, %w body=@body carried=1      @body(%i, %c, %w) … return %t
 *
 * What is carried lies in one layout all the time: %y, %c and %t as the caller of the trip finds them, since each trip
 * reads what the one before has written. %x may lie otherwise and is then converted once, ahead. What is handed over,
 * %w, is read where it is, in its own layout, or converted once, ahead. Of an `if` both bodies are handed the same, and
 * return a result in one layout. An element that a loop collects is written in its place along axis 0 of the result, so
 * that the result may lie in each order that has axis 0 outermost. */
#include "sched/format.h"

enum { AHEAD = 2 * WEFT_FORMAT_TIE }; /* a conversion that others may share goes before one within the node */

uint32_t weft_format_bodies(const struct weft_formats *f, weft_node n, struct weft_formats *ret_body[WEFT_MOST_BODIES])
{
    const struct weft_node_info *info = &f->graph->node[n.id];
    uint32_t count = 0;
    for (unsigned i = 0; i < info->attrs && count < WEFT_MOST_BODIES; i++)
        if (info->attr[i].kind == WEFT_ATTR_GRAPH)
            ret_body[count++] = f->body[info->attr[i].graph->index];
    return count;
}

static bool is_collected(const struct weft_graph *g, weft_node n, uint32_t result)
{
    return weft_opcode_of(g, n) == WEFT_OP_loop && !weft_format_is_carried(g, n, result + 1);
}

bool weft_format_is_carried(const struct weft_graph *g, weft_node n, uint32_t operand)
{
    const struct weft_attr *carried = weft_attr_find(g, n, WEFT_ATTR_carried);
    const int64_t count = carried ? weft_dim_value(carried->integer) : (int64_t)g->node[n.id].operands - 1;
    return weft_opcode_of(g, n) == WEFT_OP_loop && operand <= count;
}

weft_val weft_format_param_of(const struct weft_formats *body, weft_node n, uint32_t operand)
{
    const bool loop = weft_opcode_of(body->outer->graph, n) == WEFT_OP_loop; /* parameter 0 is the number of the trip */
    return body->graph->param[operand - !loop];
}

uint32_t weft_format_order(const struct weft_formats *f, weft_val v, uint32_t number)
{
    struct weft_layout layout = weft_layout_at(f->graph, number, weft_type_of(f->graph, v)->rank);
    layout.dense = true;
    layout.align = 0;
    layout.strength = WEFT_REQUIRED;
    layout.offset = weft_dim_of(0);
    return weft_intern_layout(f->graph, &layout, weft_type_of(f->graph, v));
}

static weft_val returned_by(const struct weft_formats *outer, weft_node n, uint32_t i, struct weft_graph **ret_body)
{
    struct weft_formats *body[WEFT_MOST_BODIES];
    weft_format_bodies(outer, n, body);
    *ret_body = body[0]->graph;
    return body[0]->graph->ret[i].value;
}

bool weft_format_inner(const struct weft_formats *outer, weft_node n, uint32_t i, uint32_t number, uint32_t *ret)
{
    struct weft_graph *g = outer->graph, *body;
    const weft_val result = weft_result(g, n, i), inner = returned_by(outer, n, i, &body);
    const struct weft_layout whole = weft_layout_at(g, number, weft_type_of(g, result)->rank);
    struct weft_layout element = {.kind = WEFT_STORED, .dense = true};
    if (!is_collected(g, n, i)) {
        *ret = weft_format_order(outer, result, number);
        return true;
    }
    for (int k = 0; k < whole.axes; k++) {
        struct weft_axis digit = whole.axis[k];
        if (digit.axis == 0 && (digit.div != 1 || digit.mod))
            return false;
        if (digit.axis == 0)
            continue;
        digit.axis--;
        element.axis[element.axes++] = digit;
    }
    *ret = weft_intern_layout(g, &element, weft_type_of(body, inner));
    return true;
}

bool weft_format_outer(const struct weft_formats *outer, weft_node n, uint32_t i, uint32_t number, uint32_t *ret)
{
    struct weft_graph *g = outer->graph, *body;
    const weft_val result = weft_result(g, n, i), inner = returned_by(outer, n, i, &body);
    if (!is_collected(g, n, i)) {
        *ret = weft_format_order(outer, result, number);
        return true;
    }
    const struct weft_layout element = weft_layout_at(g, number, weft_type_of(body, inner)->rank);
    struct weft_layout whole = {.kind = WEFT_STORED, .dense = true, .axes = 1, .axis = {{.div = 1}}};
    if (element.axes == WEFT_MAX_STORAGE)
        return false;
    for (int k = 0; k < element.axes; k++) {
        whole.axis[whole.axes] = element.axis[k];
        whole.axis[whole.axes++].axis++;
    }
    *ret = weft_intern_layout(g, &whole, weft_type_of(g, result));
    return true;
}

int64_t weft_format_port_write_ps(const struct weft_formats *f, weft_val v, uint32_t number)
{
    const struct weft_graph *g = f->graph;
    const int rank = weft_type_of(g, v)->rank;
    const struct weft_layout layout = weft_layout_at(g, number, rank);
    const struct weft_format_list *list = &f->list[v.id];
    if (number == 0 || (list->is_fact && number == list->layout[0]))
        return 0;
    const bool splits = layout.axes > rank, inside = is_collected(g, weft_def(g, v), g->value[v.id].result) &&
                                                     layout.axis[0].axis != 0;
    return splits || inside || !layout.dense || layout.align ? WEFT_LABEL_NEVER : 0;
}

/* One number for all places, which a first trip finds copied in any case. */
static bool is_one_number(const struct weft_graph *g, weft_val v)
{
    struct weft_element element;
    v = weft_format_stored(g, v);
    return weft_is_const(g, v) && weft_const_splat(g, v, &element);
}

int64_t weft_format_port_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t inner)
{
    const weft_val v = weft_pin_value(f->graph, operand);
    const bool carried = weft_format_is_carried(f->graph, operand.node, operand.index);
    if (layout == inner || is_one_number(f->graph, v))
        return 0;
    if (!carried && weft_format_has_order(f, v, layout, inner)) /* read where it is, with gaps or without */
        return 0;
    return AHEAD + weft_format_convert_ps(f, v, layout, inner);
}

const struct weft_formats *weft_format_handed_to(const struct weft_formats *f, weft_node n, uint32_t i, weft_val *ret)
{
    struct weft_formats *body[WEFT_MOST_BODIES];
    *ret = weft_result(f->graph, n, 0);
    if (i == 0 || !weft_format_bodies(f, n, body))
        return f;
    if (weft_format_is_carried(f->graph, n, i)) {
        *ret = weft_result(f->graph, n, i - 1);
        return f;
    }
    *ret = weft_format_param_of(body[0], n, i);
    return body[0];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c: a whole graph: symbols, the extents that its shapes are made of, nodes, results, layouts. */
#include "tests/property/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static weft_generator *const generators[WEFT_OP_COUNT] = {
#define DRAWN(op, generator) [WEFT_OP_##op] = weft_draw_##generator,
#define NOT_DRAWN(op, reason)
#include "tests/property/draw.def"
#undef DRAWN
#undef NOT_DRAWN
};
static const char *const reasons[WEFT_OP_COUNT] = {
#define DRAWN(op, generator) [WEFT_OP_##op] = NULL,
#define NOT_DRAWN(op, reason) [WEFT_OP_##op] = reason,
#include "tests/property/draw.def"
#undef DRAWN
#undef NOT_DRAWN
};

const char *weft_draw_table_error(void)
{
    for (int op = 1; op < WEFT_OP_COUNT; op++)
        if (!generators[op] == !reasons[op] || (reasons[op] && !*reasons[op]))
            return weft_ops[op].name;
    return NULL;
}

bool weft_is_drawn(int op) { return generators[op]; }

int weft_draw_first = WEFT_OP_NONE;

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static double elements_of(const struct weft_maker *m, weft_val value)
{
    const struct weft_type *type = weft_drawn_type(m, value);
    double elements = 1;
    for (int i = 0; i < type->rank; i++)
        elements *= (double)weft_dim_evaluate(m->graph->dims, type->extent[i], m->symbols);
    return elements;
}

void weft_keep_value(struct weft_maker *m, weft_val value)
{
    if (m->values < WEFT_MOST_VALUES && elements_of(m, value) <= (double)m->most_elements)
        m->value[m->values++] = value;
}

weft_node weft_emit(struct weft_maker *m, int op, unsigned operands, const weft_val *operand, unsigned attrs,
                    const struct weft_attr *attr, const struct weft_type *stated)
{
    for (unsigned i = 0; i < operands; i++)
        if (!operand[i].id)
            return WEFT_NO_NODE;
    struct weft_constant constant = {.kind = WEFT_CONST_RANDOM, .scale = 2};
    if (op == WEFT_OP_const)
        constant.seed = weft_draw(m, 1000);
    const weft_node node = weft_add_node(
        m->graph, &(struct weft_node_spec){.op = op, .operand = operand, .operands = operands, .attr = attr,
                                           .attrs = attrs, .stated = stated,
                                           .constant = op == WEFT_OP_const ? &constant : NULL});
    if (!node.id)
        return node;
    const unsigned results = weft_node_of(m->graph, node)->results;
    for (unsigned i = 0; i < results; i++)
        if (elements_of(m, weft_result(m->graph, node, i)) > 1e6) { /* would take for ever, or all memory */
            weft_erase_node(m->graph, node);
            return WEFT_NO_NODE;
        }
    if (m->drawn)
        m->drawn[op]++;
    for (unsigned i = 0; i < results; i++)
        weft_keep_value(m, weft_result(m->graph, node, i));
    return node;
}

void weft_draw_nodes(struct weft_maker *m, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct weft_draws *choices = m->choices;
        if (!choices->replay && !m->outer && choices->spans < WEFT_MOST_SPANS)
            choices->span[choices->spans++] = choices->count;
        const int op = 1 + (int)weft_draw(m, WEFT_OP_COUNT - 1);
        const uint32_t traits = weft_ops[op].traits;
        const bool too_deep = m->outer && (traits & WEFT_DATA || (traits & WEFT_CONTROL && m->outer->outer));
        if (generators[op] && !too_deep)
            generators[op](m, op);
    }
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* What symbols are at most when graphs are run. */
static void largest_sizes(const struct weft_dims *dims, int64_t *symbols)
{
    for (uint32_t s = 0; s < weft_symbol_count(dims); s++) {
        symbols[s] = 0;
        for (int i = 0; i < WEFT_SIZES; i++) {
            const int64_t size = weft_run_size(weft_symbol_at(dims, s), i);
            symbols[s] = size > symbols[s] ? size : symbols[s];
        }
    }
}

static void draw_dims(struct weft_maker *m, bool large)
{
    static const int64_t extents[] = {2, 1, 3, 4, 5, 8, 7, 16, 0, 17};
    static const int64_t long_extents[] = {64, 33, 128, 100, 17, 16, 3, 1};
    struct weft_dims *dims = m->graph->dims;
    const unsigned symbols = weft_draw(m, 3) == 2 ? 1 + weft_draw(m, 2) : 0, fixed = 2 + weft_draw(m, 3);
    for (unsigned i = 0; i < fixed; i++) {
        const unsigned n = weft_draw(m, 10);
        m->dim[m->dims++] = weft_dim_of(large ? long_extents[n % 8] : extents[n]);
    }
    for (unsigned i = 0; i < symbols; i++) {
        const int64_t low = weft_draw(m, 3), high = weft_draw(m, 2) ? low + 1 + weft_draw(m, 9) : 100000;
        const weft_dim n = weft_symbol_add(dims, i ? "M" : "N", low, high, weft_draw(m, 2) ? low + 1 : 0);
        m->dim[m->dims++] = n;
        const unsigned more = weft_draw(m, 4);
        if (more == 1)
            m->dim[m->dims++] = weft_dim_add(dims, n, weft_dim_of(1));
        if (more == 2)
            m->dim[m->dims++] = weft_dim_mul(dims, n, weft_dim_of(2));
        if (more == 3)
            m->dim[m->dims++] = weft_dim_ceil_div(dims, n, weft_dim_of(2));
        struct weft_type type = {.dtype = (uint8_t)weft_draw_dtype(m, WEFT_DRAW_ALL), .rank = 2, /* it must be given */
                                 .extent = {n, m->dim[weft_draw(m, fixed)]}};
        if (weft_draw(m, 2))
            type.rank = 1;
        largest_sizes(dims, m->symbols);
        weft_keep_value(m, weft_add_param(m->graph, NULL, &type));
    }
}

/* --- results and layouts ------------------------------------------------------------------------------------------ */

/* Each `mut` parameter gets a new value of its type; of the others at least one is returned. */
static void draw_returns(struct weft_maker *m)
{
    struct weft_graph *g = m->graph;
    for (uint32_t p = 0; p < g->params; p++) {
        if (!weft_value_of(g, g->param[p])->is_mut)
            continue;
        weft_val now = g->param[p];
        for (int i = m->values - 1; i >= 0 && weft_is(now, g->param[p]); i--)
            if (weft_type_same(weft_drawn_type(m, m->value[i]), weft_type_of(g, now)))
                now = m->value[i];
        weft_add_return(g, now, g->param[p]);
    }
    uint32_t others = 0;
    for (int i = m->values - 1; i >= 0 && others < 12; i--) {
        const weft_val v = m->value[i];
        const bool unused = weft_def(g, v).id && weft_value_of(g, v)->uses == 0;
        if (unused ? weft_draw(m, 8) != 7 : weft_draw(m, 8) == 7) {
            weft_add_return(g, v, WEFT_NO_VALUE);
            others++;
        }
    }
    if (others == 0)
        weft_add_return(g, m->value[m->values - 1], WEFT_NO_VALUE);
}

/* An order of the axes; strides with gaps, behind an offset; an axis in blocks. */
static void draw_layout(struct weft_maker *m, weft_val v, bool only_read)
{
    const struct weft_type *type = weft_drawn_type(m, v);
    const int rank = type->rank;
    if (rank == 0 || weft_dtype_bits(type->dtype) < 8)
        return;
    char text[256];
    int length = snprintf(text, sizeof text, "{"), order[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int other = (int)weft_draw(m, (unsigned)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    const unsigned form = weft_draw(m, 6);
    const int split = form == 1 ? order[0] : -1;
    for (int i = 0; i < rank; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, order[i] == split ? "%s%d/4" : "%s%d",
                           i ? " " : "", order[i]);
    if (split >= 0)
        length += snprintf(text + length, sizeof text - (size_t)length, " %d%%4", split);
    if (form == 2 && weft_type_is_constant(type)) {
        int64_t stride[WEFT_MAX_RANK], next = 1 + weft_draw(m, 3);
        for (int i = rank - 1; i >= 0; i--) {
            const int64_t extent = weft_dim_value(type->extent[order[i]]);
            stride[i] = only_read && weft_draw(m, 6) == 5 ? 0 : next;
            next = (next + weft_draw(m, 3)) * (extent > 1 ? extent : 1);
        }
        length += snprintf(text + length, sizeof text - (size_t)length, " |");
        for (int i = 0; i < rank; i++)
            length += snprintf(text + length, sizeof text - (size_t)length, " %lld", (long long)stride[i]);
        if (weft_draw(m, 3) == 2)
            length += snprintf(text + length, sizeof text - (size_t)length, " +%u", 1 + weft_draw(m, 9));
    }
    static const char *const ends[] = {"}", " align=64}", " free}", " hint}"};
    snprintf(text + length, sizeof text - (size_t)length, "%s", ends[form == 0 ? weft_draw(m, 4) : 0]);
    weft_set_layout(m->graph, v, text);
}

static void draw_layouts(struct weft_maker *m)
{
    const struct weft_graph *g = m->graph;
    for (uint32_t p = 0; p < g->params; p++)
        if (weft_draw(m, 5) == 4)
            draw_layout(m, g->param[p],
                        !weft_value_of(g, g->param[p])->is_mut && !weft_value_of(g, g->param[p])->returns);
    for (int i = 0; i < m->values; i++) {
        const struct weft_value *value = weft_value_of(g, m->value[i]);
        if (!value->is_param && weft_draw(m, value->returns ? 5 : 20) == 4)
            draw_layout(m, m->value[i], false);
    }
}

struct weft_graph *weft_draw_graph(struct weft_context *context, struct weft_draws *choices, uint64_t name,
                                   uint32_t *drawn)
{
    char text[32];
    snprintf(text, sizeof text, "g%llu", (unsigned long long)name);
    int64_t symbols[WEFT_MOST_SPANS * 4] = {0};
    struct weft_maker m = {.choices = choices, .graph = weft_graph_new(context, text), .drawn = drawn,
                           .symbols = symbols};
    const bool large = weft_draw(&m, 24) == 23;
    m.most_elements = large ? 20000 : 600;
    draw_dims(&m, large);
    if (weft_draw_first)
        generators[weft_draw_first](&m, weft_draw_first);
    weft_draw_nodes(&m, large ? 4 : 2 + weft_draw(&m, 20));
    if (m.values == 0)
        weft_keep_value(&m, weft_add_param(m.graph, NULL, &(struct weft_type){.dtype = WEFT_F32}));
    if (!choices->replay && choices->spans < WEFT_MOST_SPANS)
        choices->span[choices->spans++] = choices->count;
    draw_returns(&m);
    draw_layouts(&m);
    weft_draw_apart(&m);
    weft_draw_looked(&m);
    return m.graph;
}

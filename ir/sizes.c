/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c: what inference could neither prove right nor wrong is checked when sizes are known: extents that came
 * out negative, counts of elements beyond what memory can be, slices outside of their operands, more of the largest
 * elements than there are, paddings longer than what they repeat. Evaluator and plans ask the same question, before
 * anything is read or reserved, and again when a size has come out of data:
 *
 *   K=data(8)   %7: i64[2,K] = nonzero %6 extent=[K]    found K = 1
 *               %8: i64[2,K - 2] = slice %7 …           refused: the extent along axis 1 is -1
 *
 * Any thread; nothing is allocated. */
#include "ir/ir.h"

#include <stdarg.h>
#include <stdio.h>

struct sizes {
    const int64_t *symbols;
    char *message;
    size_t bytes;
};

static bool fail(const struct sizes *s, const struct weft_graph *graph, weft_val value, const char *format, ...)
    WEFT_PRINTF(4, 5);
static bool fail(const struct sizes *s, const struct weft_graph *graph, weft_val value, const char *format, ...)
{
    char number[16], reason[200];
    snprintf(number, sizeof number, "%u", value.id);
    const char *name = graph->value[value.id].name, *op = weft_ops[weft_def_opcode(graph, value)].name;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(s->message, s->bytes, "%%%s: %s: %s for these inputs", name ? name : number, op, reason);
    return false;
}

static int64_t extent_of(const struct sizes *s, const struct weft_graph *graph, weft_val value, int axis)
{
    return weft_dim_evaluate(graph->dims, weft_type_of(graph, value)->extent[axis], s->symbols);
}

static int64_t attr_of(const struct sizes *s, const struct weft_graph *graph, weft_node node, int key, int i)
{
    return weft_dim_evaluate(graph->dims, weft_attr_at(graph, node, key, (unsigned)i), s->symbols);
}

static bool check_value(const struct sizes *s, const struct weft_graph *graph, weft_val value)
{
    int64_t count = 1;
    bool large = false; /* also without its zeros: strides leave them out */
    for (int axis = 0; axis < weft_type_of(graph, value)->rank; axis++) {
        const int64_t extent = extent_of(s, graph, value, axis);
        if (extent < 0)
            return fail(s, graph, value, "the extent along axis %d is %lld", axis, (long long)extent);
        large |= __builtin_mul_overflow(count, extent ? extent : 1, &count) || count > WEFT_MAX_ELEMENTS;
    }
    return !large || fail(s, graph, value, "the result has more elements than memory can hold");
}

static bool check_slice(const struct sizes *s, const struct weft_graph *graph, weft_node node)
{
    const weft_val operand = weft_operand(graph, node, 0), result = weft_result(graph, node, 0);
    for (int axis = 0; axis < weft_type_of(graph, operand)->rank; axis++) {
        const int64_t extent = extent_of(s, graph, operand, axis);
        const int64_t first = attr_of(s, graph, node, WEFT_ATTR_start, axis);
        const int64_t past = attr_of(s, graph, node, WEFT_ATTR_end, axis);
        if (first < 0 || first > past)
            return fail(s, graph, result, "the start along axis %d is %lld", axis, (long long)first);
        if (past > extent)
            return fail(s, graph, result, "the end, which is beyond the operand's extent, along axis %d is %lld", axis,
                        (long long)past);
    }
    return true;
}

/* An edge needs an element to repeat, a reflection more elements than it adds. */
static bool check_pad(const struct sizes *s, const struct weft_graph *graph, weft_node node)
{
    const weft_val operand = weft_operand(graph, node, 0), result = weft_result(graph, node, 0);
    const char form = weft_attr_word(graph, node, WEFT_ATTR_form)[0];
    const int rank = weft_type_of(graph, operand)->rank;
    for (int i = 0; i < 2 * rank && form != 'c'; i++) {
        const int64_t extent = extent_of(s, graph, operand, i % rank), pad = attr_of(s, graph, node, WEFT_ATTR_pad, i);
        if (pad > 0 && extent < (form == 'r' ? pad + 1 : 1))
            return fail(s, graph, result, "%lld elements cannot be added to axis %d of extent %lld with form=%s",
                        (long long)pad, i % rank, (long long)extent, weft_attr_word(graph, node, WEFT_ATTR_form));
    }
    return true;
}

static bool check_top_k(const struct sizes *s, const struct weft_graph *graph, weft_node node)
{
    const int axis = (int)weft_attr_int(graph, node, WEFT_ATTR_axis);
    const int64_t k = weft_dim_evaluate(graph->dims, weft_attr_dim(graph, node, WEFT_ATTR_k), s->symbols);
    return k <= extent_of(s, graph, weft_operand(graph, node, 0), axis) ||
           fail(s, graph, weft_result(graph, node, 0), "k, which is more than the operand has along axis %d, is %lld",
                axis, (long long)k);
}

static bool check_node(const struct sizes *s, const struct weft_graph *graph, weft_node node)
{
    switch (weft_opcode_of(graph, node)) {
    case WEFT_OP_slice: return check_slice(s, graph, node);
    case WEFT_OP_pad: return check_pad(s, graph, node);
    case WEFT_OP_top_k: return check_top_k(s, graph, node);
    default: return true;
    }
}

static bool check_graph(const struct sizes *s, const struct weft_graph *graph);

/* Bodies share the symbols. Recursion is as deep as bodies are nested. */
static bool check_with_bodies(const struct sizes *s, const struct weft_graph *graph, weft_node node)
{
    const struct weft_node_info *info = weft_node_of(graph, node);
    for (unsigned i = 0; i < info->results; i++)
        if (!check_value(s, graph, weft_result(graph, node, i)))
            return false;
    if (!check_node(s, graph, node))
        return false;
    for (unsigned i = 0; i < info->attrs; i++)
        if (info->attr[i].kind == WEFT_ATTR_GRAPH && !check_graph(s, info->attr[i].graph))
            return false;
    return true;
}

static bool check_graph(const struct sizes *s, const struct weft_graph *graph)
{
    weft_foreach_node(graph, node)
        if (!check_with_bodies(s, graph, node))
            return false;
    return true;
}

bool weft_check_sizes(const struct weft_graph *graph, const int64_t *symbols, char *message, size_t message_bytes)
{
    return check_graph(&(struct sizes){symbols, message, message_bytes}, graph);
}

bool weft_check_sizes_found(const struct weft_graph *graph, weft_node found, const int64_t *symbols, char *message,
                            size_t message_bytes)
{
    const struct sizes s = {symbols, message, message_bytes};
    for (weft_node node = graph->node[found.id].next; node.id; node = graph->node[node.id].next) {
        if (!graph->node[node.id].dead && !check_with_bodies(&s, graph, node))
            return false;
        if (weft_op_of(graph, node)->traits & WEFT_DATA)
            break;
    }
    return true;
}

int64_t *weft_hint_symbols(const struct weft_graph *g, struct weft_arena *arena)
{
    const uint32_t count = weft_symbol_count(g->dims);
    int64_t *symbols = weft_new(arena, int64_t, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct weft_symbol_info *info = weft_symbol_at(g->dims, i);
        symbols[i] = info->hint ? info->hint : info->low > 1 ? info->low : 1;
    }
    weft_symbols_at_bounds(g->dims, symbols);
    return symbols;
}

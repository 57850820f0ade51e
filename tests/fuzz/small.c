/* SPDX-License-Identifier: Apache-2.0 */
/* small.c: which graphs a fuzz target can afford to evaluate.
 *
 * A text of a hundred bytes can ask for any amount of work, rightly: that is no finding. So each node is taken to
 * touch, for each element of its results, every element of its largest operand and every tap of its window; the true
 * work is never more than that. Loops count as unknown unless a constant or a parameter, which is drawn as 0 or 1, says
 * how often they run. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

enum { MOST_ELEMENTS = 1 << 14, MOST_WORK = 1 << 22, MOST_TRIPS = 8 };

static double elements_of(const struct weft_graph *graph, weft_val value, const int64_t *symbols)
{
    const struct weft_type *type = weft_type_of(graph, value);
    double product = 1;
    for (int axis = 0; axis < type->rank; axis++) {
        const int64_t extent = weft_dim_evaluate(graph->dims, type->extent[axis], symbols);
        product *= extent < 0 ? INFINITY : (double)extent; /* at these sizes the graph is refused */
    }
    return product;
}

/* Product of a list of integers, each at least 1: taps of a window. */
static double taps_of(const struct weft_graph *graph, weft_node node, int key, const int64_t *symbols)
{
    const struct weft_attr *attr = weft_attr_find(graph, node, key);
    double product = 1;
    for (uint32_t i = 0; attr && attr->kind == WEFT_ATTR_INTS && i < attr->count; i++) {
        const double taps = (double)weft_dim_evaluate(graph->dims, attr->integers[i], symbols);
        product *= taps > 1 ? taps : 1;
    }
    return product;
}

static bool runs_rarely(const struct weft_graph *graph, weft_node node)
{
    const weft_val trips = weft_operand(graph, node, 0);
    struct weft_element element;
    if (weft_const_splat(graph, trips, &element))
        return element.is_integer && element.integer <= MOST_TRIPS;
    return weft_value_of(graph, trips)->is_param && !graph->parent;
}

static double work_of(const struct weft_graph *graph, weft_node node, const int64_t *symbols)
{
    const struct weft_node_info *info = weft_node_of(graph, node);
    double results = 0, operand = 1;
    for (unsigned i = 0; i < info->results; i++) {
        const double elements = elements_of(graph, weft_result(graph, node, i), symbols);
        if (!(elements <= MOST_ELEMENTS))
            return MOST_WORK + 1.0;
        results += elements;
    }
    for (unsigned i = 0; i < info->operands; i++) {
        const double elements = elements_of(graph, weft_operand(graph, node, i), symbols);
        operand = elements > operand ? elements : operand;
    }
    return (results + 1) * operand * taps_of(graph, node, WEFT_ATTR_kernel, symbols);
}

bool weft_fuzz_is_small(const struct weft_graph *graph, const int64_t *symbols)
{
    double work = 0;
    for (uint32_t i = 0; i < graph->params; i++)
        work += elements_of(graph, graph->param[i], symbols);
    weft_foreach_node(graph, n) {
        work += work_of(graph, n, symbols);
        if (!(work <= MOST_WORK) || (weft_opcode_of(graph, n) == WEFT_OP_loop && !runs_rarely(graph, n)))
            return false;
    }
    for (uint32_t i = 0; i < graph->bodies; i++) /* WEFT_MAX_DEPTH bounds the depth */
        if (!weft_fuzz_is_small(graph->body[i], symbols))
            return false;
    return work <= MOST_WORK;
}

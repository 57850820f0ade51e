/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: results against expectations, with a bound that comes from the graph.
 *
 * Two programs that compute a sum of n products in different orders differ by about sqrt(n) roundings when signs are
 * mixed (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019). The bound follows the graph
 * from its inputs: each value gets the error of the worst operand way plus what its own op adds, in units of its
 * dtype's rounding, relative to its largest magnitude. First order and norm-wise: it takes no account of the
 * cancellation in an ill-conditioned model, and is no proof; it is how far two honest programs may be apart. */
#include "tools/tools.h"

#include "ir/ir.h"

#include <math.h>
#include <stdlib.h>

/* --- the bound ---------------------------------------------------------------------------------------------------- */

static double rounding_of(int dtype)
{
    switch (dtype) {
    case WEFT_F64:
        return 0x1p-52;
    case WEFT_F32:
        return 0x1p-23;
    case WEFT_F16:
        return 0x1p-10;
    case WEFT_BF16:
        return 0x1p-7;
    default:
        return 0; /* integers are exact */
    }
}

/* A graph, and the sizes that a run had; symbols NULL: the hints. */
struct sized {
    const struct weft_graph *graph;
    const int64_t *symbols;
};

static double size_of(const struct sized *s, weft_dim d)
{
    return (double)(s->symbols ? weft_dim_evaluate(s->graph->dims, d, s->symbols) : weft_dim_hint(s->graph->dims, d));
}

static double elements_of(const struct sized *s, weft_val value, int first_axis)
{
    const struct weft_graph *const graph = s->graph;
    const struct weft_type *type = weft_type_of(graph, value);
    double product = 1;
    for (int axis = first_axis; axis < type->rank; axis++)
        product *= size_of(s, type->extent[axis]);
    return product;
}

/* Roundings that a node adds to what its operands bring. */
static double own_roundings(const struct sized *s, weft_node node)
{
    const struct weft_graph *const graph = s->graph;
    const uint32_t traits = weft_op_of(graph, node)->traits;
    const struct weft_type *first =
        weft_node_of(graph, node)->operands ? weft_type_of(graph, weft_operand(graph, node, 0)) : NULL;
    double length;
    switch (weft_opcode_of(graph, node)) {
    case WEFT_OP_conv:
        length = elements_of(s, weft_operand(graph, node, 1), 1);
        return 2 + sqrt(length);
    case WEFT_OP_matmul:
        length = size_of(s, first->extent[first->rank - (weft_attr_int(graph, node, WEFT_ATTR_trans_a) ? 2 : 1)]);
        return 2 + sqrt(length);
    case WEFT_OP_conv_transpose:
    case WEFT_OP_deform_conv: /* x's channels, by taps */
        length = elements_of(s, weft_operand(graph, node, 1), 2) * size_of(s, first->extent[1]);
        return 2 + sqrt(length);
    case WEFT_OP_conv_grad_weight: /* places of dy in one channel */
        length = elements_of(s, weft_operand(graph, node, 1), 2) * size_of(s, first->extent[0]);
        return 2 + sqrt(length);
    case WEFT_OP_attention:
    case WEFT_OP_attention_sums:
        return 8 + sqrt(elements_of(s, weft_operand(graph, node, 1), 2));
    case WEFT_OP_attention_grad: /* sums over keys, or over rows and the heads that share them */
        length = elements_of(s, weft_operand(graph, node, 5), 1) + elements_of(s, weft_operand(graph, node, 2), 2);
        return 16 + sqrt(length);
    case WEFT_OP_dft:
        return 4 + sqrt(size_of(s, weft_attr_dim(graph, node, WEFT_ATTR_length)));
    case WEFT_OP_softmax:
    case WEFT_OP_log_softmax:
        return 6 + sqrt(size_of(s, first->extent[weft_attr_int(graph, node, WEFT_ATTR_axis)]));
    default:
        break;
    }
    if (traits & WEFT_EXACT)
        return 0;
    if (traits & WEFT_SCAN)
        return 2 + sqrt(size_of(s, first->extent[weft_attr_int(graph, node, WEFT_ATTR_axis)]));
    if (traits & WEFT_REDUCTION) {
        const double out = elements_of(s, weft_result(graph, node, 0), 0);
        return 2 + sqrt(elements_of(s, weft_operand(graph, node, 0), 0) / (out > 0 ? out : 1));
    }
    if (traits & (WEFT_SOURCE | WEFT_VIEW | WEFT_MOVEMENT))
        return 0;
    return traits & WEFT_COMPOSITE ? 6 : 2;
}

/* The worst operand counts. Adding up the errors of factors would be right for one product, but the factors of a deep
 * model go back to the same values, and a sum that doubles at every layer soon bounds nothing. */
static double operand_error(const struct weft_graph *graph, weft_node node, const double *error)
{
    double worst = 0;
    for (unsigned i = 0; i < weft_node_of(graph, node)->operands; i++) {
        const double e = error[weft_operand(graph, node, i).id];
        worst = e > worst ? e : worst;
    }
    return worst;
}

double weft_tool_bound(const struct weft_graph *graph, const int64_t *symbols, size_t output)
{
    const struct sized sized = {graph, symbols};
    double *error = calloc(graph->values + 1, sizeof *error);
    if (!error || output >= graph->returns) {
        free(error);
        return 0;
    }
    weft_foreach_node(graph, n) {
        double roundings = own_roundings(&sized, n);
        const struct weft_node_info *info = weft_node_of(graph, n);
        for (unsigned a = 0; a < info->attrs; a++) { /* a body counts as if its nodes stood in a row */
            if (info->attr[a].kind == WEFT_ATTR_GRAPH) {
                weft_foreach_node(info->attr[a].graph, inner)
                    roundings += own_roundings(&(struct sized){info->attr[a].graph, symbols}, inner);
            }
        }
        const double inherited = operand_error(graph, n, error);
        for (unsigned r = 0; r < info->results; r++) {
            const weft_val value = weft_result(graph, n, r);
            error[value.id] = inherited + roundings * rounding_of(weft_type_of(graph, value)->dtype);
        }
    }
    const weft_val value = graph->ret[output].value;
    const double rounding = rounding_of(weft_type_of(graph, value)->dtype);
    const double bound = rounding > 0 ? error[value.id] + rounding : 0;
    free(error);
    return bound;
}

/* --- the comparison ----------------------------------------------------------------------------------------------- */

static bool same_shape(const struct weft_tensor *got, const struct weft_tensor *want, char message[256])
{
    bool same = got->dtype == want->dtype && got->rank == want->rank;
    for (int axis = 0; same && axis < got->rank; axis++)
        same = got->extent[axis] == want->extent[axis];
    if (same)
        return true;
    int length = 0;
    for (int side = 0; side < 2; side++) {
        const struct weft_tensor *t = side ? want : got;
        length += snprintf(message + length, 256 - (size_t)length, "%s%s[", side ? ", expected " : "",
                           weft_dtype_name(t->dtype));
        for (int axis = 0; axis < t->rank; axis++)
            length += snprintf(message + length, 256 - (size_t)length, "%s%lld", axis ? "," : "",
                               (long long)t->extent[axis]);
        length += snprintf(message + length, 256 - (size_t)length, "]");
    }
    return false;
}

static int64_t place_of(const struct weft_tensor *tensor, const int64_t *index)
{
    int64_t place = 0;
    for (int axis = 0; axis < tensor->rank; axis++)
        place += index[axis] * tensor->stride[axis];
    return place;
}

/* Adds one element to the result. Integers beyond 2^53 may differ although they are one number as doubles. */
static void compare_element(int dtype, const void *got, int64_t i, const void *want, int64_t k, double *scale,
                            struct weft_comparison *result)
{
    const double a = weft_load_real(dtype, got, i), b = weft_load_real(dtype, want, k);
    if (!weft_dtype_is_float(dtype) && weft_load_integer(dtype, got, i) != weft_load_integer(dtype, want, k))
        result->max_abs = fmax(result->max_abs, 1);
    if (isfinite(a) && isfinite(b)) {
        result->max_abs = fmax(result->max_abs, fabs(a - b));
        *scale = fmax(*scale, fabs(b));
    } else if (!(isnan(a) && isnan(b)) && a != b) {
        result->nans++;
    }
}

bool weft_tool_compare(const struct weft_tensor *got, const struct weft_tensor *want, double bound,
                       struct weft_comparison *ret, char message[256])
{
    if (!same_shape(got, want, message))
        return false;
    struct weft_comparison result = {.bound = bound, .elements = 1};
    for (int axis = 0; axis < got->rank; axis++)
        result.elements *= got->extent[axis];
    double scale = 0;
    int64_t index[WEFT_MAX_RANK] = {0};
    for (int64_t i = 0; i < result.elements; i++) {
        compare_element(got->dtype, got->data, place_of(got, index), want->data, place_of(want, index), &scale,
                        &result);
        for (int axis = got->rank - 1; axis >= 0; axis--) {
            if (++index[axis] < got->extent[axis])
                break;
            index[axis] = 0;
        }
    }
    result.max_rel = result.max_abs == 0 ? 0 : scale > 0 ? result.max_abs / scale : INFINITY;
    result.same = result.nans == 0 && result.max_rel <= bound;
    *ret = result;
    return true;
}

double weft_tool_stated_bound(double stated, const struct weft_graph *graph, const int64_t *symbols, size_t output)
{
    return stated >= 0 ? stated : weft_tool_bound(graph, symbols, output);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* explain_node.c: what weft explain says about one node: which one is meant, its type and layout, its cost by counting,
 * and why it has no kernel. */
#include "tools/explain.h"

#include "ir/custom.h"
#include "ir/suggest.h"

#include <string.h>

/* --- by name ------------------------------------------------------------------------------------------------------ */

static bool has_value(const struct explain *e, const struct explain_origin *origin, const char *name)
{
    const struct explain_pair *pair = &e->pair[origin->pair];
    for (uint32_t n = origin->source; n; n = pair->next_source[n])
        for (uint32_t i = 0; i < pair->from->node[n].results; i++)
            if (strcmp(pair->from_label[pair->from->node[n].first_result + i], name) == 0)
                return true;
    for (uint32_t n = origin->final; n; n = pair->next_final[n])
        for (uint32_t i = 0; i < pair->to->node[n].results; i++)
            if (strcmp(pair->to_label[pair->to->node[n].first_result + i], name) == 0)
                return true;
    return false;
}

#define NEAREST 3

static void no_such_node(const struct explain *e, const char *name)
{
    const size_t length = strlen(name);
    const char *best[NEAREST] = {NULL};
    size_t distance[NEAREST] = {0};
    for (uint32_t i = 0; i < e->origins; i++) {
        const char *candidate = e->origin[i].name;
        size_t found = (size_t)weft_count_edits(name, length, candidate, strlen(candidate));
        for (unsigned k = 0; k < NEAREST; k++)
            if (!best[k] || found < distance[k]) { /* goes here, and pushes the others back */
                const char *pushed = best[k];
                const size_t its = distance[k];
                best[k] = candidate;
                distance[k] = found;
                candidate = pushed;
                found = its;
                if (!candidate)
                    break;
            }
    }
    struct weft_text text = {.context = e->context, .arena = e->arena};
    for (unsigned k = 0; k < NEAREST && best[k]; k++)
        weft_text_format(&text, "%s'%s'", k ? ", " : "", best[k]);
    weft_error(e->context, WEFT_ERR_ARGUMENT, &(struct weft_place){.file = e->path},
               "no node or value is called '%s'; the nearest names are %s", name, text.length ? text.data : "none");
}

const struct explain_origin *explain_find(const struct explain *e, const char *name)
{
    for (uint32_t i = 0; i < e->origins; i++)
        if (strcmp(e->origin[i].name, name) == 0)
            return &e->origin[i];
    const char *value = name[0] == '%' ? name + 1 : name;
    for (uint32_t i = 0; i < e->origins; i++)
        if (has_value(e, &e->origin[i], value))
            return &e->origin[i];
    no_such_node(e, name);
    return NULL;
}

/* --- types and places --------------------------------------------------------------------------------------------- */

const char *explain_type(const struct explain *e, const struct weft_graph *graph, weft_val value)
{
    struct weft_text text = {.context = e->context, .arena = e->arena};
    weft_type_print(graph->dims, weft_type_of(graph, value), &text);
    const bool stored = graph == e->to && e->plan->home[value.id].storage;
    const struct weft_layout *home = stored ? e->plan->home[value.id].layout : NULL;
    const struct weft_layout layout = home ? *home : weft_layout_of(graph, value);
    if (!weft_layout_is_row_major(&layout))
        weft_layout_print(graph->dims, &layout, &text);
    return text.data;
}

const char *explain_kernel(const struct explain *e, const struct explain_pair *pair, weft_node node)
{
    const struct weft_graph *graph = pair->to;
    const uint32_t traits = weft_op_of(graph, node)->traits;
    if (graph->node[node.id].plan)
        return traits & WEFT_VIEW ? "copied: no strides over the operand's memory give the result's layout" : "";
    if (traits & WEFT_SOURCE)
        return "a constant: nothing to compute";
    if ((traits & WEFT_VIEW) && graph->node[node.id].operands > 0)
        return weft_arena_format(e->arena, "a view of %%%s: nothing is moved",
                                 pair->to_label[weft_operand(graph, node, 0).id]);
    return "no step of its own";
}

/* --- cost --------------------------------------------------------------------------------------------------------- */

static struct weft_tensor tensor_of(const struct explain *e, const struct weft_graph *graph, weft_val v)
{
    const struct weft_type *type = weft_type_of(graph, v);
    struct weft_tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        t.extent[i] = weft_dim_evaluate(graph->dims, type->extent[i], e->symbols);
    weft_tensor_dense(&t);
    return t;
}

static double bytes(const struct weft_tensor *t)
{
    return (double)weft_dtype_bits(t->dtype) / 8 * weft_tensor_elements(t);
}

/* Points that the node runs over (ir/index.h). */
static double points(const struct explain *e, const struct weft_graph *graph, weft_node node)
{
    struct weft_space space;
    double n = weft_index_space(graph, node, &space) ? 1 : 0;
    for (int i = 0; n > 0 && i < space.axes; i++) {
        const int64_t extent = weft_dim_evaluate(graph->dims, space.axis[i].extent, e->symbols);
        n *= extent > 0 ? (double)extent : 0;
    }
    return n;
}

static double operations(const struct explain *e, const struct weft_graph *graph, weft_node node,
                         const struct weft_tensor *in, const struct weft_tensor *out)
{
    const uint32_t traits = weft_op_of(graph, node)->traits;
    const bool multiplies = traits & WEFT_CONTRACTION && graph->node[node.id].operands > 1;
    const int op = weft_opcode_of(graph, node);
    if (op == WEFT_OP_attention || op == WEFT_OP_attention_sums)
        return weft_attention_flops(&in[0], &in[1], out);
    if (op == WEFT_OP_attention_grad)
        return weft_attention_grad_flops(&in[1], &in[2], &in[4]);
    if (op == WEFT_OP_max_pool_grad)
        return weft_tensor_elements(&in[0]);
    if (multiplies && !(traits & WEFT_RECURRENT)) /* whose index maps are not known */
        return 2 * points(e, graph, node);
    if (traits & (WEFT_SOURCE | WEFT_VIEW | WEFT_MOVEMENT | WEFT_CONTROL | WEFT_PLACEMENT))
        return 0;
    return traits & WEFT_REDUCTION ? points(e, graph, node) : weft_tensor_elements(out);
}

struct explain_cost explain_cost_of(const struct explain *e, const struct weft_graph *graph, weft_node node)
{
    const struct weft_node_info *info = &graph->node[node.id];
    struct weft_tensor *const in = weft_new(e->arena, struct weft_tensor, info->operands + info->results + 1u);
    struct weft_tensor *const results = in + info->operands;
    struct explain_cost cost = {.known = true};
    for (unsigned i = 0; i < info->results; i++) {
        results[i] = tensor_of(e, graph, weft_result(graph, node, i));
        cost.bytes += bytes(&results[i]);
    }
    const struct weft_tensor out = results[0]; /* of a node without results, all zero */
    const bool moves = weft_ops[info->op].traits & WEFT_MOVEMENT;
    for (unsigned i = 0; i < info->operands; i++) {
        in[i] = tensor_of(e, graph, weft_operand(graph, node, i));
        cost.bytes += moves && bytes(&in[i]) > bytes(&out) ? bytes(&out) : bytes(&in[i]); /* a row of a table */
    }
    if (info->op == WEFT_OP_custom) {
        struct explain_cost stated = {0};
        stated.known = weft_custom_cost(graph, node, in, &stated.operations, &stated.bytes);
        return stated;
    }
    cost.operations = operations(e, graph, node, in, &out);
    const weft_val result = weft_result(graph, node, 0);
    const bool loaded = graph == e->to && info->results > 0 &&
                        e->plan->storage[e->plan->home[result.id].storage].load;
    if (!info->plan || loaded)
        cost.bytes = 0; /* constants and views: nothing moves; nor in a run what was moved before */
    return cost;
}

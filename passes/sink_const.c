/* SPDX-License-Identifier: Apache-2.0 */
/* sink_const: constants that are handed to the body of an `if` or `loop` become constants of the body.
 *
 *   graph @cell(%i: i64[], %h: f32[8,256], %r: f32[1024,256]) {      graph @cell(%i: i64[], %h: f32[8,256]) {
 *     %p: f32[8,1024] = matmul %h, %r trans_b=1                  →     %r: f32[1024,256] = const …
 *     …                                                               %p: f32[8,1024] = matmul %h, %r trans_b=1
 *   }                                                                 …
 *   %r: f32[1024,256] = const …                                      }
 *   %y: f32[8,256] = loop %n, %x, %r body=@cell carried=1            %y: f32[8,256] = loop %n, %x body=@cell
 *
 * Bodies capture nothing, so that weights come to them as parameters. As constants they are packed when the plan is
 * made, scaled by norms and computed with, as anywhere else. Elements are not copied: both nodes name one blob. What is
 * carried stays: it is constant in the first trip only. What a body gets but no longer reads goes with dead_results.
 * A body that two nodes share stays as it is. Exact.
 *
 * Needs: nothing. Before the passes that look at constants. Not done: values computed from constants, which are
 * constants only when fold_const or the compiler has computed them; then the pass runs again. */
#include "passes/passes.h"
#include "sched/format.h"

static weft_val copy_const(struct weft_graph *body, const struct weft_graph *g, weft_val v)
{
    const struct weft_node_info *const info = weft_node_of(g, weft_def(g, v));
    const weft_node copy = weft_add_node(body, &(struct weft_node_spec){
        .op = WEFT_OP_const, .attr = info->attr, .attrs = info->attrs, .stated = weft_type_of(g, v),
        .constant = info->constant, .before = body->first, .name = info->name, .place = {.line = info->line}});
    weft_assert(copy.id);
    if (info->constant->kind == WEFT_CONST_BLOB)
        info->constant->blob->for_one = false; /* two nodes have its elements now */
    return weft_result(body, copy, 0);
}

/* The parameter of the body that gets operand i, if it always has the operand's elements. */
static weft_val param_of(const struct weft_graph *g, weft_node n, unsigned i, const struct weft_graph *body)
{
    const bool loop = weft_opcode_of(g, n) == WEFT_OP_loop; /* parameter 0 is the number of the trip */
    return weft_format_is_carried(g, n, i) ? WEFT_NO_VALUE : body->param[i - !loop];
}

static bool sink(struct weft_graph *g, weft_node n, struct weft_graph *body)
{
    bool changed = false;
    for (unsigned i = 1; i < g->node[n.id].operands; i++) {
        const weft_val v = weft_operand(g, n, i), param = param_of(g, n, i, body);
        if (!weft_is_const(g, v) || !param.id || body->value[param.id].uses == 0 ||
            !weft_permit(g, "sink_const", v))
            continue;
        if (weft_value_of(g, v)->name)
            weft_add_remark(g, "sink_const", v, "done", "a constant of body @%s, which was handed it", body->name);
        const weft_val copy = copy_const(body, g, v);
        weft_substitute(body, param, copy);
        body->value[copy.id].layout = 0; /* it lies as its data, whatever was wished of the parameter */
        body->value[copy.id].stated = false;
        changed = true;
    }
    return changed;
}

bool weft_pass_sink_const(struct weft_graph *graph, const struct weft_target *target)
{
    const uint32_t *const holders = weft_count_holders(graph);
    bool changed = false;
    weft_foreach_node(graph, n) {
        if (!(weft_op_of(graph, n)->traits & WEFT_CONTROL) || weft_is_decided(graph, n))
            continue;
        for (unsigned i = 0; i < graph->node[n.id].attrs; i++) {
            const struct weft_attr *const attr = &graph->node[n.id].attr[i];
            if (attr->kind == WEFT_ATTR_GRAPH && holders[attr->graph->index] == 1)
                changed |= sink(graph, n, attr->graph);
        }
    }
    return changed;
}

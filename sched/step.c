/* SPDX-License-Identifier: Apache-2.0 */
/* step.c: steps before a kernel is chosen, and what kinds ask of a node. */
#include "sched/epilogue.h"
#include "sched/prologue.h"
#include "sched/step.h"
#include <string.h>

static bool is_f32(const struct weft_graph *g, weft_val v) { return weft_type_of(g, v)->dtype == WEFT_F32; }

bool weft_step_is_f32(const struct weft_graph *g, weft_node n)
{
    const struct weft_attr *acc =
        weft_attr_spec_find(weft_opcode_of(g, n), WEFT_ATTR_acc) ? weft_attr_find(g, n, WEFT_ATTR_acc) : NULL;
    bool all = is_f32(g, weft_result(g, n, 0)) && (!acc || acc->dtype == WEFT_F32);
    for (unsigned i = 0; i < g->node[n.id].operands; i++)
        all = all && is_f32(g, weft_operand(g, n, i));
    return all;
}

struct weft_step weft_step_of(const struct weft_graph *graph, weft_node node, struct weft_arena *arena)
{
    const struct weft_node_info *info = &graph->node[node.id];
    struct weft_step step = {.node = node, .ins = info->operands, .outs = info->results};
    weft_val *const value = weft_new(arena, weft_val, step.ins + step.outs);
    for (uint32_t i = 0; i < step.outs; i++)
        value[i] = weft_result(graph, node, i);
    for (uint32_t i = 0; i < step.ins; i++)
        value[step.outs + i] = weft_operand(graph, node, i);
    step.out = value;
    step.in = value + step.outs;
    return step;
}

void weft_step_read(struct weft_step *step, struct weft_arena *arena, uint32_t ins, const weft_val *in)
{
    step->in = weft_new(arena, weft_val, ins);
    step->ins = ins;
    for (uint32_t i = 0; i < ins; i++)
        step->in[i] = in[i];
}

int64_t weft_bind_attr(const struct weft_bind *bind, int key, unsigned i)
{
    const struct weft_graph *g = bind->graph;
    return weft_dim_evaluate(g->dims, weft_attr_at(g, bind->step->node, key, i), bind->symbols);
}

bool weft_bind_serves(const struct weft_bind *bind, const struct weft_packing *wanted)
{
    const bool same = wanted->order == WEFT_PACK_NONE || weft_packing_same(bind->packed, wanted);
    weft_assert(same || bind->step->plain);
    return same;
}

bool weft_bind_is_fixed(const struct weft_bind *bind, weft_dim d)
{
    int64_t low, high;
    weft_dim_range(bind->graph->dims, d, &low, &high);
    return low == high;
}

int weft_step_word(const struct weft_graph *graph, weft_node node, int key)
{
    const char *const word = weft_attr_word(graph, node, key);
    const size_t length = strlen(word);
    int place = 0;
    for (const char *at = weft_attr_spec_find(weft_opcode_of(graph, node), key)->words; *at; place++) {
        if (strcspn(at, " ") == length && memcmp(at, word, length) == 0)
            return place;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return 0;
}

const struct weft_form *weft_step_form(const struct weft_step *step)
{
    return step->epilogue ? step->epilogue->form : step->code;
}

const struct weft_form *weft_step_makes_form(const struct weft_step *step)
{
    return step->prologue ? step->prologue->form : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_pointwise.c: elementwise ops: a kernel for the op and its types, and what it takes besides operands. */
#include "sched/format.h"
#include "sched/select.h"

#include <string.h>

static double attr_or(const struct weft_graph *g, weft_node n, int key, double otherwise)
{
    const struct weft_attr *attr = weft_attr_find(g, n, key);
    return attr ? attr->real : otherwise;
}

/* What the kernels of an op call p and q, in this order; ops that are not listed have neither. */
static const struct {
    int op, p, q;
} params[] = {
    {WEFT_OP_is_inf,           WEFT_ATTR_positive, WEFT_ATTR_negative},
    {WEFT_OP_cast,             WEFT_ATTR_saturate, 0},
    {WEFT_OP_leaky_relu,       WEFT_ATTR_alpha,    0},
    {WEFT_OP_thresholded_relu, WEFT_ATTR_alpha,    0},
    {WEFT_OP_swish,            WEFT_ATTR_alpha,    0},
    {WEFT_OP_elu,              WEFT_ATTR_alpha,    0},
    {WEFT_OP_celu,             WEFT_ATTR_alpha,    0},
    {WEFT_OP_selu,             WEFT_ATTR_alpha,    WEFT_ATTR_gamma},
    {WEFT_OP_shrink,           WEFT_ATTR_bias,     WEFT_ATTR_lambda},
    {WEFT_OP_hard_sigmoid,     WEFT_ATTR_alpha,    WEFT_ATTR_beta},
};

static double read_param(const struct weft_graph *g, weft_node n, int key)
{
    if (!key)
        return 0;
    return weft_attr_kinds[key] == WEFT_ATTR_INT ? (double)weft_attr_int(g, n, key) : weft_attr_real(g, n, key);
}

static void read_params(const struct weft_graph *g, weft_node n, double *param)
{
    const int op = weft_opcode_of(g, n);
    if (op == WEFT_OP_clamp) {
        param[0] = attr_or(g, n, WEFT_ATTR_low, -__builtin_inf());
        param[1] = attr_or(g, n, WEFT_ATTR_high, __builtin_inf());
    }
    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        if (params[i].op == op) {
            param[0] = read_param(g, n, params[i].p);
            param[1] = read_param(g, n, params[i].q);
        }
}

/* "gelu.tanh": a form that is not the default has kernels of its own. */
static const char *strip_word(const struct weft_graph *g, weft_node n, struct weft_arena *arena)
{
    const char *name = weft_op_of(g, n)->name;
    const struct weft_attr *form = weft_attr_find(g, n, WEFT_ATTR_form);
    const char *words = form ? weft_attr_spec_find(weft_opcode_of(g, n), WEFT_ATTR_form)->words : "";
    const size_t length = strcspn(words, " ");
    if (!form || (strlen(form->word) == length && memcmp(form->word, words, length) == 0))
        return name;
    return weft_arena_format(arena, "%s.%s", name, form->word);
}

static bool choose(const struct weft_scheduling *s, struct weft_step *step, const struct weft_step_kind *kind)
{
    const struct weft_graph *g = s->graph;
    const weft_node n = step->node;
    const unsigned operands = g->node[n.id].operands;
    const int in = weft_type_of(g, weft_operand(g, n, operands == 3 ? 1 : 0))->dtype;
    const char *word = strip_word(g, n, s->arena);
    step->strip = weft_strip_find(word, in, weft_type_of(g, step->out[0])->dtype, s->target->cpu);
    if (!step->strip)
        return weft_schedule_refuse(step, "no strip kernel takes these element types");
    step->kind = kind;
    read_params(g, n, step->param);
    return true;
}

const struct weft_scheduler weft_scheduler_pointwise = {
    .name = "pointwise", .choose = choose, .write_ps = weft_format_walk_write_ps, .read_ps = weft_format_walk_read_ps};

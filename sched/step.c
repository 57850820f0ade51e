/* SPDX-License-Identifier: Apache-2.0 */
/* step.c: which kernel family computes which op. A family that cannot take the dtypes of a node leaves it to the
 * reference evaluator, which takes everything; so there is always an answer. */
#include "sched/alias.h"
#include "sched/step.h"

#include <stdio.h>
#include <string.h>

static bool refuse(struct weft_step *step, const char *why)
{
    step->why = why;
    return false;
}

static bool is_f32(const struct weft_graph *g, weft_val v) { return weft_type_of(g, v)->dtype == WEFT_F32; }

/* What a choice is made from. */
struct choice {
    const struct weft_graph *graph;
    const struct weft_target *target;
    struct weft_arena *arena;
};

/* --- elementwise -------------------------------------------------------------------------------------------------- */

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

static bool choose_map(const struct choice *c, weft_node n, struct weft_step *step)
{
    const struct weft_graph *g = c->graph;
    const unsigned operands = g->node[n.id].operands;
    const int in = weft_type_of(g, weft_operand(g, n, operands == 3 ? 1 : 0))->dtype;
    const char *word = strip_word(g, n, c->arena);
    step->strip = weft_strip_find(word, in, weft_type_of(g, step->out[0])->dtype, c->target->cpu);
    if (!step->strip)
        return refuse(step, "no strip kernel takes these element types");
    step->kind = &weft_step_map;
    read_params(g, n, step->param);
    return true;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

bool weft_step_is_f32(const struct weft_graph *g, weft_node n)
{
    const struct weft_attr *acc =
        weft_attr_spec_find(weft_opcode_of(g, n), WEFT_ATTR_acc) ? weft_attr_find(g, n, WEFT_ATTR_acc) : NULL;
    bool all = is_f32(g, weft_result(g, n, 0)) && (!acc || acc->dtype == WEFT_F32);
    for (unsigned i = 0; i < g->node[n.id].operands; i++)
        all = all && is_f32(g, weft_operand(g, n, i));
    return all;
}

static bool choose_f32(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                       struct weft_step *step)
{
    if (!weft_step_is_f32(c->graph, n))
        return refuse(step, "its kernels read, add up and give f32 only");
    step->kind = kind;
    return true;
}

static bool choose_reduce(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                          struct weft_step *step)
{
    const struct weft_graph *g = c->graph;
    const int in = weft_type_of(g, weft_operand(g, n, 0))->dtype, out = weft_type_of(g, step->out[0])->dtype;
    if (!weft_reduce_supports(in, out, c->target->cpu))
        return refuse(step, "no reduction kernel takes these element types");
    step->kind = kind;
    return true;
}

static bool choose_along(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                         struct weft_step *step)
{
    if (!weft_step_is_along(c->graph, n))
        return refuse(step, "no kernel along an axis takes this element type or length");
    step->kind = kind;
    return true;
}

static bool choose_product(const struct choice *c, weft_node n, struct weft_step *step)
{
    if (!weft_step_is_product(c->graph, n))
        return false;
    step->kind = &weft_step_product;
    return true;
}

/* Reads all operands. */
static bool choose_moves(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                         struct weft_step *step)
{
    if (weft_dtype_bits(weft_type_of(c->graph, step->out[0])->dtype) < 8)
        return refuse(step, "kernels that copy move whole bytes, and its elements are smaller");
    step->kind = kind;
    return true;
}

/* Reads operand 0. */
static bool choose_copy(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                        struct weft_step *step)
{
    if (!choose_moves(c, n, kind, step))
        return false;
    step->ins = 1;
    return true;
}

static bool choose_iota(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                        struct weft_step *step)
{
    if (!weft_iota_supports(weft_type_of(c->graph, step->out[0])->dtype))
        return refuse(step, "its kernel counts in types of whole bytes");
    step->kind = kind;
    return true;
}

/* Padding with a number is a fill and a copy; the other forms repeat elements. */
static bool choose_pad(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                       struct weft_step *step)
{
    const struct weft_graph *g = c->graph;
    const bool repeats = weft_attr_find(g, n, WEFT_ATTR_form) != NULL;
    if (repeats && weft_type_of(g, step->out[0])->rank == 0)
        return refuse(step, "a table of places needs an axis");
    return repeats ? choose_copy(c, n, &weft_step_table, step) : choose_moves(c, n, kind, step);
}

/* Axes that a resize changes, as far as the graph can tell; 0 where its coordinates move elements along all of them. */
static int resized_axes(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *in = weft_type_of(g, weft_operand(g, n, 0)), *out = weft_type_of(g, weft_result(g, n, 0));
    const struct weft_attr *scale = weft_attr_find(g, n, WEFT_ATTR_scale);
    int count = 0;
    if (strncmp(weft_attr_word(g, n, WEFT_ATTR_coordinates), "tf_", 3) == 0)
        return 0;
    for (int axis = 0; axis < in->rank; axis++)
        count += !weft_dim_same(in->extent[axis], out->extent[axis]) || (scale && scale->reals[axis] != 1);
    return count;
}

/* Nearest elements are read through a table, f32 is weighed along one axis or two; all else has a plain kernel. */
static bool choose_resize(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                          struct weft_step *step)
{
    const struct weft_graph *g = c->graph;
    const bool crops = strcmp(weft_attr_word(g, n, WEFT_ATTR_coordinates), "tf_crop_and_resize") == 0;
    const bool nearest = strcmp(weft_attr_word(g, n, WEFT_ATTR_form), "nearest") == 0;
    const int axes = resized_axes(g, n);
    const bool blends = is_f32(g, step->out[0]) && (axes == 1 || axes == 2);
    if (weft_type_of(g, step->out[0])->rank == 0)
        return choose_copy(c, n, &weft_step_copy, step);
    return choose_copy(c, n, crops || (!nearest && !blends) ? &weft_step_weigh : nearest ? &weft_step_table : kind,
                       step);
}

static bool choose_matrix(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                          struct weft_step *step)
{
    return choose_f32(c, n, kind, step) || choose_product(c, n, step);
}

/* Elements are picked or placed by other operands. */
static bool choose_indexed(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                           struct weft_step *step)
{
    return choose_moves(c, n, kind, step);
}

static bool choose_scatter(const struct choice *c, weft_node n, const struct weft_step_kind *kind,
                           struct weft_step *step)
{
    if (!weft_is_update(c->graph, n))
        return refuse(step, "its kernel stores, and adds f32, but combines in no other way");
    return choose_indexed(c, n, kind, step);
}

/* Ops that are not listed are elementwise, or have no family. */
static const struct {
    bool (*choose)(const struct choice *, weft_node, const struct weft_step_kind *, struct weft_step *);
    const struct weft_step_kind *kind;
} family[WEFT_OP_COUNT] = {
    [WEFT_OP_sum]              = {choose_reduce,  &weft_step_reduce},
    [WEFT_OP_mean]             = {choose_reduce,  &weft_step_reduce},
    [WEFT_OP_prod]             = {choose_reduce,  &weft_step_reduce},
    [WEFT_OP_reduce_max]       = {choose_reduce,  &weft_step_reduce},
    [WEFT_OP_reduce_min]       = {choose_reduce,  &weft_step_reduce},
    [WEFT_OP_any]              = {choose_reduce,  &weft_step_reduce},
    [WEFT_OP_all]              = {choose_reduce,  &weft_step_reduce},
    [WEFT_OP_arg_max]          = {choose_along,   &weft_step_along},
    [WEFT_OP_arg_min]          = {choose_along,   &weft_step_along},
    [WEFT_OP_cumsum]           = {choose_along,   &weft_step_along},
    [WEFT_OP_cumprod]          = {choose_along,   &weft_step_along},
    [WEFT_OP_cummax]           = {choose_along,   &weft_step_along},
    [WEFT_OP_cummin]           = {choose_along,   &weft_step_along},
    [WEFT_OP_sort]             = {choose_along,   &weft_step_along},
    [WEFT_OP_top_k]            = {choose_along,   &weft_step_along},
    [WEFT_OP_max_pool]         = {choose_f32,     &weft_step_pool},
    [WEFT_OP_mean_pool]        = {choose_f32,     &weft_step_pool},
    [WEFT_OP_matmul]           = {choose_matrix,  &weft_step_gemm},
    [WEFT_OP_conv]             = {choose_matrix,  &weft_step_conv},
    [WEFT_OP_conv_transpose]   = {choose_f32,     &weft_step_conv},
    [WEFT_OP_reshape]          = {choose_copy,    &weft_step_reshape},
    [WEFT_OP_transpose]        = {choose_copy,    &weft_step_copy},
    [WEFT_OP_bcast]            = {choose_copy,    &weft_step_copy},
    [WEFT_OP_slice]            = {choose_copy,    &weft_step_copy},
    [WEFT_OP_relayout]         = {choose_copy,    &weft_step_copy},
    [WEFT_OP_iota]             = {choose_iota,    &weft_step_iota},
    [WEFT_OP_triangle]         = {choose_copy,    &weft_step_triangle},
    [WEFT_OP_flip]             = {choose_copy,    &weft_step_copy},
    [WEFT_OP_bitcast]          = {choose_copy,    &weft_step_copy},
    [WEFT_OP_concat]           = {choose_moves,   &weft_step_concat},
    [WEFT_OP_pad]              = {choose_pad,     &weft_step_pad},
    [WEFT_OP_resize]           = {choose_resize,  &weft_step_blend},
    [WEFT_OP_gather]           = {choose_indexed, &weft_step_gather},
    [WEFT_OP_gather_elements]  = {choose_indexed, &weft_step_gather},
    [WEFT_OP_gather_nd]        = {choose_indexed, &weft_step_gather},
    [WEFT_OP_dynamic_slice]    = {choose_indexed, &weft_step_gather},
    [WEFT_OP_dynamic_update]   = {choose_indexed, &weft_step_scatter},
    [WEFT_OP_one_hot]          = {choose_indexed, &weft_step_scatter},
    [WEFT_OP_scatter_elements] = {choose_scatter, &weft_step_scatter},
    [WEFT_OP_scatter_nd]       = {choose_scatter, &weft_step_scatter},
};

static bool choose_family(const struct choice *c, weft_node n, struct weft_step *step)
{
    const int op = weft_opcode_of(c->graph, n);
    if (family[op].choose)
        return family[op].choose(c, n, family[op].kind, step);
    if (!(weft_op_of(c->graph, n)->traits & WEFT_ELEMENTWISE))
        return refuse(step, "the op has no kernel");
    return choose_map(c, n, step);
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

bool weft_step_is_reduction(const struct weft_graph *graph, weft_node node)
{
    return family[weft_opcode_of(graph, node)].kind == &weft_step_reduce;
}

bool weft_step_choose(const struct weft_graph *graph, const struct weft_target *target, struct weft_arena *arena,
                      struct weft_step *step)
{
    const struct choice c = {graph, target, arena};
    if (choose_family(&c, step->node, step))
        return true;
    if (!weft_step_is_plain(graph, step->node))
        return false;
    step->kind = &weft_step_plain;
    return true;
}

int64_t weft_bind_attr(const struct weft_bind *bind, int key, unsigned i)
{
    const struct weft_graph *g = bind->graph;
    return weft_dim_evaluate(g->dims, weft_attr_at(g, bind->step->node, key, i), bind->symbols);
}

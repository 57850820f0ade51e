/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.c: elementwise nodes in the words of strip kernels: the op with its form, its attributes as two numbers. */
#include "codegen/pointwise.h"

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

void weft_pointwise_params(const struct weft_graph *g, weft_node n, double param[2])
{
    param[0] = param[1] = 0;
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

const struct weft_strip_kernel *weft_pointwise_kernel(const struct weft_graph *g, weft_node n, uint32_t cpu,
                                                      struct weft_arena *arena)
{
    const unsigned operands = g->node[n.id].operands;
    const int in = weft_type_of(g, weft_operand(g, n, operands == 3 ? 1 : 0))->dtype;
    return weft_strip_find(strip_word(g, n, arena), in, weft_type_of(g, weft_result(g, n, 0))->dtype, cpu);
}

double weft_pointwise_ns(const struct weft_graph *g, weft_node n)
{
    const double simple = 0.05, division = 0.1, function = 0.25; /* f32, Zen 5 */
    const int op = weft_opcode_of(g, n);
    switch (op) {
    case WEFT_OP_div:
    case WEFT_OP_sqrt:
    case WEFT_OP_rsqrt:
    case WEFT_OP_recip:
        return division;
    case WEFT_OP_mod:
    case WEFT_OP_floor_div:
    case WEFT_OP_pow:
    case WEFT_OP_atan2:
        return function;
    default: /* functions stand together in ir/ops.def */
        return (op >= WEFT_OP_exp && op <= WEFT_OP_softplus) || (weft_op_of(g, n)->traits & WEFT_COMPOSITE) ? function
                                                                                                            : simple;
    }
}

bool weft_pointwise_fold(int opcode, enum weft_reduce_op *ret)
{
    switch (opcode) {
    case WEFT_OP_sum: *ret = WEFT_K_SUM; return true;
    case WEFT_OP_mean: *ret = WEFT_K_MEAN; return true;
    case WEFT_OP_prod: *ret = WEFT_K_PROD; return true;
    case WEFT_OP_reduce_max:
    case WEFT_OP_any: *ret = WEFT_K_MAX; return true;
    case WEFT_OP_reduce_min:
    case WEFT_OP_all: *ret = WEFT_K_MIN; return true;
    default: return false;
    }
}

enum weft_reduce_op weft_pointwise_scan(int opcode)
{
    return opcode == WEFT_OP_cumsum    ? WEFT_K_SUM
           : opcode == WEFT_OP_cumprod ? WEFT_K_PROD
           : opcode == WEFT_OP_cummax  ? WEFT_K_MAX : WEFT_K_MIN;
}

enum weft_reduce_op weft_pointwise_chunks(const struct weft_graph *graph, weft_node node)
{
    static const struct {
        const char *word;
        enum weft_reduce_op op;
    } ops[] = {{"sum", WEFT_K_SUM}, {"prod", WEFT_K_PROD}, {"max", WEFT_K_MAX}};
    const char *const word = weft_attr_word(graph, node, WEFT_ATTR_fold);
    enum weft_reduce_op op = WEFT_K_MIN;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        op = strcmp(ops[i].word, word) == 0 ? ops[i].op : op;
    return op;
}

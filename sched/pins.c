/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c: the dimensions that the axes of operands and results belong to, op by op. */
#include "sched/pins.h"

enum { OWN = 100 }; /* dimensions that one pin has for itself, or that only operands share */

static enum weft_pin_kind same(int rank, int ret_dim[WEFT_MAX_RANK])
{
    for (int i = 0; i < rank; i++)
        ret_dim[i] = i;
    return WEFT_PIN_MAPPED;
}

static int attr_at(const struct weft_graph *g, weft_node n, int key, int i)
{
    return (int)weft_dim_value(weft_attr_at(g, n, key, (unsigned)i));
}

/* The operand's axis i is result axis dims[i]; one that is repeated is new in the result. */
static enum weft_pin_kind broadcast(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    const struct weft_type *from = weft_type_of(g, weft_operand(g, pin.node, 0));
    const struct weft_type *to = weft_type_of(g, weft_result(g, pin.node, 0));
    for (int i = 0; i < rank; i++) {
        const int axis = pin.result ? i : attr_at(g, pin.node, WEFT_ATTR_dims, i);
        const bool repeated = !pin.result && weft_dim_is(from->extent[i], 1) && !weft_dim_is(to->extent[axis], 1);
        ret_dim[i] = repeated ? OWN : axis;
    }
    return WEFT_PIN_MAPPED;
}

/* Result axis i is operand axis perm[i]. */
static enum weft_pin_kind transpose(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    for (int i = 0; i < rank; i++)
        ret_dim[pin.result ? i : attr_at(g, pin.node, WEFT_ATTR_perm, i)] = i;
    return WEFT_PIN_MAPPED;
}

static uint32_t reduced_axes(const struct weft_graph *g, weft_node n)
{
    const struct weft_attr *axes = weft_attr_find(g, n, WEFT_ATTR_axes);
    uint32_t mask = 0;
    if (!axes)
        return 1u << weft_attr_int(g, n, WEFT_ATTR_axis);
    for (uint32_t i = 0; i < axes->count; i++)
        mask |= 1u << weft_dim_value(axes->integers[i]);
    return mask;
}

/* Dimensions are numbered by the operand's axes. */
static enum weft_pin_kind reduction(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    const uint32_t reduced = reduced_axes(g, pin.node);
    if (!pin.result || weft_attr_int(g, pin.node, WEFT_ATTR_keepdims))
        return same(rank, ret_dim);
    for (int i = 0, axis = 0; i < rank; axis++)
        if (!(reduced >> axis & 1))
            ret_dim[i++] = axis;
    return WEFT_PIN_MAPPED;
}

/* Result: batch axes, rows, columns. Operands have one of the latter two, and the sum's dimension. Rows of operand 1
 * that are mixed run with those of the result, which likes to have its rows where they have theirs. */
static enum weft_pin_kind product(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    same(rank, ret_dim);
    if (pin.result)
        return WEFT_PIN_MAPPED;
    const bool turned = weft_attr_int(g, pin.node, pin.index == 0 ? WEFT_ATTR_trans_a : WEFT_ATTR_trans_b);
    const bool sum_last = (pin.index == 0) != turned;
    ret_dim[sum_last ? rank - 1 : rank - 2] = pin.index == 1 && !turned ? rank - 2 : OWN;
    ret_dim[sum_last ? rank - 2 : rank - 1] = pin.index == 0 ? rank - 2 : rank - 1;
    return WEFT_PIN_MAPPED;
}

/* Batches and heads; then query: rows, width; key: columns, width; value: columns, result's width; mask: rows,
 * columns. */
static enum weft_pin_kind attention(struct weft_pin pin, int rank, int *ret_dim)
{
    static const int last[4][2] = {{0, OWN}, {OWN + 1, OWN}, {OWN + 1, 1}, {0, OWN + 1}};
    same(rank, ret_dim);
    for (int i = 0; i < 2 && !pin.result; i++) {
        const int dim = last[pin.index][i];
        ret_dim[rank - 2 + i] = dim >= OWN ? dim : rank - 2 + dim;
    }
    return WEFT_PIN_MAPPED;
}

/* The gathered axis of the data becomes the axes of the indices, and runs with the first of them. */
static enum weft_pin_kind gather(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    if (pin.result)
        return same(rank, ret_dim);
    const int axis = (int)weft_attr_int(g, pin.node, WEFT_ATTR_axis);
    const int indices = weft_type_of(g, weft_operand(g, pin.node, 1))->rank;
    for (int i = 0; i < rank; i++)
        ret_dim[i] = pin.index == 1 ? axis + i : i < axis ? i : i > axis ? i - 1 + indices
                                      : indices > 0 ? axis : OWN;
    return WEFT_PIN_MAPPED;
}

static enum weft_pin_kind one_hot(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    const int axis = (int)weft_attr_int(g, pin.node, WEFT_ATTR_axis);
    if (!pin.result && pin.index > 0)
        return WEFT_PIN_ANY;
    for (int i = 0; i < rank; i++)
        ret_dim[i] = pin.result || i < axis ? i : i + 1;
    return WEFT_PIN_MAPPED;
}

enum weft_pin_kind weft_pin_dims(const struct weft_graph *g, struct weft_pin pin, int ret_dim[WEFT_MAX_RANK])
{
    const int op = weft_opcode_of(g, pin.node), rank = weft_type_of(g, weft_pin_value(g, pin))->rank;
    const bool first = pin.result || pin.index == 0;
    for (int i = 0; i < WEFT_MAX_RANK; i++)
        ret_dim[i] = WEFT_NO_DIM;
    switch (op) {
    case WEFT_OP_bcast:
        return broadcast(g, pin, rank, ret_dim);
    case WEFT_OP_transpose:
        return transpose(g, pin, rank, ret_dim);
    case WEFT_OP_sum: case WEFT_OP_mean: case WEFT_OP_prod: case WEFT_OP_reduce_max: case WEFT_OP_reduce_min:
    case WEFT_OP_any: case WEFT_OP_all: case WEFT_OP_arg_max: case WEFT_OP_arg_min: case WEFT_OP_log_sum_exp:
    case WEFT_OP_variance:
        return reduction(g, pin, rank, ret_dim);
    case WEFT_OP_matmul:
        return product(g, pin, rank, ret_dim);
    case WEFT_OP_attention:
        return attention(pin, rank, ret_dim);
    case WEFT_OP_gather:
        return gather(g, pin, rank, ret_dim);
    case WEFT_OP_one_hot:
        return one_hot(g, pin, rank, ret_dim);
    /* all pins have the same axes */
    case WEFT_OP_concat: case WEFT_OP_gather_elements: case WEFT_OP_scatter_elements: case WEFT_OP_slice:
    case WEFT_OP_flip: case WEFT_OP_triangle: case WEFT_OP_cumsum: case WEFT_OP_cumprod: case WEFT_OP_cummax:
    case WEFT_OP_cummin: case WEFT_OP_sort: case WEFT_OP_top_k: case WEFT_OP_softmax: case WEFT_OP_log_softmax:
    case WEFT_OP_hardmax: case WEFT_OP_max_pool: case WEFT_OP_mean_pool: case WEFT_OP_norm_pool: case WEFT_OP_resize:
    case WEFT_OP_relayout:
        return same(rank, ret_dim);
    /* operand 0 has those of the result; what else there is, is small or packed */
    case WEFT_OP_pad: case WEFT_OP_conv: case WEFT_OP_conv_transpose: case WEFT_OP_batch_norm: case WEFT_OP_layer_norm:
    case WEFT_OP_rms_norm: case WEFT_OP_group_norm: case WEFT_OP_dynamic_slice: case WEFT_OP_reverse_sequence:
        return first ? same(rank, ret_dim) : WEFT_PIN_ANY;
    case WEFT_OP_dynamic_update: /* data, update, places */
        return pin.result || pin.index < 2 ? same(rank, ret_dim) : WEFT_PIN_ANY;
    case WEFT_OP_iota: /* is written in any order */
        return same(rank, ret_dim);
    case WEFT_OP_const:
        return WEFT_PIN_ANY;
    case WEFT_OP_quantize: case WEFT_OP_dequantize: case WEFT_OP_prelu:
        break; /* elementwise, with operands of equal shapes */
    default:
        break;
    }
    return weft_ops[op].traits & WEFT_ELEMENTWISE ? same(rank, ret_dim) : WEFT_PIN_PLAIN;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c: the dimensions that the axes of operands and results belong to: those of result 0, as index maps tell
 * (ir/index.h). What they do not tell is which kernels walk their operands and results in any order. */
#include "sched/pins.h"

enum { OWN = 100, ALL = 255 };

/* How many operands are walked in any order, as results are; others are small, or packed in any case. 0: results and
 * operands are row-major. */
static unsigned walked(int op)
{
    switch (op) {
    case WEFT_OP_bcast: case WEFT_OP_transpose: case WEFT_OP_slice: case WEFT_OP_relayout: case WEFT_OP_concat:
    case WEFT_OP_flip: case WEFT_OP_triangle: case WEFT_OP_gather: case WEFT_OP_gather_elements:
    case WEFT_OP_scatter_elements: case WEFT_OP_iota:
    case WEFT_OP_sum: case WEFT_OP_mean: case WEFT_OP_prod: case WEFT_OP_reduce_max: case WEFT_OP_reduce_min:
    case WEFT_OP_any: case WEFT_OP_all: case WEFT_OP_arg_max: case WEFT_OP_arg_min: case WEFT_OP_log_sum_exp:
    case WEFT_OP_variance: case WEFT_OP_cumsum: case WEFT_OP_cumprod: case WEFT_OP_cummax: case WEFT_OP_cummin:
    case WEFT_OP_sort: case WEFT_OP_top_k: case WEFT_OP_softmax: case WEFT_OP_log_softmax: case WEFT_OP_hardmax:
    case WEFT_OP_max_pool: case WEFT_OP_mean_pool: case WEFT_OP_norm_pool: case WEFT_OP_resize:
    case WEFT_OP_matmul: case WEFT_OP_attention:
        return ALL;
    case WEFT_OP_pad: case WEFT_OP_conv: case WEFT_OP_conv_transpose: case WEFT_OP_batch_norm: case WEFT_OP_layer_norm:
    case WEFT_OP_rms_norm: case WEFT_OP_group_norm: case WEFT_OP_dynamic_slice: case WEFT_OP_reverse_sequence:
    case WEFT_OP_one_hot:
        return 1;
    case WEFT_OP_dynamic_update: /* data, update; places */
        return 2;
    default:
        return weft_ops[op].traits & WEFT_ELEMENTWISE ? ALL : 0;
    }
}

enum weft_pin_kind weft_pin_kind_of(const struct weft_graph *g, struct weft_pin pin)
{
    const int op = weft_opcode_of(g, pin.node);
    const unsigned count = walked(op);
    if (op == WEFT_OP_const)
        return WEFT_PIN_ANY;
    if (count == 0)
        return WEFT_PIN_PLAIN;
    return pin.result || count == ALL || pin.index < count ? WEFT_PIN_MAPPED : WEFT_PIN_ANY;
}

/* Rows of the right operand of a product that are mixed run with those of the result, which likes to have its rows
 * where they have theirs: that is no index, but how the kernel walks. */
static void mix_rows(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    if (weft_opcode_of(g, pin.node) == WEFT_OP_matmul && pin.index == 1 &&
        !weft_attr_int(g, pin.node, WEFT_ATTR_trans_b))
        ret_dim[rank - 2] = rank - 2;
}

enum weft_pin_kind weft_pin_spans(const struct weft_graph *g, struct weft_pin pin, int ret_dim[WEFT_MAX_RANK],
                                  int ret_span[WEFT_MAX_RANK])
{
    const int rank = weft_type_of(g, weft_pin_value(g, pin))->rank;
    const enum weft_pin_kind kind = weft_pin_kind_of(g, pin);
    const bool same = pin.result || weft_op_of(g, pin.node)->traits & WEFT_ELEMENTWISE;
    struct weft_follow follow[WEFT_MAX_RANK];
    for (int i = 0; i < WEFT_MAX_RANK; i++)
        ret_dim[i] = WEFT_NO_DIM;
    if (kind != WEFT_PIN_MAPPED)
        return kind;
    if (!same && !weft_index_follow(g, pin, follow))
        return WEFT_PIN_PLAIN;
    for (int i = 0; i < rank; i++) {
        ret_dim[i] = same ? i : follow[i].axis >= 0 ? follow[i].axis : OWN + i;
        ret_span[i] = same ? 1 : follow[i].axes;
    }
    if (!same)
        mix_rows(g, pin, rank, ret_dim);
    return kind;
}

enum weft_pin_kind weft_pin_dims(const struct weft_graph *g, struct weft_pin pin, int ret_dim[WEFT_MAX_RANK])
{
    int span[WEFT_MAX_RANK];
    return weft_pin_spans(g, pin, ret_dim, span);
}

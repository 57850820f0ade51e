/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c: the dimensions that the axes of operands and results belong to: those of result 0, as index maps tell
 * (ir/index.h). What they do not tell, which kernels walk their operands and results in any order, is a column of
 * ir/ops.def; of functions of the caller's, they say (weft_custom.axes). */
#include "sched/pins.h"
#include "ir/custom.h"

enum { OWN = 100, OWN_RESULT = 200 };

enum weft_pin_kind weft_pin_kind_of(const struct weft_graph *g, struct weft_pin pin)
{
    const int walked = weft_op_of(g, pin.node)->walked;
    if (weft_opcode_of(g, pin.node) == WEFT_OP_const)
        return WEFT_PIN_ANY;
    if (walked == 0)
        return WEFT_PIN_PLAIN;
    return pin.result || walked < 0 || pin.index < (uint32_t)walked ? WEFT_PIN_MAPPED : WEFT_PIN_ANY;
}

/* Rows of the right operand of a product that are mixed run with those of the result, which likes to have its rows
 * where they have theirs: that is no index, but how the kernel walks. So do rows and columns of an image that is read
 * at the points of a grid, beside its channels. */
static void mix_rows(const struct weft_graph *g, struct weft_pin pin, int rank, int *ret_dim)
{
    if (weft_opcode_of(g, pin.node) == WEFT_OP_grid_sample)
        for (int i = 2; i < rank; i++)
            ret_dim[i] = i;
    if (weft_opcode_of(g, pin.node) == WEFT_OP_matmul && pin.index == 1 &&
        !weft_attr_int(g, pin.node, WEFT_ATTR_trans_b))
        ret_dim[rank - 2] = rank - 2;
}

static enum weft_pin_kind ask_function(const struct weft_graph *g, struct weft_pin pin, int ret_dim[WEFT_MAX_RANK],
                                       int ret_span[WEFT_MAX_RANK])
{
    const struct weft_custom_entry *const entry = weft_custom_of(g, pin.node);
    const unsigned operands = g->node[pin.node.id].operands;
    const int rank = weft_type_of(g, weft_pin_value(g, pin))->rank;
    const int first = weft_type_of(g, weft_result(g, pin.node, 0))->rank;
    int axis[WEFT_MAX_RANK];
    if (!entry || !weft_custom_axes(entry, pin.result ? operands + pin.index : pin.index, operands, rank, first, axis))
        return WEFT_PIN_PLAIN;
    for (int i = 0; i < rank; i++) {
        ret_dim[i] = axis[i] >= 0 ? axis[i] : (pin.result ? OWN_RESULT : OWN) + i;
        ret_span[i] = axis[i] >= 0;
    }
    return WEFT_PIN_MAPPED;
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
    if (weft_opcode_of(g, pin.node) == WEFT_OP_custom)
        return ask_function(g, pin, ret_dim, ret_span);
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

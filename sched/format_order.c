/* SPDX-License-Identifier: Apache-2.0 */
/* format_order.c: do a node's operand and its result lie in one order?
 *
 *   %y = sum %x axes=[1]      x {0 2 3 1}, y {0 1 2}: dimensions 0 2 3 on both sides, 1 is the sum's alone: one order
 *   %y = exp %x               x {0 1 2 3}, y {1 0 2 3}: another order, but runs of 2 and 3 are the same
 *
 * Orders are compared on the dimensions that both pins have (pins.h), without axes that are not stored. */
#include "sched/format.h"

/* The storage axes of a pin, outermost first, as digits of dimensions; without those of extent 1, those along which
 * nothing changes, and those that only this pin has. */
struct order {
    int count;
    struct { int dim; int64_t div, mod; } digit[WEFT_MAX_STORAGE];
    int64_t run; /* elements of the innermost digit */
};

static bool has_dim(const int *dim, int rank, int wanted)
{
    for (int i = 0; i < rank; i++)
        if (dim[i] == wanted)
            return wanted != WEFT_NO_DIM;
    return false;
}

/* An axis along which nothing changes and for which nothing is stored belongs to no dimension: any order will do. */
static void drop_free(const struct weft_graph *g, weft_val value, uint32_t number, int *dim)
{
    const struct weft_type *type = weft_type_of(g, value);
    const struct weft_layout *const layout = weft_layout_peek(g, number, type->rank);
    for (int i = 0; i < layout->axes && !layout->dense; i++)
        if (weft_dim_is(layout->stride[i], 0))
            dim[layout->axis[i].axis] = WEFT_NO_DIM;
    const uint32_t stored = weft_format_stored_axes(g, value);
    for (int i = 0; i < type->rank; i++)
        if (!(stored >> i & 1))
            dim[i] = WEFT_NO_DIM;
}

/* Two digits of one dimension, with nothing between them that counts here, are one. */
static bool is_next(const struct order *order, int dim, int64_t div)
{
    return order->digit[order->count - 1].dim == dim && order->digit[order->count - 1].div == div;
}

static struct order order_of(const struct weft_graph *g, weft_val value, uint32_t number, const int *dim,
                             const int *other, int other_rank)
{
    const struct weft_type *type = weft_type_of(g, value);
    const struct weft_layout *const layout = weft_layout_peek(g, number, type->rank);
    struct order order = {.run = 1};
    for (int i = 0; i < layout->axes; i++) {
        const struct weft_axis *axis = &layout->axis[i];
        const int64_t extent = weft_dim_hint(g->dims, type->extent[axis->axis]);
        if (extent <= axis->div || !has_dim(other, other_rank, dim[axis->axis]))
            continue;
        const int64_t mod = axis->mod && axis->mod * axis->div < extent ? axis->mod : 0;
        const int64_t here = mod ? mod : extent / axis->div;
        if (order.count && mod && is_next(&order, dim[axis->axis], axis->div * mod)) {
            order.digit[order.count - 1].div = axis->div;
            order.digit[order.count - 1].mod *= mod;
            order.run *= here;
            continue;
        }
        order.digit[order.count].dim = dim[axis->axis];
        order.digit[order.count].div = axis->div;
        order.digit[order.count++].mod = mod;
        order.run = here;
    }
    return order;
}

static bool same_digit(const struct order *a, int i, const struct order *b, int k)
{
    return a->digit[i].dim == b->digit[k].dim && a->digit[i].div == b->digit[k].div &&
           a->digit[i].mod == b->digit[k].mod;
}

static enum weft_format_agreement compare(const struct order *a, const struct order *b, int bits)
{
    int same = 0;
    while (same < a->count && same < b->count && same_digit(a, a->count - 1 - same, b, b->count - 1 - same))
        same++;
    if (same == a->count && same == b->count)
        return WEFT_SAME_ORDER;
    return same > 0 && a->run * bits / 8 >= WEFT_FORMAT_RUN ? WEFT_SAME_RUNS : WEFT_OTHER_ORDER;
}

/* --- of values and of nodes --------------------------------------------------------------------------------------- */

int weft_format_fastest_axis(const struct weft_formats *f, weft_val value, uint32_t number)
{
    const int rank = weft_type_of(f->graph, value)->rank;
    int dim[WEFT_MAX_RANK];
    for (int i = 0; i < WEFT_MAX_RANK; i++)
        dim[i] = i;
    const struct order order = order_of(f->graph, value, number, dim, dim, rank);
    return order.count ? order.digit[order.count - 1].dim : WEFT_NO_DIM;
}

bool weft_format_has_channels_inside(const struct weft_formats *f, weft_val value, uint32_t number)
{
    return weft_format_fastest_axis(f, value, number) == 1;
}

static bool is_split(const struct weft_formats *f, weft_val value, uint32_t number)
{
    const int rank = weft_type_of(f->graph, value)->rank;
    return weft_layout_peek(f->graph, number, rank)->axes > rank;
}

bool weft_format_is_last(const struct weft_formats *f, weft_val value, uint32_t number)
{
    return weft_format_has_channels_inside(f, value, number) && !is_split(f, value, number);
}

bool weft_format_has_order(const struct weft_formats *f, weft_val value, uint32_t number, uint32_t other)
{
    const int rank = weft_type_of(f->graph, value)->rank;
    int dim[WEFT_MAX_RANK];
    for (int i = 0; i < WEFT_MAX_RANK; i++)
        dim[i] = i;
    drop_free(f->graph, value, number, dim);
    const struct order a = order_of(f->graph, value, number, dim, dim, rank);
    const struct order b = order_of(f->graph, value, other, dim, dim, rank);
    return compare(&a, &b, 0) == WEFT_SAME_ORDER;
}

/* An axis of which one side has a single index is walked at that one: where the other side has it does not count, as if
 * it were reduced. */
static void drop_single(const struct weft_graph *g, const struct weft_type *type, int *dim,
                        const struct weft_type *other, int *other_dim)
{
    for (int i = 0; i < type->rank; i++)
        for (int k = 0; k < other->rank; k++)
            if (dim[i] == other_dim[k] && (weft_dim_hint(g->dims, type->extent[i]) == 1 ||
                                           weft_dim_hint(g->dims, other->extent[k]) == 1))
                dim[i] = other_dim[k] = WEFT_NO_DIM;
}

enum weft_format_agreement weft_format_agreement_of(const struct weft_graph *g, struct weft_pin operand,
                                                    uint32_t layout, uint32_t result)
{
    const weft_val value = weft_pin_value(g, operand), to = weft_result(g, operand.node, 0);
    const struct weft_pin pin = {.node = operand.node, .result = true};
    const struct weft_type *type = weft_type_of(g, value), *to_type = weft_type_of(g, to);
    int dim[WEFT_MAX_RANK], result_dim[WEFT_MAX_RANK];
    if (layout == result && weft_op_of(g, operand.node)->traits & WEFT_ELEMENTWISE && weft_type_same(type, to_type))
        return WEFT_SAME_ORDER;
    if (weft_pin_dims(g, operand, dim) != WEFT_PIN_MAPPED || weft_pin_dims(g, pin, result_dim) != WEFT_PIN_MAPPED)
        return WEFT_SAME_ORDER;
    drop_single(g, type, dim, to_type, result_dim);
    drop_free(g, value, layout, dim);
    drop_free(g, to, result, result_dim);
    const struct order a = order_of(g, value, layout, dim, result_dim, to_type->rank);
    const struct order b = order_of(g, to, result, result_dim, dim, type->rank);
    return compare(&a, &b, (int)weft_dtype_bits(type->dtype));
}

bool weft_format_mixes_rows(const struct weft_formats *f, struct weft_pin operand, uint32_t layout, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val value = weft_pin_value(g, operand), to = weft_result(g, operand.node, 0);
    const int op = weft_opcode_of(g, operand.node);
    if (op == WEFT_OP_attention || op == WEFT_OP_attention_sums)
        return operand.index > 0 || weft_format_agreement_of(g, operand, layout, result) == WEFT_SAME_ORDER;
    if (op == WEFT_OP_attention_grad) /* dq as q */
        return operand.index != 1 || weft_format_agreement_of(g, operand, layout, result) == WEFT_SAME_ORDER;
    const int rank = weft_type_of(g, value)->rank;
    int dim[WEFT_MAX_RANK];
    for (int i = 0; i < WEFT_MAX_RANK; i++)
        dim[i] = i;
    if (operand.index != 1 || rank < 3 || weft_attr_int(g, operand.node, WEFT_ATTR_trans_b) ||
        weft_format_fastest_axis(f, value, layout) != rank - 1)
        return true;
    const struct order a = order_of(g, value, layout, dim, dim, rank), b = order_of(g, to, result, dim, dim, rank);
    return compare(&a, &b, 0) == WEFT_SAME_ORDER;
}

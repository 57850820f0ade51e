/* SPDX-License-Identifier: Apache-2.0 */
/* carry.c: from the layout of one pin of a node to that of another. */
#include "sched/pins.h"

/* Only the order of the storage axes and their splits. */
static struct weft_layout order_of(const struct weft_layout *layout)
{
    struct weft_layout order = {.kind = WEFT_STORED, .axes = layout->axes, .dense = true};
    for (int i = 0; i < layout->axes; i++)
        order.axis[i] = layout->axis[i];
    return order;
}

static void append(struct weft_layout *layout, struct weft_axis digit)
{
    layout->axis[layout->axes++] = digit;
}

static int axis_with(const int *dim, int rank, int wanted)
{
    for (int i = 0; i < rank; i++)
        if (dim[i] == wanted)
            return i;
    return -1;
}

/* The dimensions of both pins. */
struct passage {
    int from_rank, to_rank;
    int from[WEFT_MAX_RANK], to[WEFT_MAX_RANK];
    int span[WEFT_MAX_RANK]; /* of `from`: weft_pin_spans */
    uint32_t is_new;         /* axes of `to`, as bits, for which `from` has nothing that they run with */
};

static bool is_new(const struct passage *p, int axis)
{
    for (int i = 0; i < p->from_rank; i++)
        if (p->from[i] <= p->to[axis] && p->to[axis] < p->from[i] + (p->span[i] > 1 ? p->span[i] : 1))
            return false;
    return true;
}

static bool open_passage(const struct weft_graph *g, struct weft_pin from, struct weft_pin to, struct passage *ret)
{
    int span[WEFT_MAX_RANK];
    ret->from_rank = weft_type_of(g, weft_pin_value(g, from))->rank;
    ret->to_rank = weft_type_of(g, weft_pin_value(g, to))->rank;
    ret->is_new = 0;
    if (weft_pin_spans(g, from, ret->from, ret->span) != WEFT_PIN_MAPPED ||
        weft_pin_spans(g, to, ret->to, span) != WEFT_PIN_MAPPED)
        return false;
    for (int i = 0; i < ret->to_rank; i++)
        if (is_new(ret, i))
            ret->is_new |= 1u << i;
    return true;
}

/* In logical order. */
static void append_new(struct weft_layout *layout, const struct passage *p)
{
    for (int i = 0; i < p->to_rank; i++)
        if (p->is_new >> i & 1)
            append(layout, (struct weft_axis){.axis = (uint8_t)i, .div = 1});
}

/* What a gathered axis becomes lies where that lay. */
static void append_span(struct weft_layout *layout, const struct passage *p, struct weft_axis digit)
{
    const int first = p->from[digit.axis], span = p->span[digit.axis];
    const int axis = axis_with(p->to, p->to_rank, first);
    digit.axis = (uint8_t)axis;
    if (axis >= 0)
        append(layout, digit);
    for (int i = 1; i < span; i++) {
        const int next = axis_with(p->to, p->to_rank, first + i);
        if (next >= 0)
            append(layout, (struct weft_axis){.axis = (uint8_t)next, .div = 1});
    }
}

static struct weft_layout carry_mapped(const struct passage *p, const struct weft_layout *layout,
                                       enum weft_new_axes place)
{
    struct weft_layout ret = {.kind = WEFT_STORED, .dense = true};
    if (place == WEFT_NEW_OUTERMOST)
        append_new(&ret, p);
    for (int i = 0; i < layout->axes; i++)
        append_span(&ret, p, layout->axis[i]);
    if (place == WEFT_NEW_INNERMOST)
        append_new(&ret, p);
    return ret;
}

static bool carry_reshaped(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout,
                           const struct weft_type *type, struct weft_layout *ret)
{
    const struct weft_layout order = order_of(layout);
    weft_dim stride[WEFT_MAX_RANK]; /* kernels read no views with split axes */
    if (!weft_layout_reshape(g->dims, &order, weft_type_of(g, weft_pin_value(g, from)), type, ret) ||
        !weft_layout_logical_strides(g->dims, ret, type, stride))
        return false;
    *ret = order_of(ret);
    return true;
}

/* Places from `first` to `last`. */
static int carry(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout, struct weft_pin to,
                 int first, int last, struct weft_layout *ret)
{
    const struct weft_type *type = weft_type_of(g, weft_pin_value(g, to));
    const bool reshapes = weft_opcode_of(g, from.node) == WEFT_OP_reshape;
    struct passage p;
    int count = 0;
    if (layout->kind != WEFT_STORED || (!reshapes && (layout->axes + type->rank > WEFT_MAX_STORAGE ||
                                                      !open_passage(g, from, to, &p))))
        return 0;
    const bool any_new = !reshapes && p.is_new;
    for (int place = first; place <= last && (place == first || any_new); place++) {
        if (!reshapes)
            ret[count] = carry_mapped(&p, layout, (enum weft_new_axes)place);
        else if (!carry_reshaped(g, from, layout, type, &ret[count]))
            return 0;
        if (weft_layout_check(&ret[count], type)) /* the blocks of the one are not those of the other */
            return 0;
        weft_layout_canonical(g->dims, &ret[count++], type);
    }
    return count;
}

bool weft_carry_layout(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout,
                       struct weft_pin to, enum weft_new_axes place, struct weft_layout *ret)
{
    return carry(g, from, layout, to, place, place, ret) > 0;
}

int weft_carry_layouts(struct weft_graph *g, struct weft_pin from, const struct weft_layout *layout,
                       struct weft_pin to, struct weft_layout ret[2])
{
    return carry(g, from, layout, to, WEFT_NEW_OUTERMOST, WEFT_NEW_INNERMOST, ret);
}

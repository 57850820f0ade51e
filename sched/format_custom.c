/* SPDX-License-Identifier: Apache-2.0 */
/* format_custom.c: the orders that custom functions take (weft_custom.layout).
 *
 *   %a: f32[64,64] = custom %x function=turned       x and a in {1 0}: nothing; else each is a relayout
 *
 * A function that takes an operand packed in one order gets a relayout of what lies otherwise, and who reads its result
 * in another order than it writes reads a relayout of that (passes/propagate_orders.c); so that is what layouts cost
 * here. One that takes any strides reads and writes what there is; what it goes along (weft_demand.along) lies
 * innermost, or costs what walking across lines takes. Where it says which axes of operands and results go together
 * (weft_custom.axes), layouts are carried through it (sched/pins.h), and an operand in another order than result 0
 * costs what reading across takes; else no layout is carried. */
#include "sched/caller.h"
#include "sched/format.h"

enum { BEHIND = 2 * WEFT_FORMAT_TIE }; /* a conversion that others may share goes before one for a function alone */

/* Elements smaller than a byte lie row-major only, and one element that all indices find is not stored. */
static bool has_order(const struct weft_graph *g, weft_val v)
{
    struct weft_element element;
    return weft_dtype_bits(weft_type_of(g, v)->dtype) >= 8 &&
           !(weft_is_const(g, v) && weft_const_splat(g, v, &element));
}

enum weft_format_wanted weft_format_custom(const struct weft_formats *f, struct weft_pin pin, uint32_t *ret_layout)
{
    struct weft_graph *g = f->graph;
    struct weft_caller_walk walk;
    const uint32_t slot = pin.result ? g->node[pin.node.id].operands + pin.index : pin.index;
    const weft_val v = weft_pin_value(g, pin);
    *ret_layout = 0;
    if (weft_opcode_of(g, pin.node) != WEFT_OP_custom || !weft_caller_walk_of(f->target, g, pin.node, slot, &walk))
        return WEFT_WANTS_UNKNOWN;
    if (!has_order(g, v) || walk.strides)
        return WEFT_WANTS_ANY;
    if (!walk.packed) /* it names an order that is none */
        return WEFT_WANTS_UNKNOWN;
    *ret_layout = weft_intern_layout(g, &walk.layout, weft_type_of(g, v));
    return WEFT_WANTS_ORDER;
}

/* Elements one by one along an axis that is not innermost, where the function takes any strides. */
static int64_t along_ps(const struct weft_formats *f, struct weft_pin pin, uint32_t layout)
{
    struct weft_graph *const g = f->graph;
    const uint32_t slot = pin.result ? g->node[pin.node.id].operands + pin.index : pin.index;
    const weft_val v = weft_pin_value(g, pin);
    struct weft_caller_walk walk;
    if (!has_order(g, v) || !weft_caller_walk_of(f->target, g, pin.node, slot, &walk) || walk.along < 0 ||
        weft_format_fastest_axis(f, v, layout) == walk.along)
        return 0;
    return weft_format_extra_ps(f, WEFT_PRICE_read_private, weft_format_bytes(f, v), WEFT_PRICE_access_along);
}

int64_t weft_format_custom_ps(const struct weft_formats *f, struct weft_pin pin, uint32_t layout)
{
    const weft_val v = weft_pin_value(f->graph, pin);
    uint32_t wanted;
    const enum weft_format_wanted wants = weft_format_custom(f, pin, &wanted);
    if (wants == WEFT_WANTS_ANY)
        return along_ps(f, pin, layout);
    const int64_t ps = pin.result ? weft_format_convert_ps(f, v, wanted, layout)
                                  : weft_format_convert_ps(f, v, layout, wanted);
    return ps && wants == WEFT_WANTS_ORDER ? BEHIND + ps : ps;
}

int64_t weft_format_custom_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout,
                                   uint32_t result)
{
    uint32_t wanted;
    const int64_t ps = weft_format_custom_ps(f, operand, layout);
    const bool walks = weft_format_custom(f, operand, &wanted) == WEFT_WANTS_ANY &&
                       has_order(f->graph, weft_pin_value(f->graph, operand));
    return walks ? ps + weft_format_across_ps(f, operand, layout, result) : ps;
}

bool weft_format_misses_order(const struct weft_formats *f, struct weft_pin pin, uint32_t layout)
{
    uint32_t wanted;
    return weft_format_custom(f, pin, &wanted) == WEFT_WANTS_ORDER &&
           weft_format_convert_ps(f, weft_pin_value(f->graph, pin), wanted, layout) > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* format_conv.c: what convolutions cost by order of their operand and result.
 *
 *   %y = conv %x, %w      f32[1,3,56,56] from f32[1,8,56,56], 3x3
 *   row-major             vectors along the pixels: 56 of 64 lanes have work
 *   channels-last         vectors along three results: 3 of 8
 *
 * The kernel is asked which loops it takes for these strides, with sizes at their hints, and for what they take in
 * multiply-adds, those of empty lanes and what is moved included; a price makes time of it. Loops for which the kernel
 * has no model take their time by the multiply-adds of the formula: transforms, depthwise windows, small groups. */
#include "sched/format.h"

/* What a convolution takes whose operand and result lie so. */
struct cost {
    bool is_strided; /* else nothing is known: axes are split */
    bool is_modelled; /* by the kernel */
    int64_t ps;
};

/* The kernel is prepared once for all nodes that are alike: what reads a value is priced in each of its layouts, what
 * writes it too, and both against row-major. */
static const struct cost *cost_of(const struct weft_formats *f, weft_node n, uint32_t operand, uint32_t result)
{
    struct weft_format_known *known = WEFT_RECALL(f, WEFT_RECALL_CONV, f->node_kind[n.id], operand, result);
    if (known->answer)
        return known->answer;
    struct cost *cost = weft_new(f->arena, struct cost, 1);
    struct weft_conv conv;
    enum weft_price price;
    cost->is_strided = weft_format_conv(f, n, operand, result, &conv);
    if (cost->is_strided) {
        weft_conv_prepare(&conv, 1);
        const double products = weft_step_conv_products(&conv, &price, &cost->is_modelled);
        cost->ps = weft_format_rate_ps(f, products, price);
    }
    return known->answer = cost;
}

/* The layout of x that goes with one of y. */
static bool like_result(const struct weft_formats *f, weft_node n, uint32_t result, uint32_t *ret_layout)
{
    return weft_format_carry(f, (struct weft_pin){.node = n, .result = true}, result, (struct weft_pin){.node = n},
                             ret_layout);
}

/* Do neighbours differ in their channel, or in their place in a row? Else every element is by itself. */
static bool goes_by_runs(const struct weft_formats *f, weft_val v, uint32_t layout)
{
    const int fastest = weft_format_fastest_axis(f, v, layout);
    return fastest == WEFT_NO_DIM || fastest == 1 || fastest == weft_type_of(f->graph, v)->rank - 1;
}

static int64_t scattered_ps(const struct weft_formats *f, weft_val v, uint32_t layout, enum weft_price level)
{
    return goes_by_runs(f, v, layout)
               ? 0 : weft_format_extra_ps(f, level, weft_format_bytes(f, v), WEFT_PRICE_access_strided);
}

int64_t weft_format_conv_write_ps(const struct weft_formats *f, weft_node n, uint32_t result)
{
    const weft_val y = weft_result(f->graph, n, 0);
    uint32_t layout = 0;
    if (!weft_step_is_f32(f->graph, n))
        return 0;
    const struct cost *const row_major = cost_of(f, n, 0, 0);
    const struct cost *const cost = like_result(f, n, result, &layout) ? cost_of(f, n, layout, result) : NULL;
    if (!cost || !cost->is_strided)
        return row_major->ps + weft_format_convert_ps(f, y, 0, result);
    return weft_format_doubted_ps(row_major->ps, cost->ps) + scattered_ps(f, y, result, WEFT_PRICE_write_private);
}

int64_t weft_format_conv_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout,
                                 uint32_t result)
{
    const weft_node n = operand.node;
    const weft_val x = weft_pin_value(f->graph, operand);
    uint32_t like = 0;
    if (!weft_step_is_f32(f->graph, n))
        return 0;
    if (like_result(f, n, result, &like) && like == layout)
        return scattered_ps(f, x, layout, WEFT_PRICE_read_private);
    const struct cost *const here = cost_of(f, n, layout, result), *const there = cost_of(f, n, like, result);
    if (!here->is_strided || !there->is_strided)
        return weft_format_turn_ps(f, x);
    const int64_t more =
        (here->ps > there->ps ? here->ps - there->ps : 0) + scattered_ps(f, x, layout, WEFT_PRICE_read_private);
    return here->is_modelled ? more : more + weft_format_turn_ps(f, x);
}

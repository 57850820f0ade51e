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

/* `ret_known`: has the kernel a model? */
static int64_t cost(const struct weft_formats *f, struct weft_conv *conv, bool *ret_known)
{
    enum weft_price price;
    weft_conv_prepare(conv, 1);
    const double products = weft_step_conv_products(conv, &price, ret_known);
    return weft_format_rate_ps(f, products, price);
}

/* The layout of x that goes with one of y. */
static bool like_result(const struct weft_formats *f, weft_node n, uint32_t result, uint32_t *ret_layout)
{
    struct weft_graph *g = f->graph;
    const weft_val x = weft_operand(g, n, 0);
    const struct weft_pin from = {.node = n, .result = true}, to = {.node = n};
    const struct weft_layout stored = weft_layout_at(g, result, weft_type_of(g, weft_result(g, n, 0))->rank);
    struct weft_layout layout;
    if (!weft_carry_layout(g, from, &stored, to, WEFT_NEW_OUTERMOST, &layout))
        return false;
    *ret_layout = weft_intern_layout(g, &layout, weft_type_of(g, x));
    return true;
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
    struct weft_conv plain, conv;
    uint32_t layout = 0;
    bool known;
    if (!weft_step_is_f32(f->graph, n) || !weft_format_conv(f, n, 0, 0, &plain))
        return 0;
    const int64_t row_major = cost(f, &plain, &known);
    if (!like_result(f, n, result, &layout) || !weft_format_conv(f, n, layout, result, &conv))
        return row_major + weft_format_convert_ps(f, y, 0, result);
    return weft_format_doubted_ps(row_major, cost(f, &conv, &known)) +
           scattered_ps(f, y, result, WEFT_PRICE_write_private);
}

int64_t weft_format_conv_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout,
                                 uint32_t result)
{
    const weft_node n = operand.node;
    const weft_val x = weft_pin_value(f->graph, operand);
    struct weft_conv conv, wanted;
    uint32_t like = 0;
    bool known, other;
    if (!weft_step_is_f32(f->graph, n))
        return 0;
    if (like_result(f, n, result, &like) && like == layout)
        return scattered_ps(f, x, layout, WEFT_PRICE_read_private);
    if (!weft_format_conv(f, n, layout, result, &conv) || !weft_format_conv(f, n, like, result, &wanted))
        return weft_format_turn_ps(f, x);
    const int64_t here = cost(f, &conv, &known), there = cost(f, &wanted, &other);
    const int64_t more = (here > there ? here - there : 0) + scattered_ps(f, x, layout, WEFT_PRICE_read_private);
    return known ? more : more + weft_format_turn_ps(f, x);
}

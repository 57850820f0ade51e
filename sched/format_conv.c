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

#include "kernels/conv/costs.h"

enum { WIDE_ROW = 16, SMALL_WINDOW = 9 };

static int64_t extent_at(const struct weft_graph *g, weft_val v, int axis)
{
    const int64_t extent = weft_dim_hint(g->dims, weft_type_of(g, v)->extent[axis]);
    return extent > 0 ? extent : 0;
}

/* Multiply-adds of the formula: each result has the weights of its filter; each operand of an adjoint adds to its own.
 * */
static double formula(const struct weft_graph *g, weft_node n)
{
    const weft_val weight = weft_operand(g, n, 1);
    const int64_t filters = extent_at(g, weight, 0);
    const weft_val each = weft_opcode_of(g, n) == WEFT_OP_conv ? weft_result(g, n, 0) : weft_operand(g, n, 0);
    return filters > 0 ? (double)weft_format_elements(g, each) * (double)weft_format_elements(g, weight) /
                             (double)filters : 0;
}

static enum weft_price depthwise_price(const struct weft_graph *g, weft_node n)
{
    const weft_val weight = weft_operand(g, n, 1), y = weft_result(g, n, 0);
    const bool wide = extent_at(g, y, weft_type_of(g, y)->rank - 1) >= WIDE_ROW;
    int64_t taps = 1;
    for (int i = 2; i < weft_type_of(g, weight)->rank; i++)
        taps *= extent_at(g, weight, i);
    return taps <= SMALL_WINDOW ? wide ? WEFT_PRICE_depth_small_wide_first : WEFT_PRICE_depth_small_narrow_first
           : wide               ? WEFT_PRICE_depth_large_wide_first
                                : WEFT_PRICE_depth_large_narrow_first;
}

/* By the order of y the row of a price is taken: row-major, channels-last. `ret_known`: has the kernel a model? */
static int64_t cost(const struct weft_formats *f, weft_node n, struct weft_conv *conv, bool *ret_known)
{
    static const enum weft_price first[] = {[WEFT_CONV_KIND_DIRECT] = WEFT_PRICE_conv_direct_first,
                                            [WEFT_CONV_KIND_POINT] = WEFT_PRICE_conv_point_first,
                                            [WEFT_CONV_KIND_WINOGRAD] = WEFT_PRICE_conv_winograd_first,
                                            [WEFT_CONV_KIND_OTHER] = WEFT_PRICE_conv_grouped_first};
    bool last = conv->y_stride[1] == 1 && conv->o > 1;
    double products;
    weft_conv_prepare(conv, 1);
    const enum weft_conv_kind kind = weft_conv_kind(conv, &products);
    const bool depthwise = kind == WEFT_CONV_KIND_PLANES || kind == WEFT_CONV_KIND_CHANNELS;
    const enum weft_price price = depthwise ? depthwise_price(f->graph, n) : first[kind];
    last = depthwise ? kind == WEFT_CONV_KIND_CHANNELS : last;
    *ret_known = products > 0;
    return weft_format_rate_ps(f, products > 0 ? products : formula(f->graph, n), price + last);
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
    const int64_t row_major = cost(f, n, &plain, &known);
    if (!like_result(f, n, result, &layout) || !weft_format_conv(f, n, layout, result, &conv))
        return row_major + weft_format_convert_ps(f, y, 0, result);
    return weft_format_doubted_ps(row_major, cost(f, n, &conv, &known)) +
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
    const int64_t here = cost(f, n, &conv, &known), there = cost(f, n, &wanted, &other);
    const int64_t more = (here > there ? here - there : 0) + scattered_ps(f, x, layout, WEFT_PRICE_read_private);
    return known ? more : more + weft_format_turn_ps(f, x);
}

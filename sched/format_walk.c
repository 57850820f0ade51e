/* SPDX-License-Identifier: Apache-2.0 */
/* format_walk.c: what ops pay for how they go through an operand.
 *
 *   %z = sub %x, %m     {0 2 3 1}, m the same for all channels: a call of the kernel for each pixel
 *   %z = add %x, %y     x {0 1 2}, y {1 0 2}: a call for each run of axis 2; y {2 0 1}: y is read across
 *   %z = sub %x, %m     {2 1 0}, 4 along axis 0, m the same along axis 1: rows are too short for calls, and
 *                       along axis 1 it goes by elements
 *   %z = add %s, %y     %s channels of a slice of {0 2 3 1}: rows with gaps, of which each takes time
 *
 * How an elementwise op puts its axes is asked of its kernel, sizes at their hints: once with all operands as the
 * result lies, which is what writing it so takes, since something may be repeated along the innermost axis; and with
 * each operand as it lies, which is what reading it takes more. Elements in one piece cost nothing here, as they cost
 * the same in every layout, and a few calls are no reason to leave one. */
#include "sched/format.h"

enum { GAPPED_ROWS = 4 }; /* a row that is copied to a buffer takes a quarter of a call */

/* Strides of a value that lies in the order of this layout of the result, but for what is not stored of it. */
static void like_result(const struct weft_graph *g, const struct weft_type *type, const struct weft_layout *order,
                        uint32_t stored, int64_t *ret_stride)
{
    int64_t step = 1;
    for (int i = order->axes - 1; i >= 0; i--) {
        const int axis = order->axis[i].axis;
        const int64_t extent = weft_dim_hint(g->dims, type->extent[axis]);
        ret_stride[axis] = stored >> axis & 1 ? step : 0;
        step *= stored >> axis & 1 && extent > 0 ? extent : 1;
    }
}

/* The result of an elementwise op with no operand yet; false where it has no strides. */
static bool open_map(const struct weft_formats *f, weft_node n, uint32_t result, struct weft_map *ret)
{
    const struct weft_graph *g = f->graph;
    const weft_val to = weft_result(g, n, 0);
    const struct weft_type *type = weft_type_of(g, to);
    *ret = (struct weft_map){.rank = type->rank, .bytes = {(int32_t)weft_dtype_bits(type->dtype) / 8}};
    for (int i = 0; i < type->rank; i++)
        ret->extent[i] = weft_dim_hint(g->dims, type->extent[i]);
    return ret->bytes[0] > 0 && weft_format_elements(g, to) > 0 && weft_format_strides(f, to, result, ret->stride[0]);
}

/* Calls that the kernel is cut into; `ret_streams`: does it go through neighbours? */
static double calls_of(struct weft_map *map, bool *ret_streams)
{
    double calls = 1;
    weft_map_prepare(map, 1);
    const int inner = map->rank - 1;
    *ret_streams = true;
    for (int i = 0; i < inner; i++)
        calls *= (double)map->extent[i];
    if (map->period > 0)
        return map->gapped ? calls * (double)map->extent[inner] / map->period / GAPPED_ROWS : 1;
    for (int a = 0; a <= map->inputs; a++)
        *ret_streams &= map->stride[a][inner] == 1 || (a > 0 && map->stride[a][inner] == 0);
    return calls;
}

int64_t weft_format_walk_write_ps(const struct weft_formats *f, weft_node n, uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const struct weft_type *type = weft_type_of(g, weft_result(g, n, 0));
    const struct weft_layout order = weft_layout_at(g, result, type->rank);
    const uint32_t operands = g->node[n.id].operands;
    struct weft_map map;
    bool streams;
    if (operands > WEFT_K_MAX_IN || !open_map(f, n, result, &map))
        return 0;
    for (uint32_t i = 0; i < operands; i++) {
        const weft_val v = weft_operand(g, n, i);
        const struct weft_type *from = weft_type_of(g, v);
        if (from->rank != type->rank || weft_dtype_bits(from->dtype) < 8)
            return 0;
        if (weft_format_bytes(f, v) == 0) /* one number for all */
            continue;
        map.bytes[++map.inputs] = (int32_t)weft_dtype_bits(from->dtype) / 8;
        like_result(g, type, &order, weft_format_stored_axes(g, v), map.stride[map.inputs]);
    }
    int64_t ps = weft_format_rate_ps(f, calls_of(&map, &streams) - 1, WEFT_PRICE_strip_call);
    ps = weft_format_in_group_ps(f, n, ps);
    const int64_t bytes = weft_format_bytes(f, weft_result(g, n, 0));
    ps += streams ? 0 : weft_format_extra_ps(f, WEFT_PRICE_write_private, bytes, WEFT_PRICE_access_strided);
    return weft_format_beyond_little(ps);
}

/* What a slice is cut out of: where it is a view, its rows lie as far apart as those of that. */
static weft_val cut_from(const struct weft_graph *g, weft_val v)
{
    while (weft_def_opcode(g, v) == WEFT_OP_slice)
        v = weft_operand(g, weft_def(g, v), 0);
    return v;
}

int64_t weft_format_walk_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout,
                                 uint32_t result)
{
    const struct weft_graph *g = f->graph;
    const weft_val value = weft_pin_value(g, operand);
    const struct weft_type *type = weft_type_of(g, value);
    const struct weft_layout order = weft_layout_at(g, result, type->rank);
    const int64_t bytes = weft_format_bytes(f, value);
    struct weft_map map;
    bool streams, would_stream;
    const enum weft_format_agreement agreement = weft_format_agreement_of(g, operand, layout, result);
    const weft_val whole = cut_from(g, value);
    if (bytes == 0 || (agreement == WEFT_SAME_ORDER && weft_is(whole, value)))
        return 0;
    const bool opens = weft_type_of(g, weft_result(g, operand.node, 0))->rank == type->rank &&
                       open_map(f, operand.node, result, &map);
    map.bytes[1] = (int32_t)weft_dtype_bits(type->dtype) / 8;
    map.inputs = 1;
    struct weft_map wanted = map;
    if (!opens || map.bytes[1] == 0 || !weft_format_strides(f, whole, layout, map.stride[1]))
        return weft_format_extra_ps(f, WEFT_PRICE_read_private, bytes, agreement == WEFT_SAME_RUNS
                                                                           ? WEFT_PRICE_access_runs
                                                                           : WEFT_PRICE_access_strided);
    like_result(g, type, &order, weft_format_stored_axes(g, value), wanted.stride[1]);
    const double calls = calls_of(&map, &streams) - calls_of(&wanted, &would_stream);
    return (calls > 0 ? weft_format_rate_ps(f, calls, WEFT_PRICE_strip_call) : 0) +
           (streams || !would_stream
                ? 0 : weft_format_extra_ps(f, WEFT_PRICE_read_private, bytes, WEFT_PRICE_access_strided));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* import_attention.c: attention and rotary embeddings.
 *
 * Operands become [batch, head, position, width]; what was cached is put before the new keys and values; every mask
 * becomes one of numbers that are added, repeated to [batch, head, query, key]. The scores, where a model asks for
 * them, are computed beside the attention. */
#include "onnx/attention.h"

#include <math.h>

/* --- heads -------------------------------------------------------------------------------------------------------- */

weft_val weft_onnx_split_heads(struct onnx_op *op, weft_val x, int64_t heads)
{
    const struct weft_type type = weft_onnx_type(op, x);
    weft_dim width;
    if (!op->failed &&
        (type.rank != 3 || heads < 1 || !weft_dim_divides(op->graph->dims, type.extent[2], weft_dim_of(heads), &width)))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%lld heads do not fit an operand of %u axes", (long long)heads,
                       type.rank);
    if (op->failed)
        return WEFT_NO_VALUE;
    const weft_dim extent[] = {type.extent[0], type.extent[1], weft_dim_of(heads), width};
    return weft_onnx_transpose(op, weft_onnx_reshape(op, x, 4, extent), 4, (const unsigned[]){0, 2, 1, 3});
}

weft_val weft_onnx_join_heads(struct onnx_op *op, weft_val x)
{
    const struct weft_type type = weft_onnx_type(op, x);
    if (op->failed)
        return WEFT_NO_VALUE;
    const weft_dim extent[] = {type.extent[0], type.extent[2],
                               weft_dim_mul(op->graph->dims, type.extent[1], type.extent[3])};
    return weft_onnx_reshape(op, weft_onnx_transpose(op, x, 4, (const unsigned[]){0, 2, 1, 3}), 3, extent);
}

/* Each head of keys or values repeated for the queries that share it. */
static weft_val repeat_heads(struct onnx_op *op, weft_val x, weft_dim heads)
{
    const struct weft_type type = weft_onnx_type(op, x);
    weft_dim times;
    if (op->failed || weft_dim_same(type.extent[1], heads) ||
        !weft_dim_divides(op->graph->dims, heads, type.extent[1], &times))
        return x;
    const struct weft_type wide = {.dtype = type.dtype,
                                   .rank = 5,
                                   .extent = {type.extent[0], type.extent[1], times, type.extent[2], type.extent[3]}};
    const weft_val repeated = weft_onnx_broadcast_axes(op, x, &wide, 4, (const unsigned[]){0, 1, 3, 4});
    return weft_onnx_reshape(op, repeated, 4,
                             (const weft_dim[]){type.extent[0], heads, type.extent[2], type.extent[3]});
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

static weft_val place_along(struct onnx_op *op, const struct weft_type *shape, unsigned axis)
{
    struct weft_type type = *shape;
    type.dtype = WEFT_I64;
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &attr, &type);
}

static weft_val mask_where(struct onnx_op *op, weft_val seen, const struct weft_type *shape)
{
    const weft_val operands[] = {seen, weft_onnx_splat(op, shape, 0), weft_onnx_splat(op, shape, -INFINITY)};
    return weft_onnx_make(op, WEFT_OP_select, 3, operands, 0, NULL, NULL);
}

static weft_val sum_of(struct onnx_op *op, weft_val a, weft_val b)
{
    return a.id ? weft_onnx_binary(op, WEFT_OP_add, a, b) : b;
}

/* A mask of fewer keys says nothing about the others, which are then not seen. */
static weft_val pad_keys(struct onnx_op *op, weft_val mask, weft_dim keys)
{
    struct weft_type type = weft_onnx_type(op, mask);
    const unsigned last = type.rank - 1u;
    if (op->failed || type.rank == 0 || weft_dim_same(type.extent[last], keys) || weft_dim_is(type.extent[last], 1))
        return mask;
    weft_dim pad[2 * WEFT_MAX_RANK];
    for (unsigned i = 0; i < 2u * type.rank; i++)
        pad[i] = weft_dim_of(0);
    pad[2u * type.rank - 1] = weft_dim_sub(op->graph->dims, keys, type.extent[last]);
    const struct weft_type scalar = {.dtype = type.dtype};
    const weft_val operands[] = {mask, weft_onnx_splat(op, &scalar, type.dtype == WEFT_BOOL ? 0 : -INFINITY)};
    const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_pad, 2u * type.rank, pad);
    return weft_onnx_make(op, WEFT_OP_pad, 2, operands, 1, &attr, NULL);
}

/* Adds to the mask that a query sees so many keys to the left and to the right of its place, which counts the keys in
 * front of the queries: `offset`, or by batch what is valid and no query. */
static weft_val add_window(struct onnx_op *op, const struct weft_type *shape, weft_dim offset, weft_val mask)
{
    const int64_t left = weft_onnx_int(op, "left_window_size", -1), right = weft_onnx_int(op, "right_window_size", -1);
    const struct weft_type scalar = {.dtype = WEFT_I64};
    const bool by_batch = weft_onnx_has(op, 6);
    if (left < 0 && right < 0)
        return mask;
    const weft_dim known = by_batch ? weft_dim_sub(op->graph->dims, weft_dim_of(0), shape->extent[2]) : offset;
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &known);
    const weft_val front = weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &scalar);
    weft_val place = place_along(op, shape, 2);
    place = weft_onnx_binary(op, WEFT_OP_add, place, weft_onnx_broadcast(op, front, shape));
    if (by_batch)
        place = weft_onnx_binary(op, WEFT_OP_add, place,
                                 weft_onnx_broadcast_axes(op, weft_onnx_cast(op, op->input[6], WEFT_I64), shape,
                                                          1, (const unsigned[]){0}));
    const weft_val ahead = weft_onnx_binary(op, WEFT_OP_sub, place_along(op, shape, 3), place);
    if (right >= 0)
        mask = sum_of(op, mask, mask_where(op, weft_onnx_binary(op, WEFT_OP_le, ahead,
                                                                weft_onnx_scalar_like(op, ahead, (double)right)),
                                           shape));
    if (left >= 0)
        mask = sum_of(op, mask, mask_where(op, weft_onnx_binary(op, WEFT_OP_ge, ahead,
                                                                weft_onnx_scalar_like(op, ahead, -(double)left)),
                                           shape));
    return mask;
}

/* The mask that the node states, and keys behind the valid ones of each batch. `causal` is cleared where the mask says
 * it already: with lengths by batch, row i sees keys up to i + length - rows. */
static weft_val mask_of(struct onnx_op *op, const struct weft_type *shape, bool *causal)
{
    weft_val mask = WEFT_NO_VALUE;
    if (weft_onnx_has(op, 3)) {
        mask = weft_onnx_broadcast(op, pad_keys(op, op->input[3], shape->extent[3]), shape);
        if (weft_onnx_type(op, mask).dtype == WEFT_BOOL)
            mask = mask_where(op, mask, shape);
        mask = weft_onnx_cast(op, mask, shape->dtype);
    }
    if (!weft_onnx_has(op, 6))
        return mask;
    const weft_val length =
        weft_onnx_broadcast_axes(op, weft_onnx_cast(op, op->input[6], WEFT_I64), shape, 1, (const unsigned[]){0});
    const weft_val key = place_along(op, shape, 3);
    mask = sum_of(op, mask, mask_where(op, weft_onnx_binary(op, WEFT_OP_lt, key, length), shape));
    if (!*causal)
        return mask;
    *causal = false;
    struct weft_type wide = *shape;
    wide.dtype = WEFT_I64;
    const weft_dim one = shape->extent[2];
    const struct weft_type number = {.dtype = WEFT_I64};
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &one);
    const weft_val rows =
        weft_onnx_broadcast(op, weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &number), &wide);
    const weft_val last =
        weft_onnx_binary(op, WEFT_OP_sub, weft_onnx_binary(op, WEFT_OP_add, place_along(op, shape, 2), length), rows);
    return sum_of(op, mask, mask_where(op, weft_onnx_binary(op, WEFT_OP_le, key, last), shape));
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

struct scoring {
    weft_val query, key, mask;
    struct weft_type shape;
    double scale, softcap;
    bool causal;
    weft_dim offset;
};

static weft_val with_number(struct onnx_op *op, int opcode, weft_val x, double number)
{
    return weft_onnx_binary(op, opcode, x, weft_onnx_scalar_like(op, x, number));
}

static weft_val causal_mask(struct onnx_op *op, const struct scoring *s)
{
    struct weft_type wide = s->shape;
    const struct weft_type number = {.dtype = WEFT_I64};
    wide.dtype = WEFT_I64;
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &s->offset);
    const weft_val offset = weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &number);
    const weft_val offsets = weft_onnx_broadcast(op, offset, &wide);
    const weft_val last = weft_onnx_binary(op, WEFT_OP_add, place_along(op, &s->shape, 2), offsets);
    return mask_where(op, weft_onnx_binary(op, WEFT_OP_le, place_along(op, &s->shape, 3), last), &s->shape);
}

/* Scores after the product (0), the bound (1), the mask (2) or the softmax (3). */
static weft_val scores(struct onnx_op *op, const struct scoring *s, int64_t mode)
{
    const weft_val operands[] = {s->query, repeat_heads(op, s->key, s->shape.extent[1])};
    const struct weft_attr trans_b = weft_attr_of_int(WEFT_ATTR_trans_b, 1);
    weft_val x = weft_onnx_make(op, WEFT_OP_matmul, 2, operands, 1, &trans_b, NULL);
    x = with_number(op, WEFT_OP_mul, x, s->scale);
    if (mode >= 1 && s->softcap > 0) {
        const weft_val bounded = weft_onnx_unary(op, WEFT_OP_tanh, with_number(op, WEFT_OP_div, x, s->softcap));
        x = with_number(op, WEFT_OP_mul, bounded, s->softcap);
    }
    weft_val mask = s->mask;
    if (mode >= 2 && s->causal)
        mask = sum_of(op, mask, causal_mask(op, s));
    if (mode < 2 || !mask.id)
        return mode < 3 ? x
                        : weft_onnx_make(op, WEFT_OP_softmax, 1, &x, 1,
                                         &(struct weft_attr){
                                             .key = WEFT_ATTR_axis, .kind = WEFT_ATTR_INT, .integer = weft_dim_of(3)},
                                         NULL);
    x = weft_onnx_binary(op, WEFT_OP_add, x, mask);
    if (mode < 3)
        return x;
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 3);
    const weft_val share = weft_onnx_make(op, WEFT_OP_softmax, 1, &x, 1, &axis, NULL);
    const weft_val most = weft_onnx_reduction(op, WEFT_OP_reduce_max, mask, 1, (const unsigned[]){3}, true);
    const weft_val blind = weft_onnx_binary(op, WEFT_OP_eq, most, weft_onnx_scalar_like(op, most, -INFINITY));
    const weft_val kept[] = {weft_onnx_broadcast(op, blind, &s->shape), weft_onnx_scalar_like(op, share, 0), share};
    return weft_onnx_make(op, WEFT_OP_select, 3, kept, 0, NULL, NULL);
}

/* --- attention ---------------------------------------------------------------------------------------------------- */

static weft_val with_past(struct onnx_op *op, weft_val x, unsigned past)
{
    if (!weft_onnx_has(op, past))
        return x;
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 2);
    return weft_onnx_make(op, WEFT_OP_concat, 2, (const weft_val[]){op->input[past], x}, 1, &axis, NULL);
}

static bool wants(const struct onnx_op *op, unsigned output)
{
    return op->outputs > output && op->node->output.item[output].length > 0;
}

static double scale_of(struct onnx_op *op, const struct weft_type *query)
{
    const double given = weft_onnx_real(op, "scale", 0);
    if (given != 0)
        return given;
    if (!op->failed && !weft_dim_is_constant(query->extent[3]))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "without attribute scale the width of a head must be constant");
    return op->failed ? 1 : 1 / sqrt((double)weft_dim_value(query->extent[3]));
}

static void import_attention(struct onnx_op *op)
{
    weft_val query = weft_onnx_input(op, 0), key = weft_onnx_input(op, 1), value = weft_onnx_input(op, 2);
    const bool flat = weft_onnx_type(op, query).rank == 3;
    const int64_t heads = weft_onnx_int(op, "q_num_heads", 0), shared = weft_onnx_int(op, "kv_num_heads", 0);
    const int64_t mode = weft_onnx_int(op, "qk_matmul_output_mode", 0);
    weft_onnx_ignore(op, "softmax_precision"); /* it is never less than asked for */
    if (flat) {
        query = weft_onnx_split_heads(op, query, heads);
        key = weft_onnx_split_heads(op, key, shared);
        value = weft_onnx_split_heads(op, value, shared);
    }
    const weft_dim offset = weft_onnx_has(op, 4) ? weft_onnx_type(op, op->input[4]).extent[2] : weft_dim_of(0);
    key = with_past(op, key, 4);
    value = with_past(op, value, 5);
    const struct weft_type q = weft_onnx_type(op, query), k = weft_onnx_type(op, key);
    if (!op->failed && (q.rank != 4 || k.rank != 4))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "operands must have 3 or 4 axes");
    if (op->failed)
        return;
    struct scoring s = {
        .query = query,
        .key = key,
        .offset = offset,
        .scale = scale_of(op, &q),
        .softcap = weft_onnx_real(op, "softcap", 0),
        .causal = weft_onnx_int(op, "is_causal", 0) != 0,
        .shape = {.dtype = q.dtype, .rank = 4, .extent = {q.extent[0], q.extent[1], q.extent[2], k.extent[2]}}};
    s.mask = add_window(op, &s.shape, offset, mask_of(op, &s.shape, &s.causal));
    const weft_val operands[] = {query, key, value, s.mask};
    const struct weft_attr attrs[] = {
        weft_attr_of_real(WEFT_ATTR_factor, s.scale),
        weft_attr_of_real(WEFT_ATTR_softcap, s.softcap),
        weft_attr_of_int(WEFT_ATTR_causal, s.causal),
        {.key = WEFT_ATTR_offset, .kind = WEFT_ATTR_INT, .integer = s.causal ? offset : weft_dim_of(0)},
    };
    const weft_val result = weft_onnx_make(op, WEFT_OP_attention, s.mask.id ? 4 : 3, operands, 4, attrs, NULL);
    op->output[0] = flat ? weft_onnx_join_heads(op, result) : result;
    if (wants(op, 1))
        op->output[1] = key;
    if (wants(op, 2))
        op->output[2] = value;
    if (wants(op, 3))
        op->output[3] = scores(op, &s, mode);
}

/* --- rotary embeddings -------------------------------------------------------------------------------------------- */

/* Elements [start, end) of the last axis, every `step`-th. */
static weft_val part_of(struct onnx_op *op, weft_val x, weft_dim start, weft_dim end, int64_t step)
{
    const struct weft_type type = weft_onnx_type(op, x);
    weft_dim from[WEFT_MAX_RANK], to[WEFT_MAX_RANK], by[WEFT_MAX_RANK];
    for (unsigned i = 0; i < type.rank; i++) {
        const bool last = i + 1 == type.rank;
        from[i] = last ? start : weft_dim_of(0);
        to[i] = last ? end : type.extent[i];
        by[i] = weft_dim_of(last ? step : 1);
    }
    return weft_onnx_slice(op, x, from, to, by);
}

static weft_val joined(struct onnx_op *op, weft_val a, weft_val b)
{
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, weft_onnx_type(op, a).rank - 1);
    return weft_onnx_make(op, WEFT_OP_concat, 2, (const weft_val[]){a, b}, 1, &axis, NULL);
}

/* a0 b0 a1 b1 … */
static weft_val interleave(struct onnx_op *op, weft_val a, weft_val b)
{
    struct weft_type type = weft_onnx_type(op, a);
    type.extent[4] = weft_dim_of(1);
    const weft_val second = weft_onnx_reshape(op, b, 5, type.extent);
    const weft_val both = joined(op, weft_onnx_reshape(op, a, 5, type.extent), second);
    type.extent[3] = weft_dim_mul(op->graph->dims, type.extent[3], weft_dim_of(2));
    return weft_onnx_reshape(op, both, 4, type.extent);
}

weft_val weft_onnx_rotate(struct onnx_op *op, weft_val x, weft_val cosine, weft_val sine, unsigned position,
                          int64_t width, bool interleaved)
{
    struct weft_dims *dims = op->graph->dims;
    const struct weft_type type = weft_onnx_type(op, x);
    const weft_dim zero = weft_dim_of(0), all = type.extent[3], turned = width ? weft_dim_of(width) : all;
    const weft_dim half = weft_dim_div(dims, turned, weft_dim_of(2));
    const weft_val first = interleaved ? part_of(op, x, zero, turned, 2) : part_of(op, x, zero, half, 1);
    const weft_val second = interleaved ? part_of(op, x, weft_dim_of(1), turned, 2) : part_of(op, x, half, turned, 1);
    const struct weft_type shape = weft_onnx_type(op, first);
    const unsigned axes[] = {0, position, 3};
    const weft_val c = weft_onnx_broadcast_axes(op, part_of(op, cosine, zero, half, 1), &shape, 3, axes);
    const weft_val s = weft_onnx_broadcast_axes(op, part_of(op, sine, zero, half, 1), &shape, 3, axes);
    const weft_val s_second = weft_onnx_binary(op, WEFT_OP_mul, s, second);
    const weft_val left = weft_onnx_binary(op, WEFT_OP_sub, weft_onnx_binary(op, WEFT_OP_mul, c, first), s_second);
    const weft_val c_second = weft_onnx_binary(op, WEFT_OP_mul, c, second);
    const weft_val right = weft_onnx_binary(op, WEFT_OP_add, weft_onnx_binary(op, WEFT_OP_mul, s, first), c_second);
    const weft_val result = interleaved ? interleave(op, left, right) : joined(op, left, right);
    return weft_dim_same(turned, all) ? result : joined(op, result, part_of(op, x, turned, all, 1));
}

/* Cosines and sines are [n, s, width / 2], or tables that position_ids look up. */
static void import_rotary_embedding(struct onnx_op *op)
{
    weft_val x = weft_onnx_input(op, 0), table[] = {weft_onnx_input(op, 1), weft_onnx_input(op, 2)};
    const struct weft_type type = weft_onnx_type(op, x);
    const int64_t heads = weft_onnx_int(op, "num_heads", 0), width = weft_onnx_int(op, "rotary_embedding_dim", 0);
    const bool interleaved = weft_onnx_int(op, "interleaved", 0) != 0, flat = type.rank == 3;
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    for (unsigned i = 0; i < 2 && weft_onnx_has(op, 3); i++)
        table[i] = weft_onnx_make(op, WEFT_OP_gather, 2, (const weft_val[]){table[i], op->input[3]}, 1, &axis, NULL);
    weft_dim each = weft_dim_of(1);
    if (!op->failed &&
        ((!flat && type.rank != 4) || weft_onnx_type(op, table[0]).rank != 3 ||
         (flat && (heads < 1 || !weft_dim_divides(op->graph->dims, type.extent[2], weft_dim_of(heads), &each)))))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "the shapes of its operands, or num_heads, do not fit");
    if (op->failed)
        return;
    if (flat)
        x = weft_onnx_reshape(op, x, 4, (const weft_dim[]){type.extent[0], type.extent[1], weft_dim_of(heads), each});
    const weft_val result = weft_onnx_rotate(op, x, table[0], table[1], flat ? 1 : 2, width, interleaved);
    op->output[0] = weft_onnx_reshape(op, result, type.rank, type.extent);
}

const struct onnx_row weft_onnx_attention[] = {
    {"Attention", 23, 3, 6, 0, import_attention},
    {"Attention", 24, 3, 7, 0, import_attention},
    {"RotaryEmbedding", 23, 3, 4, 0, import_rotary_embedding},
    {0},
};

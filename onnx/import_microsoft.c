/* SPDX-License-Identifier: Apache-2.0 */
/* import_microsoft.c: ops of the domain com.microsoft, which optimisers and quantisers of models write.
 *
 * All are written in ops that exist. group_query_attention's caches grow by the new keys, as exported models declare
 * it; a cache that is a buffer of fixed size, filled from the front, has other shapes and is refused by them. */
#include "onnx/attention.h"
#include "onnx/window.h"

#include <math.h>

static weft_val with_number(struct onnx_op *op, int opcode, weft_val x, double number)
{
    return weft_onnx_binary(op, opcode, x, weft_onnx_scalar_like(op, x, number));
}

/* x opcode y, with y repeated to x's shape. */
static weft_val with(struct onnx_op *op, int opcode, weft_val x, weft_val y)
{
    const struct weft_type shape = weft_onnx_type(op, x);
    return weft_onnx_binary(op, opcode, x, weft_onnx_broadcast(op, y, &shape));
}

static weft_val with_input(struct onnx_op *op, int opcode, weft_val x, unsigned input)
{
    return weft_onnx_has(op, input) ? with(op, opcode, x, op->input[input]) : x;
}

/* --- activations -------------------------------------------------------------------------------------------------- */

static void gelu(struct onnx_op *op, weft_val x, const char *form)
{
    const struct weft_attr attr = weft_attr_of_word(WEFT_ATTR_form, form);
    op->output[0] = weft_onnx_make(op, WEFT_OP_gelu, 1, &x, 1, &attr, NULL);
}

static void import_bias_gelu(struct onnx_op *op)
{
    gelu(op, with_input(op, WEFT_OP_add, weft_onnx_input(op, 0), 1), "erf");
}
static void import_fast_gelu(struct onnx_op *op)
{
    gelu(op, with_input(op, WEFT_OP_add, weft_onnx_input(op, 0), 1), "tanh");
}

static void import_quick_gelu(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const weft_val inner = with_number(op, WEFT_OP_mul, x, weft_onnx_real(op, "alpha", (double)1.702f));
    op->output[0] = weft_onnx_binary(op, WEFT_OP_mul, x, weft_onnx_unary(op, WEFT_OP_sigmoid, inner));
}

/* --- norms -------------------------------------------------------------------------------------------------------- */

/* The norm of the last axes, from `axis` on, with the scale and bias that are there. */
static weft_val normalised(struct onnx_op *op, int opcode, weft_val x, unsigned axis, unsigned scale, unsigned bias)
{
    weft_val operands[3] = {x};
    unsigned count = 1;
    if (weft_onnx_has(op, scale))
        operands[count++] = weft_onnx_cast(op, op->input[scale], weft_onnx_type(op, x).dtype);
    if (bias && weft_onnx_has(op, bias))
        operands[count++] = weft_onnx_cast(op, op->input[bias], weft_onnx_type(op, x).dtype);
    const struct weft_attr attrs[] = {
        weft_attr_of_int(WEFT_ATTR_axis, axis),
        weft_attr_of_real(WEFT_ATTR_epsilon, weft_onnx_real(op, "epsilon", (double)1e-5f))};
    return weft_onnx_make(op, opcode, count, operands, 2, attrs, NULL);
}

static void import_simplified_norm(struct onnx_op *op)
{
    const weft_val x = weft_onnx_input(op, 0);
    const unsigned axis = weft_onnx_axis(op, weft_onnx_int(op, "axis", -1), weft_onnx_type(op, x).rank);
    weft_onnx_ignore(op, "stash_type");
    op->output[0] = normalised(op, WEFT_OP_rms_norm, x, axis, 1, 0);
}

/* The norm of input + skip (+ bias), which is result 3. */
static void skip_norm(struct onnx_op *op, int opcode, unsigned beta, unsigned bias)
{
    weft_val sum = with_input(op, WEFT_OP_add, weft_onnx_input(op, 0), 1);
    sum = with_input(op, WEFT_OP_add, sum, bias);
    const unsigned rank = weft_onnx_type(op, sum).rank;
    if (op->failed || rank == 0)
        return;
    op->output[0] = normalised(op, opcode, sum, rank - 1, 2, beta);
    if (op->outputs > 3)
        op->output[3] = sum;
}

static void import_skip_norm(struct onnx_op *op) { skip_norm(op, WEFT_OP_layer_norm, 3, 4); }
static void import_skip_simplified_norm(struct onnx_op *op) { skip_norm(op, WEFT_OP_rms_norm, 0, 3); }

/* --- products ----------------------------------------------------------------------------------------------------- */

static weft_val last_swapped(struct onnx_op *op, weft_val x, bool swap)
{
    const unsigned rank = weft_onnx_type(op, x).rank;
    unsigned perm[WEFT_MAX_RANK];
    for (unsigned i = 0; i < rank; i++)
        perm[i] = i + 2 == rank ? i + 1 : i + 1 == rank && rank > 1 ? i - 1 : i;
    return swap && rank > 1 ? weft_onnx_transpose(op, x, rank, perm) : x;
}

static void import_fused_matmul(struct onnx_op *op)
{
    const bool trans_a = weft_onnx_int(op, "transA", 0) != 0, trans_b = weft_onnx_int(op, "transB", 0) != 0;
    if (weft_onnx_int(op, "transBatchA", 0) != 0 || weft_onnx_int(op, "transBatchB", 0) != 0)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "the batch is transposed");
    const weft_val a = last_swapped(op, weft_onnx_input(op, 0), trans_a);
    const weft_val b = last_swapped(op, weft_onnx_input(op, 1), trans_b);
    const double alpha = weft_onnx_real(op, "alpha", 1);
    const weft_val result = weft_onnx_matmul(op, a, b);
    op->output[0] = alpha == 1 ? result : with_number(op, WEFT_OP_mul, result, alpha);
}

/* Numbers of `bits` bits out of bytes, the lowest first: the last axis gets longer, and is then cut to `count`. */
static weft_val unpacked(struct onnx_op *op, weft_val bytes, int64_t bits, weft_dim count)
{
    struct weft_dims *dims = op->graph->dims;
    struct weft_type type = weft_onnx_type(op, bytes);
    const unsigned rank = type.rank;
    weft_val part[8];
    weft_dim wide[WEFT_MAX_RANK], zero[WEFT_MAX_RANK], end[WEFT_MAX_RANK];
    if (op->failed || bits == 8)
        return bytes;
    for (unsigned i = 0; i < rank; i++) {
        wide[i] = end[i] = type.extent[i];
        zero[i] = weft_dim_of(0);
    }
    wide[rank] = weft_dim_of(1);
    const unsigned parts = 8 / (unsigned)bits;
    for (unsigned i = 0; i < parts; i++) {
        const weft_val shifted = i ? with_number(op, WEFT_OP_shift_right, bytes, (double)(i * (unsigned)bits)) : bytes;
        const weft_val low = with_number(op, WEFT_OP_bit_and, shifted, (double)((1 << bits) - 1));
        part[i] = weft_onnx_reshape(op, low, rank + 1, wide);
    }
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, rank);
    const weft_val all = weft_onnx_make(op, WEFT_OP_concat, parts, part, 1, &axis, NULL);
    end[rank - 1] = weft_dim_mul(dims, type.extent[rank - 1], weft_dim_of(parts));
    const weft_val flat = weft_onnx_reshape(op, all, rank, end);
    if (weft_dim_same(end[rank - 1], count))
        return flat;
    end[rank - 1] = count;
    return weft_onnx_slice(op, flat, zero, end, NULL);
}

/* Scales and zero points are given by row and block, perhaps flat. */
static weft_val by_block(struct onnx_op *op, weft_val x, const weft_dim *extent)
{
    const struct weft_type shape = {.rank = 3, .extent = {extent[0], extent[1], extent[2]}};
    const weft_val rows = weft_onnx_reshape(op, x, 2, extent);
    return weft_onnx_broadcast_axes(op, rows, &shape, 2, (const unsigned[]){0, 1});
}

/* A · B', with B [N, blocks, bytes] of small numbers, a scale and perhaps a zero point for each block along K. */
static void import_matmul_bits(struct onnx_op *op)
{
    const int64_t k = weft_onnx_int(op, "K", 0), n = weft_onnx_int(op, "N", 0);
    const int64_t bits = weft_onnx_int(op, "bits", 4), block = weft_onnx_int(op, "block_size", 32);
    weft_onnx_ignore(op, "accuracy_level");
    if (weft_onnx_has(op, 4))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "input g_idx is given");
    if (k < 1 || n < 1 || block < 1 || (bits != 2 && bits != 4 && bits != 8))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "attributes K, N, bits or block_size do not fit");
    if (op->failed)
        return;
    const int64_t blocks = (k + block - 1) / block, row = (blocks * bits + 7) / 8;
    const weft_dim extent[] = {weft_dim_of(n), weft_dim_of(blocks), weft_dim_of(block)};
    const weft_dim packed[] = {extent[0], extent[1], weft_dim_of(block * bits / 8)};
    const weft_val bytes = weft_onnx_reshape(op, weft_onnx_input(op, 1), 3, packed);
    const weft_val b = unpacked(op, bytes, bits, extent[2]);
    const weft_val scale = by_block(op, weft_onnx_input(op, 2), extent);
    weft_val weights;
    if (weft_onnx_has(op, 3) && weft_dtype_is_float(weft_onnx_type(op, op->input[3]).dtype)) {
        const weft_val real = weft_onnx_cast(op, b, weft_onnx_type(op, scale).dtype);
        const weft_val centred = weft_onnx_binary(op, WEFT_OP_sub, real, by_block(op, op->input[3], extent));
        weights = weft_onnx_binary(op, WEFT_OP_mul, centred, scale);
    } else {
        weft_val zero;
        if (weft_onnx_has(op, 3)) {
            const weft_dim rows[] = {extent[0], weft_dim_of(row)};
            zero = by_block(op, unpacked(op, weft_onnx_reshape(op, op->input[3], 2, rows), bits, extent[1]), extent);
        } else {
            zero = weft_onnx_scalar_like(op, b, ldexp(1, (int)bits - 1));
        }
        weights = weft_onnx_make(op, WEFT_OP_dequantize, 3, (const weft_val[]){b, scale, zero}, 0, NULL, NULL);
    }
    const weft_dim flat[] = {extent[0], weft_dim_of(blocks * block)}, end[] = {extent[0], weft_dim_of(k)};
    const weft_dim zeros[] = {weft_dim_of(0), weft_dim_of(0)};
    weights = weft_onnx_reshape(op, weights, 2, flat);
    if (blocks * block != k)
        weights = weft_onnx_slice(op, weights, zeros, end, NULL);
    weights = weft_onnx_cast(op, weights, weft_onnx_type(op, weft_onnx_input(op, 0)).dtype);
    const weft_val result = weft_onnx_matmul(op, weft_onnx_input(op, 0), last_swapped(op, weights, true));
    op->output[0] = with_input(op, WEFT_OP_add, result, 5);
}

/* --- attention ---------------------------------------------------------------------------------------------------- */

static weft_val place_along(struct onnx_op *op, unsigned rank, const weft_dim *extent, unsigned axis)
{
    struct weft_type type = {.dtype = WEFT_I64, .rank = (uint8_t)rank};
    for (unsigned i = 0; i < rank; i++)
        type.extent[i] = extent[i];
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, axis);
    return weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &attr, &type);
}

static weft_val extent_as_number(struct onnx_op *op, weft_dim extent)
{
    const struct weft_type type = {.dtype = WEFT_I64};
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &extent);
    return weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &type);
}

struct caching {
    weft_dim batch, heads, rows, past, keys;
    weft_val before; /* [batch]: valid keys in the cache */
};

/* Rotates x at the positions that its rows have behind the valid keys of their batch. */
static weft_val rotated(struct onnx_op *op, const struct caching *c, weft_val x, bool interleaved)
{
    const weft_dim extent[] = {c->batch, c->rows};
    const weft_val row = place_along(op, 2, extent, 1);
    const struct weft_type shape = weft_onnx_type(op, row);
    const weft_val position =
        weft_onnx_binary(op, WEFT_OP_add, row,
                         weft_onnx_broadcast_axes(op, c->before, &shape, 1, (const unsigned[]){0}));
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    weft_val table[2];
    for (unsigned i = 0; i < 2; i++)
        table[i] = weft_onnx_make(op, WEFT_OP_gather, 2, (const weft_val[]){weft_onnx_input(op, 7 + i), position}, 1,
                                  &axis, NULL);
    const struct weft_type cosine = weft_onnx_type(op, table[0]);
    int64_t width = 0;
    if (!op->failed && weft_dim_is_constant(cosine.extent[cosine.rank - 1]))
        width = 2 * weft_dim_value(cosine.extent[cosine.rank - 1]);
    return weft_onnx_rotate(op, x, table[0], table[1], 2, width, interleaved);
}

/* Row i sees the valid keys of the cache, and the new ones up to its own. */
static weft_val cache_mask(struct onnx_op *op, const struct caching *c, int dtype)
{
    const weft_dim extent[] = {c->batch, c->heads, c->rows, c->keys};
    const weft_val key = place_along(op, 4, extent, 3), row = place_along(op, 4, extent, 2);
    const struct weft_type index = weft_onnx_type(op, key);
    struct weft_type shape = index;
    shape.dtype = (uint8_t)dtype;
    const weft_val past = weft_onnx_broadcast(op, extent_as_number(op, c->past), &index);
    const weft_val before = weft_onnx_broadcast_axes(op, c->before, &index, 1, (const unsigned[]){0});
    const weft_val cached = weft_onnx_binary(op, WEFT_OP_lt, key, before);
    const weft_val is_new = weft_onnx_binary(op, WEFT_OP_ge, key, past);
    const weft_val reached = weft_onnx_binary(op, WEFT_OP_le, key, weft_onnx_binary(op, WEFT_OP_add, row, past));
    const weft_val seen = weft_onnx_binary(op, WEFT_OP_or, cached, weft_onnx_binary(op, WEFT_OP_and, is_new, reached));
    const weft_val operands[] = {seen, weft_onnx_splat(op, &shape, 0), weft_onnx_splat(op, &shape, -INFINITY)};
    return weft_onnx_make(op, WEFT_OP_select, 3, operands, 0, NULL, NULL);
}

/* max(seqlens_k + 1 - rows, 0): keys that the cache held before. */
static weft_val keys_before(struct onnx_op *op, weft_dim rows)
{
    const weft_val last = weft_onnx_cast(op, weft_onnx_input(op, 5), WEFT_I64);
    const struct weft_type type = weft_onnx_type(op, last);
    const weft_dim count = weft_type_elements(op->graph->dims, &type);
    const weft_val vector = weft_onnx_reshape(op, last, 1, &count);
    const weft_dim less = weft_dim_sub(op->graph->dims, rows, weft_dim_of(1));
    const weft_val before = with(op, WEFT_OP_sub, vector, extent_as_number(op, less));
    return with_number(op, WEFT_OP_max, before, 0);
}

static void import_group_query_attention(struct onnx_op *op)
{
    const int64_t heads = weft_onnx_int(op, "num_heads", 0), shared = weft_onnx_int(op, "kv_num_heads", 0);
    const bool rotary = weft_onnx_int(op, "do_rotary", 0) != 0;
    const bool interleaved = weft_onnx_int(op, "rotary_interleaved", 0) != 0;
    if (weft_onnx_int(op, "local_window_size", -1) != -1 || weft_onnx_int(op, "smooth_softmax", 0) > 0)
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "a local window or a smooth softmax is asked for");
    if (!weft_onnx_has(op, 1) || !weft_onnx_has(op, 2))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "query, key and value are packed into one");
    weft_val query = weft_onnx_split_heads(op, weft_onnx_input(op, 0), heads);
    weft_val key = weft_onnx_split_heads(op, weft_onnx_input(op, 1), shared);
    weft_val value = weft_onnx_split_heads(op, weft_onnx_input(op, 2), shared);
    const struct weft_type q = weft_onnx_type(op, query);
    if (op->failed)
        return;
    struct caching c = {.batch = q.extent[0], .heads = q.extent[1], .rows = q.extent[2]};
    c.past = weft_onnx_has(op, 3) ? weft_onnx_type(op, op->input[3]).extent[2] : weft_dim_of(0);
    c.keys = weft_dim_add(op->graph->dims, c.past, c.rows);
    c.before = keys_before(op, c.rows);
    if (rotary) {
        query = rotated(op, &c, query, interleaved);
        key = rotated(op, &c, key, interleaved);
    }
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 2);
    if (weft_onnx_has(op, 3) && weft_onnx_has(op, 4)) {
        key = weft_onnx_make(op, WEFT_OP_concat, 2, (const weft_val[]){op->input[3], key}, 1, &axis, NULL);
        value = weft_onnx_make(op, WEFT_OP_concat, 2, (const weft_val[]){op->input[4], value}, 1, &axis, NULL);
    }
    double factor = weft_onnx_real(op, "scale", 0);
    if (factor == 0 && !weft_dim_is_constant(q.extent[3]))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "without attribute scale the width of a head must be constant");
    else if (factor == 0)
        factor = 1 / sqrt((double)weft_dim_value(q.extent[3]));
    const struct weft_attr attrs[] = {weft_attr_of_real(WEFT_ATTR_factor, factor),
                                      weft_attr_of_real(WEFT_ATTR_softcap, weft_onnx_real(op, "softcap", 0))};
    const weft_val operands[] = {query, key, value, cache_mask(op, &c, q.dtype)};
    op->output[0] = weft_onnx_join_heads(op, weft_onnx_make(op, WEFT_OP_attention, 4, operands, 2, attrs, NULL));
    if (op->outputs > 1)
        op->output[1] = key;
    if (op->outputs > 2)
        op->output[2] = value;
}

/* What the optimiser of ONNX Runtime writes into the standard's own domain. */
const struct onnx_row weft_onnx_fused[] = {
    {"SimplifiedLayerNormalization", 1, 2, 2, 0, import_simplified_norm},
    {0},
};

const struct onnx_row weft_onnx_microsoft[] = {
    {"BiasGelu", 1, 2, 2, 0, import_bias_gelu},
    {"FastGelu", 1, 1, 2, 0, import_fast_gelu},
    {"FusedMatMul", 1, 2, 2, 0, import_fused_matmul},
    {"Gelu", 1, 1, 1, 0, import_bias_gelu},
    {"GroupQueryAttention", 1, 6, 9, 0, import_group_query_attention},
    {"MatMulNBits", 1, 3, 6, 0, import_matmul_bits},
    {"QuickGelu", 1, 1, 1, 0, import_quick_gelu},
    {"SimplifiedLayerNormalization", 1, 2, 2, 0, import_simplified_norm},
    {"SkipLayerNormalization", 1, 3, 5, 0, import_skip_norm},
    {"SkipSimplifiedLayerNormalization", 1, 3, 4, 0, import_skip_simplified_norm},
    {0},
};

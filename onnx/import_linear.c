/* SPDX-License-Identifier: Apache-2.0 */
/* import_linear.c: LinearAttention: attention whose memory is one matrix a head, S [width of a key, width of a value],
 * instead of all keys and values. At each time
 *
 *   S  = exp(decay) · S                    with update rules gated and gated_delta
 *   u  = beta · (v - Sᵀ k), or v           with delta and gated_delta; with linear and gated
 *   S += k uᵀ
 *   y  = scale · Sᵀ q                      for each query of the head's group
 *
 * which becomes a loop over times: it carries S and collects y. Inputs are split into heads before it, once. 16-bit
 * types are computed in f32: S is a sum over all times. */
#include "onnx/import.h"

#include <math.h>

enum { QUERY, KEY, VALUE, DECAY, BETA, SEQUENCES }; /* what a trip reads its row of: [time, batch, head, a, b] */

struct linear {
    bool gated, delta;
    double scale;
    int dtype; /* that is computed in */
    weft_dim times, batch, heads, group, key, value;
    weft_val sequence[SEQUENCES]; /* none where there is none */
    weft_val state;
};

/* [batch, time, heads · width] as [time, batch, head, a, b], with a · b = width. */
static weft_val split(struct onnx_op *op, const struct linear *l, unsigned input, weft_dim a, weft_dim b)
{
    const weft_val x = weft_onnx_cast(op, weft_onnx_input(op, input), l->dtype);
    struct weft_dims *dims = op->graph->dims;
    const struct weft_type type = weft_onnx_type(op, x);
    const weft_dim width = weft_dim_mul(dims, l->heads, weft_dim_mul(dims, a, b));
    if (!op->failed && (type.rank != 3 || !weft_dim_same(type.extent[0], l->batch) ||
                        !weft_dim_same(type.extent[1], l->times) || !weft_dim_same(type.extent[2], width)))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "input %u does not have the shape that the others ask for", input);
    const weft_dim extent[] = {l->batch, l->times, l->heads, a, b};
    return weft_onnx_transpose(op, weft_onnx_reshape(op, x, 5, extent), 5, (const unsigned[]){1, 0, 2, 3, 4});
}

/* The width of one of `heads` heads. */
static weft_dim width_of(struct onnx_op *op, unsigned input, int64_t heads)
{
    const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, input));
    if (!op->failed && (type.rank != 3 || !weft_dim_is_constant(type.extent[2]) ||
                        weft_dim_value(type.extent[2]) % heads != 0))
        weft_onnx_fail(op, WEFT_ERR_UNSUPPORTED, "input %u must have 3 axes, the last of %lld times a known width",
                       input, (long long)heads);
    return op->failed ? weft_dim_of(1) : weft_dim_of(weft_dim_value(type.extent[2]) / heads);
}

static void read_sizes(struct onnx_op *op, struct linear *l)
{
    const int rule = weft_onnx_word(op, "update_rule", "linear gated delta gated_delta");
    const bool stated = weft_onnx_attribute(op, "update_rule", ONNX_STRING) != NULL;
    const int64_t queries = weft_onnx_int(op, "q_num_heads", 0), heads = weft_onnx_int(op, "kv_num_heads", 0);
    weft_onnx_ignore(op, "chunk_size"); /* a hint for another algorithm */
    l->gated = !stated || rule == 1 || rule == 3;
    l->delta = !stated || rule >= 2;
    if (heads < 1 || queries < heads || queries % heads != 0 || queries > INT32_MAX)
        weft_onnx_fail(op, WEFT_ERR_INVALID, "%lld heads of queries do not share %lld heads of keys",
                       (long long)queries, (long long)heads);
    if (op->failed)
        return;
    const struct weft_type query = weft_onnx_type(op, weft_onnx_input(op, 0));
    l->key = width_of(op, 0, queries);
    l->value = width_of(op, 2, heads);
    if (op->failed)
        return;
    l->heads = weft_dim_of(heads);
    l->group = weft_dim_of(queries / heads);
    l->batch = query.extent[0];
    l->times = query.extent[1];
    l->dtype = query.dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    l->scale = weft_onnx_real(op, "scale", 0);
    if (l->scale == 0)
        l->scale = 1 / sqrt((double)weft_dim_value(l->key));
}

static void read_sequences(struct onnx_op *op, struct linear *l)
{
    const weft_dim one = weft_dim_of(1);
    l->sequence[QUERY] = split(op, l, 0, l->group, l->key);
    l->sequence[KEY] = split(op, l, 1, l->key, one);
    l->sequence[VALUE] = split(op, l, 2, one, l->value);
    if (l->gated) { /* one for each key element, or one a head */
        const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 4));
        const bool each = !op->failed && type.rank == 3 && !weft_dim_same(type.extent[2], l->heads);
        l->sequence[DECAY] = weft_onnx_unary(op, WEFT_OP_exp, split(op, l, 4, each ? l->key : one, one));
    }
    if (l->delta) { /* one a head, or one for all heads */
        const struct weft_type type = weft_onnx_type(op, weft_onnx_input(op, 5));
        struct linear all = *l;
        all.heads = !op->failed && type.rank == 3 && weft_dim_is(type.extent[2], 1) ? one : l->heads;
        l->sequence[BETA] = split(op, &all, 5, one, one);
    }
    const struct weft_type state = {
        .dtype = (uint8_t)l->dtype, .rank = 4, .extent = {l->batch, l->heads, l->key, l->value}};
    l->state = weft_onnx_has(op, 3) ? weft_onnx_cast(op, op->input[3], l->dtype) : weft_onnx_splat(op, &state, 0);
    const struct weft_type given = weft_onnx_type(op, l->state);
    if (!op->failed && !weft_type_same(&given, &state))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "past_state must be [batch, heads, width of a key, width of a value]");
}

/* x opcode y, with y repeated to x's shape. */
static weft_val combine(struct onnx_op *op, int opcode, weft_val x, weft_val y)
{
    const struct weft_type shape = weft_onnx_type(op, x);
    return weft_onnx_binary(op, opcode, x, weft_onnx_broadcast(op, y, &shape));
}

static weft_val product(struct onnx_op *op, weft_val x, weft_val y, bool swap_x)
{
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_trans_a, swap_x);
    return weft_onnx_make(op, WEFT_OP_matmul, 2, (const weft_val[]){x, y}, 1, &attr, NULL);
}

/* One time, in the body: rows [batch, head, a, b] of the sequences. Returns y, and the new state in *state. */
static weft_val take_step(struct onnx_op *op, const struct linear *l, const weft_val row[SEQUENCES], weft_val *state)
{
    weft_val update = row[VALUE];
    if (l->gated)
        *state = combine(op, WEFT_OP_mul, *state, row[DECAY]);
    if (l->delta) {
        const weft_val seen = product(op, row[KEY], *state, /* swap_x= */ true);
        update = combine(op, WEFT_OP_mul, weft_onnx_binary(op, WEFT_OP_sub, update, seen), row[BETA]);
    }
    *state = weft_onnx_binary(op, WEFT_OP_add, *state, product(op, row[KEY], update, false));
    const weft_val result = product(op, row[QUERY], *state, false);
    return weft_onnx_binary(op, WEFT_OP_mul, result, weft_onnx_scalar_like(op, result, l->scale));
}

/* The loop: the last state, and y of all times [time, batch, head, group, width] behind it. */
static weft_val make_loop(struct onnx_op *op, const struct linear *l)
{
    const struct weft_type scalar = {.dtype = WEFT_I64}, state = weft_onnx_type(op, l->state);
    struct weft_graph *body = op->failed ? NULL : weft_onnx_new_body(op, "step");
    if (!body) {
        op->failed = true;
        return WEFT_NO_VALUE;
    }
    struct onnx_op inner = *op;
    inner.graph = body;
    const weft_val index = weft_add_param(body, NULL, &scalar);
    weft_val carried = weft_add_param(body, NULL, &state), row[SEQUENCES] = {{0}}, operand[2 + SEQUENCES];
    unsigned operands = 2;
    for (unsigned i = 0; i < SEQUENCES; i++) {
        if (!l->sequence[i].id)
            continue;
        const struct weft_type type = *weft_type_of(op->graph, l->sequence[i]);
        const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
        const weft_val taken[] = {weft_add_param(body, NULL, &type), index};
        operand[operands++] = l->sequence[i];
        row[i] = weft_onnx_make(&inner, WEFT_OP_gather, 2, taken, 1, &axis, NULL);
    }
    const weft_val result = take_step(&inner, l, row, &carried);
    const struct weft_attr value = weft_attr_of_dims(WEFT_ATTR_value, 1, &l->times);
    op->failed = op->failed || inner.failed;
    if (op->failed)
        return WEFT_NO_VALUE;
    weft_add_return(body, carried, WEFT_NO_VALUE);
    weft_add_return(body, result, WEFT_NO_VALUE);
    operand[0] = weft_onnx_make(op, WEFT_OP_extents, 0, NULL, 1, &value, &scalar);
    operand[1] = l->state;
    const struct weft_attr attrs[] = {{.key = WEFT_ATTR_body, .kind = WEFT_ATTR_GRAPH, .graph = body},
                                      weft_attr_of_int(WEFT_ATTR_carried, 1),
                                      {.key = WEFT_ATTR_length, .kind = WEFT_ATTR_INT, .integer = l->times}};
    return weft_onnx_make(op, WEFT_OP_loop, operands, operand, 3, attrs, NULL);
}

static void import_linear_attention(struct onnx_op *op)
{
    struct linear l = {.gated = false};
    read_sizes(op, &l);
    if (!op->failed)
        read_sequences(op, &l);
    const int dtype = weft_onnx_type(op, weft_onnx_input(op, 0)).dtype;
    const int state = weft_onnx_has(op, 3) ? weft_onnx_type(op, op->input[3]).dtype : dtype;
    const weft_val last = make_loop(op, &l);
    if (op->failed)
        return;
    struct weft_dims *dims = op->graph->dims;
    const weft_dim heads = weft_dim_mul(dims, l.heads, l.group);
    const weft_dim extent[] = {l.batch, l.times, weft_dim_mul(dims, heads, l.value)};
    const weft_val y = weft_onnx_transpose(op, (weft_val){.id = last.id + 1}, 5, (const unsigned[]){1, 0, 2, 3, 4});
    op->output[0] = weft_onnx_cast(op, weft_onnx_reshape(op, y, 3, extent), dtype);
    if (op->outputs > 1)
        op->output[1] = weft_onnx_cast(op, last, state);
}

const struct onnx_row weft_onnx_linear[] = {
    {"LinearAttention", 27, 3, 6, 0, import_linear_attention},
    {0},
};

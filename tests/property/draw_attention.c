/* SPDX-License-Identifier: Apache-2.0 */
/* draw_attention.c: attention as the op, and as the primitives that fuse_attention makes it of: scales, a bound, masks
 * of numbers and of truth values, triangles, rows that see nothing, groups of heads, 16-bit products between casts,
 * turned operands, scores and results, factors of rows, weights made 0 where scores are hidden, a softmax in pieces. */
#include "tests/property/random_graph.h"

#include <math.h>

static weft_dim small(struct weft_maker *m) { return weft_dim_of(1 + weft_draw(m, 3)); }

/* Attention, with or without sums, or the gradient: of what attention gave in front of it, or of anything. */
static void draw_op(struct weft_maker *m, int op)
{
    const int dtype = weft_draw_dtype(m, WEFT_DRAW_REAL);
    const weft_dim n = small(m), keys = weft_draw_dim(m), rows = weft_draw_dim(m), d = small(m), e = small(m);
    const int64_t heads = 1 + weft_draw(m, 2), shared = 1 + weft_draw(m, 2);
    const weft_dim q[] = {n, weft_dim_of(heads * shared), rows, d}, k[] = {n, weft_dim_of(heads), keys, d},
                   v[] = {n, weft_dim_of(heads), keys, e}, mask[] = {n, q[1], rows, keys};
    const weft_val operand[] = {weft_obtain_with(m, dtype, 4, q), weft_obtain_with(m, dtype, 4, k),
                                weft_obtain_with(m, dtype, 4, v),
                                weft_draw(m, 2) ? weft_obtain_with(m, dtype, 4, mask) : WEFT_NO_VALUE};
    const struct weft_attr attr[] = {weft_attr_of_real(WEFT_ATTR_factor, 0.5),
                                     weft_attr_of_real(WEFT_ATTR_softcap, weft_draw(m, 3) == 2 ? 4 : 0),
                                     weft_attr_of_int(WEFT_ATTR_causal, weft_draw(m, 2)),
                                     weft_attr_of_int(WEFT_ATTR_offset, weft_draw(m, 3))};
    const unsigned operands = 3 + (operand[3].id != 0);
    if (op != WEFT_OP_attention_grad) {
        weft_emit(m, op, operands, operand, 4, attr, NULL);
        return;
    }
    const weft_dim y[] = {n, q[1], rows, e};
    const weft_node node = weft_emit(m, WEFT_OP_attention_sums, operands, operand, 4, attr, NULL);
    if (!node.id)
        return;
    const weft_val all[] = {weft_obtain_with(m, dtype, 4, y), operand[0], operand[1], operand[2],
                            weft_result(m->graph, node, 0), weft_result(m->graph, node, 1), operand[3]};
    weft_emit(m, op, 3 + operands, all, 4, attr, NULL);
}

/* --- pieces ------------------------------------------------------------------------------------------------------- */

static weft_val number(struct weft_maker *m, weft_val like, double value)
{
    struct weft_builder build = {.graph = m->graph};
    return like.id ? weft_build_splat(&build, weft_drawn_type(m, like), value) : WEFT_NO_VALUE;
}

static weft_val make(struct weft_maker *m, int op, unsigned operands, const weft_val *operand, unsigned attrs,
                     const struct weft_attr *attr, const struct weft_type *stated)
{
    return weft_draw_made(m, weft_emit(m, op, operands, operand, attrs, attr, stated));
}

static weft_val make_two(struct weft_maker *m, int op, weft_val x, weft_val y)
{
    const bool swaps = (weft_ops[op].traits & WEFT_COMMUTATIVE) && weft_draw(m, 2);
    return make(m, op, 2, swaps ? (const weft_val[]){y, x} : (const weft_val[]){x, y}, 0, NULL, NULL);
}

/* Multiplied or divided by a number, or not. */
static weft_val scaled(struct weft_maker *m, weft_val x)
{
    static const double numbers[] = {0.5, 2.5, -1, 0.125};
    const unsigned how = weft_draw(m, 4);
    const double by = numbers[weft_draw(m, 4)];
    return how < 2 ? x : make_two(m, how == 2 ? WEFT_OP_mul : WEFT_OP_div, x, number(m, x, by));
}

static weft_val spread(struct weft_maker *m, weft_val x, const struct weft_type *type, int from)
{
    int64_t dims[WEFT_MAX_RANK];
    if (!x.id)
        return x;
    const int rank = weft_drawn_type(m, x)->rank;
    for (int i = 0; i < rank; i++)
        dims[i] = from + i;
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_dims, (unsigned)rank, dims);
    return make(m, WEFT_OP_bcast, 1, &x, 1, &attr, type);
}

static weft_val cast(struct weft_maker *m, weft_val x, int dtype)
{
    if (!x.id || weft_drawn_type(m, x)->dtype == dtype)
        return x;
    struct weft_type type = *weft_drawn_type(m, x);
    type.dtype = (uint8_t)dtype;
    return make(m, WEFT_OP_cast, 1, &x, 0, NULL, &type);
}

/* A constant triangle of rows and keys, now and then with a hole. */
static weft_val triangle(struct weft_maker *m, const struct weft_type *type, double hidden)
{
    struct weft_type both = {.dtype = type->dtype, .rank = 2,
                             .extent = {type->extent[type->rank - 2], type->extent[type->rank - 1]}};
    struct weft_builder build = {.graph = m->graph};
    const int64_t offset = (int64_t)weft_draw(m, 4) - 1;
    const unsigned hole = weft_draw(m, 40);
    uint64_t data[64];
    if (!weft_type_is_constant(&both))
        return WEFT_NO_VALUE;
    const int64_t rows = weft_dim_value(both.extent[0]), keys = weft_dim_value(both.extent[1]);
    if (rows * keys == 0 || rows * keys > 64)
        return WEFT_NO_VALUE;
    for (int64_t i = 0; i < rows * keys; i++) {
        const bool seen = (i % keys <= i / keys + offset) != (i == hole);
        if (both.dtype == WEFT_BOOL)
            weft_store_integer(both.dtype, data, i, seen == (hidden != 0));
        else
            weft_store_real(both.dtype, data, i, seen ? 0 : hidden);
    }
    return spread(m, weft_build_const(&build, &both, data), type, type->rank - 2);
}

/* Something of all scores' shape, maybe of fewer axes and repeated. */
static weft_val mask_of(struct weft_maker *m, const struct weft_type *type)
{
    struct weft_type part = *type;
    const int from = (int)weft_draw(m, (unsigned)type->rank);
    part.rank = (uint8_t)(type->rank - from);
    for (int i = 0; i < part.rank; i++)
        part.extent[i] = type->extent[from + i];
    const weft_val x = weft_obtain(m, &part);
    return from == 0 ? x : spread(m, x, type, from);
}

/* ret_seen: where a choice leaves x, if it made one and said so. */
static weft_val masked(struct weft_maker *m, weft_val x, weft_val *ret_seen)
{
    static const double low[] = {-INFINITY, -3.4028234663852886e38, -1e30, -10000, -65504};
    const unsigned how = weft_draw(m, 7);
    if (!x.id || how < 2)
        return x;
    struct weft_type type = *weft_drawn_type(m, x);
    const double hidden = low[weft_draw(m, type.dtype == WEFT_F16 ? 1 : 5)];
    if (how < 4) {
        const weft_val term = how == 2 ? mask_of(m, &type) : triangle(m, &type, hidden);
        return term.id ? make_two(m, weft_draw(m, 4) == 3 ? WEFT_OP_sub : WEFT_OP_add, x, term) : x;
    }
    struct weft_type truth = type;
    truth.dtype = WEFT_BOOL;
    const bool hides = weft_draw(m, 2);
    const weft_val condition = how == 4 ? triangle(m, &truth, hides) : mask_of(m, &truth), other = number(m, x, hidden);
    const weft_val operand[] = {condition, hides ? other : x, hides ? x : other};
    if (condition.id && !hides)
        *ret_seen = condition;
    return condition.id ? make(m, WEFT_OP_select, 3, operand, 0, NULL, NULL) : x;
}

/* By a factor of each matrix, of each row, or of each key. */
static weft_val scaled_by_values(struct weft_maker *m, weft_val x)
{
    if (!x.id || weft_draw(m, 6) != 5)
        return x;
    const struct weft_type type = *weft_drawn_type(m, x);
    struct weft_type part = type;
    part.rank = (uint8_t)(type.rank - weft_draw(m, 3));
    const int from = part.rank == type.rank ? type.rank - 1 : 0; /* of keys */
    if (part.rank == 0)
        return x;
    if (from > 0) {
        part.rank = 1;
        part.extent[0] = type.extent[from];
    }
    const weft_val by = spread(m, weft_obtain(m, &part), &type, from);
    return by.id ? make_two(m, weft_draw(m, 3) ? WEFT_OP_mul : WEFT_OP_div, x, by) : x;
}

/* With the last two axes exchanged. */
static weft_val turned(struct weft_maker *m, weft_val x)
{
    if (!x.id)
        return x;
    const int rank = weft_drawn_type(m, x)->rank;
    int64_t perm[WEFT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_perm, (unsigned)rank, perm);
    return make(m, WEFT_OP_transpose, 1, &x, 1, &attr, NULL);
}

static weft_val bounded(struct weft_maker *m, weft_val x)
{
    if (weft_draw(m, 4) != 3)
        return x;
    const weft_val t = make(m, WEFT_OP_tanh, 1, (const weft_val[]){scaled(m, x)}, 0, NULL, NULL);
    return scaled(m, t);
}

static weft_val softmax(struct weft_maker *m, weft_val x)
{
    if (!x.id)
        return x;
    const struct weft_type type = *weft_drawn_type(m, x);
    const int64_t last = type.rank - 1;
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, last),
                           axes = weft_attr_of_ints(m->graph, WEFT_ATTR_axes, 1, &last);
    if (weft_draw(m, 3) != 2)
        return make(m, WEFT_OP_softmax, 1, &x, 1, &axis, NULL);
    const weft_val most = spread(m, make(m, WEFT_OP_reduce_max, 1, &x, 1, &axes, NULL), &type, 0);
    const weft_val e = make(m, WEFT_OP_exp, 1, (const weft_val[]){make_two(m, WEFT_OP_sub, x, most)}, 0, NULL, NULL);
    return make_two(m, WEFT_OP_div, e, spread(m, make(m, WEFT_OP_sum, 1, &e, 1, &axes, NULL), &type, 0));
}

static weft_val guarded(struct weft_maker *m, weft_val w, weft_val scores, weft_val seen)
{
    const unsigned how = weft_draw(m, 6);
    if (w.id && seen.id && weft_draw(m, 2))
        return make(m, WEFT_OP_select, 3, (const weft_val[]){seen, w, number(m, w, 0)}, 0, NULL, NULL);
    if (!w.id || how < 3)
        return how == 2 ? scaled(m, w) : w;
    const int64_t last = weft_drawn_type(m, w)->rank - 1;
    const struct weft_attr axes = weft_attr_of_ints(m->graph, WEFT_ATTR_axes, 1, &last);
    weft_val guard;
    if (how < 5) {
        guard = make(m, WEFT_OP_is_nan, 1, &w, 0, NULL, NULL);
    } else {
        const weft_val low = make_two(m, WEFT_OP_eq, scores, number(m, scores, -INFINITY));
        if (!low.id)
            return w;
        const struct weft_type type = *weft_drawn_type(m, low);
        guard = spread(m, make(m, WEFT_OP_all, 1, &low, 1, &axes, NULL), &type, 0);
    }
    return make(m, WEFT_OP_select, 3, (const weft_val[]){guard, number(m, w, 0), w}, 0, NULL, NULL);
}

/* The first product, of queries and keys or the other way round. */
static weft_val first_product(struct weft_maker *m, weft_val q, weft_val k, bool q_turned, bool k_turned)
{
    const bool swaps = weft_draw(m, 5) == 4;
    const struct weft_attr turns[] = {weft_attr_of_int(WEFT_ATTR_trans_a, swaps ? k_turned : q_turned),
                                      weft_attr_of_int(WEFT_ATTR_trans_b, swaps ? !q_turned : !k_turned)};
    const weft_val x = make(m, WEFT_OP_matmul, 2, swaps ? (const weft_val[]){k, q} : (const weft_val[]){q, k}, 2, turns,
                            NULL);
    return swaps ? turned(m, x) : x;
}

/* The second product, of the weights as they are, turned, or behind the values. */
static void second_product(struct weft_maker *m, weft_val w, weft_val v, bool v_turned)
{
    const unsigned how = weft_draw(m, 6);
    const bool last = how == 5;
    if (how == 4)
        w = turned(m, w);
    const struct weft_attr turns[] = {weft_attr_of_int(WEFT_ATTR_trans_a, last ? !v_turned : how == 4),
                                      weft_attr_of_int(WEFT_ATTR_trans_b, last ? 1 : v_turned)};
    make(m, WEFT_OP_matmul, 2, last ? (const weft_val[]){v, w} : (const weft_val[]){w, v}, 2, turns, NULL);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* One operand [lead…, a, b], or turned; of groups of heads repeated along the last leading axis. */
static weft_val operand(struct weft_maker *m, int dtype, int lead, const weft_dim *extent, weft_dim a, weft_dim b,
                        bool turned, bool repeats)
{
    struct weft_type type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)(lead + 2)};
    for (int i = 0; i < lead; i++)
        type.extent[i] = extent[i];
    type.extent[lead + turned] = a, type.extent[lead + 1 - turned] = b;
    if (!repeats || lead < 2)
        return weft_obtain(m, &type);
    struct weft_type part = type;
    int64_t dims[WEFT_MAX_RANK];
    part.rank--;
    for (int i = 0; i < part.rank; i++) {
        dims[i] = i < lead - 1 ? i : i + 1;
        part.extent[i] = type.extent[dims[i]];
    }
    const weft_val x = scaled(m, weft_obtain(m, &part));
    const struct weft_attr attr = weft_attr_of_ints(m->graph, WEFT_ATTR_dims, part.rank, dims);
    return make(m, WEFT_OP_bcast, 1, &x, 1, &attr, &type);
}

static void draw_primitives(struct weft_maker *m)
{
    static const uint8_t dtypes[] = {WEFT_F32, WEFT_F32, WEFT_F16, WEFT_BF16};
    const int dtype = dtypes[weft_draw(m, 4)], lead = (int)weft_draw(m, 4);
    const int wide = weft_draw(m, 3) ? WEFT_F32 : dtype;
    const weft_dim keys = weft_draw_dim(m), rows = weft_draw_dim(m), d = small(m), e = small(m);
    const weft_dim extent[] = {small(m), small(m), small(m)};
    const bool q_turned = weft_draw(m, 5) == 4, k_turned = weft_draw(m, 2), v_turned = weft_draw(m, 4) == 3,
               repeats = weft_draw(m, 3) == 2;
    const weft_val q = scaled(m, operand(m, dtype, lead, extent, rows, d, q_turned, false)),
                   k = operand(m, dtype, lead, extent, keys, d, k_turned, repeats),
                   v = operand(m, dtype, lead, extent, keys, e, v_turned, repeats);
    const int before = m->values; /* others seldom read what is between the products */
    weft_val seen = WEFT_NO_VALUE, x = scaled_by_values(m, first_product(m, q, k, q_turned, k_turned));
    if (!x.id)
        return;
    const struct weft_type apart = *weft_drawn_type(m, x);
    struct weft_type whole = {.dtype = apart.dtype, .rank = 4, .extent = {weft_dim_of(1), weft_dim_of(1), rows, keys}};
    if (lead == 3) {
        whole.extent[0] = extent[0], whole.extent[1] = weft_dim_mul(m->graph->dims, extent[1], extent[2]);
    } else {
        for (int i = 0; i < lead; i++)
            whole.extent[i] = extent[i];
    }
    const bool reshapes = weft_draw(m, 3) == 2;
    x = reshapes ? make(m, WEFT_OP_reshape, 1, &x, 0, NULL, &whole) : x;
    x = cast(m, bounded(m, scaled(m, x)), wide);
    x = masked(m, masked(m, x, &seen), &seen);
    const weft_val scores = weft_draw(m, 5) == 4 ? scaled(m, x) : x;
    x = cast(m, guarded(m, softmax(m, scores), scores, seen), dtype);
    x = reshapes && x.id ? make(m, WEFT_OP_reshape, 1, &x, 0, NULL, &apart) : x;
    if (weft_draw(m, 8) != 7)
        m->values = before;
    second_product(m, x, v, v_turned);
}

void weft_draw_attention_sums(struct weft_maker *m, int op) { draw_op(m, op); }

void weft_draw_attention(struct weft_maker *m, int op)
{
    if (weft_draw(m, 3) == 0)
        draw_op(m, op);
    else
        draw_primitives(m);
}

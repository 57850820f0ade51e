/* SPDX-License-Identifier: Apache-2.0 */
/* draw_elementwise.c: sources, random numbers, ops element by element, reductions and ops along an axis. */
#include "tests/property/random_graph.h"

#include "ir/rules.h"

/* --- sources ------------------------------------------------------------------------------------------------------ */

void weft_draw_const(struct weft_maker *m, int op)
{
    struct weft_type type = weft_draw_type(m, WEFT_DRAW_REAL, 0, 4);
    for (int i = 0; i < type.rank; i++)
        if (!weft_dim_is_constant(type.extent[i]))
            type.extent[i] = weft_dim_of(2);
    weft_emit(m, op, 0, NULL, 0, NULL, &type);
}

void weft_draw_extents(struct weft_maker *m, int op)
{
    const struct weft_type type = {.dtype = weft_draw(m, 2) ? WEFT_I32 : WEFT_I64, .rank = 1,
                                   .extent = {weft_dim_of(1 + weft_draw(m, 3))}};
    weft_dim value[3];
    for (int i = 0; i < 3; i++)
        value[i] = weft_draw_dim(m);
    const struct weft_attr attr =
        weft_attr_of_dims(WEFT_ATTR_value, (unsigned)weft_dim_value(type.extent[0]), value);
    weft_emit(m, op, 0, NULL, 1, &attr, &type);
}

void weft_draw_iota(struct weft_maker *m, int op)
{
    const struct weft_type type = weft_draw_type(m, WEFT_DRAW_NUMERIC, 1, 4);
    const struct weft_attr attr = weft_attr_of_int(WEFT_ATTR_axis, weft_draw(m, type.rank));
    weft_emit(m, op, 0, NULL, 1, &attr, &type);
}

static unsigned random_attrs(struct weft_maker *m, struct weft_attr *attr)
{
    attr[0] = weft_attr_of_int(WEFT_ATTR_seed, weft_draw(m, 100));
    attr[1] = weft_attr_of_int(WEFT_ATTR_stream, weft_draw(m, 3));
    return 2;
}

void weft_draw_random(struct weft_maker *m, int op)
{
    const struct weft_type type = weft_draw_type(m, WEFT_DRAW_REAL, 0, 4);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    unsigned attrs = random_attrs(m, attr);
    attrs += weft_draw_attrs(m, op, attr + attrs);
    const weft_val step = weft_draw(m, 2) ? weft_obtain_fixed(m, WEFT_I64, 0, NULL) : WEFT_NO_VALUE;
    weft_emit(m, op, step.id != 0, &step, attrs, attr, &type);
}

void weft_draw_random_of(struct weft_maker *m, int op)
{
    struct weft_attr attr[3];
    unsigned attrs = random_attrs(m, attr);
    if (op == WEFT_OP_multinomial)
        attr[attrs++] = (struct weft_attr){.key = WEFT_ATTR_samples, .kind = WEFT_ATTR_INT, .count = 1,
                                           .integer = weft_draw_dim(m)};
    const weft_val x = weft_draw_value(m, WEFT_DRAW_REAL, op == WEFT_OP_multinomial, 4);
    const weft_val operand[] = {x, weft_draw(m, 2) ? weft_obtain_fixed(m, WEFT_I64, 0, NULL) : WEFT_NO_VALUE};
    weft_emit(m, op, 1 + (operand[1].id != 0), operand, attrs, attr, NULL);
}

/* --- element by element ------------------------------------------------------------------------------------------- */

static unsigned families_of(int op)
{
    bool (*const infer)(struct weft_infer *) = weft_ops[op].infer;
    if (op == WEFT_OP_eq || op == WEFT_OP_ne)
        return WEFT_DRAW_ALL;
    return infer == weft_infer_real || infer == weft_infer_test ? WEFT_DRAW_REAL
           : infer == weft_infer_integer                        ? WEFT_DRAW_INTEGER
           : infer == weft_infer_logic                          ? WEFT_DRAW_BOOL
                                                                : WEFT_DRAW_NUMERIC;
}

void weft_draw_elementwise(struct weft_maker *m, int op)
{
    weft_val operand[3];
    struct weft_attr attr[WEFT_MOST_ATTRS];
    const unsigned operands = (unsigned)weft_ops[op].min_operands, attrs = weft_draw_attrs(m, op, attr);
    operand[0] = weft_draw_value(m, families_of(op), 0, WEFT_MAX_RANK);
    for (unsigned i = 1; i < operands; i++)
        operand[i] = weft_obtain(m, weft_drawn_type(m, operand[0]));
    if (operands == 2 && weft_draw(m, 2)) {
        const weft_val first = operand[0];
        operand[0] = operand[1];
        operand[1] = first;
    }
    weft_emit(m, op, operands, operand, attrs, attr, NULL);
}

void weft_draw_cast(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ANY, 0, WEFT_MAX_RANK);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    struct weft_type type = *weft_drawn_type(m, x);
    const unsigned bits = weft_dtype_bits(type.dtype);
    type.dtype = (uint8_t)weft_draw_dtype(m, WEFT_DRAW_ANY);
    for (int tries = 0; op == WEFT_OP_bitcast && weft_dtype_bits(type.dtype) != bits && tries < 3; tries++)
        type.dtype = (uint8_t)weft_draw_dtype(m, WEFT_DRAW_ANY);
    weft_emit(m, op, 1, &x, op == WEFT_OP_cast ? weft_draw_attrs(m, op, attr) : 0, attr, &type);
}

void weft_draw_select(struct weft_maker *m, int op)
{
    const weft_val x = weft_draw_value(m, WEFT_DRAW_ALL, 0, WEFT_MAX_RANK);
    struct weft_type type = *weft_drawn_type(m, x);
    const weft_val y = weft_obtain(m, &type);
    type.dtype = WEFT_BOOL;
    const weft_val condition = weft_obtain(m, &type);
    weft_emit(m, op, 3, (const weft_val[]){condition, x, y}, 0, NULL, NULL);
}

/* --- reductions, and along an axis -------------------------------------------------------------------------------- */

/* The next wider type of the family, for sums. */
static int wider(int dtype)
{
    static const uint8_t table[][2] = {{WEFT_F16, WEFT_F32}, {WEFT_BF16, WEFT_F32}, {WEFT_F32, WEFT_F64},
                                       {WEFT_I8, WEFT_I32},  {WEFT_I16, WEFT_I64},  {WEFT_I32, WEFT_I64},
                                       {WEFT_U8, WEFT_U32},  {WEFT_U16, WEFT_U32},  {WEFT_U32, WEFT_U64}};
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i][0] == dtype)
            return table[i][1];
    return dtype;
}

void weft_draw_reduce(struct weft_maker *m, int op)
{
    const unsigned families = op == WEFT_OP_any || op == WEFT_OP_all                  ? WEFT_DRAW_BOOL
                              : op == WEFT_OP_log_sum_exp || op == WEFT_OP_variance ? WEFT_DRAW_REAL
                                                                                    : WEFT_DRAW_NUMERIC;
    const weft_val x = weft_draw_value(m, families, 0, WEFT_MAX_RANK);
    const struct weft_type *type = weft_drawn_type(m, x);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    int64_t axis[WEFT_MAX_RANK];
    unsigned axes = 0, attrs = weft_draw_attrs(m, op, attr);
    for (int i = 0; i < type->rank; i++)
        if (weft_draw(m, 2))
            axis[axes++] = i;
    attr[attrs++] = weft_attr_of_ints(m->graph, WEFT_ATTR_axes, axes, axis);
    if (op == WEFT_OP_variance && weft_draw(m, 2))
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_correction, 1 + weft_draw(m, 2));
    if (weft_attr_spec_find(op, WEFT_ATTR_acc) && weft_draw(m, 3) == 2)
        attr[attrs++] = (struct weft_attr){.key = WEFT_ATTR_acc, .kind = WEFT_ATTR_DTYPE, .count = 1,
                                           .dtype = wider(type->dtype)};
    weft_emit(m, op, 1, &x, attrs, attr, NULL);
}

void weft_draw_along(struct weft_maker *m, int op)
{
    const bool real = weft_ops[op].infer == weft_infer_softmax;
    const weft_val x = weft_draw_value(m, real ? WEFT_DRAW_REAL : WEFT_DRAW_NUMERIC, 1, WEFT_MAX_RANK);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    const int axis = weft_draw_axis(m, x);
    unsigned attrs = weft_draw_attrs(m, op, attr);
    attr[attrs++] = weft_attr_of_int(WEFT_ATTR_axis, axis);
    if (op == WEFT_OP_fold_chunks)
        attr[attrs++] = weft_attr_of_int(WEFT_ATTR_chunk, 1 + weft_draw(m, 4));
    if (op == WEFT_OP_top_k) {
        const weft_dim extent = weft_drawn_type(m, x)->extent[axis];
        const weft_dim half = weft_dim_div(m->graph->dims, extent, weft_dim_of(2));
        const weft_dim some = weft_dim_of(weft_draw(m, (unsigned)weft_least(m, extent) + 1));
        const unsigned which = weft_draw(m, 3);
        attr[attrs++] = (struct weft_attr){.key = WEFT_ATTR_k, .kind = WEFT_ATTR_INT, .count = 1,
                                           .integer = which == 0 ? some : which == 1 ? extent : half};
    }
    weft_emit(m, op, 1, &x, attrs, attr, NULL);
}

/* Lines that are in no order are defined too. */
void weft_draw_search_sorted(struct weft_maker *m, int op)
{
    const weft_val line = weft_draw_value(m, WEFT_DRAW_NUMERIC, 1, 4);
    struct weft_type type = *weft_drawn_type(m, line);
    type.extent[type.rank - 1] = weft_draw_dim(m);
    struct weft_attr attr[WEFT_MOST_ATTRS];
    const unsigned attrs = weft_draw_attrs(m, op, attr);
    weft_emit(m, op, 2, (const weft_val[]){line, weft_obtain(m, &type)}, attrs, attr, NULL);
}

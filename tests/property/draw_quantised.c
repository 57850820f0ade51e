/* SPDX-License-Identifier: Apache-2.0 */
/* draw_quantised.c: products of few rows by quantised weights, large enough to be packed as numbers of 8 bits: integer
 * constants, perhaps less a zero point, times a factor that is one number, one for each column, or neither. */
#include "tests/property/random_graph.h"

enum { TERMS = 520, COLUMNS = 512 }; /* just above what kernels read as floats */

static weft_val make(struct weft_maker *m, int op, weft_val x, weft_val y, unsigned attrs, const struct weft_attr *attr,
                     const struct weft_type *stated)
{
    return weft_draw_made(m, weft_emit(m, op, 1 + (y.id != 0), (const weft_val[]){x, y}, attrs, attr, stated));
}

static weft_val integers(struct weft_maker *m, int dtype)
{
    struct weft_type type = {.dtype = WEFT_F32, .rank = 2, .extent = {weft_dim_of(TERMS), weft_dim_of(COLUMNS)}};
    const double scale[] = {127, 15, 2};
    const struct weft_constant constant = {.kind = WEFT_CONST_RANDOM, .seed = weft_draw(m, 1000),
                                           .scale = scale[weft_draw(m, 3)]};
    const weft_node node = weft_add_node(m->graph, &(struct weft_node_spec){.op = WEFT_OP_const, .stated = &type,
                                                                            .constant = &constant});
    type.dtype = (uint8_t)dtype;
    return make(m, WEFT_OP_cast, weft_draw_made(m, node), WEFT_NO_VALUE, 0, NULL, &type);
}

/* Along the columns mostly; of each term now and then, or one number. */
static weft_val factor(struct weft_maker *m, const struct weft_type *weights)
{
    const unsigned how = weft_draw(m, 5);
    struct weft_builder build = {.graph = m->graph};
    if (how == 0)
        return weft_build_splat(&build, weights, 0.0625);
    const int64_t axis = how == 1 ? 0 : 1;
    struct weft_type vector = {.dtype = WEFT_F32, .rank = 1, .extent = {weights->extent[axis]}};
    const weft_val v = how == 2 ? weft_obtain(m, &vector)
                                : weft_draw_made(m, weft_emit(m, WEFT_OP_const, 0, NULL, 0, NULL, &vector));
    const struct weft_attr dims = weft_attr_of_ints(m->graph, WEFT_ATTR_dims, 1, &axis);
    return make(m, WEFT_OP_bcast, v, WEFT_NO_VALUE, 1, &dims, weights);
}

void weft_draw_quantised(struct weft_maker *m)
{
    const bool is_signed = weft_draw(m, 2);
    struct weft_type type = {.dtype = WEFT_I32, .rank = 2, .extent = {weft_dim_of(TERMS), weft_dim_of(COLUMNS)}};
    weft_val w = integers(m, is_signed ? WEFT_I8 : WEFT_U8);
    if (weft_draw(m, 3) == 0) {
        struct weft_builder build = {.graph = m->graph};
        const weft_val wide = make(m, WEFT_OP_cast, w, WEFT_NO_VALUE, 0, NULL, &type);
        w = make(m, WEFT_OP_sub, wide, weft_build_splat(&build, &type, (double)weft_draw(m, 4)), 0, NULL, NULL);
    }
    type.dtype = WEFT_F32;
    w = make(m, WEFT_OP_cast, w, WEFT_NO_VALUE, 0, NULL, &type);
    const weft_val scale = factor(m, &type);
    w = weft_draw(m, 6) ? make(m, WEFT_OP_mul, w, scale, 0, NULL, NULL) : w;
    const struct weft_type rows = {.dtype = WEFT_F32, .rank = 2, .extent = {weft_dim_of(1 + weft_draw(m, 3)),
                                   weft_dim_of(TERMS)}};
    const weft_val x = weft_obtain(m, &rows);
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_trans_a, 0), weft_attr_of_int(WEFT_ATTR_trans_b, 0)};
    weft_draw_finished(m, weft_emit(m, WEFT_OP_matmul, 2, (const weft_val[]){x, w}, 2, attr, NULL));
}

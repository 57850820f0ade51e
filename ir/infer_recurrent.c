/* SPDX-License-Identifier: Apache-2.0 */
/* infer_recurrent.c: types of lstm, gru and rnn; T times, B sequences, I inputs, H hidden, D directions, G gates:
 *
 *   x [T,B,I]   w [D,G·H,I]   r [D,G·H,H]   b [D,2·G·H]   h0, c0 [D,B,H]   peepholes [D,3·H]   lengths i64[B]
 *   → y [T,D,B,H], and the last states [D,B,H] */
#include "ir/infer.h"
#include "ir/recurrent.h"

static bool has_shape(struct weft_infer *infer, unsigned operand, const char *what, unsigned rank,
                      const weft_dim *extent)
{
    const struct weft_type *type = weft_infer_type(infer, operand);
    struct weft_type wanted = {.dtype = weft_infer_type(infer, 0)->dtype, .rank = (uint8_t)rank};
    for (unsigned i = 0; i < rank; i++)
        wanted.extent[i] = extent[i];
    return weft_type_same(type, &wanted) ||
           weft_infer_fail(infer, "operand %u (%s) is %s, but must be %s", operand, what,
                           weft_infer_type_text(infer, type), weft_infer_type_text(infer, &wanted));
}

static bool check_optional(struct weft_infer *infer, unsigned first, weft_dim directions, weft_dim hidden,
                           weft_dim batch)
{
    struct weft_dims *dims = infer->graph->dims;
    unsigned next = first;
    if (infer->op == WEFT_OP_lstm && next < infer->operands &&
        weft_dtype_is_float(weft_infer_type(infer, next)->dtype)) {
        const weft_dim holes[] = {directions, weft_dim_mul(dims, weft_dim_of(3), hidden)};
        if (!has_shape(infer, next++, "peepholes", 2, holes))
            return false;
    }
    if (next == infer->operands)
        return true;
    const struct weft_type *lengths = weft_infer_type(infer, next);
    if (lengths->dtype != WEFT_I64 || lengths->rank != 1 || !weft_dim_same(lengths->extent[0], batch))
        return weft_infer_fail(infer, "operand %u is %s, but lengths must be i64[%s]", next,
                               weft_infer_type_text(infer, lengths), weft_infer_dim_text(infer, batch));
    return next + 1 == infer->operands || weft_infer_fail(infer, "behind the lengths stands no operand");
}

bool weft_infer_recurrent(struct weft_infer *infer)
{
    struct weft_dims *dims = infer->graph->dims;
    struct weft_recurrence cell;
    const char *message;
    const struct weft_type *x = weft_infer_type(infer, WEFT_CELL_X), *r = weft_infer_type(infer, WEFT_CELL_R);
    if (!weft_infer_family(infer, 0, WEFT_FAMILY_REAL))
        return false;
    if (!weft_recurrence_read(infer->op, infer->attr, infer->attrs, &cell, &message))
        return weft_infer_fail(infer, "%s", message);
    if (x->rank != 3 || r->rank != 3)
        return weft_infer_fail(infer, "operand %d is %s, but must have 3 axes", x->rank != 3 ? 0 : WEFT_CELL_R,
                               weft_infer_type_text(infer, x->rank != 3 ? x : r));
    const weft_dim directions = weft_dim_of(cell.directions), hidden = r->extent[2], batch = x->extent[1];
    const weft_dim gates = weft_dim_mul(dims, weft_dim_of(cell.gates), hidden);
    const weft_dim w[] = {directions, gates, x->extent[2]}, recurrent[] = {directions, gates, hidden};
    const weft_dim bias[] = {directions, weft_dim_mul(dims, weft_dim_of(2), gates)};
    const weft_dim state[] = {directions, batch, hidden};
    if (!has_shape(infer, WEFT_CELL_W, "w", 3, w) || !has_shape(infer, WEFT_CELL_R, "r", 3, recurrent) ||
        !has_shape(infer, WEFT_CELL_B, "b", 2, bias) || !has_shape(infer, WEFT_CELL_H, "the first h", 3, state) ||
        (cell.states == 2 && !has_shape(infer, WEFT_CELL_C, "the first c", 3, state)) ||
        !check_optional(infer, WEFT_CELL_H + cell.states, directions, hidden, batch))
        return false;
    infer->result[0] = (struct weft_type){
        .dtype = x->dtype, .rank = 4, .extent = {x->extent[0], directions, batch, hidden}};
    for (unsigned i = 1; i <= cell.states; i++)
        infer->result[i] = (struct weft_type){.dtype = x->dtype, .rank = 3, .extent = {directions, batch, hidden}};
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* draw_chosen.c: products whose matrices are gathered by data (sched/chosen.h), and what stands between. */
#include "tests/property/random_graph.h"

/* Gathers matrices of a table, and gives them and the axes of their indices; the last two axes are the matrices'. */
static weft_val draw_matrices(struct weft_maker *m, const weft_dim *lead, int leads, const weft_dim *matrix)
{
    const weft_dim table[] = {weft_dim_of(1 + weft_draw(m, 4)), matrix[0], matrix[1]};
    const bool by_nd = leads > 0 && weft_draw(m, 2);
    weft_dim index[3] = {leads > 0 ? lead[0] : weft_dim_of(1), leads > 1 ? lead[1] : weft_dim_of(1), weft_dim_of(1)};
    if (by_nd)
        index[leads] = weft_dim_of(1);
    const weft_val operand[] = {weft_obtain_with(m, WEFT_F32, 3, table),
                                weft_obtain_with(m, weft_draw(m, 2) ? WEFT_I64 : WEFT_I32, leads + by_nd, index)};
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 0);
    return weft_draw_made(m, weft_emit(m, by_nd ? WEFT_OP_gather_nd : WEFT_OP_gather, 2, operand, !by_nd, &axis, NULL));
}

static weft_val reshaped(struct weft_maker *m, weft_val v, int rank, const weft_dim *extent)
{
    struct weft_type type = {.dtype = WEFT_F32, .rank = (uint8_t)rank};
    for (int i = 0; i < rank; i++)
        type.extent[i] = extent[i];
    return weft_draw_made(m, weft_emit(m, WEFT_OP_reshape, 1, &v, 0, NULL, &type));
}

void weft_draw_chosen(struct weft_maker *m)
{
    struct weft_dims *const dims = m->graph->dims;
    weft_dim lead[2] = {weft_draw_dim(m), weft_draw_dim(m)}, matrix[2] = {weft_draw_dim(m), weft_draw_dim(m)};
    int leads = (int)weft_draw(m, 3);
    weft_val v = draw_matrices(m, lead, leads, matrix);
    const unsigned form = leads == 2 && v.id ? weft_draw(m, 4) : 0;
    if (form == 1) { /* indices in another order */
        const weft_dim perm[] = {weft_dim_of(1), weft_dim_of(0), weft_dim_of(2), weft_dim_of(3)};
        const struct weft_attr attr = weft_attr_of_dims(WEFT_ATTR_perm, 4, perm);
        const weft_dim first = lead[0];
        v = weft_draw_made(m, weft_emit(m, WEFT_OP_transpose, 1, &v, 1, &attr, NULL));
        lead[0] = lead[1], lead[1] = first;
    } else if (form > 1) { /* one axis of both indices, or of the last one and of rows */
        const weft_dim both = weft_dim_mul(dims, lead[0], lead[1]), rows = weft_dim_mul(dims, lead[1], matrix[0]);
        lead[0] = form == 2 ? both : lead[0];
        matrix[0] = form == 2 ? matrix[0] : rows;
        leads = 1;
        v = reshaped(m, v, 3, (const weft_dim[]){lead[0], matrix[0], matrix[1]});
    }
    if (!v.id) /* too large */
        return;
    const unsigned side = weft_draw(m, 2), turned = weft_draw(m, 2);
    const weft_dim terms = matrix[side ? turned : !turned], free = weft_draw_dim(m);
    weft_dim other[4] = {lead[0], lead[1]};
    const bool other_turned = weft_draw(m, 2);
    other[leads + (side ? !other_turned : other_turned)] = terms;
    other[leads + (side ? other_turned : !other_turned)] = free;
    const weft_val x = weft_draw(m, 6) == 5 ? draw_matrices(m, lead, leads, other + leads)
                                            : weft_obtain_with(m, WEFT_F32, leads + 2, other);
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_trans_a, side ? other_turned : turned),
                                     weft_attr_of_int(WEFT_ATTR_trans_b, side ? turned : other_turned)};
    weft_emit(m, WEFT_OP_matmul, 2, side ? (const weft_val[]){x, v} : (const weft_val[]){v, x}, 2, attr, NULL);
}

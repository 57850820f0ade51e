/* SPDX-License-Identifier: Apache-2.0 */
/* ops_product.c: matmul, linear and attention. Leading axes of products are broadcast; the second result of attention,
 * the logarithm of its sums, is made of the nodes that define it. */
#include "ops.h"

#include <math.h>

/* Products, whose leading axes are broadcast. */
static bool multiply(struct build *b, const struct case_value *x, const struct case_value *w, bool trans_a,
                     bool trans_b, struct case_value *y)
{
    const int x_rank = x->shape.rank, w_rank = w->shape.rank;
    if (x_rank < 2 || w_rank < 2)
        return fail_build(b, "a product needs matrices");
    struct shape leading = x->shape, more = w->shape;
    leading.rank -= 2;
    more.rank -= 2;
    spread_extents(&leading, &more);
    struct case_value wide[2];
    const struct case_value *from[2] = {x, w};
    for (int i = 0; i < 2; i++) {
        struct shape to = leading;
        to.extent[to.rank++] = from[i]->shape.extent[from[i]->shape.rank - 2];
        to.extent[to.rank++] = from[i]->shape.extent[from[i]->shape.rank - 1];
        if (!spread(b, from[i], &to, &wide[i]))
            return false;
    }
    const struct weft_attribute attribute[] = {{.name = "trans_a", .integer = trans_a},
                                               {.name = "trans_b", .integer = trans_b}};
    y->shape = leading;
    y->shape.dtype = x->shape.dtype;
    y->shape.extent[y->shape.rank++] = x->shape.extent[x_rank - (trans_a ? 1 : 2)];
    y->shape.extent[y->shape.rank++] = w->shape.extent[w_rank - (trans_b ? 2 : 1)];
    return add_node(b, "matmul", (const weft_val[]){wide[0].id, wide[1].id}, 2, attribute, 2, false, y);
}

bool add_matmul(struct adding *a)
{
    struct case_value y = {.name = a->result[0]};
    return multiply(a->b, &a->operand[0], &a->operand[1], integer_of(a->json, "trans_a") != 0,
                    integer_of(a->json, "trans_b") != 0, &y) &&
           keep(a->b, &y);
}

/* All rows of x, whatever its leading axes, against w. */
bool add_linear(struct adding *a)
{
    const struct case_value *x = &a->operand[0];
    const bool biased = a->operands > 2;
    const int rank = x->shape.rank;
    if (rank < 1 || a->operand[1].shape.rank != 2)
        return fail_build(a->b, "linear needs an operand with axes, and a matrix");
    struct case_value rows = {.shape = {.rank = 2}}, product = {0}, y = {.name = a->result[0], .shape = x->shape};
    rows.shape.extent[1] = x->shape.extent[rank - 1];
    rows.shape.extent[0] = rows.shape.extent[1] ? elements_of(&x->shape) / rows.shape.extent[1] : 0;
    y.shape.extent[rank - 1] = a->operand[1].shape.extent[0];
    if (rank == 2)
        rows = *x;
    else if (!reshape(a->b, x, &rows))
        return false;
    if (rank == 2 && !biased)
        product.name = y.name;
    if (!multiply(a->b, &rows, &a->operand[1], false, true, &product))
        return false;
    if (!biased && rank == 2)
        return keep(a->b, &product);
    struct case_value back = {.name = biased ? NULL : y.name, .shape = y.shape};
    if (rank == 2)
        back = product;
    else if (!reshape(a->b, &product, &back))
        return false;
    if (!biased)
        return keep(a->b, &back);
    return combine(a->b, "add", (const struct case_value[]){back, a->operand[2]}, 2, x->shape.dtype, &y) &&
           keep(a->b, &y);
}

/* Scores as attention has them, for the sum of their exponentials. */
static bool add_scores(struct adding *a, struct case_value *y)
{
    struct build *b = a->b;
    const int dtype = a->operand[0].shape.dtype;
    struct case_value product = {0}, factor = {0}, scaled = {0}, masked = {0};
    if (!multiply(b, &a->operand[0], &a->operand[1], false, true, &product) ||
        !splat(b, dtype, json_number_value(json_object_get(a->json, "scale")), &factor) ||
        !combine(b, "mul", (const struct case_value[]){product, factor}, 2, dtype, &scaled))
        return false;
    masked = scaled;
    if (a->operands > 3 && !combine(b, "add", (const struct case_value[]){scaled, a->operand[3]}, 2, dtype, &masked))
        return false;
    *y = masked;
    if (!integer_of(a->json, "causal"))
        return true;
    struct case_value place[2], sees = {0}, never = {0};
    for (int i = 0; i < 2; i++) { /* row and column */
        const struct weft_attribute axis = {.name = "axis", .integer = masked.shape.rank - 2 + i};
        place[i] = (struct case_value){.shape = masked.shape};
        place[i].shape.dtype = WEFT_I64;
        if (!add_node(b, "iota", NULL, 0, &axis, 1, /* stated= */ true, &place[i]))
            return false;
    }
    return combine(b, "ge", place, 2, WEFT_BOOL, &sees) && splat(b, dtype, -INFINITY, &never) &&
           combine(b, "select", (const struct case_value[]){sees, masked, never}, 3, dtype, y);
}

bool add_attention(struct adding *a)
{
    struct case_value y = {.name = a->result[0], .shape = a->operand[0].shape};
    weft_val id[4];
    for (size_t i = 0; i < a->operands; i++)
        id[i] = a->operand[i].id;
    if (a->operands < 3 || a->operands > 4 || y.shape.rank != 4)
        return fail_build(a->b, "attention needs three or four operands of rank 4");
    struct case_value mask;
    if (a->operands == 4) {
        struct shape whole = y.shape;
        whole.extent[3] = a->operand[1].shape.extent[2];
        if (!spread(a->b, &a->operand[3], &whole, &mask))
            return false;
        id[3] = mask.id;
    }
    const struct weft_attribute attribute[] = {
        {.name = "factor", .real = json_number_value(json_object_get(a->json, "scale"))},
        {.name = "causal", .integer = integer_of(a->json, "causal")}};
    y.shape.extent[3] = a->operand[2].shape.extent[3];
    if (!add_node(a->b, "attention", id, a->operands, attribute, 2, false, &y) || !keep(a->b, &y))
        return false;
    if (a->results < 2)
        return true;
    struct case_value scores, sum = {.name = a->result[1]};
    return add_scores(a, &scores) && reduce(a->b, "log_sum_exp", &scores, (const int64_t[]){3}, 1, false, &sum) &&
           keep(a->b, &sum);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* chosen.h: products whose matrices are chosen by data, read where they lie.
 *
 *   %e: f32[4,2,2048,512] = gather %w, %index axis=0      %w: f32[8,2048,512], constant; %index: i64[4,2]
 *   %y: f32[4,2,2048,1] = matmul %e, %x                   product p reads matrix %index[p] of %w: nothing is copied
 *
 * Such a mixture of experts would else copy each matrix that it multiplies by a vector. plan/chosen.c decides it; then
 * %e is a view of the matrix number 0, and the step of the product has %index as its operand number 2. */
#ifndef WEFT_CHOSEN_H
#define WEFT_CHOSEN_H

#include "ir/ir.h"

struct weft_bind;

/* Of a step: decided by the plan. */
struct weft_chosen {
    uint8_t operand;        /* 0 or 1: whose matrices are chosen */
    weft_val table;         /* of all matrices, along axis 0 */
    weft_val index;         /* of any integer type; a last axis of one index, as gather_nd has it, numbers nothing */
};
/* Of a descriptor, for the sizes at hand. */
struct weft_chosen_places {
    int8_t operand;         /* -1: none are chosen */
    uint8_t dtype;          /* of the indices */
    uint8_t rank;           /* axes of the indices, which products are numbered by in row-major order */
    int64_t extent[WEFT_MAX_RANK], stride[WEFT_MAX_RANK];
    int64_t matrices, step; /* how many there are; elements from one to the next */
};
struct weft_chosen_places weft_chosen_bind(const struct weft_bind *bind);
/* Elements from the first matrix to that of a product: a negative index counts from the end, and one beyond either end
 * means the nearest matrix. */
int64_t weft_chosen_place(const struct weft_chosen_places *places, const void *index, int64_t product);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* decompose_k: few results of long sums: k is cut into slices, whose products are one product in batches, and summed.
 *
 *                                            %a1: f32[8,16,4096] = reshape %a
 *   %y: f32[8,8] = matmul %a, %b             %a2: f32[16,8,4096] = transpose %a1 perm=[1 0 2]
 *       %a: f32[8,65536]                →    %b1: f32[16,4096,8] = reshape %b
 *                                            %p: f32[16,8,8] = matmul %a2, %b1
 *                                            %y: f32[8,8] = sum %p axes=[0]
 *
 * Both operands are views, so what it takes more are the slices' results, written and read once. weft's kernel cuts
 * such a k by itself (weft_gemm_slices), shares the slices out among workers and adds them up without a step of its
 * own: so prices take this for products that are in the way of that, and for kernels of others. Rounds otherwise, in
 * slices. Not for: sizes with symbols, k without a divisor from 2 to 64. */
#include "passes/alternatives.h"
#include "sched/step.h"

enum { MOST_RESULTS = 64, LEAST_K = 2048, TIMES = 32, SLICES = 16, MOST_SLICES = 64 };

/* Nearest to SLICES, of those the smaller one; 0: none. */
static int64_t slices_of(int64_t k)
{
    int64_t best = 0;
    for (int64_t s = 2; s <= MOST_SLICES; s++) {
        const int64_t far = s < SLICES ? SLICES - s : s - SLICES,
                      best_far = best < SLICES ? SLICES - best : best - SLICES;
        if (k % s == 0 && (best == 0 || far < best_far))
            best = s;
    }
    return best;
}

static bool fits(void *user, const struct weft_graph *g, weft_node n)
{
    (void)user;
    const struct weft_type *const a = weft_type_of(g, weft_operand(g, n, 0)),
                           *const b = weft_type_of(g, weft_operand(g, n, 1)),
                           *const y = weft_type_of(g, weft_result(g, n, 0));
    if (!weft_step_is_f32(g, n) || a->rank != 2 || b->rank != 2 || !weft_type_is_constant(a) ||
        !weft_type_is_constant(b))
        return false;
    const int64_t k = weft_dim_value(a->extent[weft_attr_int(g, n, WEFT_ATTR_trans_a) ? 0 : 1]);
    const int64_t rows = weft_dim_value(y->extent[0]), columns = weft_dim_value(y->extent[1]);
    return rows > 0 && columns > 0 && rows <= MOST_RESULTS && columns <= MOST_RESULTS && k >= LEAST_K &&
           k >= TIMES * rows && k >= TIMES * columns && slices_of(k) > 0;
}

/* An operand with its axis of k in slices, which are the first axis. */
static weft_val cut(struct weft_builder *b, weft_val v, int axis, int64_t slices)
{
    const struct weft_type *const whole = weft_type_of(b->graph, v);
    const weft_dim length = weft_dim_of(weft_dim_value(whole->extent[axis]) / slices);
    struct weft_type type = {.dtype = whole->dtype, .rank = 3};
    type.extent[axis] = weft_dim_of(slices);
    type.extent[axis + 1] = length;
    type.extent[axis == 0 ? 2 : 0] = whole->extent[1 - axis];
    v = weft_build_reshape(b, v, &type);
    return axis == 0 ? v : weft_build_transpose(b, v, (const int[]){1, 0, 2});
}

static int build(void *user, struct weft_graph *g, const weft_node *node, size_t nodes)
{
    (void)user, (void)nodes;
    const weft_node n = {.id = node[0].id};
    struct weft_builder b = {.graph = g};
    const int64_t trans_a = weft_attr_int(g, n, WEFT_ATTR_trans_a), trans_b = weft_attr_int(g, n, WEFT_ATTR_trans_b);
    const weft_val x = weft_operand(g, n, 0), w = weft_operand(g, n, 1);
    const int64_t slices = slices_of(weft_dim_value(weft_type_of(g, x)->extent[trans_a ? 0 : 1]));
    const weft_val operand[] = {cut(&b, x, trans_a ? 0 : 1, slices), cut(&b, w, trans_b ? 1 : 0, slices)};
    const struct weft_attr attr[] = {weft_attr_of_int(WEFT_ATTR_trans_a, trans_a),
                                     weft_attr_of_int(WEFT_ATTR_trans_b, trans_b)};
    const weft_val products = weft_build(&b, WEFT_OP_matmul, 2, operand, 2, attr, NULL);
    const weft_val sum = weft_build_reduce(&b, WEFT_OP_sum, products, 1, (const int[]){0}, /* keepdims= */ false);
    weft_clear_returns(g);
    weft_add_return(g, sum, WEFT_NO_VALUE);
    return 1;
}

const struct weft_alternative weft_alternative_decompose_k = {
    .size = sizeof(struct weft_alternative), .name = "decompose_k", .op = "matmul", .fits = fits, .build = build};

/* SPDX-License-Identifier: Apache-2.0 */
/* merge_products: narrow products of one operand by constants become one product by all columns, and slices of it.
 *
 *   %p: f32[512,4] = matmul %x, %v          %c: f32[512,6] = matmul %x, %vw       %vw: computed once
 *   %q: f32[512,2] = matmul %x, %w     →    %p: f32[512,4] = slice %c start=[0 0] end=[512 4]
 *                                           %q: f32[512,2] = slice %c start=[0 4] end=[512 6]
 *
 * x is read once, and vectors that few columns leave empty are filled. Each result is summed as before: the same bits,
 * unless one of the products is so narrow that its kernel sums in lanes. Readers of a slice read rows with gaps; of
 * wide products, which fill vectors anyway, that costs what sharing x gains, so only narrow ones are merged; and what
 * would finish a product on the way is a step of its own behind a slice, so then only those narrower than a vector. */
#include "ir/public.h"
#include "passes/alternatives.h"
#include "passes/passes.h"
#include "sched/step.h"

#include <string.h>

enum { MOST_COLUMNS = 32, MOST_TOGETHER = 256 }; /* of one product; of all */
enum { MOST_FINISHED = 7 };                      /* of one that elementwise ops finish: less than a vector */
enum { MOST_FLOATS = 256 << 10 };                /* of all weights, which are copied */

static int64_t columns_of(const struct weft_graph *g, weft_node n)
{
    const struct weft_type *const type = weft_type_of(g, weft_operand(g, n, 1));
    return weft_dim_value(type->extent[weft_attr_int(g, n, WEFT_ATTR_trans_b) ? 0 : 1]);
}

static int64_t most_columns(const struct weft_graph *g, weft_node n)
{
    for (uint32_t use = g->value[weft_result(g, n, 0).id].first_use; use; use = g->slot[use - 1].next)
        if (weft_op_of(g, g->slot[use - 1].node)->traits & WEFT_ELEMENTWISE)
            return MOST_FINISHED;
    return MOST_COLUMNS;
}

/* A narrow product by a constant matrix of a matrix whose rows are not transposed. */
static bool is_narrow(const struct weft_graph *g, weft_node n)
{
    if (weft_opcode_of(g, n) != WEFT_OP_matmul || g->node[n.id].dead)
        return false;
    const weft_val w = weft_operand(g, n, 1);
    return weft_step_is_f32(g, n) && weft_is_const(g, w) && weft_type_of(g, w)->rank == 2 &&
           weft_type_of(g, weft_operand(g, n, 0))->rank == 2 && !weft_attr_int(g, n, WEFT_ATTR_trans_a) &&
           weft_dim_is_constant(weft_type_of(g, weft_operand(g, n, 0))->extent[1]) && columns_of(g, n) > 0 &&
           columns_of(g, n) <= most_columns(g, n);
}

/* Row-major, or by columns; slices of anything else are not looked at. */
static bool find_order(const struct weft_graph *g, weft_node n, struct weft_layout *ret)
{
    const struct weft_layout layout = weft_layout_of(g, weft_result(g, n, 0));
    for (int first = 0; first < 2; first++) {
        *ret = weft_layout_order(2, (const int[]){first, 1 - first});
        if (weft_layout_equal(g->dims, &layout, ret, weft_type_of(g, weft_result(g, n, 0))))
            return true;
    }
    return false;
}

static bool goes_beside(const struct weft_graph *g, weft_node n, weft_node other)
{
    struct weft_layout a, b;
    return is_narrow(g, other) && weft_is(weft_operand(g, other, 0), weft_operand(g, n, 0)) &&
           weft_attr_int(g, other, WEFT_ATTR_trans_b) == weft_attr_int(g, n, WEFT_ATTR_trans_b) &&
           find_order(g, n, &a) && find_order(g, other, &b) && weft_layout_same(&a, &b);
}

static size_t find_beside(void *user, const struct weft_graph *g, weft_node n, weft_node *ret_node, size_t room)
{
    (void)user;
    const int64_t terms = weft_dim_value(weft_type_of(g, weft_operand(g, n, 0))->extent[1]);
    int64_t columns = columns_of(g, n);
    size_t count = 0;
    for (weft_node other = g->node[n.id].next; other.id && count < room; other = g->node[other.id].next) {
        if (!goes_beside(g, n, other))
            continue;
        columns += columns_of(g, other);
        if (columns > MOST_TOGETHER || columns * terms > MOST_FLOATS)
            break;
        ret_node[count++] = weft_node_out(g, other);
    }
    return count;
}

static bool fits(void *user, const struct weft_graph *g, weft_node n)
{
    weft_node other;
    return is_narrow(g, n) && find_beside(user, g, weft_node_out(g, n), &other, 1) > 0;
}

static weft_val take_columns(struct weft_builder *b, weft_val whole, int64_t first, int64_t count)
{
    const weft_dim start[] = {weft_dim_of(0), weft_dim_of(first)},
                   end[] = {weft_type_of(b->graph, whole)->extent[0], weft_dim_of(first + count)};
    const struct weft_attr attr[] = {weft_attr_of_dims(WEFT_ATTR_start, 2, start),
                                     weft_attr_of_dims(WEFT_ATTR_end, 2, end)};
    return weft_build(b, WEFT_OP_slice, 1, &whole, 2, attr, NULL);
}

/* All weights as one constant, by [term][column], or by [column][term]. */
static weft_val join_weights(struct weft_builder *b, const weft_node *node, size_t nodes, bool by_columns)
{
    struct weft_graph *const g = b->graph;
    const int64_t terms = weft_dim_value(weft_type_of(g, weft_operand(g, node[0], 0))->extent[1]);
    int64_t columns = 0, first = 0;
    for (size_t i = 0; i < nodes; i++)
        columns += columns_of(g, node[i]);
    float *const all = weft_new(&g->scratch, float, (uint32_t)(terms * columns));
    for (size_t i = 0; i < nodes; i++) {
        const char *const one = weft_elements(g, weft_operand(g, node[i], 1));
        const int64_t count = columns_of(g, node[i]), lines = by_columns ? 1 : terms;
        const size_t line = (size_t)(by_columns ? count * terms : count);
        for (int64_t k = 0; k < lines; k++)
            memcpy(all + (by_columns ? first * terms : k * columns + first), one + (size_t)k * line * sizeof *all,
                   line * sizeof *all);
        first += count;
    }
    const struct weft_type type = {.dtype = WEFT_F32, .rank = 2, .extent = {weft_dim_of(by_columns ? columns : terms),
                                                                          weft_dim_of(by_columns ? terms : columns)}};
    return weft_build_const(b, &type, all);
}

static int build(void *user, struct weft_graph *g, const weft_node *node, size_t nodes)
{
    (void)user;
    struct weft_builder b = {.graph = g};
    struct weft_layout order;
    const int64_t trans_b = weft_attr_int(g, node[0], WEFT_ATTR_trans_b);
    const weft_val operand[] = {weft_operand(g, node[0], 0), join_weights(&b, node, nodes, trans_b)};
    const struct weft_attr trans = weft_attr_of_int(WEFT_ATTR_trans_b, trans_b);
    const weft_val whole = weft_build(&b, WEFT_OP_matmul, 2, operand, 1, &trans, NULL);
    if (find_order(g, node[0], &order))
        weft_state_layout(g, whole, &order); /* or slices of it would be copied into that order */
    weft_clear_returns(g);
    int64_t first = 0;
    for (size_t i = 0; i < nodes; i++) {
        const int64_t count = columns_of(g, node[i]);
        weft_add_return(g, take_columns(&b, whole, first, count), WEFT_NO_VALUE);
        first += count;
    }
    return 1;
}

const struct weft_alternative weft_alternative_merge_products = {.size = sizeof(struct weft_alternative),
                                                                 .name = "merge_products",
                                                                 .op = "matmul",
                                                                 .fits = fits,
                                                                 .beside = find_beside,
                                                                 .build = build};

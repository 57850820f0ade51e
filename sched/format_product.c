/* SPDX-License-Identifier: Apache-2.0 */
/* format_product.c: what products of matrices cost by order of their operands and results.
 *
 *   %y = matmul %x, %w      f32[4,1024] by f32[1024,1024]
 *   y {0 1}                 4 rows of 1024 columns, 16 to a vector: w is read as it is
 *   y {1 0}                 the transposed product, 1024 rows of 4 columns, a quarter of a vector each, by columns of
 *                           w, which are copied side by side first
 *
 * The kernel is asked whether it computes the transposed product and what it copies, with sizes at their hints. Vectors
 * that are not filled are paid for as if they were; what the product takes in the better of the two orders is no part
 * of a price. Constants are packed when the plan is made, so that their order counts for nothing. */
#include "sched/format.h"

#include "kernels/gemm/gemm.h"

/* Does the kernel of f32 compute it? Others have no order that they like. */
static bool is_f32(const struct weft_graph *g, weft_node n)
{
    return weft_opcode_of(g, n) == WEFT_OP_matmul && weft_step_is_f32(g, n);
}

/* False where it is empty, or where nothing of the result or of operands is contiguous in a matrix. */
static bool open_product(const struct weft_formats *f, weft_node n, uint32_t first, uint32_t second, uint32_t result,
                         struct weft_gemm *ret)
{
    if (!weft_format_gemm(f, n, first, second, result, ret) || ret->m < 1 || ret->n < 1 || ret->k < 1)
        return false;
    return (ret->a_row == 1 || ret->a_col == 1) && (ret->b_row == 1 || ret->b_col == 1) &&
           (ret->c_row == 1 || ret->c_col == 1);
}

/* Multiply-adds of all products of the node, those of empty lanes included; prepares one. */
static double products_of(const struct weft_formats *f, weft_node n, struct weft_gemm *p)
{
    const double results = (double)weft_format_elements(f->graph, weft_result(f->graph, n, 0));
    weft_gemm_prepare(p, 1);
    return results * (double)p->k * weft_step_gemm_waste(p);
}

bool weft_format_wants_small(const struct weft_formats *f, weft_node n)
{
    struct weft_gemm gemm;
    if (!weft_format_gemm(f, n, 0, 0, 0, &gemm) || gemm.batch != 1)
        return false;
    gemm.b_packed = true;
    weft_gemm_prepare(&gemm, f->target->threads);
    return weft_gemm_wants_small(&gemm, f->target->threads);
}

/* What is less than a step costs decides nothing. */
static int64_t noticed(const struct weft_formats *f, int64_t ps) { return ps < weft_format_step_ps(f) ? 0 : ps; }

int64_t weft_format_product_write_ps(const struct weft_formats *f, weft_node n, uint32_t result)
{
    struct weft_gemm p;
    if (!is_f32(f->graph, n) || !open_product(f, n, 0, 0, result, &p))
        return 0;
    struct weft_gemm by_rows = p, by_columns = p;
    by_rows.c_row = p.n, by_rows.c_col = 1;
    by_columns.c_row = 1, by_columns.c_col = p.m;
    const double here = products_of(f, n, &p), rows = products_of(f, n, &by_rows);
    const double columns = products_of(f, n, &by_columns), best = rows < columns ? rows : columns;
    return here > best ? noticed(f, weft_format_rate_ps(f, here - best, WEFT_PRICE_product)) : 0;
}

int64_t weft_format_product_read_ps(const struct weft_formats *f, struct weft_pin operand, uint32_t layout,
                                    uint32_t result)
{
    const bool first = operand.index == 0;
    struct weft_gemm p;
    if (!is_f32(f->graph, operand.node) ||
        !open_product(f, operand.node, first ? layout : 0, first ? 0 : layout, result, &p))
        return 0;
    weft_gemm_prepare(&p, 1);
    if (!p.loops.pack_a || p.swapped == first)
        return 0;
    const int64_t bytes = weft_format_bytes(f, weft_pin_value(f->graph, operand));
    return noticed(f, weft_format_rate_ps(f, (double)bytes,
                                          weft_format_level(f->target, WEFT_PRICE_copy_private, bytes)));
}

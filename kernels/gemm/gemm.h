/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h: the family of the f32 matrix product; kernels.h has the descriptor and what a caller may do with it.
 *
 *   C[b,i,j] = s(k),  s(0) = +0,  s(p+1) = fma(A[b,i,p], B[b,p,j], s(p))          for every b, i, j
 *
 * One chain per result, in the order of k, each step rounded once. A tile therefore starts its accumulators from C when
 * an earlier block of k has left its sums there, and nothing else about the order of work (blocks, packing, tile shape,
 * parts, CPU level) can change a bit. The price is an error that grows with k like that of a plain loop, and no split
 * of k among threads. Only the payload and sign of a NaN are not defined: which operand of a multiply-add wins is the
 * hardware's choice.
 *
 * Preconditions: C overlaps neither A nor B, and distinct (b, i, j) are distinct elements of C. Strides are of any sign
 * or zero for A and B. No alignment. Nothing outside the described elements is read or written. Extents may be 0 (k = 0
 * writes zeros). Scratch is 64-byte aligned and belongs to one part. */
#ifndef WEFT_GEMM_H
#define WEFT_GEMM_H

#include "kernels/kernels.h"

/* One tile: c[i·c_row + j] for its rows and `columns`; a[i·a_row + p], b[p·b_row + j]. With from_c the chains go on
 * from c. */
typedef void weft_gemm_tile_fn(int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_row, float *c,
                               int64_t c_row, int64_t columns, bool from_c);
/* to[i·to_row + j] = from[i + j·from_column]. */
typedef void weft_gemm_transpose_fn(float *to, int64_t to_row, const weft_loose_f32 *from, int64_t from_column,
                                    int64_t rows, int64_t columns);

/* What an ISA file gives for each row of gemm.def. Tiles by [vectors][rows - 1]: vectors 0 are full tiles without
 * masks, v > 0 are v vectors of which the last is masked. The reference has no tiles. */
enum { WEFT_GEMM_ROWS = 6, WEFT_GEMM_VECTORS = 4 };
struct weft_gemm_code {
    weft_gemm_tile_fn *tile[1 + WEFT_GEMM_VECTORS][WEFT_GEMM_ROWS];
    weft_gemm_transpose_fn *transpose;
};
#define WEFT_GEMM(name, cpu, rows, columns, lanes, depth) extern const struct weft_gemm_code name;
#include "kernels/gemm/gemm.def"

struct weft_gemm_kernel {
    const char *name;
    uint32_t cpu;
    int32_t rows, columns, lanes;
    int64_t depth;
    const struct weft_gemm_code *code;
};
extern const struct weft_gemm_kernel weft_gemm_kernels[];
extern const unsigned weft_gemm_kernel_count;
const struct weft_gemm_kernel *weft_gemm_find(uint32_t cpu);

static inline weft_gemm_tile_fn *weft_gemm_tile(const struct weft_gemm_kernel *kernel, int64_t rows, int64_t columns)
{
    const int64_t vectors = columns == kernel->columns ? 0 : (columns + kernel->lanes - 1) / kernel->lanes;
    return kernel->code->tile[vectors][rows - 1];
}

/* Where piece i begins when `total` is cut into `pieces` that differ by at most one: 7 rows are 4 + 3 and not 6 + 1. */
static inline int64_t weft_cut(int64_t total, int64_t pieces, int64_t i)
{
    const int64_t rest = total % pieces;
    return total / pieces * i + (i < rest ? i : rest);
}
static inline int64_t weft_pieces(int64_t total, int64_t each) { return (total + each - 1) / each; }

/* How to cut a space of extent[0] x extent[1] x extent[2] units into `parts` boxes: the largest box as small as
 * possible, then the least surface by the weights (what a part reads of either operand). The product of ret_cut is
 * `parts`. */
void weft_gemm_grid(const int64_t extent[3], const int64_t weight[3], int parts, int ret_cut[3]);
/* How many parts are worth it for so many flops and units: 1 for what is done before another core has woken up. */
int32_t weft_gemm_parts(double flops, int64_t units, int workers);

/* to[i·to_row + j] = from[i·from_row + j·from_column]: packing, by the kernel's transpose where rows are the unit
 * stride. */
void weft_gemm_gather(const struct weft_gemm_kernel *kernel, float *to, int64_t to_row, const weft_loose_f32 *from,
                      int64_t from_row, int64_t from_column, int64_t rows, int64_t columns);
/* Floats that the panels [columns / panel][k][panel] of B take, of which the last is filled with zeros. */
int64_t weft_gemm_panels_size(const struct weft_gemm_kernel *kernel, int64_t k, int64_t columns);

/* gemm_ref.c: rows [row, row_end) and columns [column, column_end) of product `batch`, by plain loops. */
void weft_gemm_plain(const struct weft_gemm *gemm, float *c, const float *a, const float *b, const int64_t begin[3],
                     const int64_t end[3]);

#endif

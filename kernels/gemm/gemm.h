/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h: the family of the f32 matrix product; kernels.h has the descriptor and what a caller may do with it.
 *
 *   C[b,i,j] = finish(sum over k of A[b,i,p] · B[b,p,j])                          for every b, i, j
 *   chain(P):  s(0) = +0,  s(q+1) = fma(A[b,i,P[q]], B[b,P[q],j], s(q))           P: some of the k, ascending
 *
 * As a rule the sum is one chain over all of k. A tile then starts its accumulators from C when an earlier block of k
 * has left its sums there, and nothing else about the order of work (blocks, packing, tile shape, parts, CPU level) can
 * change a bit. The price is an error that grows with k like that of a plain loop. Two exceptions follow from extents
 * and strides alone; none of them is made with `one_chain`, and no lanes beside a prologue, which makes an operand:
 *
 *   slices   Few results of long chains (weft_gemm_slices): k is cut into pieces that differ by at most one in length,
 *            each has a chain, and the sum is ((chain 0 + chain 1) + chain 2) + … So parts can share k.
 *   lanes    Both operands have their unit stride along k (a_col = b_row = 1) and the results are a row, a column or a
 *            handful (weft_gemm_lanes): 8 or 32 chains, chain l over all p with p mod lanes = l, counted from the start
 *            of the slice. They are added up by halves: chain l and l + lanes/2, then l and l + lanes/4, and so on.
 *
 *   finish(s) = s, or with `scaled`: alpha · s, then + (beta · C), unless beta = 0; then + bias, if there is one; then
 *   + residual, if there is one; then the clamp; each operation rounded. Then the epilogue.
 *
 * Bias, residual and clamp are the tile's own, in registers, wherever it has the whole sum and C as it is: a pass over
 * the tile would wait until its stores, which miss, are done.
 *
 * Only the payload and sign of a NaN are not defined: which operand of a multiply-add wins is the hardware's choice.
 *
 * Preconditions: C overlaps neither A nor B nor the bias, and distinct (b, i, j) are distinct elements of C. The
 * residual does not overlap C. Strides are of any sign or zero for A, B and the residual. No alignment. Nothing
 * outside the described elements is read or written. Extents may be 0 (a sum of no terms is 0). Scratch is 64-byte
 * aligned and belongs to one part. */
#ifndef WEFT_GEMM_H
#define WEFT_GEMM_H

#include "kernels/kernels.h"

/* So many floats of a cache of 1 MiB, in the second-level cache that there is. */
int64_t weft_gemm_within_cache(const struct weft_gemm *g, int64_t measured);

/* --- what is asked for ahead ---
 *
 * The first tile of each panel of B would wait for the last cache, or memory: so the tiles of the panel before ask for
 * it, each for its part, some lines every 16 terms, into the second-level cache. More lines than that cache can wait
 * for beside a tile's own loads are not asked for. The rows of C that a tile will write are prefetched into the
 * first-level cache, one each 16 terms: all at once before the sums they would delay the first loads of A and B. */
enum { WEFT_AHEAD_TERMS = 16, WEFT_AHEAD_LINE = 16, WEFT_AHEAD_MOST = 24 };

/* So many terms a wide AVX-512 tile sums one at a time; of more, four in an iteration. The branch that ends the loop
 * every WEFT_AHEAD_TERMS terms is predicted as long as the tile is short; beyond, mispredictions took 7 % of the time
 * of the 6x64 tile on Intel. With four terms of few the tile takes 3 % longer. (AVX2: FOUR_TERMS, vector_avx2.h.) */
enum { WEFT_ONE_TERM = 96 };

/* Tile `tile` of `tiles` that have so many turns of WEFT_AHEAD_TERMS terms: where its part of `floats` from `next` on
 * begins, and how many lines a turn asks for; NULL: it asks for nothing. */
static inline const float *weft_ahead(const float *next, int64_t floats, int64_t turns, int64_t tile, int64_t tiles,
                                      int64_t *ret_lines)
{
    const int64_t all = floats / WEFT_AHEAD_LINE, every = tiles * turns;
    if (!next || every <= 0)
        return NULL;
    const int64_t lines = (all + every - 1) / every, first = tile * turns * lines;
    *ret_lines = lines;
    return lines <= WEFT_AHEAD_MOST && first < all ? next + first * WEFT_AHEAD_LINE : NULL;
}

/* Results that an epilogue gets at a time, where a part has so many side by side: half of the first-level cache. */
enum { WEFT_HANDED_RESULTS = 4096 };

/* --- what an ISA file gives --- */

/* From sums to results within a tile: + 0, then + bias, then + residual, then the clamp. */
struct weft_gemm_last {
    bool plus_zero;
    const float *bias;            /* of the first row and column, or NULL */
    int64_t bias_row, bias_col;   /* bias_col: 0 or 1 */
    const float *residual;        /* of the first row and column, numbers of a row side by side; or NULL */
    int64_t residual_row;
    struct weft_clamp clamp;
    const float *ahead;           /* what later tiles read, asked for while the sums are made: see below; or NULL */
    int64_t ahead_lines;          /* for each WEFT_AHEAD_TERMS terms, */
    int64_t ahead_step;           /* so many floats apart */
    bool prefetch_c;              /* the tile prefetches its rows of C */
    struct weft_gemm_copy *copy;  /* which it goes on with (gemm_copy.h), or NULL */
};
/* weft_gemm_tile_fn (kernels.h) is one tile: c[i·c_row + j] for its rows and `columns`; a[i·a_row + p],
 * b[p·b_row + j]. With from_c the chains go on from c. `last` is NULL where others are to follow, or where sums are the
 * results. Lines are the same without an end of their own. */
typedef void weft_gemm_lines_fn(int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_column, float *c,
                                int64_t c_row, int64_t columns, bool from_c);
/* to[i·to_row + j] = from[i + j·from_column]. */
typedef void weft_gemm_transpose_fn(float *to, int64_t to_row, const weft_loose_f32 *from, int64_t from_column,
                                    int64_t rows, int64_t columns);
/* c[j] = the lanes' sum of x[p] · b[p + j·b_column] for j in [0, columns). */
typedef void weft_gemm_dots_fn(int64_t k, const float *x, const float *b, int64_t b_column, float *c, int64_t columns);
/* c[j] = the lanes' sum of x[p] · panel[p·panel columns + j]. */
typedef void weft_gemm_panel_dots_fn(int64_t k, const float *x, const float *panel, float *c, int64_t columns);
/* c[i·c_row + j·c_col] = finish(from[i·from_row + j]) for rows x columns of them. bias and residual may be NULL. from
 * may be c. */
struct weft_gemm_finish {
    bool scaled;
    float alpha, beta;
    int64_t c_row, c_col, bias_row, bias_col, r_row, r_col;
    struct weft_clamp clamp;
};
typedef void weft_gemm_finish_fn(const struct weft_gemm_finish *finish, float *c, const float *from, int64_t from_row,
                                 const float *bias, const float *residual, int64_t rows, int64_t columns);
/* to[i] += from[i]. */
typedef void weft_gemm_add_fn(float *to, const float *from, int64_t count);

/* Tiles by [width][rows - 1], where a width e is for 8·(e - 1) < columns <= 8·e. `ragged` takes any such number of
 * columns, `whole` just 8·e, in vectors that lie where they are aligned in a panel. NULL where the registers do not
 * suffice, or there is no such vector; but up to the kernel's rows, the next width has a ragged one then. `beyond` is
 * by [columns / 8][1, 2, or 3 and 4 columns more][rows - 1]: NULL where it gains nothing. The reference has none. */
enum { WEFT_GEMM_ROWS = 8, WEFT_GEMM_WIDTHS = 9, WEFT_GEMM_COLUMNS = 64, WEFT_GEMM_BEYOND = 3 };
/* Rows of a call; rows that are best done so; numbers of panels that there are loops for: 1, 2, 4. */
enum { WEFT_GEMM_SMALL_ROWS = 4, WEFT_GEMM_SMALL_MOST = 16, WEFT_GEMM_SMALL_PANELS = 3 };
/* c[i·c_row + j] = the sum of a[i·a_row + p] · b[j / columns · panel + p · columns + j % columns] for all columns of
 * one, two or four panels of elements of a type smaller than f32, `panel` elements apart. */
typedef void weft_gemm_small_fn(int64_t k, const float *a, int64_t a_row, const void *b, int64_t panel, float *c,
                                int64_t c_row);
struct weft_gemm_code {
    weft_gemm_tile_fn *const *beyond[WEFT_GEMM_WIDTHS][WEFT_GEMM_BEYOND];
    weft_gemm_tile_fn *const *whole[WEFT_GEMM_WIDTHS], *const *ragged[WEFT_GEMM_WIDTHS];
    weft_gemm_lines_fn *const *lines; /* by rows - 1, or NULL: up to kernel->lanes columns, b[p + j·b_row] */
    weft_gemm_transpose_fn *transpose;
    weft_gemm_dots_fn *dots;             /* 8 lanes */
    weft_gemm_dots_fn *long_dots;        /* 32 lanes */
    weft_gemm_panel_dots_fn *panel_dots; /* 8 lanes */
    weft_gemm_finish_fn *finish;
    weft_gemm_add_fn *add;
    /* By type (WEFT_K_BF16, WEFT_K_F16, WEFT_K_I8, WEFT_K_U8), by the logarithm of panels, then by rows - 1. Of four
     * panels there may be none, or of one row alone. */
    weft_gemm_small_fn *const (*small[WEFT_K_U8 + 1])[WEFT_GEMM_SMALL_ROWS];
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

static inline float weft_clamped(const struct weft_clamp *clamp, float x)
{
    const float above = clamp->low > x ? clamp->low : x;
    return (clamp->high < above ? clamp->high : above) + clamp->zero;
}

/* The sum of a tile's row and column to its result. */
static inline float weft_gemm_ended(const struct weft_gemm_last *last, float sum, int64_t row, int64_t column)
{
    const float x = last->plus_zero ? sum + 0.0f : sum;
    const float y = last->bias ? x + last->bias[row * last->bias_row + column * last->bias_col] : x;
    const float z = last->residual ? y + last->residual[row * last->residual_row + column] : y;
    return last->clamp.given ? weft_clamped(&last->clamp, z) : z;
}

/* For products of k terms (in blocks of any length) and at most kernel->columns columns; NULL if the registers do not
 * suffice, which is never so up to kernel->rows. Columns beyond vectors are put where they belong one by one, which few
 * terms do not pay for. */
static inline weft_gemm_tile_fn *weft_gemm_tile(const struct weft_gemm_kernel *kernel, int64_t k, int64_t rows,
                                                int64_t columns)
{
    const struct weft_gemm_code *const code = kernel->code;
    const int64_t width = (columns + 7) / 8, more = columns % 8;
    if (more == 0 && code->whole[width] && code->whole[width][rows - 1])
        return code->whole[width][rows - 1];
    if (more > 0 && more <= 4 && k >= 8 * (more + 1)) {
        weft_gemm_tile_fn *const *const beyond = code->beyond[width - 1][more < 3 ? more - 1 : 2];
        if (beyond && beyond[rows - 1])
            return beyond[rows - 1];
    }
    if (code->ragged[width][rows - 1] || width + 1 == WEFT_GEMM_WIDTHS || !code->ragged[width + 1])
        return code->ragged[width][rows - 1];
    return code->ragged[width + 1][rows - 1];
}

/* --- gemm_grid.c: cutting work into parts --- */

/* Where piece i begins when `total` is cut into `pieces` that differ by at most one: 7 rows are 4 + 3 and not 6 + 1. */
static inline int64_t weft_cut(int64_t total, int64_t pieces, int64_t i)
{
    const int64_t rest = total % pieces;
    if (i >= pieces)
        return total;
    return total / pieces * i + (i < rest ? i : rest);
}
/* The same for the parts of workers, of which each may have several: the longer pieces are spread evenly, so that runs
 * of as many pieces differ by one at most. 16 for 6 parts of two workers are 2 3 3 | 2 3 3 and not 3 3 3 | 3 2 2. */
static inline int64_t weft_cut_evenly(int64_t total, int64_t pieces, int64_t i)
{
    return total / pieces * i + total % pieces * i / pieces;
}
static inline int64_t weft_pieces(int64_t total, int64_t each) { return (total + each - 1) / each; }

/* Work that is cut into boxes of units, for parts. */
struct weft_gemm_space {
    int64_t extent[3]; /* in units */
    int64_t weight[3]; /* numbers of a unit along each axis: what a part reads of either operand */
    double last;       /* the last unit along axis 2 is so much of one: above 0 and at most 1 */
    int64_t items;     /* or 0: what units along axis 2 are made of, spread evenly (weft_cut_evenly) */
};
/* How to cut it into at most `parts` boxes: the largest box as small as possible, then the least surface by the
 * weights. A part whose number is not below the product of ret_cut has nothing to do. */
void weft_gemm_grid(const struct weft_gemm_space *space, int parts, int ret_cut[3]);
/* The box of a part: false if it has none. */
bool weft_gemm_box(const int64_t extent[3], const int32_t cut[3], int part, int64_t ret_begin[3], int64_t ret_end[3]);
/* For parts / turns workers, of whose boxes in such a grid each is cut into `turns` parts: across its longer side, so
 * that what it reads most of is still read once, unless that side has too few units. */
struct weft_gemm_boxes weft_gemm_boxes(const struct weft_gemm_space *space, int parts, int turns);
bool weft_gemm_box_of_turn(const struct weft_gemm_boxes *boxes, int part, int64_t ret_begin[3], int64_t ret_end[3]);
/* How many parts are worth it for so many flops and units: 1 for what is done before another core has woken up. */
int32_t weft_gemm_parts(double flops, int64_t units, int workers);
/* For where whoever is ready takes the next part: cuts a grid of one box a worker finer, if boxes are large. Weights:
 * numbers of a unit along each axis. */
void weft_gemm_take_turns(double flops, const int64_t extent[3], const int64_t weight[3], int32_t cut[3]);
/* How many parts one of `parts` is cut into there, where so many units of equal work are left for each: 1 for little
 * work. */
int32_t weft_gemm_turns(double flops, int32_t parts, int64_t units);
/* The same where parts are to share pixels and nothing else: into strips of these, whatever the grid was; false: they
 * are not. */
bool weft_gemm_share_pixels(const struct weft_gemm *g, double flops, int32_t cut[3]);

/* --- gemm_pack.c --- */

/* to[i·to_row + j] = from[i·from_row + j·from_column]: packing, by the kernel's transpose where rows are the unit
 * stride. */
void weft_gemm_gather(const struct weft_gemm_kernel *kernel, float *to, int64_t to_row, const weft_loose_f32 *from,
                      int64_t from_row, int64_t from_column, int64_t rows, int64_t columns);
/* The packing of a B[k,n] in an order of gemm, and how many floats it takes. */
struct weft_packing weft_gemm_packing(const struct weft_gemm_kernel *kernel, enum weft_pack_order order, int64_t k,
                                      int64_t n);
/* Of a packed B of any type: bytes of an element, where element i is, and `count` of smaller ones as floats, by the
 * kernel's CPU level. */
static inline int64_t weft_gemm_element_bytes(const struct weft_gemm *gemm)
{
    return gemm->b_small == 0 ? 4 : gemm->b_small == WEFT_K_BF16 || gemm->b_small == WEFT_K_F16 ? 2 : 1;
}
static inline const float *weft_gemm_small_at(const struct weft_gemm *gemm, const float *pack, int64_t i)
{
    return (const float *)(const void *)((const char *)pack + i * weft_gemm_element_bytes(gemm));
}
void weft_gemm_widen(const struct weft_gemm *gemm, float *to, const float *from, int64_t count);
int64_t weft_gemm_packed_size(const struct weft_packing *packing);
/* Part `part` of `parts` of the pack (weft_gemm_pack_part), from elements b[p·b_row + j·b_col]. `by` does the work. */
void weft_gemm_pack_as(const struct weft_packing *packing, const struct weft_gemm_kernel *by, float *pack,
                       const weft_loose_f32 *b, int64_t b_row, int64_t b_col, int part, int parts);
static inline const struct weft_gemm_kernel *weft_packing_kernel(const struct weft_packing *packing)
{
    return &weft_gemm_kernels[packing->kernel];
}

/* --- gemm.c: what is computed --- */

int32_t weft_gemm_slices(const struct weft_gemm *gemm);
int32_t weft_gemm_lanes(const struct weft_gemm *gemm);

/* Scratch is a band of A and then a block of B, or two that take turns, in floats. The rows of a band are an odd number
 * of cache lines apart, so that they do not share sets of the cache. */
static inline int64_t weft_gemm_band_row(const struct weft_gemm_loops *l)
{
    return (((l->made ? l->k : l->kc) + 15) / 16 | 1) * 16;
}
static inline int64_t weft_gemm_band_size(const struct weft_gemm_loops *l)
{
    return (l->made ? l->m : l->pack_a ? l->mc : 0) * weft_gemm_band_row(l);
}
static inline int64_t weft_gemm_block_step(const struct weft_gemm_loops *l) { return (l->nc * l->kc + 15) / 16 * 16; }
static inline int64_t weft_gemm_block_size(const struct weft_gemm_loops *l)
{
    return l->pack_b ? weft_gemm_block_step(l) * (l->two_blocks ? 2 : 1) : 0;
}

/* --- the loops: box [begin, end) of loops->units, results finished unless they are partial sums --- */

/* gemm_tiles.c; where `plain` is set, and bias and residual, if there are any, can end in the tile, run_plainly does
 * the same. */
void weft_gemm_run_plainly(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                           const int64_t end[3]);
void weft_gemm_run_tiles(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3]);
/* gemm_made.c: the same where a part's rows of A are made first; `run` are the loops that read them then. */
typedef void weft_gemm_loops_fn(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                                const int64_t end[3]);
void weft_gemm_run_made(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                        const int64_t end[3], weft_gemm_loops_fn *run);
/* The prologue of what the loops call A, or B; or NULL. */
static inline weft_gemm_hook *weft_gemm_makes_a(const struct weft_gemm *g)
{
    return g->swapped ? g->prologue_b : g->prologue_a;
}
static inline weft_gemm_hook *weft_gemm_makes_b(const struct weft_gemm *g)
{
    return g->swapped ? g->prologue_a : g->prologue_b;
}
/* gemm_lanes.c */
void weft_gemm_run_lanes(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3]);
/* gemm_small.c: few rows by a packed B of elements smaller than f32. */
void weft_gemm_run_small(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3]);
/* gemm_ref.c: by plain loops; floats of scratch memory: a row of A, a column of B, where they are made. */
int64_t weft_gemm_plain_size(const struct weft_gemm *gemm);
void weft_gemm_run_plain(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                         const int64_t end[3]);

/* gemm_finish.c */
/* Rows [row, row + rows) and columns of product `batch`, in the orientation of the loops: from[i·from_row + j], which
 * may be their place in C, to C. */
void weft_gemm_finish(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const float *from,
                      int64_t from_row, int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns);
/* The same results to the epilogue, if there is one. */
void weft_gemm_hand(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int64_t batch, int64_t row,
                    int64_t rows, int64_t column, int64_t columns);
/* Whether sums differ from results; whether tiles can make results of them. */
bool weft_gemm_unfinished(const struct weft_gemm *gemm, const struct weft_gemm_data *data);
bool weft_gemm_ends_in_tile(const struct weft_gemm *gemm);
/* Calls a hook with a piece given in the orientation of the loops. */
void weft_gemm_call_hook(const struct weft_gemm *gemm, weft_gemm_hook *hook, void *user,
                         struct weft_gemm_piece piece);
/* Slices: where one has its m x n partial sums; adding them to those of slice 0; from the sum of all to results. */
float *weft_gemm_partial(const struct weft_gemm *gemm, void *shared, int64_t slice);
void weft_gemm_add_slice(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int64_t slice);
void weft_gemm_finish_slices(const struct weft_gemm *gemm, const struct weft_gemm_data *data);

#endif

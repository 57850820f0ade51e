/* SPDX-License-Identifier: Apache-2.0 */
/* contraction.h: products and convolutions: descriptors, packed weights, what is done to a result in registers. A part
 * of kernels.h, which says how kernels run and which everybody includes. */
#ifndef WEFT_CONTRACTION_H
#define WEFT_CONTRACTION_H

#include "kernels/kernels.h"

/* --- the end of a contraction's result ---------------------------------------------------------------------------- */

/* Of x becomes min(high, max(low, x)) + zero, where NaN stays NaN: what elementwise `clamp` gives with a zero of -0,
 * which changes nothing, and `relu` between 0 and infinity with a zero of +0. Tiles do it in registers. */
struct weft_clamp {
    bool given;
    float low, high, zero;
};

/* --- packed weights ----------------------------------------------------------------------------------------------- */

/* The orders in which loops read weights that were packed for them. */
enum weft_pack_order {
    WEFT_PACK_NONE,         /* no weights are read: there are no results, or they have no terms */
    WEFT_PACK_PANELS,       /* gemm: [n / panel][k][panel], the last panel filled with zeros */
    WEFT_PACK_LINES,        /* gemm: [n][k] */
    WEFT_PACK_ROWS,         /* conv: [group][o][tap][c] */
    WEFT_PACK_TAPS,         /* one weight a group and tap: [tap][group] */
    WEFT_PACK_SIXTEENS,     /* [sixteen results of all groups][tap][c][16], the last ones filled with zeros */
    WEFT_PACK_TILES,        /* phases.h: [group][tile of results][tap][c][result] */
    WEFT_PACK_TAP_PANELS,   /* direct.h: [group][panel][tap][c][width], and whether all weights are finite */
    WEFT_PACK_PHASE_PANELS, /* transposed.h: [group][panel][phase][tap of the phase][c][width], and the same */
    WEFT_PACK_WINOGRAD_2,   /* winograd.h: [group][pass][point][panel][c][panel] of transformed weights */
    WEFT_PACK_WINOGRAD_4
};

/* How the weights of a product or a convolution are packed: all that the bytes of a pack follow from besides the
 * weights themselves. prepare says which packing its loops read, and to pack takes nothing else of the descriptor. So
 * a pack serves every descriptor that wants the same packing, whatever its sizes, strides and loops are, and no other.
 * What does not count in an order is 0. Without padding, so that two are compared whole. */
struct weft_packing {
    int64_t order;          /* enum weft_pack_order */
    int64_t dtype;          /* of the pack's elements: WEFT_K_* */
    int64_t kernel;         /* whose panels and vectors: a row of weft_gemm_kernels, which also says the CPU level */
    int64_t groups, o, c;   /* o results and c channels a group; of a product n and k */
    int64_t taps[3];
    int64_t reversed;       /* taps from the last to the first */
    int64_t step[3], dilation[3], phase[3]; /* PHASE_PANELS: the stride; dilation and padding modulo the stride */
};
bool weft_packing_same(const struct weft_packing *a, const struct weft_packing *b);

/* --- gemm/gemm.h: C[b] = alpha · A[b] · B[b] + beta · C[b] + bias + residual, f32 --------------------------------- */

/* A piece of a matrix as a hook sees it: element (first_row + i, first_column + j) of matrix `batch` is
 * data[i·row + j·column]. */
struct weft_gemm_piece {
    float *data;
    int64_t row, column, rows, columns;
    int64_t batch, first_row, first_column;
};
typedef void weft_gemm_hook(void *user, const struct weft_gemm_piece *piece);

/* A tile of results held in registers: gemm.h. */
struct weft_gemm_last;
typedef void weft_gemm_tile_fn(int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_row, float *c,
                               int64_t c_row, int64_t columns, bool from_c, const struct weft_gemm_last *last);

/* A grid of boxes of units, cut[d] of them along axis d: one for each worker. Each box is cut into `turns` parts along
 * `axis`. 0 turns: there is nothing to share out. */
struct weft_gemm_boxes {
    int64_t extent[3];
    int32_t cut[3], turns, axis;
};
/* The loops that prepare has chosen, as run walks them: in the orientation of the loops. */
struct weft_gemm_loops {
    int64_t m, n, k;
    int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col, bias_row, bias_col;
    int64_t r_batch, r_row, r_col;
    int64_t mc, nc, kc;      /* cache blocks */
    int64_t rows;            /* of a tile, at most */
    int64_t least, spare;    /* a tile has `least` rows, and each of the first `spare` one more */
    int64_t band;            /* tiles of a block of mc rows */
    int64_t units[3];        /* what parts share out: products of the batch or slices of k, tiles of rows, panels */
    int32_t cut[3];          /* into how many boxes, by `parts` */
    bool pack_a, pack_b, b_panels, b_lines, aside;
    bool spreads;            /* tiles copy the next panel of B (gemm_copy.h); */
    bool two_blocks;         /* which is another block: scratch has two that take turns */
    bool made;               /* all rows of A that a part has are made before it begins, and then read as if in place */
    bool ahead;              /* the next panel of B is prefetched while a panel is multiplied; */
    bool pages;              /* it is in place, its rows pages apart: a line of each row by each tile; */
    bool fetches_source;     /* it is copied, and larger than half of L2: the source of the next copy is prefetched */
    bool prefetch_c;         /* and a tile's rows of C while it makes its sums (gemm.h) */
    bool expands;            /* a packed B has smaller elements; blocks of it are converted to scratch */
    bool plain;              /* operands in place, one block of k, sums that are results: a run is tiles and no more */
    weft_gemm_tile_fn *tile[2][2]; /* where plain: of a whole panel or the last one, of `least` rows or one more */
};

/* Any strides (elements), so transposes are strides; a batch stride of 0 repeats an operand. What is computed, to the
 * bit, is written in gemm.h; it depends on extents, on the strides of A and B where gemm.h says so, and on
 * `max_slices`, `one_chain`; never on tiles, blocks, packing, parts or the CPU. */
struct weft_gemm {
    uint32_t cpu;
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col;
    bool b_packed;           /* b was packed by weft_gemm_pack (batch must be 1); b_row, b_col are those before */
    uint8_t b_small;         /* the pack's elements, that hold B exactly: WEFT_K_BF16, _F16, _I8, _U8; 0: f32 */
    bool scaled;             /* alpha and beta are given; or they are 1 and 0, and C is not read */
    float alpha, beta;
    int64_t bias_row, bias_col; /* strides of the bias, if run gets one: 0 and 1 for a row, 1 and 0 for a column */
    bool residual;           /* a number for each result is added after the bias */
    int64_t r_batch, r_row, r_col;
    struct weft_clamp clamp; /* after bias and residual */
    /* Hooks, or NULL. Of an operand with a prologue no memory is read: the hook gets pieces of it in scratch memory,
     * before they are multiplied, and fills them in; each element at least once, and once more for each part that
     * shares its row or column (weft_gemm_made). The epilogue gets each finished piece of C once, from whichever part
     * finished it: some thousands of results, as far as a part has them side by side. */
    weft_gemm_hook *prologue_a, *prologue_b, *epilogue;
    /* Options; 0 leaves them to prepare. */
    size_t cache;            /* bytes of second-level cache that blocks are made for; 0: 1 MiB */
    int32_t grid[3];         /* boxes along the batch (or slices), the rows and the columns: their product is `parts` */
    int64_t block_m, block_n, block_k;
    int32_t max_slices;      /* of k */
    bool one_chain;          /* per result: neither slices nor lanes */
    bool takes_turns;        /* more parts than workers are no loss: whoever is ready takes the next one */
    /* Which axis are pixels of a picture. Steps around share out rows of pixels, so parts that share pixels too find in
     * their own core's cache what was written there. */
    enum weft_gemm_pixels { WEFT_GEMM_NO_PIXELS, WEFT_GEMM_ROW_PIXELS, WEFT_GEMM_COLUMN_PIXELS } pixels;
    /* Set by prepare. */
    const struct weft_gemm_kernel *kernel;
    struct weft_gemm_loops loops;
    bool swapped;            /* computed as the transposed product */
    struct weft_packing packing; /* what a packed b is read as; m counts only where C may lie by columns */
    int32_t slices, lanes;   /* chains per result: gemm.h */
    int32_t parts;
    size_t scratch;          /* bytes that each part needs, 64-byte aligned; 0 if none */
    size_t shared;           /* bytes that all parts share, 64-byte aligned; 0 if none */
};
/* What one run works on. `bias` may be NULL; `residual` is only looked at where the descriptor says that there is one;
 * `user` is for the hooks. `shared` is zero in its first 64 bytes before the first part runs and after the last; each
 * part runs once. */
/* Weights that a worker reads next, in a later step: the tiles prefetch them into the second-level cache while they
 * compute. data NULL: none. */
struct weft_prefetch {
    const float *data;
    int64_t floats;
};
enum { WEFT_PREFETCH_MOST = 64 << 10 }; /* floats: of a cache of 1 MiB, what the product's own operands leave */

struct weft_gemm_data {
    float *c;
    const float *a, *b, *bias, *residual;
    void *user, *scratch, *shared;
    struct weft_prefetch prefetch;
};
void weft_gemm_prepare(struct weft_gemm *gemm, int workers);
size_t weft_gemm_pack_bytes(const struct weft_gemm *gemm); /* after prepare; of the packed B */
/* After prepare with b_packed and without b_small: is it a product of few rows, which waits for memory, so that it is
 * faster if B is packed in smaller elements (b_small), where these hold its numbers? Results have the same bits. */
bool weft_gemm_wants_small(const struct weft_gemm *gemm, int workers);
/* The type that holds each of `count` numbers exactly, down to the sign of a zero: the first of WEFT_K_I8, WEFT_K_U8,
 * WEFT_K_BF16, WEFT_K_F16 that does, or WEFT_K_F32. `cpu`: kernels may use WEFT_CPU_* of it. */
uint8_t weft_smallest_dtype(uint32_t cpu, const weft_loose_f32 *numbers, int64_t count);
/* After prepare: is the packing the same whatever m and the strides of A and C are? */
bool weft_gemm_packs_one_way(const struct weft_gemm *gemm);
/* b unpacked, by b_row and b_col */
void weft_gemm_pack(const struct weft_gemm *gemm, float *pack, const weft_loose_f32 *b);
/* A part of it; part i reads the i-th piece of B in the order of its larger stride, so that whoever packs one part
 * after the other can give back what B's file takes in memory on the way. */
void weft_gemm_pack_part(const struct weft_gemm *gemm, float *pack, const weft_loose_f32 *b, int part, int parts);
/* After prepare, of the operand that has a prologue: elements from one of its rows to the next, and from one column to
 * the next, in every piece that the hook gets; how often each element is made, by all parts together, in how
 * many pieces, and how many rows all pieces have. */
void weft_gemm_made_strides(const struct weft_gemm *gemm, int64_t *ret_row, int64_t *ret_column);
double weft_gemm_made(const struct weft_gemm *gemm);
double weft_gemm_made_pieces(const struct weft_gemm *gemm);
double weft_gemm_made_lines(const struct weft_gemm *gemm);
/* `parts` may differ from gemm->parts only where nothing is shared. */
void weft_gemm_run(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int part, int parts);
/* What a part reads first of a packed B, at most WEFT_PREFETCH_MOST; nothing where B is not packed in panels. */
struct weft_prefetch weft_gemm_reads_first(const struct weft_gemm *gemm, const float *packed, int part);
const char *weft_gemm_name(const struct weft_gemm *gemm);
uint32_t weft_gemm_cpu(const struct weft_gemm *gemm);

/* --- product/product.h: products and convolutions in f64 and integers --------------------------------------------- */

/* c[…, i, j] = Σ over k of a[…, i, k] · b[…, k, j], any strides (elements). A convolution has its weights as a, x as b
 * and the pixels of y as columns; its `a_row`, `a_column` are the strides of results and channels of w, `b_row` and
 * `c_row` those of channels of x and y. Results of 64 bits are added up in 64, others in 32, which wrap. */
struct weft_product {
    uint32_t cpu;
    uint8_t a_dtype, b_dtype, c_dtype;
    bool conv;
    int64_t m, n, k;         /* n: set by prepare for a convolution */
    int64_t a_row, a_column, b_row, b_column, c_row, c_column;
    int32_t batch_rank;
    int64_t batch[WEFT_K_RANK], a_batch[WEFT_K_RANK], b_batch[WEFT_K_RANK], c_batch[WEFT_K_RANK];
    int64_t images, groups, channels, x_image, y_image; /* m and channels: of one group */
    int64_t in_extent[3], out_extent[3], taps[3], stride[3], dilation[3], pad[3];
    int64_t x_step[3], y_step[3], w_step[3];            /* strides of the spatial axes */
    const struct weft_product_kernel *kernel;           /* set by prepare */
    int64_t units;
    int32_t parts;
    size_t scratch;          /* per part */
};
bool weft_product_supports(int a_dtype, int b_dtype, int c_dtype);
void weft_product_prepare(struct weft_product *product, int workers);
void weft_product_run(const struct weft_product *product, void *c, const void *a, const void *b, void *scratch,
                      int part, int parts);
const char *weft_product_name(const struct weft_product *product);
uint32_t weft_product_cpu(const struct weft_product *product);

/* --- conv/conv.h: convolution, f32 -------------------------------------------------------------------------------- */

/* What a convolution may compute besides its formula (conv/conv.h): where sizes make it pay, Winograd's F(2x2,3x3),
 * whose error is smaller than the formula's own, or F(4x4,3x3) as well, whose error is about five times as large.
 * What becomes of Inf and NaN is in conv/winograd.h. */
enum weft_conv_arithmetic { WEFT_CONV_CHAIN, WEFT_CONV_F2, WEFT_CONV_F4 };

/* A piece of y as a hook sees it: result (channel + i, pixel + j) of image `image` is
 * data[i·channel_stride + j·pixel_stride]. Channels are those of y, pixels count in row-major order of its axes. */
struct weft_conv_piece {
    float *data;
    int64_t channel_stride, pixel_stride, channels, pixels;
    int64_t image, channel, pixel;
};
typedef void weft_conv_hook(void *user, const struct weft_conv_piece *piece);

/* How parts share the work (conv/share.h): boxes of units and inner pieces; and of DIRECT, into how many pieces a row
 * of y is cut. */
struct weft_conv_share {
    struct weft_gemm_boxes boxes;
    int64_t pieces;
    int32_t parts; /* that it was made for */
};

/* x [n, c, spatial…], w [o, c / groups, kernel…], y [n, o, out…], any strides (elements). Padding reads as zero. */
struct weft_conv {
    uint32_t cpu;
    enum weft_conv_arithmetic arithmetic;
    bool transposed;         /* the adjoint: w [c, o / groups, kernel…], x p adds to y p·stride + tap·dilation - pad */
    int32_t spatial;         /* 1 to 3 */
    int64_t n, c, o, groups;
    int64_t in_extent[3], out_extent[3], kernel[3], stride[3], dilation[3], pad[3]; /* pad: before */
    int64_t x_stride[5], y_stride[5];  /* n, c or o, spatial… */
    int64_t w_stride[5];               /* o, c, kernel… */
    bool w_packed;           /* w was packed by weft_conv_pack; prepare sets it too, with packs_together */
    bool shares;             /* a run has memory for all of its parts: they may pack w together */
    size_t cache;            /* as of weft_gemm */
    bool residual;           /* a number for each result is added after the bias */
    int64_t r_stride[5];     /* of them, as y_stride */
    struct weft_clamp clamp; /* after bias and residual */
    int32_t wanted;          /* 1 + a form of weft_conv_fits, which prepare then takes; 0: it chooses by sizes */
    /* Or NULL: gets each finished result once, bias and all, soon after it was stored, from the part that made it. */
    weft_conv_hook *epilogue;
    /* Or NULL: of x no memory is read; the hook gets pieces of it in scratch memory, before they are multiplied, and
     * fills them in: as of weft_gemm. Of convolutions with one tap, at steps of one, without padding and groups alone
     * (weft_conv_is_made). Strides of x do not count then. */
    weft_conv_hook *prologue;
    bool small_pieces;       /* calls of the epilogue cost little: small pieces in the first-level cache are best */
    bool takes_turns;        /* more parts than workers are no loss: whoever is ready takes the next one */
    bool folds;              /* the epilogue folds pixels: parts keep the cells of conv/conv_fold.h whole if they can */
    struct weft_gemm gemm;   /* set by prepare */
    int32_t blocks, pass;    /* set by prepare: of WINOGRAD, blocks of an image's tiles, and results of a pass */
    int32_t skips;           /* set by prepare: axes along which DIRECT leaves out taps in the padding, as bits */
    int32_t direct_lanes;    /* set by prepare: of the vectors that `direct` counts; 0: it was not asked */
    double direct;           /* set by prepare: vectors of multiply-adds of DIRECT for an image of a group */
    int32_t form;            /* set by prepare: which loops */
    bool beside;             /* set by prepare: they add the residual, which lies as y does, as they make the results */
    struct weft_packing packing; /* set by prepare: what a packed w is read as; n does not count */
    bool packs_together;     /* set by prepare: w comes as it is, and all parts of a run pack it (conv/together.h) */
    int32_t parts;
    struct weft_conv_share share; /* set by prepare: of `parts`, where the form shares out boxes */
    size_t scratch;          /* per part */
};
/* Who packs what of w, in memory of all parts: zero before the first part of a run begins, and when the last has ended.
 */
struct weft_conv_together {
    int32_t taken, packed, gone; /* pieces that somebody packs or has packed; that are packed; parts that know it */
};
static_assert(sizeof(struct weft_conv_together) <= 32, "half of a line holds it");
/* What one run works on. `bias` is o numbers side by side, or NULL; `residual` is only looked at where the descriptor
 * says that there is one; `user` is for the hook. Where it packs together: `together`, and `pack` of
 * weft_conv_pack_bytes, are of all parts. */
struct weft_conv_data {
    float *y;
    const float *x, *w, *bias, *residual;
    void *user, *scratch;
    struct weft_conv_together *together;
    float *pack;
};
/* May x have a prologue? */
bool weft_conv_is_made(const struct weft_conv *conv);
/* After prepare, where it has: elements from channel to channel and from pixel to pixel in every piece that the hook
 * gets; how often each element is made, in how many pieces, and how many rows all pieces have. */
void weft_conv_made_strides(const struct weft_conv *conv, int64_t *ret_channel, int64_t *ret_pixel);
double weft_conv_made(const struct weft_conv *conv);
double weft_conv_made_pieces(const struct weft_conv *conv);
double weft_conv_made_lines(const struct weft_conv *conv);
void weft_conv_prepare(struct weft_conv *conv, int workers);
/* Can the loops of form `form`, from 0 on, compute what the descriptor says, fast or not? Forms have their names in
 * conv.h; there are WEFT_CONV_FORMS of them. */
enum { WEFT_CONV_FORMS = 15 };
bool weft_conv_fits(const struct weft_conv *conv, int form);
size_t weft_conv_pack_bytes(const struct weft_conv *conv); /* after prepare */
/* After prepare: is the packing the same for all extents and strides of x and y, if nothing else changes? (Where there
 * is nothing to read it is WEFT_PACK_NONE.) */
bool weft_conv_packs_one_way(const struct weft_conv *conv);
void weft_conv_pack(const struct weft_conv *conv, float *pack, const weft_loose_f32 *w);
/* Part `part` of it, of at most WEFT_CONV_PACK_PARTS. */
enum { WEFT_CONV_PACK_PARTS = 16 };
void weft_conv_pack_part(const struct weft_conv *conv, float *pack, const weft_loose_f32 *w, int part, int parts);
/* Where parts pack together, each has to run, and only once. */
void weft_conv_run(const struct weft_conv *conv, const struct weft_conv_data *data, int part, int parts);
const char *weft_conv_name(const struct weft_conv *conv);
uint32_t weft_conv_cpu(const struct weft_conv *conv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* grad.h: the family of the gradient of f32 attention (attention.h), without a matrix of scores in memory.
 *
 *   delta[i]   = Σ over j of dy[i, j] · y[i, j]                       one chain
 *   w[i, t]    = exp(score[i, t] - sums[i]); 0 where row i does not see key t, or sums[i] is -inf
 *   ds[i, t]   = w[i, t] · (Σ over j of dy[i, j] · v[t, j] - delta[i]) · factor          the sum: one chain
 *   with softcap c: ds · (1 - tanh²); where a mask takes the place of the score: 0
 *   dv[t, j]   = Σ over i of w[i, t] · dy[i, j]                       one chain over all rows of all heads
 *                                                                     that share t
 *   dk[t, p]   = Σ over i of ds[i, t] · q[i, p]                       the same
 *   dq[i, p]   = Σ over t of ds[i, t] · k[t, p]                       a chain for each span of keys, added up in order
 *
 * A span has an eighth of the keys, but at least 256, in chunks of 128. No bit depends on parts, strides or the CPU
 * level. A key that a row does not see has the weight 0, and takes part: an infinite one makes NaNs.
 *
 *   for each span of keys of a group, for each head of it, for each chunk of the span:
 *     for each block of 64 rows, 16 on the diagonal of causal scores:
 *       queries, dy and y are turned, so that rows are lanes, and delta is made
 *       scores and the gradients of weights, [chunk][rows]; weights and ds in the places of them
 *       dv += weights · dy, dk += ds · q; ds turned, dq += ds · k
 *
 * All that a block has to do with a chunk lies in the second-level cache. Scores lie turned, since two of the three
 * products that read weights or ds want rows as terms; only ds is turned back for the third.
 *
 * Where there are fewer groups than workers, the spans of a group are units of their own, with a dq each in shared
 * memory, which whoever ends the last of them adds up; else one unit walks all spans of a group. The method is that of
 * Dao et al. (2022, arXiv 2205.14135).
 *
 * Shapes as in attention.h; dy as y, and dq, dk, dv as q, k, v. Strides of any sign, or 0 but for results; fast where
 * last axes are contiguous. Preconditions: results overlap nothing. Scratch is 64-byte aligned and belongs to one
 * part. */
#ifndef WEFT_ATTENTION_GRAD_H
#define WEFT_ATTENTION_GRAD_H

#include "kernels/kernels.h"

struct weft_gemm_kernel;
struct weft_attention_grad_code;

struct weft_attention_grad {
    uint32_t cpu;
    int64_t batch, heads, groups, rows, keys, width, out_width;
    int64_t dy[4], q[4], k[4], v[4], y[4], sums[3], mask[4], dq[4], dk[4], dv[4]; /* strides */
    float factor, softcap;  /* softcap 0: none */
    bool masked, causal;
    int64_t offset;
    /* Set by prepare. */
    const struct weft_gemm_kernel *kernel;
    const struct weft_attention_grad_code *code;
    int64_t span, spans;    /* keys of one, how many */
    bool splits;            /* spans are units */
    bool copy_q, copy_k, copy_v, copy_dy, aside_dq, aside_dk, aside_dv;
    int64_t at_rows, at_score, at_change, at_slope, at_mask, at_q, at_dy, at_k, at_v, at_dq, at_dk, at_dv; /* floats */
    int32_t parts;
    size_t scratch;         /* bytes that each part needs */
    size_t shared;          /* bytes that all parts share, 64-byte aligned; 0 if none */
};
struct weft_attention_grad_data {
    float *dq, *dk, *dv;
    const float *dy, *q, *k, *v, *y, *sums, *mask; /* mask: if masked */
    void *scratch, *shared; /* shared: zero in its first 64 bytes before the first part runs and after the last */
};
void weft_attention_grad_prepare(struct weft_attention_grad *grad, int workers);
/* `parts` may differ from grad->parts. */
void weft_attention_grad_run(const struct weft_attention_grad *grad, const struct weft_attention_grad_data *data,
                             int part, int parts);
const char *weft_attention_grad_name(const struct weft_attention_grad *grad);
uint32_t weft_attention_grad_cpu(const struct weft_attention_grad *grad);
/* Multiply-adds of the five products, and as many again as the exponentials take the time of. */
double weft_attention_grad_products(const struct weft_attention_grad *grad);

/* --- what a CPU level gives (grad_level.c) --- */

/* Products of queries and keys become weights, and gradients of weights those of the products. Rows of attention are
 * lanes: [t·row + i] for t < keys, i < rows, row i being the head's row `first` + i. */
struct weft_attention_grad_step {
    float *score, *change;
    const float *mask;      /* [t·row + i], or NULL */
    int64_t row, keys, rows;
    const float *sums, *delta; /* by row; sums: +inf for rows that see nothing */
    float factor, softcap;
    int64_t hidden, more;   /* key t is not seen by the first hidden + t · more of the rows */
};
struct weft_attention_grad_code {
    const char *name;
    uint32_t cpu;
    void (*step)(const struct weft_attention_grad_step *step);
    /* delta[i] = Σ over j of x[j·row + i] · y[j·row + i] */
    void (*delta)(float *delta, const float *x, const float *y, int64_t row, int64_t rows, int64_t columns);
};
#define ATTENTION(id, level, cpu) extern const struct weft_attention_grad_code weft_attention_grad_##id##__##level;
#include "kernels/attention/attention.def"

#endif

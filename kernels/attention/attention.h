/* SPDX-License-Identifier: Apache-2.0 */
/* attention.h: the family of f32 attention, without a matrix of scores in memory.
 *
 *   score[i, t] = factor · Σ over p of q[i, p] · k[t, p]         one chain of multiply-adds over p
 *   with softcap c > 0: score = c · tanh(score / c)
 *   with a mask: score += mask[i, t]; a mask from -1e30 down takes the place of the score, whatever that is
 *   causal: row i sees the keys t <= i + offset only
 *   y[i, j] = (Σ over t of exp(score[i, t] - m) · v[t, j]) / Σ over t of exp(score[i, t] - m)
 *
 *   with sums: sums[i] = m + log(Σ over t of exp(score[i, t] - m)); -inf for a row that sees no key
 *
 * m is the largest score of the row. Sums over t in the numerator are one chain; in the denominator key t goes to chain
 * t mod 64, and chains are added up by halves.
 *
 * One row a head (a decoder's step) has a form of its own, decode.h. There a score is 16 chains, p mod 16, added up by
 * halves, and keys are cut into chunks, at most 16 of about 128 keys or more. Each has an m and sums of its own, which
 * are added up in order, times exp(m of the chunk - m).
 *
 * No bit depends on blocks, parts, strides or the CPU level.
 *
 *   q [batch, heads, rows, width]      k [batch, groups, keys, width]     v [batch, groups, keys, out_width]
 *   mask [batch, heads, rows, keys]    y [batch, heads, rows, out_width]     sums [batch, heads, rows]
 *
 * heads is a multiple of groups; heads / groups of them in a row share keys and values. Strides are in elements, of any
 * sign, or 0 but for y and sums. Fast where the last axis of each is contiguous (of k: or the axis of keys); else
 * pieces are copied first.
 *
 * With more rows there are two ways to make scores, which give the same bits:
 *
 *   panels   The keys of a group are copied once to panels [keys / 64][width][64], or as wide as the CPU's tiles are
 *            (read in place where keys are neighbours in memory). Some rows, up to 64, meet all keys, panel by panel;
 *            their scores lie in the second-level cache. Then some rows at a time: exponentials along the rows, and the
 *            product with the values.
 *   lines    Up to 8 rows of all heads of a group together: keys are read in place and turned in registers (the lines
 *            of kernels/gemm/gemm.h).
 *
 * The products are tiles of the matrix product (gemm.h); what is of this family is the exponential and the order of
 * work. The method is that of Rabe and Staats (2021, arXiv 2112.05682) and Dao et al. (2022, arXiv 2205.14135), without
 * their rescaling: whole rows of scores, since those of a block fit the second-level cache.
 *
 * Preconditions: y and sums overlap no operand. Scratch is 64-byte aligned and belongs to one part. */
#ifndef WEFT_ATTENTION_H
#define WEFT_ATTENTION_H

#include "kernels/kernels.h"

struct weft_gemm_kernel;
struct weft_decode_code;

enum weft_attention_form { WEFT_ATTENTION_PANELS, WEFT_ATTENTION_LINES, WEFT_ATTENTION_DECODE };

/* What a row is whose softmax is NaN: because all its scores are -inf (it sees no key), or since one of them is NaN or
 * +inf. */
enum weft_attention_empty {
    WEFT_ATTENTION_ZERO, /* 0 where all are -inf, else NaN */
    WEFT_ATTENTION_NAN,  /* NaN */
    WEFT_ATTENTION_CLEAR /* 0 */
};

struct weft_attention {
    uint32_t cpu;
    int64_t batch, heads, groups, rows, keys, width, out_width;
    int64_t q[4], k[4], v[4], mask[4], y[4], sums[3]; /* strides, in the order of axes above */
    float factor, softcap;  /* softcap 0: none */
    bool masked, causal, has_sums;
    int64_t offset;
    enum weft_attention_empty empty;
    size_t cache;           /* bytes of second-level cache; 0: 1 MiB */
    /* Set by prepare. */
    const struct weft_gemm_kernel *kernel;
    const struct weft_attention_code *code;
    enum weft_attention_form form;
    bool copy_k, copy_q, copy_v, copy_mask, copy_y;
    int64_t block;          /* rows that meet a panel of keys together */
    int64_t blocks;         /* of a head; by lines 1, of a group; decode: of groups */
    int64_t score_row;      /* floats from one row of scores to the next */
    int64_t at_k, at_v, at_score, at_q, at_mask, at_y; /* in scratch, floats */
    int64_t near_keys;      /* all rows of a block meet the values of so many keys before the next; 0: of all keys */
    int64_t chunk, chunks;  /* decode: keys of one, how many; else 0 */
    int64_t at_part;
    int32_t parts;
    size_t scratch;         /* bytes that each part needs */
    size_t shared;          /* bytes that all parts share, 64-byte aligned; 0 if none */
};
struct weft_attention_data {
    float *y, *sums;               /* sums: if has_sums */
    const float *q, *k, *v, *mask; /* mask: if masked */
    void *scratch, *shared; /* shared: zero in its first 64 bytes before the first part runs and after the last */
};
void weft_attention_prepare(struct weft_attention *attention, int workers);
/* `parts` may differ from attention->parts. */
void weft_attention_run(const struct weft_attention *attention, const struct weft_attention_data *data, int part,
                        int parts);
const char *weft_attention_name(const struct weft_attention *attention);
uint32_t weft_attention_cpu(const struct weft_attention *attention);
/* Multiply-adds of both products, and as many again as the exponentials take the time of. */
double weft_attention_products(const struct weft_attention *attention);

/* --- what a CPU level gives (attention_level.c) --- */

/* A mask from here down takes the place of the score; WEFT_HIDING_MASK of ir/ops.h, which test_eval_window compares. */
#define WEFT_ATTENTION_HIDES (-1e30f)

enum { WEFT_ATTENTION_CHAINS = 64, WEFT_ATTENTION_LANES = 16, WEFT_ATTENTION_ROWS = 8 };

/* Rows of raw scores become weights exp(score - centre[i]), where the centre is the largest score; row i sees its first
 * seen + i · step keys, as far as there are `keys`, and weights behind those are 0 up to `keys`. sum[i]: of weights. */
struct weft_attention_rows {
    float *score;
    int64_t score_row, rows, keys, seen, step;
    const float *mask;      /* or NULL */
    int64_t mask_row;
    float factor, softcap;
    float *centre, *sum;
};
/* What results are to be multiplied by; 0: they are 0. */
static inline float weft_attention_inverse(float sum, enum weft_attention_empty empty)
{
    if (sum == 0)
        return empty == WEFT_ATTENTION_NAN ? __builtin_nanf("") : 0;
    return sum != sum && empty == WEFT_ATTENTION_CLEAR ? 0 : 1 / sum;
}
struct weft_attention_code {
    const char *name;
    uint32_t cpu;
    void (*weigh)(const struct weft_attention_rows *rows);
    /* centre + log(sum) */
    float (*log_sum)(float centre, float sum);
    /* to[i·to_row + j] = from[i·from_row + j] · inverse[i], or 0. to may be from. */
    void (*scale)(float *to, int64_t to_row, const float *from, int64_t from_row, int64_t rows, int64_t columns,
                  const float *inverse);
    const struct weft_decode_code *decode;
};
#define ATTENTION(id, level, cpu) extern const struct weft_attention_code weft_attention_##id##__##level;
#include "kernels/attention/attention.def"

#endif

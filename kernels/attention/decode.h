/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h: attention of one query a head (attention.h), as in a decoder's step: keys and values are read once, in the
 * order in which they lie, and that is nearly all the time it takes.
 *
 *   unit      some groups of a batch by a chunk of keys: scores, weights, weights times values
 *   part of a head   the sum of its weights and their products with values, of a chunk; weights are exp(score - centre)
 *   end       the parts of a head in the order of chunks, times exp(centre - m), by who finishes the last of them
 *
 * A chunk has a sixteenth of the keys, but at least 128. */
#ifndef WEFT_DECODE_H
#define WEFT_DECODE_H

#include "kernels/attention/attention.h"

/* decode.c */
void weft_decode_prepare(struct weft_attention *attention, int workers);
void weft_decode_run(const struct weft_attention *attention, const struct weft_attention_data *data, int part,
                     int parts);

/* --- what a CPU level gives (decode_level.c) --- */

/* to[h·to_row + t] = Σ over p of q[h·q_row + p] · k[h·k_head + t·k_row + p]. Chain p mod 16; chains are added up by
 * halves. Rows of q go on with zeros up to a multiple of 16. */
struct weft_decode_dots {
    const float *q, *k;
    float *to;
    int64_t q_row, k_head, k_row, to_row; /* k_head 0: heads share keys */
    int64_t heads, keys, width;
    int64_t ahead; /* so many rows ahead the caches are asked for keys; 0: the CPU does it by itself */
};
/* to[h·to_row + j] = Σ over t of weight[h·weight_row + t] · v[h·v_head + t·v_row + j], one chain, from what `to` has if
 * it goes on. Rows of `to` have room up to a multiple of 16. */
struct weft_decode_values {
    const float *weight, *v;
    float *to;
    int64_t weight_row, v_head, v_row, to_row;
    int64_t heads, keys, columns, ahead;
    bool goes_on;
};
struct weft_decode_part {
    float centre, sum;
};
struct weft_decode_code {
    void (*dots)(const struct weft_decode_dots *dots);
    void (*values)(const struct weft_decode_values *values);
    /* to[j] = Σ over c of exp(part[c].centre - m) · partial[c·row + j], one chain, m the largest centre; m and the sum
     * of exp(part[c].centre - m) · part[c].sum are returned. */
    struct weft_decode_part (*combine)(float *to, const struct weft_decode_part *part, const float *partial,
                                       int64_t row, int64_t columns, int64_t chunks);
};
#define ATTENTION(id, level, cpu) extern const struct weft_decode_code weft_decode_##id##__##level;
#include "kernels/attention/attention.def"

#endif

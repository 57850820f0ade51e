/* SPDX-License-Identifier: Apache-2.0 */
/* weave.h: transposes with a side of 2 to 8 elements, which would leave a block of registers empty for the most part.
 *
 *   deal      in[r·k + c]  ->  out c [r]      rows of k elements become k streams (NHWC to NCHW with three channels)
 *   weave     in c [r]     ->  out[r·k + c]   and back
 *   matrices  in[r·k + c]  ->  out[c·h + r]   matrices of a few vectors, one after the other
 *
 * In each of them m vectors of the operand become m vectors of the result, the same way in each group: a table says
 * from which vector and place each element comes. weave.c makes the table, once for a part, weave_level.c
 * follows it. */
#ifndef WEFT_RELAYOUT_WEAVE_H
#define WEFT_RELAYOUT_WEAVE_H

#include "kernels/relayout/relayout.h"

enum { WEFT_WEAVE_MOST = 8 }; /* vectors of a group */

enum weft_weave_kind { WEFT_WEAVE_NONE, WEFT_WEAVE_DEAL, WEFT_WEAVE_WEAVE, WEFT_WEAVE_MATRICES };

/* A group of vectors: vector i of the operand at in + i · in_vector, of the result at out + i · out_vector; the next
 * group of `group` elements of the long axis is group · in_element, group · out_element bytes further. */
struct weft_weave {
    int bytes, vectors, vector; /* of an element; of a group; bytes of a vector: 16 or 64 */
    int64_t group, in_vector, out_vector, in_element, out_element;
    /* Of result vector o: the bytes that come from vector i of the operand, as pshufb takes them (vector 16); or, from
     * i = 1 on, places in what was put together before and vector i, in elements of 2 or 4 bytes (vector 64). */
    unsigned char index[WEFT_WEAVE_MOST][WEFT_WEAVE_MOST][64] __attribute__((aligned(64)));
};

/* `n` elements of the long axis, at least a group of them. */
typedef void weft_weave_fn(const struct weft_weave *weave, char *out, const char *in, int64_t n);
weft_weave_fn weft_weave__avx2, weft_weave__avx512;

/* The kind of a transpose whose last two axes are rows and columns (tiles.c), within its CPU. */
enum weft_weave_kind weft_weave_kind(const struct weft_copy *copy);
void weft_weave_copy(const struct weft_copy *copy, void *out, const void *in, int part, int parts);
const char *weft_weave_name(const struct weft_copy *copy);
uint32_t weft_weave_cpu(const struct weft_copy *copy);

#endif

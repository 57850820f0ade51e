/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h: copies between arrays whose axes may be split into blocks.
 *
 *   out[place of i… among the digits of the result] = in[place of i… among those of the operand]      every i…
 *
 * where the place of an index is the sum of ((i / div) % mod) · stride over its digits; mod 0: no modulus. What fills
 * up the last blocks of the result is written too, with 0. */
#ifndef WEFT_BLOCKS_H
#define WEFT_BLOCKS_H

#include "kernels/kernels.h"

enum { WEFT_MOST_DIGITS = 16 };
struct weft_digit {
    int32_t axis;
    int64_t div, mod, stride; /* in elements */
};
struct weft_digits {
    int32_t count;
    struct weft_digit digit[WEFT_MOST_DIGITS]; /* from the outermost to the innermost */
};

struct weft_block_copy {
    struct weft_copy copy;  /* set by prepare: the whole of it, if `strided`; else extents and parts, to be counted */
    int32_t bytes, rank;
    uint32_t cpu;
    size_t cache;
    int64_t extent[WEFT_K_RANK];
    struct weft_digits out, in;
    /* set by prepare */
    bool strided;           /* all blocks are full, and digits of both go into one another: a copy along more axes */
    int32_t inner;          /* the axis that goes fastest */
    int64_t run;            /* so many neighbours along it are equally far apart, in `out` and in `in` */
    int64_t filled[WEFT_K_RANK]; /* extents with what fills up the last blocks of `out` */
    int32_t split;          /* the axis that parts divide */
};
void weft_block_copy_prepare(struct weft_block_copy *copy, int workers);
void weft_block_copy_run(const struct weft_block_copy *copy, void *out, const void *in, int part, int parts);
const char *weft_block_copy_name(const struct weft_block_copy *copy);
uint32_t weft_block_copy_cpu(const struct weft_block_copy *copy);

#endif

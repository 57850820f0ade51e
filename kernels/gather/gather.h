/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h: what the files of the indexing family share. The public side is in kernels.h.
 *
 *   gather     plain[i…, j…] = indexed[i…, x(i…), j…]
 *   scatter    indexed[i…, x(i…), j…] = plain[i…, j…], or +=, *=, min= or max= it
 *
 * i runs over the outer axes, j over the inner ones, a block. x(i…) is the sum of up to 8 numbers of an index, each
 * brought into [0, limit) and multiplied by a step. Preconditions: no overlap; limits are at least 1, except where
 * there is nothing to do; element sizes 1, 2, 4 or 8, aligned to that; but what a gather reads, an embedding in a file
 * that is mapped perhaps, may lie at any address. */
#ifndef WEFT_GATHER_H
#define WEFT_GATHER_H

#include "kernels/kernels.h"

/* An index from the end where it is negative; one beyond either end means the nearest element. */
static inline int64_t weft_gather_nearest(int64_t index, int64_t extent)
{
    index = index < 0 ? index + extent : index;
    return index < 0 ? 0 : index < extent ? index : extent - 1;
}
/* Number `at` of an index array as 64 bits; what is larger is the largest. */
static inline int64_t weft_gather_number(int dtype, const void *index, int64_t at)
{
    switch (dtype) {
    case WEFT_K_I64: return ((const int64_t *)index)[at];
    case WEFT_K_I32: return ((const int32_t *)index)[at];
    case WEFT_K_I16: return ((const int16_t *)index)[at];
    case WEFT_K_I8: return ((const int8_t *)index)[at];
    case WEFT_K_U32: return ((const uint32_t *)index)[at];
    case WEFT_K_U16: return ((const uint16_t *)index)[at];
    case WEFT_K_U8: return ((const uint8_t *)index)[at];
    default: {
        const uint64_t x = ((const uint64_t *)index)[at];
        return x > INT64_MAX ? INT64_MAX : (int64_t)x;
    }
    }
}

/* --- single elements and contiguous blocks (by_place.c) ----------------------------------------------------------- */

/* Orders and merges the outer axes; false if none moves in the indices. */
bool weft_gather_arrange(struct weft_gather *g);
void weft_gather_by_place(const struct weft_gather *g, void *out, const void *in, const void *index, int part,
                          int parts);

/* The same for a scatter; false if its blocks are not made of contiguous rows, of one where it combines. */
bool weft_scatter_goes_by_place(const struct weft_gather *g);
void weft_scatter_by_place(const struct weft_gather *g, void *out, const void *in, const void *index, int part,
                           int parts);

/* A block from its axis `axis` on (gather.c). */
void weft_gather_move_block(const struct weft_gather *g, int axis, char *out, const char *in);

/* place[i] = first + i · along + step · (number i · index, brought into [0, limit)), in elements; with `strict`,
 * WEFT_NOWHERE for what is outside once negative numbers count from the end. */
struct weft_gather_line {
    int64_t n, limit, step, first, along, index;
    bool strict;
};
#define WEFT_NOWHERE INT64_MIN

/* Blocks of `size` bytes, `block` elements of `bytes`, `step` bytes apart in the result; the operand has a block at
 * `last`, and none is behind it (repeat_level.c). */
struct weft_repeat {
    int bytes;
    int64_t block, size, step, last;
};
typedef void weft_repeat_fn(const struct weft_repeat *repeat, char *to, const char *from, const int64_t *place,
                            int64_t n);
/* Elements of 1, 2 or 4 bytes, each twice. */
typedef void weft_pairs_fn(int bytes, void *to, const void *from, int64_t pairs);
/* Elements of 4 bytes at places of which each is the one before or its neighbour; the operand has elements from
 * place[0] to `last`, at least WEFT_NEAR of them. How many of n results were made. */
enum { WEFT_NEAR = 16 };
typedef int64_t weft_near_fn(float *to, const float *from, const int64_t *place, int64_t last, int64_t n);
weft_pairs_fn weft_repeat_pairs__ref, weft_repeat_pairs__avx2, weft_repeat_pairs__avx512;
weft_near_fn weft_repeat_near__ref, weft_repeat_near__avx2, weft_repeat_near__avx512;
weft_repeat_fn weft_repeat_blocks__ref, weft_repeat_blocks__avx2, weft_repeat_blocks__avx512;

/* Row row[i] of `from`, `step` floats apart, is combined with what is at place[i] of `to`, `block` floats; in order. */
struct weft_combining {
    int combine; /* WEFT_COMBINE_*, not to replace */
    int64_t block, step;
};
typedef void weft_combine_fn(const struct weft_combining *c, float *to, const float *from, const int64_t *place,
                             const int64_t *row, int64_t n);
weft_combine_fn weft_combine_rows__ref, weft_combine_rows__avx2, weft_combine_rows__avx512;

/* x with y, as a scatter combines them: the least or greatest of a NaN and a number is the NaN. */
static inline float weft_combined(int combine, float x, float y)
{
    if (combine == WEFT_COMBINE_ADD)
        return x + y;
    if (combine == WEFT_COMBINE_MULTIPLY)
        return x * y;
    if (x != x || y != y)
        return x != x ? x : y;
    return (combine == WEFT_COMBINE_LEAST ? y < x : x < y) ? y : x;
}

/* The loops that have one form a level (gather_level.c). */
struct weft_gather_loops {
    uint32_t cpu;
    const char *elements, *blocks, *scatter, *combined, *spans, *table; /* names of the kernels that use them */
    /* Numbers are i64 if `wide`, else i32. */
    void (*places)(const struct weft_gather_line *line, bool wide, int64_t *place, const void *index);
    /* to[i · stride] = from[place[i]] for i in [0, n). */
    void (*look_up)(int bytes, void *to, int64_t stride, const void *from, const int64_t *place, int64_t n);
    /* Blocks of `size` bytes, `step` bytes apart in the result; places count in elements. */
    void (*copy_blocks)(int bytes, int64_t size, char *to, int64_t step, const char *from, const int64_t *place,
                        int64_t n);
    weft_repeat_fn *repeat;  /* the same where neighbours are often one */
    weft_pairs_fn *pairs;
    weft_near_fn *near;
    weft_combine_fn *combine;
};
extern const struct weft_gather_loops weft_gather_loops__ref, weft_gather_loops__avx2, weft_gather_loops__avx512;
const struct weft_gather_loops *weft_gather_loops_find(uint32_t cpu);

#endif

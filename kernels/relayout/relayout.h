/* SPDX-License-Identifier: Apache-2.0 */
/* relayout.h: what the files of the copying family share. The public side is in kernels.h.
 *
 *   out[i0·o0 + i1·o1 + …] = in[i0·s0 + i1·s1 + …]       every i
 *
 * Preconditions: distinct elements of `out`, no overlap of `out` and `in`, element sizes 1, 2, 4 or 8, aligned to that.
 */
#ifndef WEFT_RELAYOUT_H
#define WEFT_RELAYOUT_H

#include "kernels/kernels.h"

/* out[c · out_stride + r] = in[r · in_stride + c] for rows r and columns c of a tile. With `stream`, whole cache lines
 * of a result of 4-byte elements go past the caches where they are aligned. */
typedef void (*weft_relayout_tile_fn)(void *out, int64_t out_stride, const void *in, int64_t in_stride, int64_t rows,
                                      int64_t columns, bool stream);
#define RELAYOUT(id, function, level, cpu, bytes)                                                                      \
    void weft_relayout_##function##__##level(void *out, int64_t out_stride, const void *in, int64_t in_stride,         \
                                             int64_t rows, int64_t columns, bool stream);
#include "kernels/relayout/relayout.def"

/* to[i · to_stride] = from[i · from_stride] for i in [0, n); `from` may lie at any address. */
void weft_copy_strided(int bytes, void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* reshape.h: copies between arrays of other extents.
 *
 *   out[j…] = in[i…]       where j… among the extents of the result is as many elements behind the first as i… among
 *                          those of the operand, both counted in row-major order */
#ifndef WEFT_RESHAPE_H
#define WEFT_RESHAPE_H

#include "kernels/kernels.h"

/* Both have equally many elements; otherwise as a copy. */
struct weft_reshape {
    struct weft_copy copy; /* set by prepare: of extents that both are cut to; else, of all elements in a line */
    bool is_copy;          /* by prepare: it is the former */
    int32_t bytes, out_rank, in_rank;
    uint32_t cpu;
    size_t cache;
    int64_t out_extent[WEFT_K_RANK], out_stride[WEFT_K_RANK], in_extent[WEFT_K_RANK], in_stride[WEFT_K_RANK];
    /* prepare joins axes */
};
void weft_reshape_prepare(struct weft_reshape *reshape, int workers);
void weft_reshape_run(const struct weft_reshape *reshape, void *out, const void *in, int part, int parts);
const char *weft_reshape_name(const struct weft_reshape *reshape);
uint32_t weft_reshape_cpu(const struct weft_reshape *reshape);

/* The loops that prepare has chosen, for those who price them: of runs, of so many bytes; of a transpose by tiles, of
 * rows that are dealt out to a few lines, of a few lines that are woven to rows, element by element; anything else. */
enum weft_move {
    WEFT_MOVE_RUNS, WEFT_MOVE_TRANSPOSE, WEFT_MOVE_DEAL, WEFT_MOVE_WEAVE, WEFT_MOVE_NARROW, WEFT_MOVE_OTHER
};
enum weft_move weft_reshape_move(const struct weft_reshape *reshape, int64_t *ret_run);

#endif

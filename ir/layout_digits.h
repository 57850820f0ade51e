/* SPDX-License-Identifier: Apache-2.0 */
/* layout_digits.h: what the files of the layout algebra share. Nobody else includes it.
 *
 * The place of an element is offset + f_0(index[0]) + f_1(index[1]) + …: each logical axis contributes for itself. f
 * of an axis is a sum over its digits, and has a normal form that does not depend on the storage order: pieces, see
 * below. */
#ifndef WEFT_LAYOUT_DIGITS_H
#define WEFT_LAYOUT_DIGITS_H

#include "ir/ir.h"

/* f(i) = Σ stride_k · ((i / div_k) % (div_{k+1} / div_k)), pieces sorted by div from 1 upwards, the last one without
 * modulus. Neighbours that go on linearly are one piece; pieces that are always 0 are left out. */
struct weft_pieces {
    int count;
    int64_t div[WEFT_MAX_STORAGE];
    weft_dim stride[WEFT_MAX_STORAGE];
};

/* Storage axes that hold digits of a logical axis, smallest div first; returns how many. */
int weft_layout_digits(const struct weft_layout *layout, int axis, int *ret_storage_axis);
/* `stride` as from weft_layout_strides. */
void weft_layout_pieces(struct weft_dims *dims, const struct weft_layout *layout, const struct weft_type *type,
                        const weft_dim *stride, int axis, struct weft_pieces *ret);
/* Strides of a packed array with these storage extents. */
void weft_layout_packed(struct weft_dims *dims, int axes, const weft_dim *extent, weft_dim *ret_stride);

/* layout_view.c: the layout of a view in the making. Digits are sorted by rank: where they were in the operand. */
struct weft_layout_draft {
    struct weft_layout layout; /* explicit strides */
    int rank[WEFT_MAX_STORAGE];
};
void weft_layout_draft_open(struct weft_layout_draft *draft, const struct weft_layout *operand);
/* Digits of equal rank are added from the innermost outwards. False when there are too many. */
bool weft_layout_draft_add(struct weft_layout_draft *draft, int axis, int64_t div, int64_t mod, weft_dim stride,
                           int rank);
/* Storage position of the digit of an axis that begins at div. */
int weft_layout_rank_of(const struct weft_layout *layout, int axis, int64_t div);

#endif

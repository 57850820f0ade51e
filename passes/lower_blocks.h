/* SPDX-License-Identifier: Apache-2.0 */
/* lower_blocks.h: a value with split axes as an array with an axis for each digit (lower_blocks_array.c).
 *
 *   f32[1,40,8,8]{0 1/16 2 3 1%16}     type f32[1,3,16,8,8], layout {0 1 3 4 2}; axis 1 is axes 1 and 2 of the array */
#ifndef WEFT_LOWER_BLOCKS_H
#define WEFT_LOWER_BLOCKS_H

#include "ir/ir.h"

/* How a value is stored: as an array `type` in `layout`, whose axes first[i] to first[i + 1] are those of axis i. */
struct weft_blocks {
    int first[WEFT_MAX_RANK + 1];
    int64_t div[WEFT_MAX_RANK]; /* of an axis of the array: what one step along it is, along the axis of the value */
    struct weft_type type;
    struct weft_layout layout;
};
static inline bool weft_blocks_split(const struct weft_blocks *b, int axis)
{
    return b->first[axis + 1] - b->first[axis] > 1;
}
/* False where no axis is split, or where the pass cannot say how. */
bool weft_blocks_find(struct weft_graph *graph, weft_val value, struct weft_blocks *ret);
/* The value's type with axes filled up to whole blocks. */
struct weft_type weft_blocks_filled(const struct weft_graph *graph, const struct weft_type *type,
                                    const struct weft_blocks *blocks);

/* One run of the pass on a graph. */
struct weft_lowering {
    struct weft_graph *graph;
    const struct weft_target *target;
    struct weft_builder build;
    uint32_t values;        /* of the graph before */
    weft_val *plain, *whole; /* by value with a split axis: what stands for it */
    bool *kept;             /* by value with a split axis: it stays in blocks */
    weft_val *blocked;      /* by value that does not: the same in blocks again, or none yet */
    struct weft_blocks **blocks; /* by value; NULL: no axis is split */
    weft_node *done;        /* others stand for these */
    uint32_t count;
};
/* The value, not split. */
weft_val weft_lowered_whole(struct weft_lowering *lowering, weft_val value);

/* --- lower_blocks_kept.c: blocks that stay, in plans for kernels of the caller's ---------------------------------- */

/* Does the node read and write blocks as they are? What it reads in blocks that are none any more is made so again, and
 * what it writes stays. */
bool weft_stays_in_blocks(struct weft_lowering *lowering, weft_node node);
/* Of a value that stays in blocks: as an array of them, or none where the last is filled up; not split. */
weft_val weft_kept_plain(struct weft_lowering *lowering, weft_val value);
weft_val weft_kept_whole(struct weft_lowering *lowering, weft_val value);

#endif

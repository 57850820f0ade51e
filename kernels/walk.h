/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h: loops over strided arrays that share their extents: what maps, copies, reductions and windows are nested in.
 *
 * Axes are first put into order and merged (weft_k_axes_…), once, when a kernel is prepared. A walk then stands on one
 * element of all arrays, moves by an odometer, and can start anywhere, which is what lets a part be any range of
 * elements in the order of the loops. */
#ifndef WEFT_K_WALK_H
#define WEFT_K_WALK_H

#include "kernels/kernels.h"

#define WEFT_K_WALK_ARRAYS (1 + WEFT_K_MAX_IN)

struct weft_k_axis {
    int64_t extent, stride[WEFT_K_WALK_ARRAYS];
};

/* Larger strides of array 0 first. Stable. */
void weft_k_axes_sort(struct weft_k_axis *axes, int rank);
/* Drops axes of extent 1 and joins neighbours that are one in all arrays. The new rank, which may be 0. */
int weft_k_axes_merge(struct weft_k_axis *axes, int rank, int arrays);
/* Moves axis `from` to place `to`, the others keep their order. */
void weft_k_axes_move(struct weft_k_axis *axes, int from, int to);

/* How many parts so many bytes are worth: 1 for what is done before another core has woken up. */
int32_t weft_parts_for(int64_t bytes, int workers);
/* The range of part `part` of `total` units; all but the last range begin and end at multiples of `grain`. */
void weft_share(int64_t total, int64_t grain, int part, int parts, int64_t *ret_begin, int64_t *ret_end);

struct weft_k_walk {
    int rank, arrays;
    int64_t extent[WEFT_K_RANK], index[WEFT_K_RANK];
    int64_t step[WEFT_K_WALK_ARRAYS][WEFT_K_RANK]; /* bytes */
    char *at[WEFT_K_WALK_ARRAYS];
};

/* Stands on element `position` in row-major order of the extents. `at` holds the bases, and no extent is 0. */
static inline void weft_k_walk_seek(struct weft_k_walk *walk, int64_t position)
{
    for (int i = walk->rank - 1; i >= 0; i--) {
        walk->index[i] = position % walk->extent[i];
        position /= walk->extent[i];
        for (int a = 0; a < walk->arrays; a++)
            walk->at[a] += walk->index[i] * walk->step[a][i];
    }
}

/* To the next index of axis `axis` with all later axes at 0; carries outwards. Past the end it is back at the start. */
static inline void weft_k_walk_next(struct weft_k_walk *walk, int axis)
{
    for (int i = walk->rank - 1; i > axis; i--) {
        for (int a = 0; a < walk->arrays; a++)
            walk->at[a] -= walk->index[i] * walk->step[a][i];
        walk->index[i] = 0;
    }
    for (int i = axis; i >= 0; i--) {
        const bool carry = ++walk->index[i] == walk->extent[i];
        const int64_t steps = carry ? 1 - walk->extent[i] : 1;
        for (int a = 0; a < walk->arrays; a++)
            walk->at[a] += steps * walk->step[a][i];
        if (!carry)
            return;
        walk->index[i] = 0;
    }
}

#endif

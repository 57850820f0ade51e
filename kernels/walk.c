/* SPDX-License-Identifier: Apache-2.0 */
/* walk.c: axes of strided arrays in a good order, as few as possible, and work cut into parts. */
#include "kernels/walk.h"

#define PART_BYTES (32 << 10) /* waking a thread costs about what moving so many bytes through L2 does */

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

void weft_k_axes_sort(struct weft_k_axis *axes, int rank)
{
    for (int i = 1; i < rank; i++)
        for (int j = i; j > 0 && magnitude(axes[j - 1].stride[0]) < magnitude(axes[j].stride[0]); j--) {
            const struct weft_k_axis swap = axes[j];
            axes[j] = axes[j - 1];
            axes[j - 1] = swap;
        }
}

static bool mergeable(const struct weft_k_axis *outer, const struct weft_k_axis *inner, int arrays)
{
    for (int a = 0; a < arrays; a++)
        if (outer->stride[a] != inner->stride[a] * inner->extent)
            return false;
    return true;
}

int weft_k_axes_merge(struct weft_k_axis *axes, int rank, int arrays)
{
    int kept = 0;
    for (int i = 0; i < rank; i++) {
        if (axes[i].extent == 1)
            continue;
        if (kept && mergeable(&axes[kept - 1], &axes[i], arrays)) {
            const int64_t extent = axes[kept - 1].extent * axes[i].extent;
            axes[kept - 1] = axes[i];
            axes[kept - 1].extent = extent;
        } else {
            axes[kept++] = axes[i];
        }
    }
    return kept;
}

void weft_k_axes_move(struct weft_k_axis *axes, int from, int to)
{
    const struct weft_k_axis moved = axes[from];
    for (; from < to; from++)
        axes[from] = axes[from + 1];
    for (; from > to; from--)
        axes[from] = axes[from - 1];
    axes[to] = moved;
}

int32_t weft_parts_for(int64_t bytes, int workers)
{
    const int64_t parts = bytes / PART_BYTES;
    return parts <= 1 || workers <= 1 ? 1 : parts < workers ? (int32_t)parts : workers;
}

void weft_share(int64_t total, int64_t grain, int part, int parts, int64_t *ret_begin, int64_t *ret_end)
{
    const int64_t grains = (total + grain - 1) / grain;
    const int64_t begin = grains * part / parts * grain, end = grains * (part + 1) / parts * grain;
    *ret_begin = begin < total ? begin : total;
    *ret_end = end < total ? end : total;
}

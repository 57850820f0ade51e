/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_run.c: a run of a product: which loops take a box of units, and whoever comes last adds up the slices. */
#include "kernels/gemm/gemm_bands.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static weft_gemm_loops_fn *loops_of(const struct weft_gemm *gemm, const struct weft_gemm_data *data)
{
    return !gemm->kernel->code->transpose      ? weft_gemm_run_plain
           : gemm->lanes > 1                   ? weft_gemm_run_lanes
           : weft_gemm_reads_small(gemm, &gemm->loops)
               ? weft_gemm_run_small
           : gemm->loops.plain && ((!data->bias && !gemm->residual) || weft_gemm_ends_in_tile(gemm))
               ? weft_gemm_run_plainly
               : weft_gemm_run_tiles;
}

static void run_box(const struct weft_gemm *gemm, const struct weft_gemm_data *data, const int64_t begin[3],
                    const int64_t end[3])
{
    weft_gemm_loops_fn *const run = loops_of(gemm, data);
    if (gemm->loops.made)
        weft_gemm_run_made(gemm, data, begin, end, run);
    else
        run(gemm, data, begin, end);
}

/* Where panels are prefetched the first one, else all of them. */
struct weft_prefetch weft_gemm_reads_first(const struct weft_gemm *gemm, const float *packed, int part)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    const int64_t panel = gemm->kernel->columns * l->k;
    int64_t begin[3], end[3];
    if (!packed || !l->b_panels || gemm->slices > 1 || gemm->lanes > 1 ||
        !weft_gemm_box(l->units, l->cut, part, begin, end))
        return (struct weft_prefetch){.data = NULL};
    const int64_t all = l->ahead ? gemm->kernel->columns * smaller(l->k, l->kc) : (end[2] - begin[2]) * panel;
    const int64_t most = weft_gemm_within_cache(gemm, WEFT_PREFETCH_MOST);
    if (l->expands)
        return (struct weft_prefetch){.data = weft_gemm_small_at(gemm, packed, begin[2] * panel),
                                      .floats = smaller(all * weft_gemm_element_bytes(gemm) / 4, most)};
    return (struct weft_prefetch){.data = packed + begin[2] * panel, .floats = smaller(all, most)};
}

/* All of it, by one part: what slices a product into pieces is known by heart, since a small product is over in the
 * time of a few divisions. Slices are added up one by one, while the caches have them. */
static void run_whole(const struct weft_gemm *gemm, const struct weft_gemm_data *data)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    int64_t begin[3] = {0}, end[3] = {l->units[0], l->units[1], l->units[2]};
    if (gemm->slices == 1) {
        run_box(gemm, data, begin, end);
        return;
    }
    for (int32_t slice = 0; slice < gemm->slices; slice++) {
        begin[0] = slice, end[0] = slice + 1;
        run_box(gemm, data, begin, end);
        if (slice > 0)
            weft_gemm_add_slice(gemm, data, slice);
    }
    weft_gemm_finish_slices(gemm, data);
}

/* Whoever comes last adds up the slices. */
static void run_part(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int part, int parts)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    int32_t cut[3] = {l->cut[0], l->cut[1], l->cut[2]};
    if (parts != gemm->parts) {
        const struct weft_gemm_space space = weft_gemm_space_of(gemm, l->rows);
        weft_gemm_grid(&space, parts, cut);
    }
    int64_t begin[3], end[3];
    if (weft_gemm_box(l->units, cut, part, begin, end))
        run_box(gemm, data, begin, end);
    if (gemm->slices == 1)
        return;
    int *const done = data->shared;
    if (__atomic_add_fetch(done, 1, __ATOMIC_ACQ_REL) < parts)
        return;
    for (int32_t slice = 1; slice < gemm->slices; slice++)
        weft_gemm_add_slice(gemm, data, slice);
    weft_gemm_finish_slices(gemm, data);
    __atomic_store_n(done, 0, __ATOMIC_RELEASE);
}

void weft_gemm_run(const struct weft_gemm *gemm, const struct weft_gemm_data *data, int part, int parts)
{
    const struct weft_gemm_loops *l = &gemm->loops;
    if (l->m == 0 || l->n == 0)
        return;
    if (l->plain && l->units[0] * l->units[1] * l->units[2] == 1 && parts == 1 && !gemm->epilogue && !l->made &&
        !weft_gemm_unfinished(gemm, data)) {
        const float *const a = gemm->swapped ? data->b : data->a, *const b = gemm->swapped ? data->a : data->b;
        l->tile[l->n < gemm->kernel->columns][0](l->k, a, l->a_row, b, l->b_panels ? gemm->kernel->columns : l->b_row,
                                                 data->c, l->c_row, l->n, false, NULL);
        return;
    }
    struct weft_gemm_data exchanged = *data;
    if (gemm->swapped)
        exchanged.a = data->b, exchanged.b = data->a;
    if (parts == 1)
        run_whole(gemm, &exchanged);
    else
        run_part(gemm, &exchanged, part, parts);
}

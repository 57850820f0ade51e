/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.h: what relayout.c and tiles.c share. */
#ifndef WEFT_RELAYOUT_TILES_H
#define WEFT_RELAYOUT_TILES_H

#include "kernels/relayout/relayout.h"
#include "kernels/walk.h"

/* What a prepared copy is: `form` in the descriptor. */
enum weft_copy_form { WEFT_COPY_RUNS, WEFT_COPY_TRANSPOSE, WEFT_COPY_WEAVE, WEFT_COPY_NARROW, WEFT_COPY_BLOCKED,
                      WEFT_COPY_STRIDED };
/* When its result goes past the caches: `stream`. */
enum weft_copy_stream {
    WEFT_STREAM_NEVER,
    WEFT_STREAM_LINES, /* where its rows begin at lines */
    WEFT_STREAM_ALWAYS
};

/* The best within copy->cpu. */
weft_tile_fn weft_tile_find(const struct weft_copy *copy);

/* Stands at the first element of both arrays. */
struct weft_k_walk weft_copy_walk(const struct weft_copy *copy, void *out, const void *in);
bool weft_copy_streams_runs(const struct weft_copy *copy, const void *out, int64_t run);
/* Transposes and blocked runs. */
void weft_copy_tiles(const struct weft_copy *copy, void *out, const void *in, int part, int parts);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* pool_index.h: maxima of windows and where they stand (pool_index.c), and the loops of them that are compiled per CPU
 * level (pool_index_level.c). */
#ifndef WEFT_STRIP_POOL_INDEX_H
#define WEFT_STRIP_POOL_INDEX_H

#include "kernels/kernels.h"

/* f32 and i64. Places count row-major in all of the operand, or in a plane; a window without data has place 0. */
struct weft_pool_index {
    struct weft_pool pool;   /* of maxima; its parts are not used */
    bool column_major;       /* in a plane the first spatial axis counts fastest */
    bool in_plane;
    int64_t index_stride[5]; /* as out_stride */
    /* set by prepare */
    enum { WEFT_POOL_INDEX_EACH, WEFT_POOL_INDEX_ROWS, WEFT_POOL_INDEX_CHANNELS } form;
    bool by_channels;        /* parts share channels out */
    int32_t parts;
};
void weft_pool_index_prepare(struct weft_pool_index *pool, int workers);
void weft_pool_index_run(const struct weft_pool_index *pool, float *out, int64_t *index, const float *in, int part,
                         int parts);
const char *weft_pool_index_name(const struct weft_pool_index *pool);
uint32_t weft_pool_index_cpu(const struct weft_pool_index *pool);

/* --- pool_index_level.c ------------------------------------------------------------------------------------------- */

enum { WEFT_POOL_TAPS = 256 }; /* of a window, at most */

/* `runs` times `count` windows, of which all see the same taps: those along a row of results, or the channels of one
 * pixel after the other. Tap t of window i of run r is from[t][r · from_step + i]. Places count in a plane, in 32 bits,
 * and become 64 at last. */
struct weft_pool_windows {
    int64_t taps, count, runs;
    const float *const *from;
    const int32_t *place; /* of each tap, from where the window's first one would be, inside or not */
    /* The first place of a window that lies inside: it has the maximum if nothing exceeds -infinity. That of window i
     * is above + first[i], or `above` where `first` is NULL; -1 in the list: none does. */
    const int32_t *first;
    int32_t above;
    bool some_empty;        /* there is a -1 in the list */
    int32_t start, along;   /* place of the first tap of window i of run 0: start + i · along */
    int64_t base, apart;    /* base + i · apart is added to what is counted in a plane */
    float *out;
    int64_t *index;
    int64_t out_step, index_step; /* from window to window */
    int64_t from_run, start_run, out_run, index_run; /* from run to run */
};

struct weft_pool_index_loops {
    const char *rows, *channels; /* names of kernels */
    uint32_t cpu;
    void (*windows)(const struct weft_pool_windows *windows);
    /* line[p · pitch + i] = x[(i · stride + p) · step] for all that lie in [0, n). What lies behind, to the end of a
     * group of 16, may become -infinity. */
    void (*line)(float *line, int64_t pitch, int64_t stride, const float *x, int64_t step, int64_t n);
};
extern const struct weft_pool_index_loops weft_pool_index_loops__ref, weft_pool_index_loops__avx2,
    weft_pool_index_loops__avx512;

#endif

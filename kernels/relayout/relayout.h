/* SPDX-License-Identifier: Apache-2.0 */
/* relayout.h: what the files of the copying family share. The public side is in kernels.h.
 *
 *   out[i0·o0 + i1·o1 + …] = in[i0·s0 + i1·s1 + …]       every i
 *
 * Preconditions: distinct elements of `out`, no overlap of `out` and `in`, element sizes 1, 2, 4 or 8, aligned to that.
 * Everything below counts in bytes and takes any address. */
#ifndef WEFT_RELAYOUT_H
#define WEFT_RELAYOUT_H

#include "kernels/kernels.h"

enum {
    WEFT_LINE = 64,                     /* bytes of a cache line */
    WEFT_TILE_RUN = 256,                /* bytes along a row of the result that one tile makes */
    WEFT_TILE_COLUMNS = 64,             /* rows of the result that one tile makes part of */
    WEFT_BUFFER_PITCH = WEFT_TILE_RUN + WEFT_LINE /* of a row of the buffer: what was carried over, then the tile's */
};

/* A tile of a transpose: element (r, c) goes from in + r · in_step + c · bytes to out + c · out_step + r · bytes. */
struct weft_tile {
    char *out;
    const char *in;
    int64_t out_step, in_step, rows, columns;
    const char *ahead; /* where the next tile begins, or NULL */
};
/* With `stream`, whole lines go past the caches: `out` and `out_step` are multiples of WEFT_LINE then, and the level's
 * vectors are whole lines. What is at `ahead` is asked for. */
typedef void (*weft_tile_fn)(const struct weft_tile *tile, bool stream);
#define RELAYOUT(id, function, level, cpu, bytes)                                                                      \
    void weft_relayout_##function##__##level(const struct weft_tile *tile, bool stream);
#include "kernels/relayout/relayout.def"

/* Where the driver stands in rows of a result that do not begin at a line, or whose CPU has shorter vectors. */
struct weft_drain {
    char *out;        /* of the tile */
    int64_t out_step;    /* from row to row */
    int64_t rows, bytes; /* rows of the result, bytes of each that the tile made */
    char *buffer;        /* made rows: row i at buffer + i · WEFT_BUFFER_PITCH + WEFT_LINE */
    bool first, last;    /* nothing was carried over; nothing follows */
    const char *ahead;   /* the next tile of the operand, or NULL: ahead_rows of ahead_bytes, ahead_step apart */
    int64_t ahead_step, ahead_rows, ahead_bytes;
};

/* Rows of `n` elements: in each the result is contiguous and the operand goes by `stride` elements (spread_level.c). */
typedef void weft_spread_fn(char *out, int64_t out_step, const char *in, int64_t in_step, int64_t rows, int64_t n,
                            int64_t stride, int bytes);
weft_spread_fn weft_relayout_spread__ref, weft_relayout_spread__avx2, weft_relayout_spread__avx512;

/* The loops that have one form a level. */
struct weft_mover {
    uint32_t cpu;
    const char *runs; /* name of the kernel that `rows` is */
    bool whole_lines; /* vectors are lines */
    /* Rows of `bytes` each; with `stream`, their whole lines go past the caches. */
    void (*rows)(char *out, int64_t out_step, const char *in, int64_t in_step, int64_t rows, int64_t bytes,
                 bool stream);
    /* Streams the lines that are whole; keeps what is left over of each row in the buffer, in front of the row. */
    void (*drain)(const struct weft_drain *drain);
    void (*fence)(void); /* after the last streaming store */
    weft_spread_fn *spread;
};
extern const struct weft_mover weft_mover__ref, weft_mover__avx2, weft_mover__avx512;
const struct weft_mover *weft_mover_find(uint32_t cpu);

/* to[i · to_stride] = from[i · from_stride] for i in [0, n); `from` may lie at any address. Strides in elements. */
void weft_copy_strided(int bytes, void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n);

#endif

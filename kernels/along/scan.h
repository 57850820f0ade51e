/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h: scans as ops of strip programs (kernels/strip/program.h): lines come a strip at a time, and a scan goes on
 * where the last strip ended (scan.c).
 *
 *   y = exp(cumsum(log x))        for each line    weft_scan_begin
 *   strips along the line         for each strip     l = log x    weft_scan_strip: s = scan l    y = exp s
 *
 * What goes on from strip to strip is the sum so far in f64 or in 64 bits, whatever the element type: also of 16-bit
 * floats, which programs hold as f32, so that a number is rounded to f32 where the scan makes it and to 16 bits where
 * it is stored.
 *
 * An element is, bit for bit, what weft_along_run makes of the whole line where that is not cut into chunks. That puts
 * 32 elements together in vectors before it adds what comes before them, so strips of such lines are multiples of
 * WEFT_SCAN_PIECE long, counted from where the scan begins, but for the last one. */
#ifndef WEFT_SCAN_H
#define WEFT_SCAN_H

#include "kernels/kernels.h"

enum { WEFT_SCAN_PIECE = 64, /* elements */
       WEFT_SCAN_BYTES = 8   /* what a line has come to */ };

struct weft_scan {
    enum weft_along_op op;
    uint8_t dtype;
    bool exclusive, reverse;
    /* set by prepare */
    struct weft_along along;
    const struct weft_along_pieces *pieces;
    const struct weft_along_loops *loops;
    bool in_vectors;          /* in pieces; else element by element */
};
/* What the next strip reads and writes is asked for while this one is scanned, as a scan computes for longer than it
 * waits for memory: the first elements of arrays whose elements are as wide as the scan's. */
enum { WEFT_SCAN_STREAMS = 4 };
struct weft_scan_ahead {
    int streams;
    const char *at[WEFT_SCAN_STREAMS];
};

/* Of lines of n elements, so many elements apart from one to the next. */
void weft_scan_prepare(struct weft_scan *scan, uint32_t cpu, int64_t n, int64_t in_step, int64_t out_step);
/* `state`: WEFT_SCAN_BYTES for each line. */
void weft_scan_begin(const struct weft_scan *scan, void *state, int64_t lines);
/* The next n elements of one line, in the order of the scan; `out` and `in` are at the first one in memory. They do
 * not overlap. */
void weft_scan_strip(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t n,
                     const struct weft_scan_ahead *ahead);
/* The next element of each of so many lines, which lie out_line and in_line elements apart. */
void weft_scan_beside(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t out_line,
                      int64_t in_line, int64_t lines);
/* So many whole lines, without a state. */
void weft_scan_lines(const struct weft_scan *scan, void *out, const void *in, int64_t out_line, int64_t in_line,
                     int64_t lines);
uint32_t weft_scan_cpu(const struct weft_scan *scan);

#endif

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
 * An element is, bit for bit, what weft_along_run makes of the whole line. That puts 32 elements together in vectors
 * before it adds what comes before them, so strips of such lines are multiples of WEFT_SCAN_PIECE long, counted from
 * where the scan begins, but for the last one. Few long lines it cuts into chunks: then so do strips, and what comes
 * before a chunk is put together of what the chunks before it come to.
 *
 * Such lines may be shared out chunk by chunk (weft_scan_share). Who has a chunk goes along it up to twice: once for
 * what it comes to, which others wait for, and once for its elements.
 *
 *   chunk 5 of y = exp(cumsum(log x))     total     for each strip     l = log x    weft_scan_strip: nothing is made
 *                                         scan      for each strip     l = log x    s = scan l    y = exp s */
#ifndef WEFT_SCAN_H
#define WEFT_SCAN_H

#include "kernels/kernels.h"

enum { WEFT_SCAN_PIECE = 64 }; /* elements */

struct weft_scan {
    enum weft_along_op op;
    uint8_t dtype;
    bool exclusive, reverse;
    bool beside;              /* lines go side by side, by weft_scan_beside alone */
    /* set by prepare */
    struct weft_along along;
    const struct weft_along_pieces *pieces;
    const struct weft_along_loops *loops;
    bool in_vectors;          /* in pieces; else element by element */
    int64_t lines, chunk;     /* elements of a chunk; 0: lines are not cut */
};
/* What the next strip reads and writes is asked for while this one is scanned, as a scan computes for longer than it
 * waits for memory: the first elements of arrays whose elements are as wide as the scan's. */
enum { WEFT_SCAN_STREAMS = 4 };
struct weft_scan_ahead {
    int streams;
    const char *at[WEFT_SCAN_STREAMS];
    bool past;                /* results go past the caches */
};

/* Of so many lines of n elements, which are so many elements apart from one to the next. */
void weft_scan_prepare(struct weft_scan *scan, uint32_t cpu, int64_t lines, int64_t n, int64_t in_step,
                       int64_t out_step);
/* Bytes of what so many lines have come to that are scanned at the same time: 8 for each but where lines are cut. */
size_t weft_scan_bytes(const struct weft_scan *scan, int64_t lines);
void weft_scan_begin(const struct weft_scan *scan, void *state, int64_t lines);
/* The next n elements of one line, in the order of the scan; `out` and `in` are at the first one in memory. `out` is
 * `in`, unless the scan is exclusive, or they do not overlap. False: nothing is made, as it is asked what they come to
 * (weft_scan_share). */
bool weft_scan_strip(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t n,
                     const struct weft_scan_ahead *ahead);
/* The next element of each of so many lines, which lie out_line and in_line elements apart. */
void weft_scan_beside(const struct weft_scan *scan, void *state, void *out, const void *in, int64_t out_line,
                      int64_t in_line, int64_t lines);
/* So many whole lines that are not cut, without a state. */
void weft_scan_lines(const struct weft_scan *scan, void *out, const void *in, int64_t out_line, int64_t in_line,
                     int64_t lines);
/* A chunk: n elements of a line, of which so many come before them in the order of the scan. */
struct weft_scan_chunk {
    int64_t line, begin, n;
};
/* Shares the chunks of all lines out: a part's share, while others have theirs, whose number is `parts`. `run` goes
 * along a chunk by calls of weft_scan_strip on `state`, without weft_scan_begin. `shared`: as many bytes as
 * weft_scan_shared says, of which the first 64 are zero before the first part begins, and behind the last. */
size_t weft_scan_shared(const struct weft_scan *scan);
void weft_scan_share(const struct weft_scan *scan, void *state, void (*run)(void *user, const struct weft_scan_chunk *),
                     void *user, void *shared, int parts);
/* Nanoseconds of an element on one thread, whose data are in the nearest caches; `alone`: a line goes by itself also
 * where it goes element by element. */
double weft_scan_ns(const struct weft_scan *scan, bool alone);
/* Of a scan of such op, type, level and length (the rest is not looked at): along lines whose elements are neighbours,
 * and across lines that lie side by side. */
struct weft_scan_rates {
    double line_ns, beside_ns;
};
struct weft_scan_rates weft_scan_rates_of(const struct weft_along *along);
/* Of a scan that is a kernel of its own, for all elements. */
double weft_along_ns(const struct weft_along *along);
uint32_t weft_scan_cpu(const struct weft_scan *scan);

#endif

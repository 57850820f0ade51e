/* SPDX-License-Identifier: Apache-2.0 */
/* along.h: what the files of this folder share. */
#ifndef WEFT_ALONG_H
#define WEFT_ALONG_H

#include "kernels/along/scan.h"

/* One line in order, for sort and top_k (order.c). */
void weft_along_order(const struct weft_along *along, char *out, int64_t *index, const char *in, void *scratch);
size_t weft_along_order_scratch(const struct weft_along *along);

enum {
    WEFT_ALONG_LANES = 32, /* in which what a piece comes to is folded, where elements are neighbours */
    WEFT_ALONG_TILE = 64, /* lines side by side, where they are neighbours */
    WEFT_ALONG_FEW = 8    /* and where they are far apart: as many streams as the machine follows */
};

/* What a scan has come to: f64 of floats, integers of 64 bits. */
union weft_along_sum {
    double real;
    int64_t whole;
    uint64_t bits;
};

/* Pieces of a line, in the order of the scan: `in` and `out` are at the first element of a piece. What a whole line
 * gives depends on where it is cut, and on nothing else. */
struct weft_along_pieces {
    const char *name;
    void (*start)(const struct weft_along *along, union weft_along_sum *ret); /* what comes before a line */
    void (*total)(const struct weft_along *along, const void *in, int64_t n, union weft_along_sum *ret);
    /* What comes behind a piece. False: only `piece` knows, as the total came near the ends of the range. */
    bool (*join)(const struct weft_along *along, const union weft_along_sum *before, const union weft_along_sum *total,
                 union weft_along_sum *ret_after);
    /* Scans n >= 1 elements behind `before`; after, if asked for, is what join would say, or what it cannot, of total.
     * `ahead`: bytes from each element to what is wanted in the caches meanwhile, or 0 for what comes next. */
    void (*piece)(const struct weft_along *along, void *out, const void *in, int64_t n, int64_t ahead,
                  const union weft_along_sum *before, union weft_along_sum *ret_after);
    /* Scans n >= 1 elements behind `sum`, which becomes what comes before the next ones of the same chunk: what a piece
     * of both would have there, and not what join says. All but the last n of a chunk are multiples of 64. `ahead`: as
     * of weft_scan_strip, and only a wish. */
    void (*go_on)(const struct weft_along *along, void *out, const void *in, int64_t n,
                  const struct weft_scan_ahead *ahead, union weft_along_sum *sum);
    /* What `total` does, piece by piece, or NULL: folds n more elements into lanes, each of which begins as `start`
     * says; all but the last n are multiples of as many. What the lanes come to. */
    void (*total_in)(const struct weft_along *along, const void *in, int64_t n, union weft_along_sum *lane);
    void (*total_end)(const struct weft_along *along, const union weft_along_sum *lane, union weft_along_sum *ret);
};

/* Scans and arguments of extremes of one type (along_level.c). */
struct weft_along_loops {
    int bytes;
    const char *arg_name;
    /* Up to WEFT_ALONG_TILE lines, which lie out_line and in_line apart; `out` of arg are int64_t. */
    void (*scan)(const struct weft_along *along, void *out, const void *in, int64_t out_line, int64_t in_line,
                 int64_t lines);
    void (*arg)(const struct weft_along *along, void *out, const void *in, int64_t out_line, int64_t in_line,
                int64_t lines);
    /* Scans the next element of any number of lines, each behind its sum. */
    void (*beside)(const struct weft_along *along, union weft_along_sum *sum, void *out, const void *in,
                   int64_t out_line, int64_t in_line, int64_t lines);
    struct weft_along_pieces pieces;
};
/* By WEFT_K_*; of types without loops 0. */
extern const struct weft_along_loops weft_along_loops__ref[], weft_along_loops__avx2[], weft_along_loops__avx512[];

/* Of lines whose elements are neighbours, for some types (prefix_level.c). */
extern const struct weft_along_pieces weft_along_prefixes__ref[], weft_along_prefixes__avx2[],
    weft_along_prefixes__avx512[];

/* The loops for its type, and those for lines whose elements are neighbours, or NULL: some types and ops have none, and
 * short lines go side by side. */
const struct weft_along_loops *weft_along_loops_of(const struct weft_along *along);
const struct weft_along_pieces *weft_along_prefix_of(const struct weft_along *along);
/* Are lines chains that go element by element, each done by one part: products of floats? */
bool weft_along_is_chain(const struct weft_along *along);

/* Of a scan of so many lines: how they are cut. Where they are, `shared` is set too. */
void weft_along_cut(struct weft_along *along, int64_t lines);

/* --- chunks.c ----------------------------------------------------------------------------------------------------- */

/* A piece of a line: so many elements of it come before, in the order of the scan. */
struct weft_along_chunk {
    int64_t number, line, begin, n;
};
/* What whoever scans chunks of lines does with one. */
struct weft_along_work {
    void *user;
    /* What it comes to. */
    void (*total)(void *user, const struct weft_along_chunk *chunk, union weft_along_sum *ret);
    /* Scans it behind `before`; after: as of weft_along_pieces.piece. `later`, if any, is wanted in the caches
     * meanwhile. */
    void (*scan)(void *user, const struct weft_along_chunk *chunk, const struct weft_along_chunk *later,
                 const union weft_along_sum *before, union weft_along_sum *ret_after);
};
/* One part's share of `lines` lines that are cut (weft_along_cut), while others have theirs. `shared`: such memory, of
 * which the first 64 are zero before the first part begins, and behind the last. */
void weft_along_take_turns(const struct weft_along *along, const struct weft_along_pieces *pieces, int64_t lines,
                           const struct weft_along_work *work, void *shared, int parts);
size_t weft_along_chunks_shared(int64_t chunks);
void weft_along_run_chunks(const struct weft_along *along, const struct weft_along_pieces *pieces, int64_t bytes,
                           void *out, const void *in, void *shared, int parts);

#endif

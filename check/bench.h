/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h: what a family gives to the speed half of the harness, `weft-check --bench`.
 *
 * Cases are lines of shape files (bench/shapes/README.md), or are drawn at random. A family takes part with a row in
 * bench.def and a file bench_<family>.c that defines weft_bench_<family>: which keys its lines have, how
 * operands are made for a case, and how its kernels and the same work in other libraries are called. The harness does
 * the rest: it times everything that can do the case (ours, our plain loops, the probe of the machine's limit, peers)
 * in turns, in one process, with one and with more threads, and reports ratios.
 *
 * Our kernels run as they do in a plan: prepared for so many workers, each part on a worker of the runtime's gang, a
 * barrier after each call. Operands are what all contestants share; packs and other preparations of constants are made
 * before the clock runs. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include "kernels/kernels.h"

/* --- a case: one line of a shape file ----------------------------------------------------------------------------- */

enum { WEFT_CASE_KEYS = 20, WEFT_CASE_NUMBERS = 8, WEFT_CASE_NAME = 112 };

/* A key of a family's lines. `key=12` or, with most > 1, `key=1x64x56x56`: up to `most` numbers of at least `low`. With
 * `words`, a list such as "plain const", the value is one of these and counts as its place in the list. most = 0: a
 * flag, written without a value; it counts 1. Keys that are left out have the value `otherwise`, those that may not be
 * have `required`. */
struct weft_case_key {
    const char *name;
    int most;
    int64_t low, otherwise;
    bool required;
    const char *words;
};
/* Numbers by the place of their key in the family's list. count is 0 where the line does not have the key; then
 * value[key][0] is what the key has otherwise. */
struct weft_case {
    char group[WEFT_CASE_NAME], name[WEFT_CASE_NAME];
    const struct weft_bench_family *family;
    const char *file; /* NULL: drawn at random */
    int line;
    int count[WEFT_CASE_KEYS];
    int64_t value[WEFT_CASE_KEYS][WEFT_CASE_NUMBERS];
};
/* Number i of a list that may be given as one number for all axes. */
static inline int64_t weft_case_at(const struct weft_case *c, int key, int i)
{
    return c->value[key][i < c->count[key] ? i : 0];
}

/* --- what a case is about ----------------------------------------------------------------------------------------- */

struct weft_bench; /* the harness: memory and random numbers */

enum { WEFT_PROBLEM_ARRAYS = 4 };

/* Operands that are made for a case. read and written: bytes that any way to do it must move. The limit is the longer
 * of flops at the rate of the FMA probe and these bytes at the rate of the copy probe, or of the read probe where
 * little is written. */
struct weft_problem {
    const struct weft_case *c;
    double flops, read, written;
    float *in[WEFT_PROBLEM_ARRAYS], *out;   /* in the family's order */
    size_t out_bytes;                       /* to compare what the contestants computed */
    bool exact;                             /* byte by byte; else as sums of floats, within their rounding */
};

/* Somebody who can do the case. */
struct weft_contestant {
    const char *name;                       /* a kernel's, or a library's */
    void (*run)(void *user, int part, int parts);
    void *user;                             /* from weft_bench_alloc, or given back by close */
    int parts;                              /* on so many workers of the gang; 0: has threads of its own, called once */
    bool elsewhere;                         /* its result is not in the problem's `out`: nothing to compare */
    void (*close)(void *user);              /* may be NULL */
};

/* A peer: prepares a contestant for `threads` threads; false where it cannot do the case. */
struct weft_peer {
    const char *name;
    bool (*open)(struct weft_bench *bench, const struct weft_problem *problem, int threads,
                 struct weft_contestant *ret);
};

struct weft_bench_family {
    const char *name;
    const struct weft_case_key *keys;       /* up to one without a name */
    /* NULL, or what is wrong with the numbers of a line taken together. */
    const char *(*problem_with)(const struct weft_case *c);
    /* Operands, and what the fields of weft_problem say. */
    void (*set)(struct weft_bench *bench, const struct weft_case *c, struct weft_problem *ret);
    /* Our kernel for descriptors with this mask, prepared for so many workers; the plain loops with cpu = 0. False
     * where there is none: the case is then skipped, and said to be. */
    bool (*ours)(struct weft_bench *bench, const struct weft_problem *problem, uint32_t cpu, int workers,
                 struct weft_contestant *ret);
    const struct weft_peer *peers;          /* up to one without a name */
    /* A case at random, as a line's words after family and name. */
    void (*draw)(struct weft_bench *bench, char *line, size_t bytes);
};

#ifndef WEFT_BENCH_LIST
#define WEFT_BENCH_LIST "check/bench.def"
#endif
#define BENCH(family) extern const struct weft_bench_family weft_bench_##family;
#include WEFT_BENCH_LIST

/* --- for a family ------------------------------------------------------------------------------------------------- */

/* Bytes of second-level cache, as plans hand them to kernels. */
size_t weft_bench_cache(const struct weft_bench *bench);
/* Memory of the case, aligned to a page; zeros. Ends with it. */
void *weft_bench_alloc(struct weft_bench *bench, size_t bytes);
/* The same, filled with numbers between -1 and 1. */
float *weft_bench_floats(struct weft_bench *bench, int64_t n);
/* In [low, high]. Extents are seldom spread evenly: `size` draws an exponent first, so that small ones are as frequent.
 */
int64_t weft_bench_between(struct weft_bench *bench, int64_t low, int64_t high);
int64_t weft_bench_size(struct weft_bench *bench, int64_t low, int64_t high);

#endif

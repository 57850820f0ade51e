/* SPDX-License-Identifier: Apache-2.0 */
/* packs.h: products and convolutions with constant weights, drawn at random, planned for the sizes of the hints and run
 * at others: packs must serve the loops that read them, at every size.
 *
 *   seed ──packs_draw.c──► graph with symbols ──packs.c──► a plan at each CPU level, run at four tuples of sizes
 *                                                          └─ beside the evaluator; which loops read which pack counts
 *
 * Numbers are small integers, so that sums are exact in any order and what is read in a wrong order shows. */
#ifndef WEFT_PACKS_H
#define WEFT_PACKS_H

#include "runtime/runtime.h"
#include "tests/property/random_graph.h"

enum { WEFT_PACKS_SYMBOLS = 8, WEFT_PACKS_RUNS = 4 };

struct weft_packs_case {
    struct weft_graph *graph;
    uint32_t flags;         /* of weft_compile */
    int threads;
    double tolerance;       /* of a result */
    int64_t size[WEFT_PACKS_RUNS][WEFT_PACKS_SYMBOLS]; /* what the symbols are in each run */
};
/* To be called under weft_protected. */
void weft_packs_draw(struct weft_context *context, struct weft_draws *choices, uint64_t seed,
                     struct weft_packs_case *ret);

/* packs_tally.c: which loops read which packs. */
/* Counts the steps of the last run that have packed weights. */
void weft_packs_count(const struct weft_plan *plan, const struct weft_execution *execution);
/* Prints the counts; returns how many kinds of loops that these CPU levels have were never run on a pack, or, where
 * other sizes may want another one, never on weights as they are beside a pack. */
int weft_packs_missing(uint32_t cpu, bool quiet);

#endif

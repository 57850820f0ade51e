/* SPDX-License-Identifier: Apache-2.0 */
/* constants.h: which values are computed once, when a plan is made, instead of in every run.
 *
 *   %e: f32[512,768] = const file="e.bin"            known
 *   %w: f32[768,768] = const file="w.bin"            known
 *   %p: f32[512,768] = matmul %e, %w                 known, read by what is not: a candidate
 *   %s: f32[8,512,768] = add %x, %p                  not known
 *
 * A value is known if constants alone decide it: no parameter, no symbol, no random number, no function of the
 * caller's. Candidates are known values that are stored and read by what is not known; a view of one is read where it
 * lies. Those that save the most time per byte are chosen first, of a graph and its bodies together, while the bytes of
 * all stay within the budget; what a body saves counts as often as it is run, as far as that is known. Where a
 * candidate is refused, the values that it is computed from become candidates: of a mask that is too large, the vectors
 * that it compares. */
#ifndef WEFT_CONSTANTS_H
#define WEFT_CONSTANTS_H

#include "ir/ir.h"

struct weft_constant_choice {
    struct weft_graph *graph; /* or body, that the value is of */
    weft_val value;
    int64_t bytes;    /* of its elements, which the plan keeps */
    int64_t freed;    /* of constants that nothing else reads */
    int64_t once_ps;  /* that it takes once, by the target's prices */
    int64_t saved_ps; /* a run: of a body, as often as it is run */
    uint32_t place;   /* of the graph among the top and its bodies */
    uint32_t order;   /* of execution in it */
    uint32_t nodes;   /* that a run no longer does, those counted twice that two ways lead to */
};

struct weft_constant_budget {
    int64_t bytes; /* that the chosen may add */
    int64_t ps;    /* that computing them once may take, by prices: bounds what compiling takes */
};

/* The choice for a graph and its bodies, those of each together and in order of execution. Remarks name what is
 * refused. The array is in the graph's scratch memory. Under weft_protected. */
const struct weft_constant_choice *weft_choose_constants(struct weft_graph *graph, const struct weft_target *target,
                                                         const struct weft_constant_budget *budget,
                                                         uint32_t *ret_count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* noise.h: how far a kernel may be off one op, in units of the last place of the result's type; 16-bit values in f32.
 * For noise.c. */
#ifndef WEFT_NOISE_H
#define WEFT_NOISE_H

#include "tests/property/random_graph.h"

enum weft_noise_amount {
    WEFT_NOISE_NOTHING,     /* copies, choices, comparisons, counts; integers */
    WEFT_NOISE_EITHER_ZERO, /* choices that may give a zero of either sign */
    WEFT_NOISE_ROUNDING,    /* 1 for + - x / and roots: a kernel with a wider intermediate leaves the rounding out */
    WEFT_NOISE_FUNCTION,    /* 4 */
    WEFT_NOISE_SUM,         /* of the sum of the terms' magnitudes 4 and the root of the operand's elements (Higham and
                             * Mary, 2019: roundings of mixed signs). Found by evaluating the node on the magnitudes of
                             * its operands. Where that sum is beyond the type anything may come out, since partial sums
                             * of a kernel may be beyond it too */
    WEFT_NOISE_OPAQUE,      /* ops that round several times inside (attention, norms that nobody opened): operands are
                             * moved as well, which brings in how they are conditioned */
};
/* Zeros stay zeros, but for ops which may give either zero. */
enum weft_noise_amount weft_noise_amount_of(int op);

/* --- wide.c ------------------------------------------------------------------------------------------------------- */

/* A packed copy; its data is for free. */
struct weft_tensor weft_packed_copy(const struct weft_tensor *tensor);
/* May the node's 16-bit operands and results be f32? Views, movement, elementwise ops and folds do; a cast keeps what
 * it casts to. */
bool weft_may_be_wide(const struct weft_graph *graph, weft_node node);
/* The value's tensor, or where its type is not that of the value (f32 for 16 bits if `wide`) a packed copy for free. */
struct weft_tensor weft_widened(const struct weft_graph *graph, weft_val value, const struct weft_tensor *tensor,
                                bool wide);

#endif

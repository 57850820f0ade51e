/* SPDX-License-Identifier: Apache-2.0 */
/* eval.h: the reference evaluator, which defines what every op means: nodes, bodies, graphs. It is slow and plain;
 * plans run it where no kernel does, tests compare with it, constants are folded by it. */
#ifndef WEFT_EVAL_H
#define WEFT_EVAL_H

#include "ir/ir.h"

/* One node with its tensors. Tensors are strided (outputs too); extents and strides are concrete. */
struct weft_eval {
    const struct weft_graph *graph;
    weft_node node;
    int64_t *symbols;            /* values by symbol number; written by weft_define_data alone */
    const struct weft_tensor *in;
    struct weft_tensor *out;
    struct weft_context *context; /* for scratch memory (weft_allocate) */
    struct weft_failure *failure; /* where an error is told; NULL: nowhere */
    bool failed;                 /* set when scratch memory was refused or a custom function failed */
};
/* Computes a node's results from its operands' tensors. False if it failed. Any thread. */
bool weft_eval_node(struct weft_eval *eval);
/* Sets the data symbols that a WEFT_DATA op defines, from its operands' tensors, before its results have extents. False
 * if it failed, or counted more than a symbol's bound. */
bool weft_eval_define_symbols(struct weft_eval *eval);
/* Runs a graph on its parameters; results are copied to `out`, whose memory and strides the caller provides. False if
 * memory was refused, or if `failure` (perhaps NULL) says why. Any thread. */
bool weft_eval_body(const struct weft_graph *graph, int64_t *symbols, struct weft_context *context,
                    const struct weft_tensor *in, struct weft_tensor *out, struct weft_failure *failure);
/* Evaluates a whole graph. `out[i].data` NULL: allocated (dense). Returns a status and records errors. */
int weft_eval_graph(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                    struct weft_tensor *out, uint32_t out_count);

#endif

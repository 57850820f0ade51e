/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.h: the reference evaluator (eval.c, eval_*.c) and the values of symbols at a run. */
#ifndef WEFT_EVALUATE_H
#define WEFT_EVALUATE_H

#include "ir/graph.h"

/* Why a run ended early, other than for memory: whoever is first says so. Any thread. */
struct weft_failure {
    _Atomic bool claimed;
    int status;                  /* WEFT_OK: nothing was said */
    char message[400];
    const _Atomic bool *stop;    /* set by somebody else to end it; NULL: nobody does */
};
void weft_fail(struct weft_failure *failure, int status, const char *format, ...) WEFT_PRINTF(3, 4);

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
/* The same from counts, one for each symbol that the node's attribute `extent` names. A count above the bound is a
 * failure: then the symbol has its bound, and the node must not be computed. */
bool weft_define_data(const struct weft_graph *graph, weft_node node, const int64_t *counts, int64_t *symbols,
                      struct weft_failure *failure);
/* Evaluates a whole graph. `out[i].data` NULL: allocated (dense). Returns a status and records errors. */
int weft_eval_graph(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                    struct weft_tensor *out, uint32_t out_count);
/* Solves the symbols from the extents of the inputs; checks every extent and range. On failure a message in
 * `message`. */
int weft_solve_symbols(const struct weft_graph *graph, const struct weft_tensor *in, uint32_t in_count,
                       int64_t *symbols, char *message, size_t message_bytes);
/* Checks what depends on the values of the symbols: extents, counts of elements, slices. On failure fills `message`. */
bool weft_check_sizes(const struct weft_graph *graph, const int64_t *symbols, char *message, size_t message_bytes);
/* The same once node `found` has found sizes, for the nodes behind it as far as the next that finds some: asked after
 * each, it has looked at all. */
bool weft_check_sizes_found(const struct weft_graph *graph, weft_node found, const int64_t *symbols, char *message,
                            size_t message_bytes);
/* Records an error for each symbol that something needs and that no parameter's extents mention: a run could never know
 * it. Whether mentioned ones can be solved is seen when sizes are given. */
bool weft_check_symbols(const struct weft_graph *graph);
/* Strides of a packed row-major array. */
void weft_tensor_dense(struct weft_tensor *tensor);

#endif

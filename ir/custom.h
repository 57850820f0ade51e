/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h: functions of the caller's, which the op `custom` calls by name.
 *
 *   weft_register ──► an entry of the context ──► weft_custom_find ──► weft_custom_run, by evaluator and plans
 *
 * Entries are added at the front of a list and never removed before the context closes, so looking one up needs no
 * lock, whatever threads run meanwhile. */
#ifndef WEFT_CUSTOM_H
#define WEFT_CUSTOM_H

#include "ir/tensor.h"

struct weft_custom_entry {
    struct weft_custom_entry *next;
    struct weft_custom custom; /* its name is the one below */
    char name[64];
    char kernel[72];           /* "custom.name": how plans call the step */
    char domain[64], op[64];   /* of the ONNX op that it computes; op "": of none */
};
/* A letter, then letters, digits and _, up to 63. */
bool weft_custom_is_name(const char *name);
/* NULL if no function of that name is registered. Any thread. */
const struct weft_custom_entry *weft_custom_find(struct weft_context *context, const char *name);
/* The function for an ONNX op, or NULL; ONNX's own domain is "". */
const struct weft_custom_entry *weft_custom_find_op(struct weft_context *context, const char *domain,
                                                    size_t domain_length, const char *op, size_t op_length);
/* How many results the function that a node's attributes name has; 1 if it is not registered. */
unsigned weft_custom_results(struct weft_context *context, const struct weft_attr *attr, unsigned attrs);
/* The function of a `custom` node, or NULL. */
const struct weft_custom_entry *weft_custom_of(const struct weft_graph *graph, weft_node node);
void weft_customs_free(struct weft_context *context);
/* Records an error for each custom node, bodies included, whose function is not registered; true if there is none. */
bool weft_custom_check(const struct weft_graph *graph);

/* --- layouts: of operand i, or for i = operands + k of result k --------------------------------------------------- */

/* How the function goes through it, of so many axes; what is no axis or no alignment is left out. */
struct weft_demand weft_custom_demand(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank);
struct weft_demand weft_demand_clean(struct weft_demand demand, int rank);
/* Does it take it with any strides? */
bool weft_custom_takes_strides(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank);
/* The order of axes, outermost first, in which it takes it packed; false where any strides will do, or the function
 * names an order that is none. */
bool weft_custom_order(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank, int *ret_order);
/* The axes of result 0, of rank `first`, that its axes are walked together with, each once, or -1; false if the
 * function does not say. Of result 0 its own. */
bool weft_custom_axes(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank, int first,
                      int *ret_axis);

/* --- calls -------------------------------------------------------------------------------------------------------- */

enum { WEFT_CUSTOM_MOST_PARTS = 64 }; /* for each worker */
/* A call with concrete tensors, operands and then results, with what they are told of besides. */
struct weft_custom_job {
    const struct weft_custom_entry *entry;
    const struct weft_graph *graph;
    weft_node node;
    const struct weft_tensor *tensor;
    int part, parts, worker, workers;
    size_t own_scratch;            /* bytes of what the function asks for, weft_custom_own_scratch */
    struct weft_failure *failure;  /* or NULL */
};
/* Operands and results of a node. */
unsigned weft_custom_tensors(const struct weft_graph *graph, weft_node node);
/* Bytes at the beginning of the scratch memory of a call with so many tensors; and for a copy of tensor i, if it does
 * not lie as the function wants it. `align`: what is known of its address, in bytes. */
size_t weft_custom_scratch(unsigned tensors);
size_t weft_custom_copy_bytes(const struct weft_custom_entry *entry, unsigned i, unsigned operands,
                              const struct weft_tensor *given, uintptr_t align);
/* For tensors without data, what the function says of so many workers: how many parts it makes, at least 1; and how
 * many bytes each worker needs for that. */
int32_t weft_custom_parts(const struct weft_custom_job *job);
size_t weft_custom_own_scratch(const struct weft_custom_job *job);
/* What the function of a node says that a call costs with these operands and results, whose data does not count; false:
 * nothing. */
bool weft_custom_cost(const struct weft_graph *graph, weft_node node, const struct weft_tensor *tensor,
                      double *ret_operations, double *ret_bytes);
/* Makes the call, one part of it, with scratch memory, 64-byte aligned, of weft_custom_scratch and what copies and the
 * function need; false if it failed, and then job->failure says why. Any thread. Only a call of one part copies. */
bool weft_custom_run(const struct weft_custom_job *job, void *scratch);

#endif

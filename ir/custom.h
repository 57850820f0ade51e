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
};
/* A letter, then letters, digits and _, up to 63. */
bool weft_custom_is_name(const char *name);
/* NULL if no function of that name is registered. Any thread. */
const struct weft_custom_entry *weft_custom_find(struct weft_context *context, const char *name);
/* The function of a `custom` node, or NULL. */
const struct weft_custom_entry *weft_custom_of(const struct weft_graph *graph, weft_node node);
void weft_customs_free(struct weft_context *context);
/* Records an error for each custom node, bodies included, whose function is not registered; true if there is none. */
bool weft_custom_check(const struct weft_graph *graph);

/* One call with concrete tensors. */
struct weft_custom_job {
    const struct weft_custom_entry *entry;
    const struct weft_graph *graph;
    weft_node node;
    const struct weft_tensor *in;  /* as many as the node has operands */
    const struct weft_tensor *out;
    struct weft_failure *failure;  /* or NULL */
};
/* How the function goes through operand i, or for i = operands through the result, of so many axes; what is no axis or
 * no alignment is left out. */
struct weft_demand weft_custom_demand(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank);
struct weft_demand weft_demand_clean(struct weft_demand demand, int rank);
/* Does it take operand i, or for i = operands the result, with any strides? */
bool weft_custom_takes_strides(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank);
/* The order of axes, outermost first, in which it takes it packed; false where any strides will do, or the function
 * names an order that is none. */
bool weft_custom_order(const struct weft_custom_entry *entry, unsigned i, unsigned operands, int rank, int *ret_order);
/* Scratch bytes of a call with so many operands, apart from copies; and for a copy of operand i, or for i = operands of
 * the result, if it does not lie as the function wants it. `align`: what is known of its address, in bytes. */
size_t weft_custom_scratch(unsigned operands);
size_t weft_custom_copy_bytes(const struct weft_custom_entry *entry, unsigned i, unsigned operands,
                              const struct weft_tensor *given, uintptr_t align);
/* Calls the function, with all that scratch memory; false if it failed, and then job->failure says why. Any thread. */
bool weft_custom_run(const struct weft_custom_job *job, void *scratch);

#endif

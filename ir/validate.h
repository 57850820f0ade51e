/* SPDX-License-Identifier: Apache-2.0 */
/* validate.h: what the files of the validator share. */
#ifndef WEFT_VALIDATE_H
#define WEFT_VALIDATE_H

#include "ir/ir.h"

struct weft_validator {
    const struct weft_graph *top;   /* what the caller asked about */
    const struct weft_graph *graph; /* itself, or the body that is looked at */
    struct weft_arena *arena;
    struct weft_finding *finding;
    uint32_t findings, capacity;
    uint32_t *position;      /* by node id: rank in the order, from 1; 0: not in it */
    weft_val *operand;       /* room for the operands of one node, and for the types of its results */
    struct weft_type *result;
    uint32_t operand_capacity, result_capacity;
    weft_node anchor;        /* in bodies: the node of `top` that holds the body, or a body around it */
};

void weft_found(struct weft_validator *v, weft_node node, const char *format, ...) WEFT_PRINTF(3, 4);
const char *weft_text_of(const struct weft_validator *v, weft_val value); /* a value's name, whatever its id */
const char *weft_type_text(struct weft_validator *v, const struct weft_type *type);
/* Is the value defined at all, and before `user` (none: at the end of the graph)? */
bool weft_validate_defined(struct weft_validator *v, weft_val value, weft_node user);
void weft_validate_value(struct weft_validator *v, weft_val value, weft_node node);
/* Everything about one node but its types, counting the slots of each value; false if its operands or results cannot be
 * looked at. */
bool weft_validate_node(struct weft_validator *v, weft_node node, uint32_t *slots_of);
/* Infers the node's types again. */
void weft_validate_types(struct weft_validator *v, weft_node node);

/* validate_data.c: the first broken rule of sizes that come out of data, or NULL; *ret_node is where. */
const char *weft_find_data_error(const struct weft_graph *graph, struct weft_arena *arena, weft_node *ret_node);

#endif

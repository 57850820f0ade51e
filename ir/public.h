/* SPDX-License-Identifier: Apache-2.0 */
/* public.h: what the files that carry out weft.h's builder share. */
#ifndef WEFT_PUBLIC_H
#define WEFT_PUBLIC_H

#include "ir/ir.h"

/* Records a wrong argument; returns WEFT_ERR_ARGUMENT. */
int weft_wrong(struct weft_context *context, const char *where, const char *format, ...) WEFT_PRINTF(3, 4);
#define NO_NAME "a name has at least one character; NULL is none"
/* Fills a type from what the caller says; an error where it is none. `where` names what gets it, for messages. */
int weft_public_type(struct weft_graph *graph, const char *where, int dtype, int rank, const weft_dim *extent,
                     struct weft_type *ret);
#define WEFT_PLACE_BYTES 96
/* What messages call a thing: its name, or "node 7 of @main", written to `unnamed`. Nodes count in the order in which
 * they were added, from 1. */
const char *weft_public_place(const char *what, uint32_t number, const struct weft_graph *graph, const char *name,
                              char unnamed[WEFT_PLACE_BYTES]);
/* Values and nodes as callers get them: with the number of their graph. */
static inline weft_val weft_value_out(const struct weft_graph *graph, weft_val value)
{
    return (weft_val){.id = value.id, .graph = value.id ? graph->number : 0};
}
static inline weft_node weft_node_out(const struct weft_graph *graph, weft_node node)
{
    return (weft_node){.id = node.id, .graph = node.id ? graph->number : 0};
}
/* enum weft_constant_state of weft.h. */
int32_t weft_constant_state_of(const struct weft_graph *graph, weft_val value);
/* Is it a live value, or node, of this graph? One without a number may be. */
bool weft_value_is_in(const struct weft_graph *graph, weft_val value);
bool weft_node_is_in(const struct weft_graph *graph, weft_node node);
/* What a value that is not in this graph is instead, for messages: "a value of @main, which @body does not see". */
const char *weft_stranger(const struct weft_graph *graph, weft_val value);
/* Of an extent that has another graph's symbols, or bits that no function here made. */
#define NO_EXPRESSION "is no expression of this graph's symbols"
/* True, and an error, for a body that a node uses: the node's types follow from it. */
bool weft_frozen(const struct weft_graph *graph);
/* The same of edits that change no type, which passes of the caller's may make. */
bool weft_uneditable(const struct weft_graph *graph);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* edit.h: changing a graph that is there: nodes in, nodes out, other operands; and finding what to change. */
#ifndef WEFT_PUBLIC_EDIT_H
#define WEFT_PUBLIC_EDIT_H

#include "weft/read.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each function checks what it is asked for before it changes anything, and leaves a graph that weft_validate accepts;
 * what it refuses is WEFT_ERR_ARGUMENT, or WEFT_ERR_INVALID for types, with a message that names the value. A body that
 * a node uses cannot be changed, nor a node in a group or with a kernel right of `!`. Nodes and values that are erased
 * may not be used any more. Worked example: examples/rewrite.c. */

/* As weft_append, but in front of or behind a node: what it reads has to be there already. */
WEFT_API int weft_insert_before(struct weft_graph *graph, weft_node node, const struct weft_op *op,
                                weft_val *ret_results);
WEFT_API int weft_insert_after(struct weft_graph *graph, weft_node node, const struct weft_op *op,
                               weft_val *ret_results);
/* All that read `from` behind the node that computes `to`, results of the graph included, read `to` instead, which has
 * its type; that node itself, and what stands in front of it, goes on reading `from`. A result keeps its name and its
 * layout, and a value that nobody reads any more gives its name to a `to` that has none. A result of the whole graph
 * cannot become a parameter or another result: insert a `reshape` of it. */
WEFT_API int weft_graph_replace(struct weft_graph *graph, weft_val from, weft_val to);
/* Operand i of a node becomes another value of its type. */
WEFT_API int weft_graph_set_operand(struct weft_graph *graph, weft_node node, size_t i, weft_val value);
/* Erases a node whose results nobody reads. What it read stays; pass `dce` erases all that nobody reads. */
WEFT_API int weft_graph_erase(struct weft_graph *graph, weft_node node);

/* A value to be found. */
#define WEFT_PATTERN_OPERANDS 4
#define WEFT_PATTERN_MAX 32
#define WEFT_PATTERN_ONE_READER 1u   /* it has one reader, and is no result of the graph */
#define WEFT_PATTERN_CONSTANT 2u     /* it is a constant */
struct weft_pattern {
    const char *op;                  /* that computes it, as its first result; NULL: any, also a parameter */
    uint32_t operand[WEFT_PATTERN_OPERANDS]; /* the number of the pattern that operand i is to match; 0: any operand */
    uint32_t flags;                  /* WEFT_PATTERN_* */
};
/* Is the first result of the node pattern 0, its operands those that this names, and so on? A pattern that is named
 * twice is one value; the two operands of a commutative op match in either order. Returns 1, with the value of each
 * pattern (none, id 0, of one that no other names), 0, or WEFT_ERR_ARGUMENT: no such node or op, a number beyond
 * `count`, or more than WEFT_PATTERN_MAX patterns. */
WEFT_API int weft_match(const struct weft_graph *graph, weft_node node, const struct weft_pattern *pattern,
                        size_t count, weft_val *ret_value);

#ifdef __cplusplus
}
#endif
#endif

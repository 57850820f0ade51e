/* SPDX-License-Identifier: Apache-2.0 */
/* viz.h: pictures of graphs, in a library of its own (libweft-viz) so that the core never links Graphviz.
 * cgraph keeps global state: calls into this library are not thread-safe. It reads graphs from within: use it with the
 * libweft of the same version. */
#ifndef WEFT_VIZ_H
#define WEFT_VIZ_H

#include "weft/weft.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_dot_options {
    size_t size;
    const char *focus;      /* show only what is within `radius` edges of the value, node or scope of this name; NULL:
                             * all */
    int32_t radius;         /* 0: 3 */
    int32_t max_nodes;      /* beyond it the graph is cut, with a note in the picture; 0: 2000, -1: no limit */
    const char *const *heat_name; /* names of values with a measured time, to be shown and coloured; may be NULL */
    const int64_t *heat_ns;
    size_t heats;
    const char *heat_note;  /* how the times were measured, for the title; may be NULL */
    int32_t scopes;         /* boxes for the name scopes of the source: 0: in graphs of more than 60 nodes, 1: always,
                             * -1: never */
    int32_t repeats;        /* with scopes, layers that repeat: 0: drawn once, -1: all drawn */
    const char *const *expand; /* names of scopes, nodes or values: of layers that repeat the one that contains it is
                                * drawn, in place of the first; may be NULL */
    size_t expands;
    const char *const *work_name; /* names of values with the bytes that computing them moves, for boxes; may be NULL */
    const int64_t *work_bytes;
    size_t works;
};

/* The graph as DOT: constants folded into labels, groups and scopes as clusters, layouts by colour, relayouts bold and
 * with their price, stable ids, the same text for the same graph. The caller frees the text with weft_free_text of the
 * graph's context. A graph or ret_text that is NULL is WEFT_ERR_ARGUMENT; `options` may be NULL. */
WEFT_API int weft_dot(const struct weft_graph *graph, const struct weft_dot_options *options, char **ret_text);

#ifdef __cplusplus
}
#endif
#endif

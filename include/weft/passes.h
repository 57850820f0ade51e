/* SPDX-License-Identifier: Apache-2.0 */
/* passes.h: rewriting a graph, and remarks on what was decided. */
#ifndef WEFT_PUBLIC_PASSES_H
#define WEFT_PUBLIC_PASSES_H

#include "weft/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs one pass by its name, with - or _ ("fold_batchnorm"; `weft opt --list-passes`). `target` NULL: the context's.
 * Returns 1 if the graph changed, 0 if not, or a negative status: unknown name, or a graph that is not valid. */
WEFT_API int weft_run_pass(struct weft_graph *graph, const char *name, const struct weft_target *target);
/* Runs the default pipeline; returns as weft_run_pass. Values in blocked layouts (NCHW16c) become ordinary arrays with
 * one more axis at its end, unless the target has kernels of the caller's. */
WEFT_API int weft_run_pipeline(struct weft_graph *graph, const struct weft_target *target);

/* One explained decision. */
struct weft_remark {
    size_t size;         /* set by the caller */
    const char *who;     /* the pass or engine */
    const char *where;   /* the value it is about */
    const char *verdict; /* "done", "refused", "chosen", ... */
    const char *reason;  /* one sentence, with its numbers */
};
WEFT_API size_t weft_remark_count(const struct weft_graph *graph);
/* Remark i in order of decision; strings live as long as the graph. */
WEFT_API int weft_remark_get(const struct weft_graph *graph, size_t i, struct weft_remark *ret_remark);

#ifdef __cplusplus
}
#endif
#endif

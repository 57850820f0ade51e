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

/* Which passes of the pipeline run, as `weft opt` and the environment have it. */
struct weft_pipeline_options {
    size_t size;
    const char *only;    /* "cse,dce": these and no others; NULL: all */
    const char *skip;    /* these not; NULL: none */
    const char *until;   /* the pipeline ends when this pass has run for the first time; NULL: at its end */
    int64_t rewrites;    /* as many decisions as this may be made, in all passes together; 0: any number */
};
/* Runs the default pipeline with these options (NULL: none); returns as weft_run_pass. WEFT_ERR_ARGUMENT if a name is
 * that of no pass. */
WEFT_API int weft_run_pipeline_with(struct weft_graph *graph, const struct weft_target *target,
                                    const struct weft_pipeline_options *options);

/* A pass of the caller's. Either `run` gets each graph, bodies before the graphs that hold them, or `rewrite` each node
 * of an op, in the order of execution, until it changes none any more, 64 times at most (a remark says so then). Both
 * edit by the functions of edit.h, may run passes, and return 1 if something changed, 0 if not, or a negative status,
 * which ends the call; so does an edit that is refused, whatever they return. In a body that a node uses they edit
 * nodes, not parameters or types of results. A graph that is not valid behind the pass is WEFT_ERR_INVALID, with
 * messages that name it. Worked example: examples/rewrite.c. */
enum weft_pass_place {
    WEFT_PASS_BY_NAME = 0, /* in no pipeline: weft_run_pass finds it */
    WEFT_PASS_FIRST,       /* before all others */
    WEFT_PASS_OPENED,      /* when composites are opened */
    WEFT_PASS_SIMPLIFIED,  /* when nothing is left to simplify; if it changes something, that is simplified again */
    WEFT_PASS_PLACED,      /* when values have their layouts and nodes their kernels; before groups are formed */
    WEFT_PASS_LAST,        /* behind all others */
};
struct weft_pass {
    size_t size;
    const char *name;    /* letters, digits and _; up to 63; no pass of weft's */
    void *user;          /* passed on; lives as long as the context */
    int32_t place;       /* enum weft_pass_place */
    int32_t reserved;
    int (*run)(void *user, struct weft_graph *graph, const struct weft_target *target);
    const char *op;      /* of `rewrite`; NULL: all nodes */
    int (*rewrite)(void *user, struct weft_graph *graph, weft_node node);
};
/* Registers a pass with a context for good; strings are copied. Those of one place run in the order in which they were
 * registered, in weft_compile too. */
WEFT_API int weft_register_pass(struct weft_context *context, const struct weft_pass *pass);

/* One explained decision. */
struct weft_remark {
    size_t size;         /* set by the caller */
    const char *who;     /* the pass or engine */
    const char *where;   /* the value it is about */
    const char *verdict; /* "done", "refused", "chose", ... */
    const char *reason;  /* one sentence, with its numbers */
};
WEFT_API size_t weft_remark_count(const struct weft_graph *graph);
/* Remark i in order of decision; strings live as long as the graph. */
WEFT_API int weft_remark_get(const struct weft_graph *graph, size_t i, struct weft_remark *ret_remark);

#ifdef __cplusplus
}
#endif
#endif

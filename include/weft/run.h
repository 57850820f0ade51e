/* SPDX-License-Identifier: Apache-2.0 */
/* run.h: executions: binding tensors and running; the reference evaluator. */
#ifndef WEFT_PUBLIC_RUN_H
#define WEFT_PUBLIC_RUN_H

#include "weft/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Executions of one plan may be created, run and destroyed by different threads at once. */
WEFT_API int weft_execution_create(const struct weft_plan *plan, struct weft_execution **ret_execution);
WEFT_API void weft_execution_destroy(struct weft_execution *execution);
/* The next runs read input i from `tensor`, whose data must stay valid until then. Dtype, rank and the alignment of the
 * address must be those that the plan states: otherwise WEFT_ERR_BINDING and a message that names the input, and the
 * tensor that was bound before stays bound. Extents and strides must be the plan's too; weft_run compares them, when
 * all inputs are bound and sizes are known, and fails with WEFT_ERR_BINDING. */
WEFT_API int weft_bind_input(struct weft_execution *execution, size_t i, const struct weft_tensor *tensor);
/* The next runs write output i to the caller's memory, which is checked like an input's; its address must be aligned
 * as the output's layout states (align=). Unbound outputs are stored in the execution; a `tensor` of NULL unbinds. If
 * an extent depends on data, the tensor must have the maximum extent, and weft_output returns a dense tensor with the
 * actual extents. */
WEFT_API int weft_bind_output(struct weft_execution *execution, size_t i, const struct weft_tensor *tensor);
/* The same by name (weft_port.name); WEFT_ERR_ARGUMENT and a message if there is none of that name. */
WEFT_API int weft_bind_input_named(struct weft_execution *execution, const char *name,
                                   const struct weft_tensor *tensor);
WEFT_API int weft_bind_output_named(struct weft_execution *execution, const char *name,
                                    const struct weft_tensor *tensor);
/* The tensor that was bound last, at another address, for the next runs: cheaper than binding it anew, since extents
 * and strides need not be compared. WEFT_ERR_ARGUMENT if none is bound (an output that was unbound counts as such),
 * WEFT_ERR_BINDING for an address that is NULL, unless the tensor is empty, or not aligned as it must be: then the old
 * address stays bound. Overlaps are found by weft_run. */
WEFT_API int weft_rebind_input(struct weft_execution *execution, size_t i, void *data);
WEFT_API int weft_rebind_output(struct weft_execution *execution, size_t i, void *data);
/* The elements of input i, which is static (weft_param_static), have changed, or those of every static input:
 * WEFT_ALL_INPUTS. The next run packs anew what it wants packed. A run behind a change that nobody told may compute
 * from the old elements, the new ones, or some of each. Binding a static input refreshes it too, by whichever function,
 * and also at the address that was bound before. Each execution of a plan has packs of its own and has to be told. To
 * refresh twice before a run costs no more than once. WEFT_ERR_ARGUMENT, with a message, if there is no input i or it
 * is not static. */
#define WEFT_ALL_INPUTS ((size_t)-1)
WEFT_API int weft_refresh(struct weft_execution *execution, size_t i);
/* The dtype, extents and strides (in elements) of the tensor that weft_bind_output wants, for the inputs that are bound
 * now, before or behind a run; its data is NULL. An extent that depends on data is the largest that it can be. Fails
 * like weft_run if an input is missing or does not fit. */
WEFT_API int weft_output_needed(struct weft_execution *execution, size_t i, struct weft_tensor *ret_tensor);
/* Runs the plan. Memory is allocated when sizes are new; a second run with the same sizes allocates nothing, except in
 * steps of the reference evaluator (weft_statistics.fallbacks), and for the aligned copy of an input (WEFT_ALIGN_PAYS)
 * whose address was aligned until then. Packs of static inputs are allocated by the first run, for all sizes. If memory
 * is refused (WEFT_ERR_NOMEM), a later run tries again. Memory that is written (bound outputs, mutable inputs) may not
 * overlap any other bound tensor: WEFT_ERR_BINDING. */
WEFT_API int weft_run(struct weft_execution *execution);
/* Ends the current run with WEFT_ERR_CANCELLED, or the next one if none is in progress. May be called from another
 * thread or a signal handler, as long as the execution exists; returns at once. The run stops between steps, between
 * iterations of a loop, or between the parts of a step that several threads share; a step of one thread is finished
 * first. Memory that the run writes may hold a part of its results. The execution can run again. */
WEFT_API int weft_cancel(struct weft_execution *execution);
/* Output i of the last run; the data is valid until the next run or until the execution is destroyed.
 * WEFT_ERR_ARGUMENT, without a message, if there is no such output or nothing has run. */
WEFT_API int weft_output(const struct weft_execution *execution, size_t i, struct weft_tensor *ret_tensor);
/* As weft_last_error, for calls on this execution; the context's callback is not called for them. */
WEFT_API const char *weft_execution_error(const struct weft_execution *execution);

struct weft_statistics {
    size_t size;            /* set by the caller */
    int64_t arena_bytes;    /* memory for intermediate values of the execution */
    int64_t constant_bytes; /* packed, copied or computed constants that the plan holds besides the files */
    int32_t kernels;        /* steps that do work */
    int32_t relayouts;      /* of these, steps that only copy a value into another layout (docs/explain.md) */
    int32_t fallbacks;      /* of these, steps in the reference evaluator */
    int32_t workers;        /* threads */
    int64_t fallback_ns;    /* of the last timed run (weft_run_timed): time in the reference evaluator, */
    int64_t relayout_ns;    /* in steps that only move elements, */
    int64_t total_ns;       /* in all kernels */
    int64_t copied_bytes;   /* bytes that steps write in a run that only move elements: copies, concats, paddings */
    int32_t inside;         /* how many values are computed in their place in a concat or padding, */
    int32_t overwriting;    /* in place over the value that they are the last reader of, */
    int32_t updating;       /* or in the `mut` parameter whose new value they are */
    int64_t plain_ns;       /* of the last timed run: time in plain C kernels (__ref), for ops without a faster one */
    int64_t shared_bytes;   /* of constant_bytes: what other plans of the context have too, and is in memory once */
    int64_t staged_bytes;   /* bytes that each run copies of inputs as they are bound, which are not aligned as */
    int32_t staged_inputs;  /* WEFT_ALIGN_PAYS would have them, and of how many inputs; mutable ones there and back */
    int32_t reserved;
    int64_t mapped_bytes;   /* of constant_bytes: packed weights that are files of weft_context_options.packs, mapped */
    int64_t static_bytes;   /* packed weights of static inputs that the execution holds, beside the arena, */
    int64_t static_packs;   /* and how many packs all of its runs have made */
};
WEFT_API int weft_execution_statistics(const struct weft_execution *execution, struct weft_statistics *ret_statistics);
/* Runs once and times each kernel. For each step `fn` gets the kernel's name, the value that it computes, and ns. */
WEFT_API int weft_run_timed(struct weft_execution *execution,
                            void (*fn)(void *user, const char *kernel, const char *value, int64_t ns), void *user);

/* Evaluates the graph by the reference evaluator, in double or exact arithmetic, rounding at each value: the definition
 * of correct. Inputs are in parameter order. If an output's `data` is set, it has room for the dense row-major result,
 * and the tensor states its dtype, rank and extents; if it is NULL, memory is allocated, which the caller frees with
 * weft_tensor_free. */
WEFT_API int weft_evaluate(const struct weft_graph *graph, const struct weft_tensor *inputs, size_t input_count,
                           struct weft_tensor *outputs, size_t output_count);
WEFT_API void weft_tensor_free(struct weft_context *context, struct weft_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif

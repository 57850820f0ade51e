/* SPDX-License-Identifier: Apache-2.0 */
/* weft.h: the public interface of libweft: it includes the headers below, one a subject, which also stand alone.
 *
 *   context ──► graph (text, ONNX file or builder) ──► passes ──► plan ──► execution (one per thread) ──► run
 *
 * Conventions, true for every function here unless its comment says otherwise:
 *  - It returns WEFT_OK (0) or a negative weft_status. Results come last, in ret_x, and are untouched on error.
 *  - The library never prints, aborts or exits. What went wrong is delivered through the context's callback, message by
 *    message, and the joined text of the last failing call is kept: weft_last_error().
 *  - A context, graph, plan, execution or ret_x that is NULL gives WEFT_ERR_ARGUMENT, with a message if another
 *    argument leads to a context; functions that return counts or pointers then return 0 or NULL, those that return
 *    messages "". Functions that destroy, close or free accept NULL.
 *  - Strings and arrays that are passed in are copied; pointers that are returned stay owned by the object they came
 *    from.
 *  - Objects are reference-counted: an execution holds a reference to its plan; plans, graphs, targets, returned texts
 *    and returned tensors hold one to their context. weft_close and the functions that destroy or free drop the
 *    caller's reference, in any order and on any thread; an object is freed with its last reference. So executions
 *    may run after weft_plan_destroy and weft_close. The caller may not use a pointer after dropping it, nor drop an
 *    object while another of its calls uses it. The caller's allocator, executor, `diagnose_user` and custom functions
 *    must stay valid until the context is freed.
 *  - Extents and strides count elements; sizes named bytes count bytes. Axis 0 is the outermost logical axis.
 *  - A context with its graphs is used by one thread at a time. A plan is immutable: any number of threads may run
 *    executions of one plan at once, each thread an execution of its own.
 *  - After fork, the child may use every object except those that another thread was using at that moment, whose state
 *    is undefined. OpenMP's threads do not exist in the child: there, runs on the default executor use one thread.
 *  - Structs with a `size` start with it. The caller sets `.size = sizeof(struct weft_…)`, leaves at zero what it does
 *    not care about, and gets filled in what its struct has room for. A size of 0 gives WEFT_ERR_ARGUMENT.
 *
 * A program that was built with one version of these headers runs with every later library of the same soname:
 * functions and constants stay, and structs change as follows.
 *  - Structs with a `size`, and those that weft hands to the caller's functions (weft_diagnostic), may grow at the end.
 *    To an older library a member that it does not know must be zero (else WEFT_ERR_ARGUMENT); it fills in zeros there.
 *  - Values that are passed by value, in arrays or within other structs never change: weft_tensor, weft_val, weft_node,
 *    weft_dim, weft_attribute, weft_fixed_input, weft_size, weft_storage_axis, weft_custom_type,
 *    weft_custom_value, weft_custom_library, weft_input_alignment.
 *
 * A few words: a *layout* is how a value is stored (axis order, strides, blocks; ir/FORMAT.md). A *symbol* is a size
 * that is not known when the graph is compiled; its *hint* is the size that planning assumes. A *relayout* copies a
 * value to another layout. A *group* is several nodes that one kernel computes. */
#ifndef WEFT_H
#define WEFT_H

#include "weft/base.h"    /* statuses, versions, element types, tensors */
#include "weft/context.h" /* contexts, allocators, executors, messages */
#include "weft/graph.h"   /* graphs from text, from files and node by node */
#include "weft/read.h"    /* what a graph holds */
#include "weft/edit.h"    /* changing it */
#include "weft/passes.h"  /* rewriting, and remarks on what was decided */
#include "weft/alternative.h" /* other ways to compute a node, weighed */
#include "weft/custom.h"  /* the caller's functions */
#include "weft/target.h"  /* the caller's kernels */
#include "weft/plan.h"    /* compiling, and what a plan tells of itself */
#include "weft/run.h"     /* executions, and the reference evaluator */

#endif

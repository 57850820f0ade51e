/* SPDX-License-Identifier: Apache-2.0 */
/* fast.h: what a call of a plan holds (fast.c), and how it is filled in from tuples (fast_read.c). */
#ifndef WEFT_FAST_H
#define WEFT_FAST_H

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "pool.h"

struct weft_execution;

struct output {
    struct weft_tensor like; /* without data */
    size_t bytes;
    int asked;               /* an extent or a stride depends on the arguments: the plan is asked for them */
    struct pool *pool;
};
struct input { Py_ssize_t argument; int32_t dtype; int is_static; };
/* Of a static input: what was bound last. */
struct seen { PyObject *tensor; /* a weak reference, or NULL */ long long version; };
struct weight { Py_ssize_t argument; PyObject *tensor; long long version; };
enum result_kind { RESULT_OUTPUT, RESULT_ARGUMENT, RESULT_VALUE };
struct result { enum result_kind kind; Py_ssize_t index; PyObject *value; };

/* An execution of the plan, with what is bound to it. */
struct runner {
    struct runner *next;
    struct weft_execution *execution;
    struct weft_tensor *bound; /* by input */
    struct seen *seen;         /* by input, of which there are so many: */
    Py_ssize_t inputs;
    struct weft_tensor *placed; /* by output: what was bound last */
    struct dl_managed **made;  /* by output */
};

typedef struct {
    PyObject_HEAD
    char boxed;          /* _boxed_call: it takes one list */
    PyObject *plan;      /* keeps the plan alive */
    const void *plan_address;
    PyObject *other;     /* called with the list where this call cannot serve */
    PyObject *stale;     /* called with the list when a weight has changed */
    PyObject *forward;   /* called instead, once it is set */
    struct input *inputs;
    struct output *outputs;
    struct weight *weights;
    struct result *results;
    Py_ssize_t input_count, output_count, weight_count, result_count;
    struct runner *free;
} Call;

/* The bytes from the first element of an array to behind its last; at least 1. */
size_t call_bytes(const struct weft_tensor *like);

/* Fills in a call from tuples of
 *   inputs   (argument, dtype, is it static?)
 *   outputs  (dtype, extents, strides), -1 where they depend on the arguments
 *   results  (kind, index, value)
 *   weights  (argument, tensor, version)
 * -1 with an exception; what was filled in until then stays the call's, whose deallocator lets go of it. */
int call_read(Call *c, PyObject *inputs, PyObject *outputs, PyObject *results, PyObject *weights);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* fast.h: what a call of a plan holds (fast.c), and what is read from Python: the tuples that it is filled in
 * from, and tensors (fast_read.c). */
#ifndef WEFT_FAST_H
#define WEFT_FAST_H

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"
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
struct seen {
    PyObject *tensor, *storage; /* weak references, or NULL */
    long long version;
    const void *data;
};
/* A frozen argument, and which elements it had. `stale` keeps its storage (weft/torch/freeze.py), so that no other
 * comes to lie at that address. */
struct weight {
    Py_ssize_t argument;
    PyObject *tensor;
    long long version;
    struct weft_tensor at;
};
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

/* Takes what the functions below need: torch's table, and torch.Tensor._version as the type has it. -1: it is no
 * getter. */
int read_setup(const struct dl_table *table, PyObject *version);

/* Reads a tensor: 1; 0: it is none in memory of the CPU that has this dtype. */
int tensor_read(PyObject *object, int32_t dtype, struct dl_tensor *ret_tensor);
void *tensor_data(const struct dl_tensor *d);
/* Has the array, of rank -1 if there is none, these extents and strides? */
int tensor_alike(const struct weft_tensor *t, int rank, const int64_t *extent, const int64_t *stride);

/* Has the weight the elements that it had? */
int weight_same(const struct weight *w);
/* Is this the tensor that was bound to a static input last, with the elements that it had at this address? If not, it
 * is remembered; what has no version never is. How they lie, the caller compares. */
int seen_same(struct seen *s, PyObject *tensor, const void *data);

/* The bytes from the first element of an array to behind its last; at least 1. */
size_t call_bytes(const struct weft_tensor *like);

/* Fills in a call from tuples of
 *   inputs   (argument, dtype, is it static?)
 *   outputs  (dtype, extents, strides), -1 where they depend on the arguments
 *   results  (kind, index, value)
 *   weights  (argument, tensor, version, address, dtype, extents, strides)
 * -1 with an exception; what was filled in until then stays the call's, whose deallocator lets go of it. */
int call_read(Call *c, PyObject *inputs, PyObject *outputs, PyObject *results, PyObject *weights);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fast.h"

static int read_inputs(Call *c, PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++, c->input_count++)
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "nip", &c->inputs[i].argument, &c->inputs[i].dtype,
                              &c->inputs[i].is_static))
            return -1;
    return 0;
}

size_t call_bytes(const struct weft_tensor *like)
{
    int64_t last = 0;
    for (int a = 0; a < like->rank; a++) {
        if (like->extent[a] == 0)
            return 1;
        last += (like->extent[a] - 1) * like->stride[a];
    }
    return (size_t)(last + 1) * (weft_dl_types[like->dtype].bits / 8);
}

static int read_outputs(Call *c, PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
        struct output *o = &c->outputs[i];
        PyObject *extents, *strides;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "iO!O!", &o->like.dtype, &PyTuple_Type, &extents,
                              &PyTuple_Type, &strides))
            return -1;
        o->like.rank = (int32_t)PyTuple_Size(extents);
        if (o->like.rank > WEFT_MAX_RANK || PyTuple_Size(strides) != o->like.rank)
            return PyErr_Format(PyExc_ValueError, "output %zd has %d extents", i, o->like.rank), -1;
        for (int a = 0; a < o->like.rank; a++) {
            o->like.extent[a] = PyLong_AsLongLong(PyTuple_GetItem(extents, a));
            o->like.stride[a] = PyLong_AsLongLong(PyTuple_GetItem(strides, a));
            o->asked |= o->like.extent[a] < 0 || o->like.stride[a] < 0;
        }
        if (PyErr_Occurred())
            return -1;
        o->bytes = o->asked ? 0 : call_bytes(&o->like);
        o->pool = pool_create();
        if (!o->pool)
            return PyErr_NoMemory(), -1;
        c->output_count++;
    }
    return 0;
}

static int read_weights(Call *c, PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++, c->weight_count++) {
        struct weight *w = &c->weights[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "nOL", &w->argument, &w->tensor, &w->version))
            return -1;
        Py_INCREF(w->tensor);
    }
    return 0;
}

static int read_results(Call *c, PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++, c->result_count++) {
        struct result *r = &c->results[i];
        int kind;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "inO", &kind, &r->index, &r->value))
            return -1;
        r->kind = (enum result_kind)kind;
        Py_INCREF(r->value);
        if (r->kind == RESULT_OUTPUT && (r->index < 0 || r->index >= c->output_count))
            return PyErr_Format(PyExc_ValueError, "result %zd is output %zd of %zd", i, r->index, c->output_count), -1;
    }
    return 0;
}

int call_read(Call *c, PyObject *inputs, PyObject *outputs, PyObject *results, PyObject *weights)
{
    c->inputs = calloc((size_t)PyTuple_Size(inputs) + 1, sizeof *c->inputs);
    c->outputs = calloc((size_t)PyTuple_Size(outputs) + 1, sizeof *c->outputs);
    c->results = calloc((size_t)PyTuple_Size(results) + 1, sizeof *c->results);
    c->weights = calloc((size_t)PyTuple_Size(weights) + 1, sizeof *c->weights);
    if (!c->inputs || !c->outputs || !c->results || !c->weights)
        return PyErr_NoMemory(), -1;
    return read_inputs(c, inputs) || read_outputs(c, outputs) || read_results(c, results) || read_weights(c, weights)
               ? -1 : 0;
}

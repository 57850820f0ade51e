/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fast.h"

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static const struct dl_table *torch_table;
static PyObject *version_attribute;
static descrgetfunc version_get;

int read_setup(const struct dl_table *table, PyObject *version)
{
    version_get = (descrgetfunc)PyType_GetSlot(Py_TYPE(version), Py_tp_descr_get);
    torch_table = table;
    Py_INCREF(version);
    version_attribute = version;
    return version_get ? 0 : -1;
}

int tensor_read(PyObject *object, int32_t dtype, struct dl_tensor *ret_tensor)
{
    if (!object || torch_table->tensor_from_object(object, ret_tensor) != 0) {
        PyErr_Clear();
        return 0;
    }
    const struct dl_type want = weft_dl_types[dtype];
    return ret_tensor->device.type == DL_CPU && ret_tensor->dtype.code == want.code &&
           ret_tensor->dtype.bits == want.bits && ret_tensor->ndim <= WEFT_MAX_RANK;
}

void *tensor_data(const struct dl_tensor *d)
{
    return (char *)d->data + d->byte_offset;
}

int tensor_alike(const struct weft_tensor *t, int rank, const int64_t *extent, const int64_t *stride)
{
    int same = t->rank == rank;
    for (int a = 0; same && a < rank; a++)
        same = t->extent[a] == extent[a] && t->stride[a] == stride[a];
    return same;
}

/* The number of writes to a tensor; -1 if they are not counted. */
static long long version_of(PyObject *tensor)
{
    PyObject *version = version_get(version_attribute, tensor, (PyObject *)Py_TYPE(tensor));
    if (!version) {
        PyErr_Clear();
        return -1;
    }
    const long long number = PyLong_AsLongLong(version);
    Py_DECREF(version);
    return number;
}

int weight_same(const struct weight *w)
{
    struct dl_tensor d;
    return tensor_read(w->tensor, w->at.dtype, &d) && tensor_data(&d) == w->at.data &&
           tensor_alike(&w->at, d.ndim, d.shape, d.strides) && version_of(w->tensor) == w->version;
}

int seen_same(struct seen *s, PyObject *tensor, const void *data)
{
    const long long version = version_of(tensor);
    if (version >= 0 && s->version == version && s->data == data && s->tensor && s->storage &&
        PyWeakref_GetObject(s->tensor) == tensor && PyWeakref_GetObject(s->storage) != Py_None)
        return 1;
    PyObject *const old = s->tensor, *const old_storage = s->storage;
    PyObject *const storage = version >= 0 ? PyObject_CallMethod(tensor, "untyped_storage", NULL) : NULL;
    s->tensor = storage ? PyWeakref_NewRef(tensor, NULL) : NULL;
    s->storage = storage ? PyWeakref_NewRef(storage, NULL) : NULL;
    s->version = version;
    s->data = data;
    Py_XDECREF(storage);
    Py_XDECREF(old);
    Py_XDECREF(old_storage);
    PyErr_Clear();
    return 0;
}

/* --- tuples ------------------------------------------------------------------------------------------------------- */

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

static void read_lengths(PyObject *tuple, int64_t *out)
{
    for (Py_ssize_t a = 0; a < PyTuple_Size(tuple); a++)
        out[a] = PyLong_AsLongLong(PyTuple_GetItem(tuple, a));
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
        read_lengths(extents, o->like.extent);
        read_lengths(strides, o->like.stride);
        for (int a = 0; a < o->like.rank; a++)
            o->asked |= o->like.extent[a] < 0 || o->like.stride[a] < 0;
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
        unsigned long long address;
        PyObject *extents, *strides;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "nOLKiO!O!", &w->argument, &w->tensor, &w->version, &address,
                              &w->at.dtype, &PyTuple_Type, &extents, &PyTuple_Type, &strides))
            return -1;
        w->at.data = (void *)(uintptr_t)address;
        w->at.rank = (int32_t)PyTuple_Size(extents);
        if (w->at.rank > WEFT_MAX_RANK || PyTuple_Size(strides) != w->at.rank)
            return PyErr_Format(PyExc_ValueError, "weight %zd has %d extents", i, w->at.rank), -1;
        read_lengths(extents, w->at.extent);
        read_lengths(strides, w->at.stride);
        if (PyErr_Occurred())
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

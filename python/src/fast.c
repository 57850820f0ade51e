/* SPDX-License-Identifier: Apache-2.0 */
/* fast: calls a plan with torch's tensors, without a Python object per tensor on the way.
 *
 *   Call(list) -> list: compares weights, reads arguments, empties the list, runs the plan, returns new tensors
 *
 * Python's limited API of 3.10 and no header of torch's: tensors are read and made through the table of C functions
 * that the type torch.Tensor carries as a capsule (DLPack 1.3), and weights are compared by identity, by where their
 * elements lie, and by the getter of torch.Tensor._version. Functions of libweft come as addresses from the library
 * that Python has loaded, so this module links to nothing.
 *
 * Results lie in memory of a pool (pool.h). All else is guarded by the GIL, which is let go around weft_run; callers
 * that come meanwhile take another execution. What this call cannot do (an argument that lies otherwise than the plan
 * wants) it leaves to the function `other`, before anything was touched. */
#include "fast.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

/* --- what setup() was given --------------------------------------------------------------------------------------- */

enum { FUNCTIONS = 9 };
static struct { /* in the order of FUNCTIONS in weft/torch/fast.py */
    int (*execution_create)(const void *plan, struct weft_execution **ret_execution);
    void (*execution_destroy)(struct weft_execution *);
    int (*bind_input)(struct weft_execution *, size_t, const struct weft_tensor *);
    int (*bind_output)(struct weft_execution *, size_t, const struct weft_tensor *);
    int (*rebind_input)(struct weft_execution *, size_t, void *);
    int (*rebind_output)(struct weft_execution *, size_t, void *);
    int (*output_needed)(struct weft_execution *, size_t, struct weft_tensor *);
    int (*run)(struct weft_execution *);
    const char *(*error)(const struct weft_execution *);
} weft;
_Static_assert(sizeof weft == FUNCTIONS * sizeof(void *), "setup() takes as many addresses");
static const struct dl_table *torch_table;
static PyObject *call_type;

/* --- the callable ------------------------------------------------------------------------------------------------- */

static void runner_free(struct runner *r)
{
    if (!r)
        return;
    weft.execution_destroy(r->execution);
    for (Py_ssize_t i = 0; r->seen && i < r->inputs; i++) {
        Py_XDECREF(r->seen[i].tensor);
        Py_XDECREF(r->seen[i].storage);
    }
    free(r->seen);
    free(r->bound);
    free(r->placed);
    free(r->made);
    free(r);
}

static struct runner *runner_take(Call *c)
{
    struct runner *r = c->free;
    if (r) {
        c->free = r->next;
        return r;
    }
    r = calloc(1, sizeof *r);
    if (r) {
        r->inputs = c->input_count;
        r->seen = calloc((size_t)c->input_count + 1, sizeof *r->seen);
        r->bound = calloc((size_t)c->input_count + 1, sizeof *r->bound);
        r->placed = calloc((size_t)c->output_count + 1, sizeof *r->placed);
        r->made = calloc((size_t)c->output_count + 1, sizeof *r->made);
    }
    if (!r || !r->seen || !r->bound || !r->placed || !r->made ||
        weft.execution_create(c->plan_address, &r->execution) != WEFT_OK) {
        runner_free(r);
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < c->input_count; i++)
        r->bound[i].rank = -1; /* nothing is bound yet */
    for (Py_ssize_t i = 0; i < c->output_count; i++)
        r->placed[i].rank = -1;
    return r;
}

static void runner_give(Call *c, struct runner *r)
{
    if (c->forward) { /* meanwhile this call let go of all that it held */
        runner_free(r);
        return;
    }
    r->next = c->free;
    c->free = r;
}

/* 1: all weights are what they were; 0: one is not; -1: an exception. */
static int weights_same(const Call *c, PyObject *list)
{
    for (Py_ssize_t i = 0; i < c->weight_count; i++) {
        if (PyList_GetItem(list, c->weights[i].argument) != c->weights[i].tensor)
            return PyErr_Occurred() ? -1 : 0;
        if (!weight_same(&c->weights[i]))
            return 0;
    }
    return 1;
}

/* Binds input i of a runner to an array, at the price of what changed: nothing, its address, or all. `same`: its
 * elements are no others than before; otherwise a static input has to be bound, at the same address too. */
static int bind_input(struct runner *r, Py_ssize_t i, int32_t dtype, const struct dl_tensor *d, int same)
{
    struct weft_tensor *const t = &r->bound[i];
    void *const data = tensor_data(d);
    if (tensor_alike(t, d->ndim, d->shape, d->strides)) {
        if (t->data == data && same)
            return WEFT_OK;
        const int status = weft.rebind_input(r->execution, (size_t)i, data);
        if (status == WEFT_OK)
            t->data = data;
        return status;
    }
    t->data = data;
    t->dtype = dtype;
    t->rank = d->ndim;
    for (int a = 0; a < d->ndim; a++) {
        t->extent[a] = d->shape[a];
        t->stride[a] = d->strides[a];
    }
    const int status = weft.bind_input(r->execution, (size_t)i, t);
    if (status != WEFT_OK)
        t->rank = -1;
    return status;
}

/* 1: inputs are bound; 0: one does not suit the plan. */
static int bind_inputs(const Call *c, struct runner *r, PyObject *list)
{
    for (Py_ssize_t i = 0; i < c->input_count; i++) {
        struct dl_tensor d;
        PyObject *object = PyList_GetItem(list, c->inputs[i].argument);
        if (!tensor_read(object, c->inputs[i].dtype, &d))
            return 0;
        const int same = !c->inputs[i].is_static || seen_same(&r->seen[i], object, tensor_data(&d));
        if (bind_input(r, i, c->inputs[i].dtype, &d, same) != WEFT_OK)
            return 0;
    }
    return 1;
}

static void drop_made(const Call *c, struct runner *r)
{
    for (Py_ssize_t i = 0; i < c->output_count; i++) {
        if (r->made[i])
            r->made[i]->deleter(r->made[i]);
        r->made[i] = NULL;
    }
}

/* Makes output i and binds it: 1; 0: not, without an exception; -1: an exception. */
static int bind_output(Call *c, struct runner *r, Py_ssize_t i)
{
    struct output *const o = &c->outputs[i];
    struct weft_tensor *const placed = &r->placed[i];
    struct weft_tensor t = o->like;
    if (o->asked && weft.output_needed(r->execution, (size_t)i, &t) != WEFT_OK)
        return 0;
    r->made[i] = pool_make(o->pool, &t, o->asked ? call_bytes(&t) : o->bytes);
    if (!r->made[i]) {
        PyErr_NoMemory();
        return -1;
    }
    t.data = (char *)r->made[i]->tensor.data + r->made[i]->tensor.byte_offset;
    const int status = tensor_alike(placed, t.rank, t.extent, t.stride)
                           ? weft.rebind_output(r->execution, (size_t)i, t.data)
                           : weft.bind_output(r->execution, (size_t)i, &t);
    *placed = t;
    if (status != WEFT_OK)
        placed->rank = -1;
    return status == WEFT_OK;
}

/* Of all outputs, behind the inputs. */
static int bind_outputs(Call *c, struct runner *r)
{
    int good = 1;
    for (Py_ssize_t i = 0; i < c->output_count && good > 0; i++)
        good = bind_output(c, r, i);
    if (good <= 0)
        drop_made(c, r);
    return good;
}

/* Puts results together, in a new list. Arguments that are results were taken before the list was emptied. */
static PyObject *assemble(const Call *c, struct runner *r, PyObject *results)
{
    PyObject **tensors = calloc((size_t)c->output_count + 1, sizeof *tensors);
    int good = tensors != NULL;
    for (Py_ssize_t i = 0; i < c->output_count; i++) {
        struct dl_managed *m = r->made[i];
        void *object = NULL;
        r->made[i] = NULL;
        if (good && torch_table->managed_to_object(m, &object) == 0)
            tensors[i] = object;
        else if (good)
            good = 0;
        else
            m->deleter(m);
    }
    for (Py_ssize_t i = 0; good && i < c->result_count; i++)
        if (c->results[i].kind == RESULT_OUTPUT) {
            Py_INCREF(tensors[c->results[i].index]);
            good = PyList_SetItem(results, i, tensors[c->results[i].index]) == 0;
        }
    for (Py_ssize_t i = 0; tensors && i < c->output_count; i++)
        Py_XDECREF(tensors[i]);
    free(tensors);
    if (good)
        return results;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    Py_DECREF(results);
    return NULL;
}

/* A list with the results that are there before the run: arguments and values; the others are None. */
static PyObject *prepare(const Call *c, PyObject *list)
{
    PyObject *results = PyList_New(c->result_count);
    for (Py_ssize_t i = 0; results && i < c->result_count; i++) {
        PyObject *o = c->results[i].kind == RESULT_ARGUMENT ? PyList_GetItem(list, c->results[i].index)
                      : c->results[i].kind == RESULT_VALUE  ? c->results[i].value
                                                            : Py_None;
        if (!o) {
            Py_DECREF(results);
            return NULL;
        }
        Py_INCREF(o);
        PyList_SetItem(results, i, o);
    }
    return results;
}

static PyObject *call_other(PyObject *function, PyObject *list)
{
    Py_INCREF(function); /* it may have this call let go of it */
    PyObject *results = PyObject_CallFunctionObjArgs(function, list, NULL);
    Py_DECREF(function);
    return results;
}

/* `other`: called with the list where nothing could run. */
static PyObject *run(Call *c, struct runner *r, PyObject *list, PyObject *other)
{
    PyObject *results = prepare(c, list);
    if (!results) {
        drop_made(c, r);
        return NULL;
    }
    PyThreadState *state = PyEval_SaveThread();
    const int status = weft.run(r->execution);
    PyEval_RestoreThread(state);
    if (status == WEFT_ERR_BINDING) { /* nothing ran: arrays that are written overlap others */
        drop_made(c, r);
        Py_DECREF(results);
        return call_other(other, list);
    }
    if (status != WEFT_OK) {
        PyErr_Format(PyExc_RuntimeError, "weft: %s", weft.error(r->execution));
        drop_made(c, r);
        Py_DECREF(results);
        return NULL;
    }
    if (PyList_SetSlice(list, 0, PyList_Size(list), NULL) != 0) {
        drop_made(c, r);
        Py_DECREF(results);
        return NULL;
    }
    return assemble(c, r, results);
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *keywords)
{
    Call *c = (Call *)self;
    PyObject *list;
    if (keywords || !PyArg_ParseTuple(args, "O!", &PyList_Type, &list))
        return keywords ? PyErr_Format(PyExc_TypeError, "a call of a plan takes one list") : NULL;
    if (c->forward)
        return call_other(c->forward, list);
    const int same = weights_same(c, list);
    if (same <= 0)
        return same < 0 ? NULL : call_other(c->stale, list);
    struct runner *r = runner_take(c);
    if (!r)
        return NULL;
    PyObject *plan = c->plan, *other = c->other; /* this call may be forwarded while the plan runs */
    Py_INCREF(plan);
    Py_INCREF(other);
    Py_INCREF(self);
    int good = bind_inputs(c, r, list);
    if (good > 0)
        good = bind_outputs(c, r);
    PyObject *results = good < 0 ? NULL : good == 0 ? call_other(other, list) : run(c, r, list, other);
    runner_give(c, r);
    Py_DECREF(plan);
    Py_DECREF(other);
    Py_DECREF(self);
    return results;
}

static void call_clear(Call *c)
{
    for (struct runner *r = c->free, *next; r; r = next) {
        next = r->next;
        runner_free(r);
    }
    c->free = NULL;
    for (Py_ssize_t i = 0; i < c->weight_count; i++)
        Py_CLEAR(c->weights[i].tensor);
    c->weight_count = 0;
    Py_CLEAR(c->plan);
    Py_CLEAR(c->other);
    Py_CLEAR(c->stale);
}

/* forward_to(callable): from now on calls go there, and what this one holds is let go. */
static PyObject *forward_to(PyObject *self, PyObject *callable)
{
    Call *c = (Call *)self;
    PyObject *old = c->forward;
    Py_INCREF(callable);
    c->forward = callable;
    Py_XDECREF(old);
    call_clear(c);
    Py_RETURN_NONE;
}

static int call_traverse(PyObject *self, visitproc visit, void *arg)
{
    Call *c = (Call *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(c->plan);
    Py_VISIT(c->other);
    Py_VISIT(c->stale);
    Py_VISIT(c->forward);
    for (Py_ssize_t i = 0; i < c->weight_count; i++)
        Py_VISIT(c->weights[i].tensor);
    for (Py_ssize_t i = 0; i < c->result_count; i++)
        Py_VISIT(c->results[i].value);
    return 0;
}

static int call_break(PyObject *self)
{
    Call *c = (Call *)self;
    Py_CLEAR(c->other);
    Py_CLEAR(c->stale);
    Py_CLEAR(c->forward);
    return 0;
}

static void call_free(PyObject *self)
{
    Call *c = (Call *)self;
    PyObject_GC_UnTrack(self);
    call_clear(c);
    Py_CLEAR(c->forward);
    for (Py_ssize_t i = 0; i < c->output_count; i++)
        pool_close(c->outputs[i].pool);
    for (Py_ssize_t i = 0; i < c->result_count; i++)
        Py_CLEAR(c->results[i].value);
    free(c->inputs);
    free(c->outputs);
    free(c->weights);
    free(c->results);
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* --- making one --------------------------------------------------------------------------------------------------- */

/* make(plan, address, inputs, outputs, results, weights, other, stale) -> Call; tuples as call_read has them */
static PyObject *make(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long address;
    PyObject *plan, *inputs, *outputs, *results, *weights, *other, *stale;
    if (!PyArg_ParseTuple(args, "OKO!O!O!O!OO", &plan, &address, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs,
                          &PyTuple_Type, &results, &PyTuple_Type, &weights, &other, &stale))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)call_type, Py_tp_alloc);
    Call *c = (Call *)allocate((PyTypeObject *)call_type, 0);
    if (!c)
        return NULL;
    c->boxed = 1;
    Py_INCREF(plan), c->plan = plan;
    Py_INCREF(other), c->other = other;
    Py_INCREF(stale), c->stale = stale;
    c->plan_address = (const void *)(uintptr_t)address;
    if (call_read(c, inputs, outputs, results, weights) != 0) {
        Py_DECREF(c);
        return NULL;
    }
    return (PyObject *)c;
}

/* setup(capsule with torch's table, torch.Tensor._version, addresses of libweft's functions) -> (major, minor) */
static PyObject *setup(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *version;
    unsigned long long a[FUNCTIONS];
    if (!PyArg_ParseTuple(args, "OO(KKKKKKKKK)", &capsule, &version, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6],
                          &a[7], &a[8]))
        return NULL;
    const struct dl_table *table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (!table)
        return NULL;
    if (table->major != 1 || !table->managed_to_object || !table->tensor_from_object || read_setup(table, version) != 0)
        return PyErr_Format(PyExc_ImportError, "torch's table of DLPack functions, version %u.%u, is of another kind",
                            table->major, table->minor);
    torch_table = table;
    for (size_t i = 0; i < FUNCTIONS; i++)
        memcpy((char *)&weft + i * sizeof(void *), &(uintptr_t){(uintptr_t)a[i]}, sizeof(void *));
    return Py_BuildValue("II", table->major, table->minor);
}

static PyMethodDef call_methods[] = {
    {"forward_to", forward_to, METH_O, "Sends all further calls to another callable."}, {NULL, NULL, 0, NULL}};
static PyMemberDef call_members[] = {
    {"_boxed_call", T_BOOL, offsetof(Call, boxed), READONLY, "It takes one list and empties it."},
    {NULL, 0, 0, 0, NULL}};
static PyType_Slot call_slots[] = {{Py_tp_dealloc, call_free},   {Py_tp_call, call},
                                   {Py_tp_traverse, call_traverse}, {Py_tp_clear, call_break},
                                   {Py_tp_methods, call_methods}, {Py_tp_members, call_members}, {0, NULL}};
static PyType_Spec call_spec = {"weft._fast.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                call_slots};
static PyMethodDef methods[] = {{"make", make, METH_VARARGS, "A plan as a callable of one list of tensors."},
                                {"setup", setup, METH_VARARGS, "Says where torch's and libweft's functions are."},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_fast", "Calls of plans with torch's tensors.", -1,
                                        methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__fast(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module)
        call_type = PyType_FromSpec(&call_spec);
    return call_type ? module : NULL;
}

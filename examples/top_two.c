/* SPDX-License-Identifier: Apache-2.0 */
/* top_two.c: a library of an op of your own with two results, which all workers compute, for the command's --custom and
 * for weft_register_library. It is what routers of mixtures of experts ask for: of each row the two largest numbers and
 * their places; with `softmax` 1 the numbers become shares, which sum to 1.
 *
 *     %v: f32[N,2], %i: i64[N,2] = custom %x function=top_two with=[softmax=1]
 *
 * ONNX models write it as op TopTwo of domain acme, with an attribute of that name. A NaN is smaller than any number,
 * and of equal numbers the first comes first.
 *
 *     cc -shared -fPIC -o top_two.so top_two.c $(pkg-config --cflags weft) -lm
 *     weft run --custom ./top_two.so model.onnx */
#include <weft/weft.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEAST = 16384 }; /* numbers that are worth a worker's while */

static weft_dim (*extent_of)(int64_t value);

static int refuse(struct weft_custom_types *types, const char *why)
{
    snprintf(types->message, types->message_bytes, "%s", why);
    return 1;
}

static int types_of(void *user, struct weft_custom_types *types)
{
    const struct weft_custom_type *const x = &types->operand[0];
    for (size_t i = 0; i < types->values; i++)
        if (strcmp(types->value[i].name, "softmax") != 0 || types->value[i].kind != WEFT_CUSTOM_INTEGER)
            return refuse(types, "its one attribute is softmax, an integer");
    if (x->dtype != WEFT_F32 || x->rank < 1)
        return refuse(types, "it takes f32 numbers in rows");
    types->result = types->more[0] = *x;
    types->result.extent[x->rank - 1] = types->more[0].extent[x->rank - 1] = extent_of(2);
    types->more[0].dtype = WEFT_I64;
    return 0;
}

/* Rows may lie anywhere, and so may their numbers. */
static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

/* All axes lie alike in the operand and in both results. */
static void same_axes(void *user, size_t i, size_t operands, int rank, int *ret_axis)
{
    for (int axis = 0; axis < rank; axis++)
        ret_axis[axis] = axis;
}

static int64_t rows_of(const struct weft_tensor *x)
{
    int64_t rows = 1;
    for (int axis = 0; axis < x->rank - 1; axis++)
        rows *= x->extent[axis];
    return rows;
}

static int32_t parts_of(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *const x = call->operand;
    const int64_t rows = rows_of(x), worth = rows * x->extent[x->rank - 1] / LEAST;
    const int64_t parts = worth < rows ? worth : rows;
    return parts < call->workers ? (int32_t)parts : call->workers;
}

static void cost_of(void *user, const struct weft_custom_call *call, double *ret_operations, double *ret_bytes)
{
    const struct weft_tensor *const x = call->operand;
    const double rows = (double)rows_of(x), numbers = rows * (double)x->extent[x->rank - 1];
    *ret_operations = 2 * numbers;
    *ret_bytes = 4 * numbers + rows * (2 * 4 + 2 * 8);
}

/* The element at the beginning of a row. */
static int64_t place(const struct weft_tensor *t, int64_t row)
{
    int64_t at = 0;
    for (int axis = t->rank - 2; axis >= 0; axis--) {
        at += row % t->extent[axis] * t->stride[axis];
        row /= t->extent[axis];
    }
    return at;
}

static float key(float number) { return isnan(number) ? -INFINITY : number; }

static void find(const float *x, int64_t count, int64_t step, int64_t best[2])
{
    best[0] = key(x[0]) >= key(x[step]) ? 0 : 1;
    best[1] = !best[0];
    for (int64_t k = 2; k < count; k++) {
        const float number = key(x[k * step]);
        if (number > key(x[best[0] * step])) {
            best[1] = best[0];
            best[0] = k;
        } else if (number > key(x[best[1] * step])) {
            best[1] = k;
        }
    }
}

static int run(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *const x = call->operand, *const v = &call->result[0], *const i = &call->result[1];
    const int last = x->rank - 1;
    const bool shares = call->values > 0 && call->value[0].integer;
    if (x->extent[last] < 2) {
        snprintf(call->message, call->message_bytes, "rows of %lld numbers have no two", (long long)x->extent[last]);
        return 1;
    }
    const int64_t rows = rows_of(x);
    for (int64_t row = rows * call->part / call->parts; row < rows * (call->part + 1) / call->parts; row++) {
        const float *const from = (const float *)x->data + place(x, row);
        float *const to = (float *)v->data + place(v, row);
        int64_t *const which = (int64_t *)i->data + place(i, row), best[2];
        find(from, x->extent[last], x->stride[last], best);
        const float a = from[best[0] * x->stride[last]], b = from[best[1] * x->stride[last]];
        const float share = 1 / (1 + expf(b - a));
        to[0] = shares ? share : a;
        to[v->stride[last]] = shares ? 1 - share : b;
        which[0] = best[0];
        which[i->stride[last]] = best[1];
    }
    return 0;
}

static int enter(const struct weft_custom_host *host)
{
    const struct weft_custom top_two = {.size = sizeof top_two, .name = "top_two", .domain = "acme", .op = "TopTwo",
                                        .least_operands = 1, .most_operands = 1, .results = 2, .run = run,
                                        .type = types_of, .layout = any_strides, .axes = same_axes, .parts = parts_of,
                                        .cost = cost_of};
    extent_of = host->extent;
    return host->enroll(host->context, &top_two);
}

WEFT_CUSTOM_LIBRARY(enter);

/* SPDX-License-Identifier: Apache-2.0 */
/* own_support.h: kernels of a framework that has its own: plain loops over arrays in any layout. `user` of each is a
 * struct own_kernel. */
#ifndef WEFT_TEST_OWN_SUPPORT_H
#define WEFT_TEST_OWN_SUPPORT_H

#include "tests/unit/plan_support.h"

#include <stdatomic.h>

struct own_kernel {
    const char *const *layout; /* of operands, then of the result; NULL: row-major */
    int32_t parts;             /* that it asks for */
    int status;                /* that it returns */
    double us;                 /* its cost, beside 1 */
    int64_t least_channels;    /* operand 0 has at least so many, or the kernel does not fit */
    bool in_place;
    _Atomic int calls, parts_done;
};

static inline const char *own_layout(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    const struct own_kernel *own = user;
    return own->layout[i];
}

static inline double own_cost(void *user, const struct weft_graph *graph, weft_node node)
{
    return 1 + ((const struct own_kernel *)user)->us;
}

static inline bool own_fits(void *user, const struct weft_graph *graph, weft_node node)
{
    const struct own_kernel *own = user;
    struct weft_value_facts x = {.size = sizeof x};
    weft_value_read(graph, weft_node_operand(graph, node, 0), &x);
    return x.rank < 2 || x.hint[1] >= own->least_channels;
}

static inline int32_t own_parts(void *user, const struct weft_kernel_call *call)
{
    return ((struct own_kernel *)user)->parts;
}

static inline bool own_in_place(void *user, const struct weft_graph *graph, weft_node node, size_t i)
{
    return ((struct own_kernel *)user)->in_place;
}

static inline float *own_at(const struct weft_kernel_array *a, const int64_t *index)
{
    int64_t place = 0;
    for (int k = 0; k < a->storage_axes; k++) {
        const struct weft_storage_axis *axis = &a->storage[k];
        const int64_t digit = index[axis->axis] / axis->div;
        place += (axis->mod ? digit % axis->mod : digit) * axis->stride;
    }
    return (float *)a->data + place;
}

/* The next index of an array; false behind the last. */
static inline bool own_next(const struct weft_kernel_array *a, int64_t *index)
{
    int axis = a->rank - 1;
    while (axis >= 0 && ++index[axis] >= a->extent[axis])
        index[axis--] = 0;
    return axis >= 0;
}

static inline bool own_is_empty(const struct weft_kernel_array *a)
{
    bool empty = false;
    for (int i = 0; i < a->rank; i++)
        empty |= a->extent[i] == 0;
    return empty;
}

static inline int own_begin(void *user, const struct weft_kernel_call *call)
{
    struct own_kernel *own = user;
    own->calls++;
    own->parts_done |= 1 << call->part;
    if (own->status)
        snprintf(call->message, call->message_bytes, "as it was told");
    return own->status;
}

/* Of every element whose number leaves this remainder, so that parts are not one piece. */
static inline int own_conv(void *user, const struct weft_kernel_call *call)
{
    const struct weft_kernel_array *x = &call->operand[0], *w = &call->operand[1], *y = call->result;
    struct weft_attribute pad = {0};
    int64_t i[WEFT_MAX_RANK] = {0}, number = 0, before = 0;
    weft_node_attribute(call->graph, call->node, "pad", &pad);
    if (pad.count && weft_call_extent(call, pad.integers[0], &before) != WEFT_OK)
        return 99;
    do {
        if (own_is_empty(y) || number++ % call->parts != call->part)
            continue;
        float sum = 0;
        for (int64_t c = 0; c < w->extent[1]; c++)
            for (int64_t r = 0; r < w->extent[2]; r++)
                for (int64_t s = 0; s < w->extent[3]; s++) {
                    const int64_t at[] = {i[0], c, i[2] + r - before, i[3] + s - before}, tap[] = {i[1], c, r, s};
                    if (at[2] >= 0 && at[2] < x->extent[2] && at[3] >= 0 && at[3] < x->extent[3])
                        sum += *own_at(x, at) * *own_at(w, tap);
                }
        *own_at(y, i) = sum;
    } while (own_next(y, i));
    return own_begin(user, call);
}

static inline int own_relu(void *user, const struct weft_kernel_call *call)
{
    int64_t i[WEFT_MAX_RANK] = {0}, number = 0;
    do {
        if (!own_is_empty(call->result) && number++ % call->parts == call->part) {
            const float x = *own_at(call->operand, i);
            *own_at(call->result, i) = x > 0 ? x : 0;
        }
    } while (own_next(call->result, i));
    return own_begin(user, call);
}

static inline int own_binary(void *user, const struct weft_kernel_call *call)
{
    struct weft_node_facts facts = {.size = sizeof facts};
    int64_t i[WEFT_MAX_RANK] = {0};
    weft_node_read(call->graph, call->node, &facts);
    do {
        if (own_is_empty(call->result))
            continue;
        const float a = *own_at(&call->operand[0], i), b = *own_at(&call->operand[1], i);
        *own_at(call->result, i) = !strcmp(facts.op, "add") ? a + b : a * b;
    } while (own_next(call->result, i));
    return own_begin(user, call);
}

static inline struct weft_kernel own_kernel_of(const char *name, const char *op, struct own_kernel *own,
                                               int (*run)(void *, const struct weft_kernel_call *))
{
    return (struct weft_kernel){.size = sizeof(struct weft_kernel), .name = name, .op = op, .user = own, .run = run,
                                .fits = own_fits, .layout = own->layout ? own_layout : NULL, .cost = own_cost,
                                .parts = own_parts, .in_place = own_in_place};
}

#endif

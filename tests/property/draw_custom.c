/* SPDX-License-Identifier: Apache-2.0 */
/* draw_custom.c: functions of the caller's in random graphs: what they demand of memory differs, what they compute does
 * not, and nothing is rounded.
 *
 *   %y, %z = custom %a, %b function=drawn_any      y is a; z has of b the first element along the last axis, or 0
 *
 *   drawn_any      any strides, axes lie alike; in parts along the first axis
 *   drawn_rows     packed, row-major; in parts
 *   drawn_turned   packed, with the first axis innermost; in one part
 *   drawn_apart    any strides, and nobody knows which axes lie alike; at multiples of 64 bytes, column by column */
#include "tests/property/random_graph.h"

#include <stdio.h>
#include <string.h>

static int types_of(void *user, struct weft_custom_types *types)
{
    const struct weft_custom_type *const last = &types->operand[types->operands - 1];
    for (size_t i = 0; i < types->operands; i++)
        if (types->operand[i].rank == 0 || weft_dtype_bits(types->operand[i].dtype) < 8) {
            snprintf(types->message, types->message_bytes, "it wants axes, and whole bytes");
            return 1;
        }
    types->result = types->operand[0];
    types->more[0] = *last;
    types->more[0].rank--;
    return 0;
}

static int32_t along_first(void *user, const struct weft_custom_call *call)
{
    const int64_t extent = call->operand->extent[0];
    return extent < 2 * call->workers ? (int32_t)extent : 2 * call->workers;
}

static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static bool turned(void *user, size_t i, size_t operands, int rank, int *ret_order)
{
    for (int axis = 0; axis < rank; axis++)
        ret_order[axis] = rank - 1 - axis;
    return true;
}

static void alike(void *user, size_t i, size_t operands, int rank, int32_t *ret_axis)
{
    for (int axis = 0; axis < rank; axis++)
        ret_axis[axis] = axis;
}

static void lines_and_columns(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    ret->align = 64;
    ret->along = 0;
}

/* This part of a tensor: a range of its first axis; all of it for a part that is the only one, or of a scalar. */
static struct weft_tensor share(const struct weft_tensor *t, const struct weft_custom_call *call)
{
    struct weft_tensor ret = *t;
    if (t->rank == 0) {
        ret.data = call->part == 0 ? t->data : NULL;
        return ret;
    }
    const int64_t first = t->extent[0] * call->part / call->parts;
    const int64_t bytes = (int64_t)weft_dtype_bits(t->dtype) / 8;
    ret.extent[0] = t->extent[0] * (call->part + 1) / call->parts - first;
    ret.data = (char *)t->data + first * t->stride[0] * bytes;
    return ret;
}

static int run(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor a = share(&call->operand[0], call), y = share(&call->result[0], call);
    const struct weft_tensor *const b = &call->operand[call->operands - 1];
    struct weft_tensor z = share(&call->result[1], call), first = share(b, call);
    weft_tensor_copy(&y, 0, &a, 0);
    if (!z.data)
        return 0;
    if (z.rank == 0) /* b has one axis, which the parts do not share out */
        first = *b;
    const bool is_empty = first.extent[first.rank - 1] == 0;
    first.rank--;
    if (is_empty)
        weft_tensor_clear(&z, 0);
    else
        weft_tensor_copy(&z, 0, &first, 0);
    return 0;
}

int weft_register_drawn(struct weft_context *context)
{
    struct weft_custom custom = {.size = sizeof custom, .name = "drawn_any", .least_operands = 1, .most_operands = 2,
                                 .results = 2, .run = run, .type = types_of, .layout = any_strides, .axes = alike,
                                 .parts = along_first};
    int status = weft_register(context, &custom);
    custom.name = "drawn_rows";
    custom.layout = NULL;
    custom.axes = NULL;
    status = status < 0 ? status : weft_register(context, &custom);
    custom.name = "drawn_turned";
    custom.layout = turned;
    custom.parts = NULL;
    status = status < 0 ? status : weft_register(context, &custom);
    custom.name = "drawn_apart";
    custom.layout = any_strides;
    custom.demand = lines_and_columns;
    return status < 0 ? status : weft_register(context, &custom);
}

void weft_draw_custom(struct weft_maker *m, int op)
{
    static const char *const functions[] = {"drawn_any", "drawn_rows", "drawn_turned", "drawn_apart"};
    const weft_val a = weft_draw_value(m, WEFT_DRAW_ALL, 1, WEFT_MAX_RANK);
    struct weft_type type = *weft_drawn_type(m, a);
    const struct weft_attr attr = weft_attr_of_word(WEFT_ATTR_function, functions[weft_draw(m, 4)]);
    if (weft_draw(m, 2) == 0) {
        weft_emit(m, op, 1, &a, 1, &attr, NULL);
        return;
    }
    for (unsigned i = 1; i < type.rank; i++) /* parts share out the first axis of both */
        type.extent[i] = weft_draw_dim(m);
    weft_emit(m, op, 2, (const weft_val[]){a, weft_obtain(m, &type)}, 1, &attr, NULL);
}

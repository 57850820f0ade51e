/* SPDX-License-Identifier: Apache-2.0 */
/* golden_custom.c: custom functions that golden texts may call, for passes that ask the caller's code how it goes
 * through memory.
 *
 *   sum_columns   [M,N] → [N]: goes along axis 0, whatever strides it finds
 *   add_turned    the same of what lies with its first axis innermost, without gaps
 *   add_aligned   the sum of operands of one shape, each at a multiple of 64 bytes; refuses to run on any other
 *   add_packed    the same, of packed row-major operands, and goes along axis 0
 *   center        images less the means of their channels, and the means: any strides, axes lie alike, images in parts
 *   center_apart  the same of a function that does not say which axes lie alike */
#include "tools/golden.h"

#include <stdio.h>

static int reject(struct weft_custom_types *types, const char *message)
{
    snprintf(types->message, types->message_bytes, "%s", message);
    return 1;
}

static int type_of_columns(void *user, struct weft_custom_types *types)
{
    if (types->operands != 1 || types->operand[0].dtype != WEFT_F32 || types->operand[0].rank != 2)
        return reject(types, "it adds up the columns of an f32 matrix");
    types->result = (struct weft_custom_type){.dtype = WEFT_F32, .rank = 1, .extent = {types->operand[0].extent[1]}};
    return 0;
}

static int type_of_sum(void *user, struct weft_custom_types *types)
{
    for (size_t i = 0; i < types->operands; i++)
        if (types->operand[i].dtype != WEFT_F32 || types->operand[i].rank != types->operand[0].rank)
            return reject(types, "it adds f32 arrays of one shape");
    types->result = types->operand[0];
    return 0;
}

static bool any_strides(void *user, size_t i, size_t operands, int rank, int *ret_order) { return false; }

static void walk_columns(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    if (i < operands)
        ret->along = 0;
}

static void want_lines(void *user, size_t i, size_t operands, int rank, struct weft_demand *ret)
{
    if (i < operands)
        ret->align = 64;
}

static int sum_columns(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *x = &call->operand[0], *y = call->result;
    for (int64_t j = 0; j < x->extent[1]; j++) {
        float sum = 0;
        for (int64_t i = 0; i < x->extent[0]; i++)
            sum += ((const float *)x->data)[i * x->stride[0] + j * x->stride[1]];
        ((float *)y->data)[j * y->stride[0]] = sum;
    }
    return 0;
}

/* Element number n of a tensor, in logical order. */
static float *element(const struct weft_tensor *t, int64_t n)
{
    float *at = t->data;
    for (int axis = t->rank - 1; axis >= 0; axis--) {
        at += n % t->extent[axis] * t->stride[axis];
        n /= t->extent[axis];
    }
    return at;
}

static int add(void *user, const struct weft_custom_call *call)
{
    int64_t elements = 1;
    for (int axis = 0; axis < call->result->rank; axis++)
        elements *= call->result->extent[axis];
    for (int64_t n = 0; n < elements; n++) {
        float sum = 0;
        for (size_t i = 0; i < call->operands; i++)
            sum += *element(&call->operand[i], n);
        *element(call->result, n) = sum;
    }
    return 0;
}

static int add_aligned(void *user, const struct weft_custom_call *call)
{
    for (size_t i = 0; i < call->operands; i++)
        if ((uintptr_t)call->operand[i].data % 64 != 0) {
            snprintf(call->message, call->message_bytes, "operand %zu begins within a cache line", i);
            return 1;
        }
    return add(user, call);
}

static bool turned(void *user, size_t i, size_t operands, int rank, int *ret_order)
{
    for (int axis = 0; axis < rank; axis++)
        ret_order[axis] = rank - 1 - axis;
    return true;
}

/* Refuses what is not packed with its first axis innermost. */
static int add_turned(void *user, const struct weft_custom_call *call)
{
    for (size_t i = 0; i <= call->operands; i++) {
        const struct weft_tensor *t = i < call->operands ? &call->operand[i] : call->result;
        for (int64_t axis = 0, stride = 1; axis < t->rank; stride *= t->extent[axis++])
            if (t->extent[axis] != 1 && t->stride[axis] != stride) {
                snprintf(call->message, call->message_bytes, "tensor %zu is not turned", i);
                return 1;
            }
    }
    return add(user, call);
}

static int type_of_center(void *user, struct weft_custom_types *types)
{
    const struct weft_custom_type *const x = &types->operand[0];
    if (x->dtype != WEFT_F32 || x->rank != 4)
        return reject(types, "it takes f32 images");
    types->result = *x;
    types->more[0] = (struct weft_custom_type){.dtype = WEFT_F32, .rank = 2, .extent = {x->extent[0], x->extent[1]}};
    return 0;
}

static void lie_alike(void *user, size_t i, size_t operands, int rank, int *ret_axis)
{
    for (int axis = 0; axis < rank; axis++)
        ret_axis[axis] = axis;
}

static int32_t each_image(void *user, const struct weft_custom_call *call)
{
    return (int32_t)call->operand->extent[0];
}

static int center(void *user, const struct weft_custom_call *call)
{
    const struct weft_tensor *const x = call->operand, *const y = &call->result[0], *const mean = &call->result[1];
    const int64_t channels = x->extent[1], pixels = x->extent[2] * x->extent[3];
    const int64_t first = x->extent[0] * call->part / call->parts, end = x->extent[0] * (call->part + 1) / call->parts;
    for (int64_t n = first * channels; n < end * channels; n++) {
        double sum = 0;
        for (int64_t k = 0; k < pixels; k++)
            sum += (double)*element(x, n * pixels + k);
        *element(mean, n) = (float)(sum / (double)pixels);
        for (int64_t k = 0; k < pixels; k++)
            *element(y, n * pixels + k) = *element(x, n * pixels + k) - *element(mean, n);
    }
    return 0;
}

int weft_golden_register(struct weft_context *context)
{
    static const struct weft_custom all[] = {
        {.size = sizeof *all, .name = "sum_columns", .least_operands = 1, .most_operands = 1, .run = sum_columns,
         .type = type_of_columns, .layout = any_strides, .demand = walk_columns},
        {.size = sizeof *all, .name = "add_aligned", .least_operands = 1, .most_operands = -1, .run = add_aligned,
         .type = type_of_sum, .layout = any_strides, .demand = want_lines},
        {.size = sizeof *all, .name = "add_packed", .least_operands = 1, .most_operands = -1, .run = add,
         .type = type_of_sum, .demand = walk_columns},
        {.size = sizeof *all, .name = "add_turned", .least_operands = 1, .most_operands = -1, .run = add_turned,
         .type = type_of_sum, .layout = turned},
        {.size = sizeof *all, .name = "center", .least_operands = 1, .most_operands = 1, .results = 2, .run = center,
         .type = type_of_center, .layout = any_strides, .parts = each_image, .axes = lie_alike},
        {.size = sizeof *all, .name = "center_apart", .least_operands = 1, .most_operands = 1, .results = 2,
         .run = center, .type = type_of_center, .layout = any_strides, .parts = each_image},
    };
    int status = WEFT_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == WEFT_OK; i++)
        status = weft_register(context, &all[i]);
    return status;
}

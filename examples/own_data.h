/* SPDX-License-Identifier: Apache-2.0 */
/* own_data.h: what own_plan.c and own_run.c need around their kernels: errors, inputs for any model, a run by weft, and
 * a comparison of answers. */
#ifndef OWN_DATA_H
#define OWN_DATA_H

#include <weft/weft.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(const struct weft_context *context, int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %s\n", weft_status_text(status), weft_last_error(context));
    exit(1);
}

static size_t count(const int64_t *extent, int rank)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)extent[i];
    return n;
}

/* A tensor for a value of the plan's graph, with symbols at their hints, and memory for it. */
static struct weft_tensor tensor_for(const struct weft_plan *plan, weft_val value)
{
    struct weft_value_facts facts = {.size = sizeof facts};
    weft_value_read(weft_plan_graph(plan), value, &facts);
    struct weft_tensor tensor = {.dtype = facts.dtype, .rank = facts.rank};
    memcpy(tensor.extent, facts.hint, sizeof tensor.extent);
    for (int i = 0; i < facts.storage_axes; i++)
        tensor.stride[facts.storage[i].axis] = facts.storage[i].stride;
    tensor.data = calloc(count(tensor.extent, tensor.rank) + 1, weft_dtype_bits(tensor.dtype) / 8);
    if (!tensor.data) {
        fprintf(stderr, "no memory for %s\n", facts.name ? facts.name : "a tensor");
        exit(1);
    }
    return tensor;
}

/* Numbers from 0 to 1 for images. Integers are taken for token ids in the first input, and for masks or types of tokens
 * in others, where 0 and 1 are all that is sure to mean something. */
static struct weft_tensor input_for(const struct weft_plan *plan, size_t input)
{
    const struct weft_tensor tensor = tensor_for(plan, weft_graph_param(weft_plan_graph(plan), input));
    for (size_t i = 0; i < count(tensor.extent, tensor.rank); i++) {
        const size_t integer = input ? i % 8 < 6 : i * 37 % 100;
        if (tensor.dtype == WEFT_F32)
            ((float *)tensor.data)[i] = (float)(i * 37 % 256) / 256;
        else if (tensor.dtype == WEFT_I64)
            ((int64_t *)tensor.data)[i] = (int64_t)integer;
        else if (tensor.dtype == WEFT_I32)
            ((int32_t *)tensor.data)[i] = (int32_t)integer;
        else if (tensor.dtype == WEFT_BOOL)
            ((bool *)tensor.data)[i] = integer != 0;
    }
    return tensor;
}

static struct weft_execution *run(const struct weft_context *context, const struct weft_plan *plan,
                                  const struct weft_tensor *input)
{
    struct weft_execution *execution;
    must(context, weft_execution_create(plan, &execution));
    for (size_t i = 0; i < weft_plan_inputs(plan); i++)
        must(context, weft_bind_input(execution, i, &input[i]));
    if (weft_run(execution) != WEFT_OK) {
        fprintf(stderr, "%s\n", weft_execution_error(execution));
        exit(1);
    }
    return execution;
}

/* The largest difference from what weft computed, beside 1 or the value, whichever is larger; -1 where results are of
 * other types than f32. */
static double difference(const struct weft_execution *weft, size_t output, const float *got)
{
    struct weft_tensor expected;
    double most = 0;
    weft_output(weft, output, &expected);
    if (expected.dtype != WEFT_F32)
        return -1;
    for (size_t k = 0; k < count(expected.extent, expected.rank); k++) {
        const double value = ((const float *)expected.data)[k], distance = fabs(got[k] - value) / fmax(1, fabs(value));
        most = distance <= most ? most : distance; /* also of NaN */
    }
    return most;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: normalisations by the mean and variance of the elements themselves.
 *
 * In row-major order the elements that are normalised together are neighbours, for layers as for groups of channels:
 * rows of some length, each on its own. Only what they are scaled by differs: a layer's element i takes number
 * i % length, a group's the number of its channel. */
#include "eval/rule.h"

#include <math.h>

struct rows {
    int64_t count, length;
    int64_t inner, numbers; /* element i takes number (i / inner) % numbers of scale and bias */
    bool centred;           /* the mean is subtracted first */
    double epsilon;
};

static struct rows rows_of_groups(const struct weft_eval *eval)
{
    const struct weft_tensor *x = &eval->in[0];
    struct rows rows = {.inner = 1, .numbers = x->extent[1], .centred = true};
    for (int axis = 2; axis < x->rank; axis++)
        rows.inner *= x->extent[axis];
    rows.length = x->extent[1] / weft_eval_int(eval, WEFT_ATTR_groups) * rows.inner;
    return rows;
}

static struct rows rows_of_layers(const struct weft_eval *eval, bool centred)
{
    const struct weft_tensor *x = &eval->in[0];
    struct rows rows = {.length = 1, .inner = 1, .centred = centred};
    for (int axis = (int)weft_eval_int(eval, WEFT_ATTR_axis); axis < x->rank; axis++)
        rows.length *= x->extent[axis];
    rows.numbers = rows.length;
    return rows;
}

static void normalise_row(const struct rows *rows, union weft_number *x)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < rows->length && rows->centred; i++)
        mean += x[i].real;
    mean /= (double)rows->length;
    for (int64_t i = 0; i < rows->length; i++) {
        x[i].real -= mean;
        squares += x[i].real * x[i].real;
    }
    const double deviation = sqrt(squares / (double)rows->length + rows->epsilon);
    for (int64_t i = 0; i < rows->length; i++)
        x[i].real /= deviation;
}

/* x · scale + bias, where they are given. */
static void scale_all(const struct rows *rows, union weft_number *x, const union weft_number *scale,
                      const union weft_number *bias)
{
    for (int64_t i = 0; i < rows->count * rows->length; i++) {
        const int64_t number = i / rows->inner % rows->numbers;
        x[i].real = x[i].real * (scale ? scale[number].real : 1) + (bias ? bias[number].real : 0);
    }
}

static void normalise(struct weft_eval *eval, struct rows rows)
{
    rows.count = rows.length > 0 ? weft_tensor_count(&eval->in[0]) / rows.length : 0;
    rows.epsilon = weft_attr_real(eval->graph, eval->node, WEFT_ATTR_epsilon);
    const unsigned operands = weft_node_of(eval->graph, eval->node)->operands;
    union weft_number *number[3] = {NULL};
    for (unsigned i = 0; i < operands; i++)
        number[i] = weft_eval_numbers(eval, &eval->in[i]);
    if (!eval->failed) {
        for (int64_t row = 0; row < rows.count; row++)
            normalise_row(&rows, number[0] + row * rows.length);
        if (operands > 1)
            scale_all(&rows, number[0], number[1], number[2]);
        weft_eval_store_all(&eval->out[0], number[0]);
    }
    for (unsigned i = 0; i < operands; i++)
        weft_eval_drop_numbers(eval, number[i], weft_tensor_count(&eval->in[i]));
}

void weft_eval_layer_norm(struct weft_eval *eval) { normalise(eval, rows_of_layers(eval, true)); }
void weft_eval_rms_norm(struct weft_eval *eval) { normalise(eval, rows_of_layers(eval, false)); }
void weft_eval_group_norm(struct weft_eval *eval) { normalise(eval, rows_of_groups(eval)); }

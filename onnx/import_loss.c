/* SPDX-License-Identifier: Apache-2.0 */
/* import_loss.c: the losses of classifiers.
 *
 *   x [n, c, d…], target [n, d…], weight [c]     picked[n, d…] = the sum over c of (c == target ? x : 0)
 *
 * Classes are picked by comparing with an iota, not by gathering: a target that is to be ignored may lie outside of the
 * classes and then picks nothing, and a number that is not picked cannot spoil the sum, were it a NaN. */
#include "onnx/import.h"

#include <string.h>

enum { REDUCE_MEAN, REDUCE_SUM, REDUCE_NONE };

struct loss {
    weft_val target;
    struct weft_type full, rest; /* of the scores, and without their classes */
    weft_val chosen;             /* bool, of the scores' shape: is this the target's class? */
    weft_val counted;            /* bool, of the target's shape: it is not to be ignored; none: all count */
};

/* A value of the target's shape repeated along the classes. */
static weft_val along_classes(struct onnx_op *op, const struct loss *loss, weft_val value)
{
    unsigned axes[WEFT_MAX_RANK];
    for (unsigned i = 0; i < loss->rest.rank; i++)
        axes[i] = i ? i + 1 : 0;
    return weft_onnx_broadcast_axes(op, value, &loss->full, loss->rest.rank, axes);
}

static weft_val sum_classes(struct onnx_op *op, weft_val value)
{
    return weft_onnx_reduction(op, WEFT_OP_sum, value, 1, (const unsigned[]){1}, false);
}

static weft_val select(struct onnx_op *op, weft_val condition, weft_val yes, weft_val no)
{
    return weft_onnx_make(op, WEFT_OP_select, 3, (const weft_val[]){condition, yes, no}, 0, NULL, NULL);
}

static weft_val zero_like(struct onnx_op *op, weft_val like) { return weft_onnx_scalar_like(op, like, 0); }

static struct loss read_loss(struct onnx_op *op, weft_val scores, weft_val target)
{
    struct loss loss = {.target = target, .full = weft_onnx_type(op, scores)};
    const struct weft_type labels = weft_onnx_type(op, target);
    if (!op->failed && (loss.full.rank < 2 || labels.rank + 1 != loss.full.rank))
        weft_onnx_fail(op, WEFT_ERR_INVALID, "a target of %u axes does not fit scores of %u", labels.rank,
                       loss.full.rank);
    if (op->failed)
        return loss;
    loss.rest = labels;
    loss.rest.dtype = loss.full.dtype;
    struct weft_type numbers = loss.full;
    /* Integers have no vectors. Floats count as far exactly, and no other integer becomes one of these. */
    const bool few = weft_dim_is_constant(loss.full.extent[1]) && weft_dim_value(loss.full.extent[1]) < 1 << 24;
    numbers.dtype = few ? WEFT_F32 : labels.dtype;
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 1);
    const weft_val number = weft_onnx_make(op, WEFT_OP_iota, 0, NULL, 1, &axis, &numbers);
    loss.chosen = weft_onnx_binary(op, WEFT_OP_eq, number,
                                   along_classes(op, &loss, weft_onnx_cast(op, target, numbers.dtype)));
    const struct onnx_attribute *ignored = weft_onnx_attribute(op, "ignore_index", ONNX_INT);
    if (ignored)
        loss.counted = weft_onnx_binary(op, WEFT_OP_ne, target,
                                        weft_onnx_scalar_like(op, target, (double)ignored->integer));
    return loss;
}

/* What each target weighs: its class's weight or 1, and 0 if it is to be ignored. None where that is 1 for all. */
static weft_val weights_of(struct onnx_op *op, const struct loss *loss)
{
    const bool weighted = weft_onnx_has(op, 2);
    if (op->failed || (!weighted && !loss->counted.id))
        return WEFT_NO_VALUE;
    weft_val weight = weft_onnx_splat(op, &loss->rest, 1);
    if (weighted) {
        const weft_val spread = weft_onnx_broadcast_axes(op, op->input[2], &loss->full, 1, (const unsigned[]){1});
        weight = sum_classes(op, select(op, loss->chosen, spread, zero_like(op, spread)));
    }
    return loss->counted.id ? select(op, loss->counted, weight, zero_like(op, weight)) : weight;
}

static weft_val reduce(struct onnx_op *op, weft_val value, int opcode)
{
    unsigned axes[WEFT_MAX_RANK];
    const unsigned rank = weft_onnx_type(op, value).rank;
    for (unsigned i = 0; i < rank; i++)
        axes[i] = i;
    return weft_onnx_reduction(op, opcode, value, rank, axes, false);
}

/* The loss of log probabilities. The mean is that of the weights, not of the elements. */
static weft_val likelihood_loss(struct onnx_op *op, weft_val log_probabilities, weft_val target)
{
    const int reduction = weft_onnx_word(op, "reduction", "mean sum none");
    const struct loss loss = read_loss(op, log_probabilities, target);
    const weft_val weight = weights_of(op, &loss);
    if (op->failed)
        return WEFT_NO_VALUE;
    weft_val picked =
        sum_classes(op, select(op, loss.chosen, log_probabilities, zero_like(op, log_probabilities)));
    if (weight.id)
        picked = weft_onnx_binary(op, WEFT_OP_mul, picked, weight);
    if (loss.counted.id) /* also where an infinity is to be ignored */
        picked = select(op, loss.counted, picked, zero_like(op, picked));
    const weft_val each = weft_onnx_unary(op, WEFT_OP_neg, picked);
    if (reduction == REDUCE_NONE)
        return each;
    if (reduction == REDUCE_SUM)
        return reduce(op, each, WEFT_OP_sum);
    if (!weight.id)
        return reduce(op, each, WEFT_OP_mean);
    const weft_val weights = reduce(op, weight, WEFT_OP_sum);
    return weft_onnx_binary(op, WEFT_OP_div, reduce(op, each, WEFT_OP_sum), weights);
}

static void import_likelihood(struct onnx_op *op)
{
    op->output[0] = likelihood_loss(op, weft_onnx_input(op, 0), weft_onnx_input(op, 1));
}

static void import_cross_entropy(struct onnx_op *op)
{
    const weft_val scores = weft_onnx_input(op, 0);
    const struct weft_attr axis = weft_attr_of_int(WEFT_ATTR_axis, 1);
    const weft_val logarithm = weft_onnx_make(op, WEFT_OP_log_softmax, 1, &scores, 1, &axis, NULL);
    op->output[0] = likelihood_loss(op, logarithm, weft_onnx_input(op, 1));
    if (op->outputs > 1)
        op->output[1] = logarithm;
}

const struct onnx_row weft_onnx_loss[] = {
    {"NegativeLogLikelihoodLoss", 12, 2, 3, 0, import_likelihood},
    {"SoftmaxCrossEntropyLoss", 12, 2, 3, 0, import_cross_entropy},
    {0},
};

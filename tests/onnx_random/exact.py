# SPDX-License-Identifier: Apache-2.0
"""Ops as ONNX's text defines them, with more digits than any type has, where the others are less exact or wrong.

    results(node, operands, results, again)  ->  what the first of the others computed, or better

`again(node, operands)` has the others compute a node that is another one. Which elements stay open is said in
texts.py."""
import math
from fractions import Fraction

import numpy as np

from texts import FLOATS_OF_8, attributes_of, resize

WIDE = np.longdouble
E4M3, E5M2 = FLOATS_OF_8


def axes_of(node, operands):
    """The axes that a reduction goes over: an attribute, or an operand."""
    facts = attributes_of(node, axes=None, noop_with_empty_axes=0)
    axes = facts["axes"]
    if axes is None and len(operands) > 1 and operands[1] is not None:
        axes = [int(a) for a in operands[1]]
    if not axes:
        axes = [] if facts["noop_with_empty_axes"] else range(operands[0].ndim)
    return tuple(sorted(a % operands[0].ndim for a in axes))


def terms(op, x):
    """What is added up, or multiplied."""
    if op in ("ReduceSumSquare", "ReduceL2"):
        return x * x
    return np.abs(x) if op == "ReduceL1" else x


def whole(x):
    """Integers that do not overflow."""
    return x.astype(object)


def log_sum_exp(x, axes):
    most = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(most), most, 0)
    return np.log(np.sum(np.exp(x - shift), axis=axes)) + np.squeeze(shift, axes)


def reduced(op, x, axes):
    """In as many digits as there are; integers are exact where the op has no root or logarithm."""
    integers = x.dtype.kind in "iu"
    if op == "ReduceLogSumExp":
        return log_sum_exp(x.astype(WIDE), axes)
    if op == "ReduceProd":
        return np.prod(whole(x) if integers else x.astype(WIDE), axis=axes)
    total = np.sum(terms(op, whole(x) if integers else x.astype(WIDE)), axis=axes)
    if op in ("ReduceL2", "ReduceLogSum"):
        total = np.asarray(total).astype(WIDE)
        return np.sqrt(total) if op == "ReduceL2" else np.log(total)
    if op == "ReduceMean":
        count = int(np.prod([x.shape[a] for a in axes]))
        if integers and count: # of numbers that doubles do not hold, too
            towards_zero = np.vectorize(lambda t: abs(int(t)) // count * (1 if t >= 0 else -1), otypes=[object])
            return towards_zero(total)
        return total / count
    return total


def reduction(node, operands, results, again):
    """ReduceMean of nothing is left as it is: the text does not say what it is. That of integers is truncated, as the
    others do, but of an exact sum: they divide in f64, which does not hold all numbers beyond 2^53."""
    x, axes = operands[0], axes_of(node, operands)
    integers = x.dtype.kind in "iu"
    if node.op_type == "ReduceMean" and 0 in [x.shape[a] for a in axes] or x.dtype == bool:
        return results
    with np.errstate(all="ignore"):
        y = np.asarray(reduced(node.op_type, x, axes))
        if integers:
            real = y.dtype != object
            y = low_bits(np.trunc(np.where(np.isfinite(y), y, 0)) if real else y, x.dtype)
        else:
            y = y.astype(x.dtype)
    return [y.reshape(results[0].shape)]


def one_hot(node, operands, results, again):
    """The evaluator computes off + (on - off) · place, which rounds."""
    off, on = operands[2]
    flags = again(node, [*operands[:2], np.array([0, 1], operands[2].dtype)])[0]
    return [np.where(flags.astype(bool), on, off).astype(operands[2].dtype)]


def cast(node, operands, results, again):
    """To 8-bit floats: rounded, and only then compared with the largest number."""
    x, kind = operands[0], results[0].dtype
    if kind not in (E4M3, E5M2):
        return results
    with np.errstate(all="ignore"):
        y = x.astype(kind) if x.dtype == np.float64 else x.astype(np.float32).astype(kind)
        beyond = ~np.isfinite(y.astype(np.float32)) & ~np.isnan(x.astype(np.float32))
        if attributes_of(node, saturate=1)["saturate"]:
            most = np.float32(448 if kind == E4M3 else 57344)
            y = np.where(beyond, np.copysign(most, x.astype(np.float32)).astype(kind), y)
    return [np.asarray(y)]


def shrink_attributes(node):
    facts = attributes_of(node, bias=0.0, lambd=0.5)
    return [Fraction(float(np.float32(facts[name]))) for name in ("bias", "lambd")]


def shrunk(x, bias, edge):
    """Of integers, truncated, in numbers that do not overflow."""
    def one(v):
        return math.trunc(v + bias if v < -edge else v - bias if v > edge else 0)
    return np.array([one(int(v)) for v in x.ravel()], object).reshape(x.shape)


def low_bits(numbers, dtype):
    """Of integers however large."""
    mask = 2 ** (8 * dtype.itemsize) - 1
    low = np.array([int(v) & mask for v in np.asarray(numbers, object).ravel()], np.uint64)
    return low.astype(f"u{dtype.itemsize}").view(dtype).reshape(np.shape(numbers))


def shrink(node, operands, results, again):
    """onnxruntime computes integers in f32, the evaluator in f64."""
    x, (bias, edge) = operands[0], shrink_attributes(node)
    if x.dtype.kind in "iu":
        return [low_bits(shrunk(x, bias, edge), x.dtype)]
    if x.dtype != np.float64:
        return results
    bias, edge = np.float64(bias), np.float64(edge)
    return [np.where(x < -edge, x + bias, np.where(x > edge, x - bias, 0.0))]


def mean_variance(node, operands, results, again):
    """By the formula (X - EX) / sqrt(E(X - EX)^2); the body's E[X^2] - E[X]^2 rounds below 0."""
    x = operands[0].astype(WIDE)
    axes = tuple(sorted({a % x.ndim for a in attributes_of(node, axes=[0, 2, 3])["axes"]}))
    if 0 in x.shape:
        return results
    with np.errstate(all="ignore"):
        difference = x - x.mean(axes, keepdims=True)
        deviation = np.sqrt((difference ** 2).mean(axes, keepdims=True))
        return [(difference / (deviation + WIDE(1e-9))).astype(operands[0].dtype)]


def global_pool(node, operands, results, again):
    x, axes = operands[0].astype(WIDE), tuple(range(2, operands[0].ndim))
    p = attributes_of(node, p=2)["p"]
    if 0 in x.shape:
        return results
    with np.errstate(all="ignore"):
        if node.op_type == "GlobalMaxPool": # of f64 the others compare f32
            return [operands[0].max(axes).reshape(results[0].shape)]
        y = x.mean(axes) if node.op_type == "GlobalAveragePool" else (np.abs(x) ** p).sum(axes) ** (WIDE(1) / p)
        return [y.astype(operands[0].dtype).reshape(results[0].shape)]


def resized(node, operands, results, again):
    exact = resize(node, operands, results[0].shape)
    return results if exact is None else [exact]


def softplus(x):
    """log(exp(x) + 1), of which exp does not overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# What the others compute in f32, or so that exp overflows first: Softplus by its function body, also in 16 bits.
FUNCTIONS = {"Cosh": np.cosh, "Sinh": np.sinh, "Softplus": softplus, "Mish": lambda x: x * np.tanh(softplus(x))}


def function(node, operands, results, again):
    with np.errstate(all="ignore"):
        return [FUNCTIONS[node.op_type](operands[0].astype(WIDE)).astype(np.float64).astype(operands[0].dtype)]


DEFINED = {**{name: function for name in FUNCTIONS}, "Resize": resized, "OneHot": one_hot, "Cast": cast,
           "CastLike": cast, "Shrink": shrink,
           "MeanVarianceNormalization": mean_variance, "GlobalAveragePool": global_pool, "GlobalLpPool": global_pool,
           "GlobalMaxPool": global_pool,
           **{f"Reduce{name}": reduction for name in ("Sum", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp",
                                                      "SumSquare")}}


def results(node, operands, results, again):
    return DEFINED[node.op_type](node, operands, results, again) if node.op_type in DEFINED else results

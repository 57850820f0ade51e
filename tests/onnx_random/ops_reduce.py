# SPDX-License-Identifier: Apache-2.0
"""Ops along axes: reductions, scans, orders, softmax, norms."""
import numpy as np

from graph import BOOL, FLOATS, F32, F64, I32, I64, INTEGERS, is_float
from registry import op


def axes_of(g, x, least=0):
    """Some axes, from either end."""
    axes = g.some(range(x.rank), least)
    return [a - x.rank if g.chance(0.4) else a for a in axes]


def axis_of(g, x):
    axis = g.whole(0, x.rank - 1)
    return axis - x.rank if g.chance(0.4) else axis


@op(weight=9)
def reduce(g):
    name = g.one(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                  "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"])
    x = g.pick(g.types(name))
    if name == "ReduceLogSum" and g.chance(0.8):
        x = g.fresh(x.dtype, g.dims(0, 4), 1 if x.dtype in INTEGERS else 0.1, 4)
    keepdims = g.one([None, 0, 1])
    form = g.one(["none", "some", "some", "some", "empty"])
    as_input = g.opset >= (13 if name == "ReduceSum" else 18)
    if not as_input:
        g.node(name, [x], axes=axes_of(g, x, 1) or None if form == "some" and x.rank else None, keepdims=keepdims)
        return
    noop = g.one([None, 0, 1])
    axes = None if form == "none" else g.numbers_of(axes_of(g, x, 1) if form == "some" and x.rank else [])
    g.node(name, [x, axes], keepdims=keepdims, noop_with_empty_axes=noop)


@op(weight=3)
def arg_reduce(g):
    name = g.one(["ArgMax", "ArgMin"])
    x = g.pick(g.types(name), low=1, tame=False, good=lambda v: not any(n != n for a in v.arrays for n in
                                                                       np.asarray(a, np.float64).ravel()[:500]))
    g.node(name, [x], axis=g.one([None, axis_of(g, x)]), keepdims=g.one([None, 0, 1]),
           select_last_index=g.one([None, 0, 1]) if g.opset >= 12 else None)


@op(weight=3)
def cumsum(g):
    if not g.since("CumSum"):
        return
    x = g.pick(g.types("CumSum"), low=1)
    g.node("CumSum", [x, g.numbers_of(axis_of(g, x), g.one([I64, I32]))], exclusive=g.one([None, 0, 1]),
           reverse=g.one([None, 0, 1]))


@op(weight=3)
def topk(g):
    x = g.pick(g.types("TopK"), low=1)
    axis = axis_of(g, x)
    least = x.least(axis)
    k = g.whole(0 if g.chance(0.1) else min(1, least), least)
    flat = [a for a in x.arrays]
    ordered = g.one([None, 1])
    if any(is_float(a.dtype) and np.isnan(np.asarray(a, np.float64)).any() for a in flat):
        return
    g.node("TopK", [x, g.numbers_of([k])], outputs=g.one([[True, True], [True, False], [False, True]]),
           axis=g.one([None, axis]) if x.least(-1) >= k else axis, largest=g.one([None, 0, 1]), sorted=ordered)


@op(weight=4)
def softmax(g):
    name = g.one(["Softmax", "LogSoftmax", "Hardmax"])
    x = g.pick(g.types(name), low=1)
    g.node(name, [x], axis=g.one([None, axis_of(g, x)]))


@op(weight=2)
def lp_normalize(g):
    x = g.pick(g.types("LpNormalization"), low=1)
    g.node("LpNormalization", [x], axis=g.one([None, axis_of(g, x)]), p=g.one([None, 1, 2]))


def affine(g, dtype, dims, low=-2, high=2):
    return g.fresh(dtype, [1 if d is None else d for d in dims], low, high)


@op(weight=4)
def layer_norm(g):
    name = g.one(["LayerNormalization", "RMSNormalization"])
    if not g.since(name):
        return
    x = g.pick([d for d in g.types(name) if d != F64 or g.chance(0.5)], low=1)
    axis = axis_of(g, x)
    dims = g.known_dims(x)[axis:]
    if None in dims:
        return
    if g.chance(0.15):
        dims = [1 if g.chance(0.5) else d for d in dims]
    scale = affine(g, x.dtype, dims)
    operands = [x, scale]
    outputs = [True]
    if name == "LayerNormalization":
        operands.append(g.one([None, affine(g, x.dtype, dims)]))
        outputs = [True, g.chance(0.2), g.chance(0.2)]
    g.node(name, operands, outputs=outputs, axis=axis if axis not in (-1, x.rank - 1) or g.chance(0.5) else None,
           epsilon=g.one([None, 1e-3, 0.1, 0.0]))


@op(weight=4)
def channel_norm(g):
    name = g.one(["GroupNormalization", "InstanceNormalization", "BatchNormalization", "BatchNormalization", "LRN",
                  "MeanVarianceNormalization"])
    if not g.since(name):
        return
    x = g.pick(g.types(name), low=2 if name == "BatchNormalization" else 3, high=5)
    channels = g.known_dims(x)[1]
    epsilon = g.one([None, 1e-3, 0.1])
    if name == "LRN":
        g.node(name, [x], size=g.whole(1, 6), alpha=g.one([None, 0.01]), beta=g.one([None, 0.5, 1.0]),
               bias=g.one([None, 2.0]))
        return
    if name == "MeanVarianceNormalization":
        g.node(name, [x], axes=g.one([None, axes_of(g, x, 1)]))
        return
    if channels is None:
        return
    if name == "GroupNormalization":
        if not isinstance(channels, int) or channels == 0:
            return
        groups = g.one([n for n in range(1, channels + 1) if channels % n == 0])
        rows = groups if g.opset < 21 else channels
        g.node(name, [x, affine(g, x.dtype, [rows]), affine(g, x.dtype, [rows])], num_groups=groups, epsilon=epsilon,
               stash_type=g.one([None, 1]) if g.opset >= 21 else None)
        return
    if name == "InstanceNormalization":
        g.node(name, [x, affine(g, x.dtype, [channels]), affine(g, x.dtype, [channels])], epsilon=epsilon)
        return
    types = [x.dtype, x.dtype, x.dtype]
    if g.opset >= 15 and g.chance(0.2):
        types = [g.one(g.types(name, 1))] * 2 + [g.one(g.types(name, 3))]
    scale, bias = affine(g, types[0], [channels]), affine(g, types[1], [channels])
    mean, variance = affine(g, types[2], [channels]), affine(g, types[2], [channels], 0.1, 3)
    g.node(name, [x, scale, bias, mean, variance], epsilon=epsilon, momentum=g.one([None, 0.5]))


@op(weight=1)
def unique(g):
    x = g.pick(g.types("Unique"), tame=True)
    if is_float(x.dtype) and not x.exact:
        return
    g.node("Unique", [x], outputs=[True, g.chance(0.5), g.chance(0.5), g.chance(0.5)],
           axis=g.one([None, axis_of(g, x)]) if x.rank else None, sorted=g.one([None, 1, 0]))


@op(weight=2)
def loss(g):
    name = g.one(["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
    if not g.since(name):
        return
    x = g.pick([F32] if g.chance(0.8) else g.types(name), low=2, high=4)
    dims = g.known_dims(x)
    if None in dims or not isinstance(dims[1], int) or dims[1] == 0:
        return
    target = g.fresh(g.one([I64, I32]), [dims[0], *dims[2:]], 0, dims[1] - 1)
    weight = g.one([None, g.fresh(x.dtype, [dims[1]], 0.2, 2)])
    outputs = [True, g.chance(0.3)] if name == "SoftmaxCrossEntropyLoss" else 1
    g.node(name, [x, target, weight], outputs=outputs, reduction=g.one([None, "none", "sum", "mean"]),
           ignore_index=g.one([None, None, 0, 1, -1, dims[1] - 1]))

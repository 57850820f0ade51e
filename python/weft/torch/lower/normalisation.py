# SPDX-License-Identifier: Apache-2.0
"""Softmax and the normalisations, also with the statistics that backward graphs read."""

from __future__ import annotations

import torch

from ..dtypes import F32, FLOATS, HALVES
from .build import result_dtype, used_results, value_of
from .registry import Refuse, lower, named


@lower("_softmax", "_log_softmax", "softmax.int", "log_softmax.int", "_safe_softmax", "special_softmax",
       "special_log_softmax")
def softmax(b, n, x, axis, *_, **__):
    log = "log" in n.target._opname
    x = b.cast(x, result_dtype(n))
    if x.rank == 0:
        return b.like(x, 0 if log else 1)
    made = b.op("log_softmax" if log else "softmax", x, axis=axis % x.rank)
    if n.target is not named("_safe_softmax"):
        return made
    hidden = b.op("all", b.op("is_inf", x, positive=0), axes=[axis % x.rank], keepdims=1)  # rows without weight are 0
    return b.select(b.bcast(hidden, x.dims), b.like(x, 0), made)


def statistics_dtype(n, i: int) -> int:
    """The weft type of statistics: result i of a node."""
    from ..dtypes import WEFT_DTYPES

    return WEFT_DTYPES[value_of(n)[i].dtype]


@lower("native_layer_norm")
def layer_norm(b, n, x, shape, scale, bias, epsilon):
    axis = x.rank - len(shape)
    if scale is None and bias is not None:
        scale = b.like(bias, 1)
    extra = [b.cast(v, x.dtype) for v in (scale, bias) if v is not None]
    y = b.op("layer_norm", x, *extra, axis=axis, epsilon=epsilon)
    if used_results(n) <= {0}:
        return [y, None, None]
    axes = list(range(axis, x.rank))
    mean, rstd = (kept(b, v, axes) for v in moments_over(b, x, axes, epsilon))
    return [y, b.cast(mean, statistics_dtype(n, 1)), b.cast(rstd, statistics_dtype(n, 2))]


def moments_over(b, x, axes, epsilon):
    """Mean and reciprocal standard deviation of the innermost axes. Without keepdims they are the reductions that weft
    opens its norms to, so that statistics are results of the group that normalises."""
    x = b.wide(x)
    mean, spread = b.op("mean", x, axes=axes), b.op("variance", x, axes=axes)
    return mean, b.op("rsqrt", b.op("add", spread, b.like(spread, epsilon)))


def kept(b, v, axes):
    """What was reduced over the innermost axes, with these as axes of extent 1."""
    return b.reshape(v, [*v.dims, *[1] * len(axes)])


@lower("native_group_norm")
def group_norm(b, n, x, scale, bias, count, channels, inner, groups, epsilon):
    if scale is None and bias is not None:
        scale = b.like(bias, 1)
    y = b.op("group_norm", x, *[b.cast(v, x.dtype) for v in (scale, bias) if v is not None], groups=groups,
             epsilon=epsilon)
    if used_results(n) <= {0}:
        return [y, None, None]
    sizes = b.sizes(value_of(n)[1].shape)
    rows = b.reshape(x, [sizes[0], groups, b.g.combine("/", b.times(x.dims[1:]), groups)])
    mean, rstd = moments_over(b, rows, [2], epsilon)
    return [y, b.cast(mean, statistics_dtype(n, 1)), b.cast(rstd, statistics_dtype(n, 2))]


@lower("_fused_rms_norm", "rms_norm")
def rms_norm(b, n, x, shape, scale=None, epsilon=None):
    several = n.target is named("_fused_rms_norm")
    axis = x.rank - len(shape)
    if epsilon is None:
        made = (value_of(n)[0] if several else value_of(n)).dtype
        epsilon = torch.finfo(torch.float32 if made in (torch.bfloat16, torch.float16) else made).eps
    y = b.op("rms_norm", x, *([] if scale is None else [b.cast(scale, x.dtype)]), axis=axis, epsilon=epsilon)
    if not several:
        return y
    if used_results(n) <= {0}:
        return [y, None]
    wide = b.wide(x)
    axes = list(range(axis, x.rank))
    square = b.op("mean", b.op("mul", wide, wide), axes=axes)
    rstd = b.op("rsqrt", b.op("add", square, b.like(square, epsilon)))
    return [y, b.cast(kept(b, rstd, axes), statistics_dtype(n, 1))]


# --- batch norm

def channel(b, v, dtype: int, value: float, count):
    """A parameter for each channel in the type of computation; where it is missing, this number."""
    return b.scalar(value, dtype, [count]) if v is None else b.cast(v, dtype)


def normalised(b, x, scale, bias, mean, spread, epsilon):
    wide = b.wide(x) if mean.dtype != x.dtype else x
    y = b.op("batch_norm", wide, *[channel(b, v, wide.dtype, value, x.dims[1]) for v, value in
                                   ((scale, 1), (bias, 0), (mean, 0), (spread, 1))], epsilon=epsilon)
    return b.cast(y, x.dtype)


@lower("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def batch_norm(b, n, x, scale, bias, mean, spread, momentum, epsilon):
    y = normalised(b, x, scale, bias, mean, spread, epsilon)
    if used_results(n) <= {0}:
        return [y, None, None, None]
    values = value_of(n)
    if any(b.known(s) != 0 for i in (1, 2) for s in values[i].shape):
        raise Refuse("statistics of batch norm outside of training")
    return [y, *[b.scalar(0, statistics_dtype(n, i), b.sizes(v.shape)) for i, v in enumerate(values) if i]]


def batch_moments(b, x):
    """Mean and variance of each channel, and how many elements each has. A mean has some roundings of its sum, each of
    which a large mean makes large beside the deviation: the mean of the differences, which the pass of the variance
    has in registers anyway, takes them off again. Then the mean is rounded once, as ATen's, which adds doubles."""
    axes = [a for a in range(x.rank) if a != 1]
    wide = b.wide(x)
    count = b.times([x.dims[a] for a in axes])
    mean = b.op("mean", wide, axes=axes)
    gap = b.op("sub", wide, b.along(mean, x.dims, [1]))
    rest, square = b.op("mean", gap, axes=axes), b.op("mean", b.op("mul", gap, gap), axes=axes)
    rest = b.select(b.op("eq", b.op("sub", rest, rest), b.like(rest, 0)), rest, b.like(rest, 0))  # of an infinite mean
    spread = b.op("max", b.op("sub", square, b.op("mul", rest, rest)), b.like(square, 0))
    return b.op("add", mean, rest), spread, count


@lower("_native_batch_norm_legit_functional", "_native_batch_norm_legit.no_stats", "_batch_norm_with_update_functional")
def batch_norm_train(b, n, x, scale, bias, *args):
    name = n.target._opname
    if name == "_native_batch_norm_legit":
        (training, momentum, epsilon), mean, spread = args, None, None
    elif name == "_batch_norm_with_update_functional":
        (mean, spread, momentum, epsilon), training = args, True
    else:
        mean, spread, training, momentum, epsilon = args
    if not training:
        y = normalised(b, x, scale, bias, mean, spread, epsilon)
        empty = b.scalar(0, mean.dtype, [0])
        return [y, empty, empty, *_stated(b, n, 3, mean, spread)]
    m, v, count = batch_moments(b, x)
    y = normalised(b, x, scale, bias, m, v, epsilon)
    rstd = b.op("rsqrt", b.op("add", v, b.like(v, epsilon)))
    m, rstd = b.cast(m, statistics_dtype(n, 1)), b.cast(rstd, statistics_dtype(n, 2))
    if mean is None:
        return [y, m, rstd]
    # the running variance takes the unbiased one: times count / (count - 1)
    wide = v.dtype
    n_elements = b.extent(count, wide)
    correction = b.op("div", n_elements, b.op("sub", n_elements, b.scalar(1, wide)))
    unbiased = b.op("mul", v, b.bcast(correction, v.dims))
    mixed = [_mix(b, old, new, momentum) for old, new in ((mean, m), (spread, unbiased))]
    if name.startswith("_batch_norm"):
        return [y, m, rstd, b.scalar(0, 12, [0]), *_stated(b, n, 4, *mixed)]
    return [y, m, rstd, *_stated(b, n, 3, *mixed)]


def _stated(b, n, first, *running):
    """New running statistics in the types that the graph states: of 16 bits torch traces them as f32, though its op
    gives 16 bits. They are rounded as the op does; a copy to the module's buffers is exact then."""
    return [b.cast(value, statistics_dtype(n, first + i)) for i, value in enumerate(running)]


def _mix(b, old, new, momentum):
    new = b.cast(new, F32 if old.dtype in HALVES else old.dtype)
    wide = b.cast(old, new.dtype)
    made = b.op("add", b.op("mul", wide, b.like(wide, 1 - momentum)), b.op("mul", new, b.like(new, momentum)))
    return b.cast(made, old.dtype)


@lower("linalg_cross")
def cross(b, n, x, y, *, dim=-1):
    axis = dim % x.rank
    dtype = result_dtype(n)
    sizes = b.sizes(value_of(n).shape)
    x, y = b.bcast(b.cast(x, dtype), sizes), b.bcast(b.cast(y, dtype), sizes)
    if b.known(x.dims[axis]) != 3 or dtype not in FLOATS:
        raise Refuse("a cross product of integers")

    def turned(v, by):
        return b.op("concat", b.slice(v, axis, by, 3), b.slice(v, axis, 0, by), axis=axis)

    return b.op("sub", b.op("mul", turned(x, 1), turned(y, 2)), b.op("mul", turned(x, 2), turned(y, 1)))

# SPDX-License-Identifier: Apache-2.0
"""Pooling: windows of one size, and windows that divide an axis into so many parts."""

from __future__ import annotations

import math

import torch

from ..dtypes import FLOATS, I64
from .build import result_sizes, used_results, value_of
from .registry import Refuse, lower
from .windows import batched, per_axis


@lower("max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool1d_with_indices", "max_pool2d", "max_pool3d",
       "max_pool1d")
def max_pool(b, n, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil=False):
    name = n.target._opname
    k = int(name[8])
    both = name.endswith("indices")
    sizes = b.sizes((value_of(n)[0] if both else value_of(n)).shape)
    options = pool_options(k, kernel, stride, padding, dilation, ceil)
    x = batched(b, x, k)
    if not both:
        return b.reshape(b.op("max_pool", x, **options), sizes)
    if used_results(n) <= {0}:
        return [b.reshape(b.op("max_pool", x, **options), sizes), None]
    return [b.reshape(v, sizes) for v in b.op("max_pool_index", x, in_plane=1, **options)]


def pool_options(k, kernel, stride, padding, dilation, ceil) -> dict:
    kernel = per_axis(kernel, k)
    stride = kernel if isinstance(stride, (list, tuple)) and not stride or stride is None else per_axis(stride, k)
    return dict(kernel=kernel, stride=stride, pad=per_axis(padding, k) * 2, dilation=per_axis(dilation, k),
                ceil=int(ceil))


@lower("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(b, n, x, kernel, stride=(), padding=(0,), ceil=False, count_pad=True, divisor=None):
    k, sizes = int(n.target._opname[8]), result_sizes(b, n)
    if x.dtype not in FLOATS:
        raise Refuse("a mean of integers")
    options = pool_options(k, kernel, stride, padding, (1,), ceil)
    del options["dilation"]
    x = batched(b, x, k)
    if divisor is None:
        return b.reshape(b.op("mean_pool", x, count_pad=int(count_pad), **options), sizes)
    # all taps count, on padding too: the mean over a padded x, times the taps, over the divisor
    before = [0, 0] + options["pad"][:k]
    after = list(before)
    if ceil:  # the last windows reach beyond the padding
        for a in range(k):
            size, count = b.static(x.dims[2 + a]), b.static(sizes[len(sizes) - k + a])
            reach = (count - 1) * options["stride"][a] + options["kernel"][a]
            after[2 + a] = max(reach - size - before[2 + a], before[2 + a])
    wide = b.op("pad", b.wide(x), b.scalar(0, b.wide(x).dtype), pad=before + after)
    mean = b.op("mean_pool", wide, kernel=options["kernel"], stride=options["stride"])
    made = b.op("mul", mean, b.like(mean, math.prod(options["kernel"]) / divisor))
    return b.reshape(b.cast(made, x.dtype), sizes)


# --- windows that divide an axis into so many parts, which may differ in size and overlap

def parts_of(inner: int, outer: int) -> list[tuple[int, int]]:
    """Where each of the windows begins and ends."""
    return [(o * inner // outer, -(-(o + 1) * inner // outer)) for o in range(outer)]


@lower("_adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(b, n, x, _):
    """One window size: a pooling. Several: a matrix of weights for each axis."""
    k = int(n.target._opname.removeprefix("_")[17])
    sizes, whole = result_sizes(b, n), batched(b, x, k)
    inner, outer = whole.dims[2:], sizes[-k:]
    if all(b.known(s) == 1 for s in outer):
        return b.reshape(b.op("mean", whole, axes=list(range(2, k + 2)), keepdims=1), sizes)
    inner, outer = b.static_all(inner), b.static_all(outer)
    if 0 in outer:
        return b.scalar(0, x.dtype, sizes)
    if not any(i % o for i, o in zip(inner, outer)):
        step = [i // o for i, o in zip(inner, outer)]
        return b.reshape(b.op("mean_pool", whole, kernel=step, stride=step), sizes)
    made = b.wide(whole)
    for a in range(k):
        made = along_axis(b, made, b.cast(b.constant(averages(inner[a], outer[a]).t()), made.dtype), 2 + a)
    return b.reshape(b.cast(made, x.dtype), sizes)


def averages(inner: int, outer: int) -> torch.Tensor:
    """[outer, inner]: the weights of the means over such windows."""
    weights = torch.zeros(outer, inner, dtype=torch.float64)
    for o, (start, end) in enumerate(parts_of(inner, outer)):
        weights[o, start:end] = 1 / (end - start)
    return weights


@lower("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(b, n, dy, x):
    k, sizes = int(n.target._opname[18]), x.dims
    x, made = batched(b, x, k), b.wide(batched(b, dy, k))
    for a in range(k):
        weights = averages(b.static(x.dims[2 + a]), b.static(dy.dims[dy.rank - k + a]))
        made = along_axis(b, made, b.cast(b.constant(weights), made.dtype), 2 + a)
    return b.reshape(b.cast(made, dy.dtype), sizes)


@lower("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(b, n, x, _):
    """Windows gathered side by side, the shorter ones filled up with their last element; then the largest of each."""
    k, sizes = int(n.target._opname[17]), b.sizes(value_of(n)[0].shape)
    whole = batched(b, x, k)
    inner, outer = b.static_all(whole.dims[2:]), b.static_all(sizes[-k:])
    if 0 in outer:
        return [b.scalar(0, x.dtype, sizes), b.scalar(0, I64, sizes)]
    picks = []
    for i, o in zip(inner, outer):
        parts = parts_of(i, o)
        longest = max(end - start for start, end in parts)
        picks.append(torch.tensor([[min(start + t, end - 1) for t in range(longest)] for start, end in parts]))
    made, place = whole, torch.zeros((), dtype=torch.int64)
    for a, pick in enumerate(picks):
        made = b.op("gather", made, b.constant(pick), axis=2 + 2 * a)
        place = place.unsqueeze(-1).unsqueeze(-1) * inner[a] + pick
    perm = [0, 1, *[2 + 2 * a for a in range(k)], *[3 + 2 * a for a in range(k)]]
    taps = math.prod(pick.shape[1] for pick in picks)
    made = b.reshape(b.transpose(made, perm), [*whole.dims[:2], *outer, taps])
    place = place.permute([p - 2 for p in perm[2:]]).reshape(*outer, taps)
    best = b.op("arg_max", made, axis=2 + k, keepdims=1)
    places = b.op("gather_elements", b.bcast(b.constant(place.contiguous()), made.dims), best, axis=2 + k)
    return [b.reshape(b.op("reduce_max", made, axes=[2 + k]), sizes), b.reshape(places, sizes)]


def along_axis(b, x, matrix, axis: int):
    """x with its axis multiplied by matrix [old, new]."""
    perm = [a for a in range(x.rank) if a != axis] + [axis]
    turned = b.transpose(x, perm)
    rows = b.reshape(turned, [b.times(turned.dims[:-1]), turned.dims[-1]])
    made = b.reshape(b.op("matmul", rows, matrix), [*turned.dims[:-1], matrix.dims[1]])
    return b.transpose(made, [perm.index(a) for a in range(x.rank)])


@lower("max_unpool2d", "max_unpool3d")
def max_unpool(b, n, x, places, size, *_):
    """Elements put at their places in planes of zeros."""
    k, sizes = int(n.target._opname[10]), result_sizes(b, n)
    x, places = batched(b, x, k), batched(b, places, k)
    plane = [*x.dims[:2], b.times(x.dims[2:])]
    zeros = b.scalar(0, x.dtype, [*x.dims[:2], b.times(b.sizes(size))])
    made = b.op("scatter_elements", zeros, b.reshape(places, plane), b.reshape(x, plane), axis=2)
    return b.reshape(made, sizes)

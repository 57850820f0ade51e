# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans, and what orders elements."""

from __future__ import annotations

import math

from ..dtypes import BOOL, FLOATS, I64, U8
from .build import result_dtype, result_sizes, value_of
from .registry import Refuse, lower, named


def axes_of(b, x, axes) -> list[int]:
    """The axes to reduce, rising; none named means all."""
    if axes is None or isinstance(axes, (list, tuple)) and not axes:
        return list(range(x.rank))
    axes = [axes] if isinstance(axes, int) else axes
    return sorted({a % x.rank for a in axes}) if x.rank else []


def _reduction(op: str):
    def make(b, n, x, axes=None, keep=False, **_):
        axes, dtype = axes_of(b, x, axes), result_dtype(n)
        if dtype == BOOL and op in ("sum", "prod"):
            raise Refuse(f"{op} as bool")
        return b.op(op, b.cast(x, dtype), axes=axes, keepdims=int(keep))

    return make


lower("sum.dim_IntList", "sum")(_reduction("sum"))
lower("mean.dim", "mean")(_reduction("mean"))
lower("prod", "prod.dim_int")(_reduction("prod"))


def _extreme(op: str):
    def make(b, n, x, axes=None, keep=False):
        kept = x.dtype
        made = b.op(op, b.cast(x, U8) if kept == BOOL else x, axes=axes_of(b, x, axes), keepdims=int(keep))
        return b.cast(made, kept)

    return make


lower("amax", "max")(_extreme("reduce_max"))
lower("amin", "min")(_extreme("reduce_min"))


@lower("any.dim", "any", "any.dims", "all.dim", "all", "all.dims")
def logic(b, n, x, axes=None, keep=False):
    op = "any" if n.target._opname == "any" else "all"
    made = b.op(op, b.cast(x, BOOL), axes=axes_of(b, x, axes), keepdims=int(keep))
    return b.cast(made, result_dtype(n))


@lower("nansum")
def nansum(b, n, x, axes=None, keep=False, **_):
    if x.dtype in FLOATS:
        x = b.select(b.op("is_nan", x), b.like(x, 0), x)
    return b.op("sum", b.cast(x, result_dtype(n)), axes=axes_of(b, x, axes), keepdims=int(keep))


@lower("count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(b, n, x, axes=None):
    return b.op("sum", b.cast(b.cast(x, BOOL), I64), axes=axes_of(b, x, axes))


@lower("argmax", "argmin")
def arg(b, n, x, axis=None, keep=False):
    sizes = result_sizes(b, n)
    x = b.cast(x, U8) if x.dtype == BOOL else x
    if axis is None or x.rank == 0:
        x, axis = b.flat(x), 0
    op = "arg_max" if n.target is named("argmax") else "arg_min"
    return b.reshape(b.op(op, x, axis=axis % x.rank), sizes)


@lower("max.dim", "min.dim")
def extreme_along(b, n, x, axis, keep=False):
    sizes, dtype = b.sizes(value_of(n)[0].shape), x.dtype
    x = b.cast(x, U8) if dtype == BOOL else x
    x, axis = (b.reshape(x, [1]), 0) if x.rank == 0 else (x, axis % x.rank)
    kind = "max" if n.target is named("max.dim") else "min"
    values = b.op(f"reduce_{kind}", x, axes=[axis])
    places = b.op(f"arg_{kind}", x, axis=axis)
    return [b.cast(b.reshape(values, sizes), dtype), b.reshape(places, sizes)]


@lower("aminmax")
def aminmax(b, n, x, *, dim=None, keepdim=False):
    axes = axes_of(b, x, dim)
    dtype = x.dtype
    x = b.cast(x, U8) if dtype == BOOL else x
    sizes = b.sizes(value_of(n)[0].shape)
    return [b.cast(b.reshape(b.op(op, x, axes=axes, keepdims=int(keepdim)), sizes), dtype)
            for op in ("reduce_min", "reduce_max")]


@lower("logsumexp")
def logsumexp(b, n, x, axes, keep=False):
    return b.op("log_sum_exp", b.cast(x, result_dtype(n)), axes=axes_of(b, x, axes), keepdims=int(keep))


# --- moments

def moments(b, n, x, axes, correction, keep):
    """The mean and the variance."""
    if x.dtype not in FLOATS:
        raise Refuse("the variance of integers")
    correction = 1 if correction is None else correction
    axes, keep = axes_of(b, x, axes), int(keep)
    mean = b.op("mean", x, axes=axes, keepdims=keep)
    if correction == int(correction) and correction >= 0:
        return b.op("variance", x, axes=axes, keepdims=keep, correction=int(correction)), mean
    spread = b.op("variance", x, axes=axes, keepdims=keep)
    count = b.extent(b.times([x.dims[a] for a in axes]), x.dtype)
    divisor = b.op("max", b.op("sub", count, b.scalar(float(correction), x.dtype)), b.scalar(0, x.dtype))
    return b.op("mul", spread, b.bcast(b.op("div", count, divisor), spread.dims)), mean


@lower("var.correction", "std.correction", "var_mean.correction", "std_mean.correction", "var", "std", "var.dim",
       "std.dim")
def variance(b, n, x, axes=None, unbiased=None, keep=False, *, correction=None, keepdim=False):
    if isinstance(axes, bool):
        axes, unbiased = None, axes
    if unbiased is not None:
        correction = int(unbiased)
    spread, mean = moments(b, n, b.wide(x), axes, correction, keep or keepdim)
    if n.target._opname.startswith("std"):
        spread = b.op("sqrt", spread)
    spread = b.cast(spread, x.dtype)
    return [spread, b.cast(mean, x.dtype)] if "mean" in n.target._opname else spread


@lower("linalg_vector_norm", "norm.ScalarOpt_dim", "norm.Scalar", "norm.ScalarOpt_dim_dtype")
def vector_norm(b, n, x, order=2, axes=None, keep=False, *, dtype=None):
    order = 2 if order is None else order
    made = result_dtype(n)
    axes, keep = axes_of(b, x, axes), int(keep)
    if made not in FLOATS or not isinstance(order, (int, float)):
        raise Refuse("a norm of integers")
    x = b.op("abs", b.wide(b.cast(x, made)))
    if order == math.inf:
        out = b.op("reduce_max", x, axes=axes, keepdims=keep)
        if any(b.known(x.dims[a]) == 0 for a in axes):
            raise Refuse("a norm of nothing")
    elif order == -math.inf:
        if any(b.known(x.dims[a]) == 0 for a in axes):
            raise Refuse("a norm of nothing")
        out = b.op("reduce_min", x, axes=axes, keepdims=keep)
    elif order == 0:
        out = b.op("sum", b.cast(b.op("ne", x, b.like(x, 0)), x.dtype), axes=axes, keepdims=keep)
    elif order == 1:
        out = b.op("sum", x, axes=axes, keepdims=keep)
    elif order == 2:
        out = b.op("sqrt", b.op("sum", b.op("mul", x, x), axes=axes, keepdims=keep))
    else:
        total = b.op("sum", b.op("pow", x, b.like(x, float(order))), axes=axes, keepdims=keep)
        out = b.op("pow", total, b.like(total, 1 / float(order)))
    return b.cast(out, made)


# --- scans

def _scan(op: str):
    def make(b, n, x, axis, **_):
        dtype = result_dtype(n)
        if dtype == BOOL:
            raise Refuse(f"{op} as bool")
        x = b.cast(x, dtype)
        return b.op(op, x, axis=axis % x.rank) if x.rank else x

    return make


lower("cumsum")(_scan("cumsum"))
lower("cumprod")(_scan("cumprod"))


@lower("cummax", "cummin")
def running_extreme(b, n, x, axis):
    """Values, and where each was last met: the greatest index so far at which the running value was reached."""
    if x.rank == 0:
        return [x, b.scalar(0, I64)]
    axis, dtype = axis % x.rank, x.dtype
    x = b.cast(x, U8) if dtype == BOOL else x
    values = b.op("cummax" if n.target is named("cummax") else "cummin", x, axis=axis)
    met = b.op("eq", x, values)
    if x.dtype in FLOATS:
        met = b.op("or", met, b.op("is_nan", x))
    places = b.select(met, b.iota(I64, x.dims, axis), b.scalar(0, I64, x.dims))
    return [b.cast(values, dtype), b.op("cummax", places, axis=axis)]


# --- orders

def _sortable(b, x):
    return b.cast(x, U8) if x.dtype == BOOL else x


@lower("sort", "sort.stable", "argsort", "argsort.stable")
def sort(b, n, x, axis=-1, descending=False, *, stable=None, dim=None, **_):
    if "stable" in n.target._overloadname:
        axis, descending = (dim if dim is not None else axis), descending
    if x.rank == 0:
        both = [x, b.scalar(0, I64)]
    else:
        values, places = b.op("sort", _sortable(b, x), axis=axis % x.rank, descending=int(descending))
        both = [b.cast(values, x.dtype), places]
    return both if n.target._opname == "sort" else both[1]


@lower("topk")
def topk(b, n, x, k, axis=-1, largest=True, sorted=True):  # noqa: A002 - torch's name
    if x.rank == 0:
        return [x, b.scalar(0, I64)] if b.known(k) else [b.scalar(0, x.dtype, [0]), b.scalar(0, I64, [0])]
    values, places = b.op("top_k", _sortable(b, x), axis=axis % x.rank, k=k, largest=int(largest))
    return [b.cast(values, x.dtype), places]


@lower("kthvalue")
def kthvalue(b, n, x, k, axis=-1, keep=False):
    sizes = b.sizes(value_of(n)[0].shape)
    if x.rank == 0:
        return [x, b.scalar(0, I64)]
    axis = axis % x.rank
    both = b.op("sort", _sortable(b, x), axis=axis)
    values, places = (b.reshape(b.slice(v, axis, b.static(k) - 1, b.static(k)), sizes) for v in both)
    return [b.cast(values, x.dtype), places]


@lower("median", "median.dim", "nanmedian", "nanmedian.dim")
def median(b, n, x, axis=None, keep=False):
    """The lower middle of the sorted line; a NaN is the median of a line that holds one, unless it is passed over."""
    several = n.target._overloadname == "dim"
    sizes = b.sizes((value_of(n)[0] if several else value_of(n)).shape)
    skip = n.target._opname == "nanmedian"
    if x.rank == 0:
        return [x, b.scalar(0, I64)] if several else x
    if axis is None:
        x, axis = b.flat(x), 0
    axis, dtype = axis % x.rank, x.dtype
    count = b.static(x.dims[axis], "the length of a median")
    if count == 0:
        raise Refuse("the median of nothing")
    values, places = b.op("sort", _sortable(b, x), axis=axis)
    line = [d for a, d in enumerate(x.dims) if a != axis]
    middle = b.scalar((count - 1) // 2, I64, line)
    if dtype in FLOATS:  # NaNs stand at the end
        nans = b.op("sum", b.cast(b.op("is_nan", x), I64), axes=[axis])
        numbers = b.op("sub", b.like(nans, count), nans)
        lower_middle = b.op("div", b.op("max", b.op("sub", numbers, b.like(nans, 1)), b.like(nans, 0)), b.like(nans, 2))
        middle = lower_middle if skip else b.select(b.op("gt", nans, b.like(nans, 0)), numbers, middle)
    at = b.unsqueeze(middle, axis)
    values, places = (b.reshape(b.op("gather_elements", v, at, axis=axis), sizes) for v in (values, places))
    return [b.cast(values, dtype), places] if several else b.cast(values, dtype)


@lower("renorm")
def renorm(b, n, x, order, axis, most):
    axes = [a for a in range(x.rank) if a != axis % x.rank]
    wide = b.wide(x)
    size = b.op("abs", wide)
    if order == 2:
        norm = b.op("sqrt", b.op("sum", b.op("mul", size, size), axes=axes, keepdims=1))
    elif order == math.inf:
        norm = b.op("reduce_max", size, axes=axes, keepdims=1)
    else:
        total = b.op("sum", b.op("pow", size, b.like(size, float(order))), axes=axes, keepdims=1)
        norm = b.op("pow", total, b.like(total, 1 / float(order)))
    factor = b.op("div", b.like(norm, float(most)), b.op("add", norm, b.like(norm, 1e-7)))
    factor = b.select(b.op("gt", norm, b.like(norm, float(most))), factor, b.like(norm, 1))
    return b.cast(b.op("mul", wide, b.bcast(factor, wide.dims)), x.dtype)


@lower("histc")
def histc(b, n, x, bins=100, low=0, high=0):
    """Counts in bins of equal width, which include the right end of the last."""
    if x.dtype not in FLOATS:
        raise Refuse("a histogram of integers")
    x = b.flat(x)
    if low == high:
        ends = [b.op("reduce_min", x, axes=[0]), b.op("reduce_max", x, axes=[0])]
        flat = b.op("eq", *ends)
        ends = [b.select(flat, b.op(op, e, b.like(e, 1)), e) for op, e in zip(("sub", "add"), ends)]
    else:
        ends = [b.scalar(float(v), x.dtype) for v in (low, high)]
    first, last = (b.bcast(e, x.dims) for e in ends)
    at = b.op("mul", b.op("div", b.op("sub", x, first), b.op("sub", last, first)), b.like(x, bins))
    inside = b.op("and", b.op("ge", x, first), b.op("le", x, last))
    at = b.op("min", b.cast(at, I64), b.scalar(bins - 1, I64, x.dims))
    at = b.select(inside, at, b.like(at, bins))  # an index that lies outside adds nothing
    return b.op("scatter_elements", b.scalar(0, x.dtype, [bins]), at, b.like(x, 1), axis=0, form="add")

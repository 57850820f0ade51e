# SPDX-License-Identifier: Apache-2.0
"""Reading and writing by index: gather, scatter, index, index_put and parts of a tensor replaced.

An index that lies outside is an error in ATen and nothing that a program can rely on; weft reads the nearest element
there, and writes nothing.
"""

from __future__ import annotations

import math

import torch

from ..dtypes import BOOL, FLOATS, I64, U8, WEFT_DTYPES
from .build import result_dtype, result_sizes, used_results, value_of
from .registry import Refuse, lower, named
from .shapes import bounds, raw


@lower("embedding")
def embedding(b, n, table, index, *_):
    return b.op("gather", table, index, axis=0)


@lower("index_select")
def index_select(b, n, x, axis, index):
    if x.rank == 0:
        return x
    return b.op("gather", x, b.reshape(index, [b.times(index.dims)]), axis=axis % x.rank)


def scalar_axes(b, *xs):
    """Operands of an op by index with at least one axis: ATen takes scalars for arrays of one element."""
    return [b.reshape(x, [1]) if x.rank == 0 else x for x in xs]


@lower("gather")
def gather(b, n, x, axis, index, **_):
    sizes = result_sizes(b, n)
    if any(b.known(s) == 0 for s in sizes):
        return b.scalar(0, x.dtype, sizes)
    axis = b.axis(x, axis)
    x, index = scalar_axes(b, x, index)
    return b.reshape(b.op("gather_elements", x, b.cast(index, I64), axis=axis), sizes)


@lower("take")
def take(b, n, x, index):
    return b.op("gather", b.flat(x), index, axis=0)


@lower("index.Tensor", "_unsafe_index.Tensor")
def index(b, n, x, indices):
    """x[…]: the indexed axes go to the front and are flattened; then one gather."""
    axes = [i for i, v in enumerate(indices) if v is not None]
    if any(indices[a].dtype in (BOOL, U8) for a in axes):
        raise Refuse("an index that is a mask")
    if len(axes) == 1:
        return b.op("gather", x, indices[axes[0]], axis=axes[0])
    flat = place(b, n, x, indices, axes)
    rest = [a for a in range(x.rank) if a not in axes]
    front = b.transpose(x, axes + rest)
    front = b.reshape(front, [b.times([x.dims[a] for a in axes]), *[x.dims[a] for a in rest]])
    made = b.op("gather", front, flat, axis=0)
    if axes != list(range(axes[0], axes[-1] + 1)):
        return made  # ATen too puts the axes of indices that stand apart in front
    count = flat.rank
    return b.transpose(made, [*range(count, count + axes[0]), *range(count), *range(count + axes[0], made.rank)])


def index_shape(b, n, axes):
    """The common shape of the indices in argument 1."""
    return b.sizes(torch.broadcast_shapes(*[n.args[1][a].meta["val"].shape for a in axes]))


def place(b, n, x, indices, axes):
    """Row-major places in the indexed axes; indices that count from the end are made to count from the start."""
    shape, flat = index_shape(b, n, axes), None
    for a in axes:
        i = b.positive(b.operand(indices[a], I64, shape), x.dims[a])
        flat = i if flat is None else b.op("add", b.op("mul", flat, b.operand(x.dims[a], I64, shape)), i)
    return flat


@lower("index_put", "_unsafe_index_put", "index_put_")
def index_put(b, n, x, indices, values, accumulate=False):
    axes = [i for i, v in enumerate(indices) if v is not None]
    if n.target is named("index_put_"):
        raise Refuse("a mutation")
    if accumulate and x.dtype == BOOL:
        raise Refuse("accumulation of bool")
    if len(axes) == 1 and indices[axes[0]].dtype == BOOL:
        return _put_by_mask(b, x, indices[axes[0]], axes[0], values, accumulate)
    if any(indices[a].dtype in (BOOL, U8) for a in axes):
        raise Refuse("an index that is a mask")
    shape = index_shape(b, n, axes)
    rest = [a for a in range(x.rank) if a not in axes]
    perm = axes + rest
    adjacent = axes == list(range(axes[0], axes[-1] + 1))
    left = [x.dims[a] for a in rest if a < axes[0]] if adjacent else []
    right = [x.dims[a] for a in rest][len(left):]
    values = b.operand(values, x.dtype, [*left, *shape, *right])
    k = len(left)
    values = b.transpose(values, [*range(k, k + len(shape)), *range(k), *range(k + len(shape), values.rank)])
    places = b.unsqueeze(place(b, n, x, indices, axes), len(shape))
    front = b.reshape(b.transpose(x, perm), [b.times([x.dims[a] for a in axes]), *[x.dims[a] for a in rest]])
    made = b.op("scatter_nd", front, places, values, form="add" if accumulate else "none")
    made = b.reshape(made, [x.dims[a] for a in perm])
    return b.transpose(made, [perm.index(a) for a in range(x.rank)])


def _put_by_mask(b, x, mask, axis, values, accumulate):
    """x[mask] = one number."""
    if accumulate or any(b.known(d) != 1 for d in values.dims):
        raise Refuse("elements by a mask")
    if mask.rank + axis > x.rank:
        raise Refuse("a mask of more axes")
    wide = b.along(mask, x.dims, list(range(axis, axis + mask.rank)))
    return b.select(wide, b.bcast(b.reshape(b.cast(values, x.dtype), []), x.dims), x)


@lower("scatter.value", "scatter.src", "scatter_add", "scatter.reduce", "scatter.value_reduce")
def scatter(b, n, x, axis, places, value, reduce=None):
    form = "add" if n.target is named("scatter_add") else {None: "none", "add": "add", "multiply": "mul"}[reduce]
    return _scatter(b, x, axis, places, value, form, result_sizes(b, n))


def _scatter(b, x, axis, places, value, form, sizes):
    if x.dtype == BOOL and form != "none":
        raise Refuse("accumulation of bool")
    axis = b.axis(x, axis)
    x, places = scalar_axes(b, x, places)
    if hasattr(value, "raw"):
        (value,) = scalar_axes(b, value)
        one = value.rank == 1 and places.rank > 1
        value = b.bcast(value, places.dims) if one else b.cut(b.cast(value, x.dtype), places.dims)
    else:
        value = b.operand(value, x.dtype, places.dims)
    return b.reshape(b.op("scatter_elements", x, b.cast(places, I64), value, axis=axis, form=form), sizes)


@lower("scatter_reduce.two")
def scatter_reduce(b, n, x, axis, places, source, reduce, *, include_self=True):
    return reduce_into(b, n, x, b.axis(x, axis), places, source, reduce, include_self)


@lower("index_reduce")
def index_reduce(b, n, x, axis, places, source, reduce, *, include_self=True):
    axis = b.axis(x, axis)
    (x,) = scalar_axes(b, x)
    places = b.positive(b.flat(places), x.dims[axis])
    part = [*x.dims[:axis], places.dims[0], *x.dims[axis + 1:]]
    return reduce_into(b, n, x, axis, b.along(places, part, [axis]), b.reshape(source, part), reduce, include_self)


def reduce_into(b, n, x, axis, places, source, reduce, include_self):
    sizes = result_sizes(b, n)
    form = {"sum": "add", "prod": "mul", "mean": "add", "amax": "max", "amin": "min"}[reduce]
    if x.dtype == BOOL:
        raise Refuse("accumulation of bool")
    if not include_self:
        neutral = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf}[form]
        if x.dtype not in FLOATS and form in ("max", "min"):
            info = torch.iinfo(value_of(n).dtype)
            neutral = info.min if form == "max" else info.max
        x = _scatter(b, x, axis, places, neutral, "none", sizes)
    made = _scatter(b, x, axis, places, source, form, sizes)
    if reduce != "mean":
        return made
    count = _scatter(b, b.like(x, 1 if include_self else 0), axis, places, 1, "add", sizes)
    return b.op("div" if x.dtype in FLOATS else "floor_div", made, b.op("max", count, b.like(count, 1)))


@lower("put")
def put(b, n, x, places, source, accumulate=False):
    if x.dtype == BOOL and accumulate:
        raise Refuse("accumulation of bool")
    flat = b.flat(x)
    places = b.positive(b.flat(places), flat.dims[0])
    made = b.op("scatter_elements", flat, places, b.flat(source), axis=0, form="add" if accumulate else "none")
    return b.reshape(made, x.dims)


@lower("masked_scatter")
def masked_scatter(b, n, x, mask, source):
    """The source's elements in order where the mask is true: the count of true ones so far says which."""
    sizes = result_sizes(b, n)
    x, mask = b.bcast(x, sizes), b.flat(b.bcast(mask, sizes))
    which = b.op("cumsum", b.cast(mask, I64), axis=0, exclusive=1)
    picked = b.op("gather", b.flat(source), which, axis=0)
    return b.reshape(b.select(mask, picked, b.flat(x)), sizes)


@lower("_embedding_bag_forward_only", "_embedding_bag")
def embedding_bag(b, n, table, index, offsets, scale_by_count=False, mode=0, sparse=False, weights=None,
                  include_last=False, padding=-1):
    """Rows of the table added to their bags; which bag follows from where each begins."""
    if used_results(n) - {0} or mode == 2 or index.rank != 1:
        raise Refuse("the indices of a bag, or its largest")
    value = value_of(n)[0]
    bags, width = b.sizes(value.shape)
    if include_last:
        offsets = b.slice(offsets, 0, 0, bags)
    wide = b.wide(b.op("gather", table, index, axis=0))
    if weights is not None:
        wide = b.op("mul", wide, b.along(b.cast(weights, wide.dtype), wide.dims, [0]))
    counts = b.scalar(1, wide.dtype, index.dims)
    if padding is not None and padding >= 0:
        kept = b.op("ne", index, b.like(index, padding))
        counts = b.cast(kept, wide.dtype)
        wide = b.select(b.along(kept, wide.dims, [0]), wide, b.like(wide, 0))
    bag = b.op("search_sorted", b.cast(offsets, I64), b.iota(I64, index.dims, 0), form="right")
    bag = b.unsqueeze(b.op("sub", bag, b.like(bag, 1)), 1)
    made = b.op("scatter_nd", b.scalar(0, wide.dtype, [bags, width]), bag, wide, form="add")
    if mode == 1:
        count = b.op("scatter_nd", b.scalar(0, wide.dtype, [bags]), bag, counts, form="add")
        made = b.op("div", made, b.along(b.op("max", count, b.like(count, 1)), made.dims, [0]))
    return [b.cast(made, table.dtype), None, None, None]


@lower("index_add", "index_copy", "index_fill.int_Scalar", "index_fill.int_Tensor")
def index_write(b, n, x, axis, places, value, alpha=1):
    """Whole slices along an axis replaced or added to."""
    sizes = result_sizes(b, n)
    form = "add" if n.target is named("index_add") else "none"
    if x.dtype == BOOL and form == "add":
        raise Refuse("accumulation of bool")
    axis = b.axis(x, axis)
    (x,) = scalar_axes(b, x)
    places = b.positive(b.flat(places), x.dims[axis])
    part = [*x.dims[:axis], places.dims[0], *x.dims[axis + 1:]]
    value = b.operand(value, x.dtype, part) if not hasattr(value, "raw") or value.rank == 0 else b.reshape(
        b.cast(value, x.dtype), part)
    if alpha != 1:
        value = b.op("mul", value, b.like(value, alpha))
    perm = [axis, *[a for a in range(x.rank) if a != axis]]
    made = b.op("scatter_nd", b.transpose(x, perm), b.unsqueeze(places, 1), b.transpose(value, perm), form=form)
    return b.reshape(b.transpose(made, [perm.index(a) for a in range(x.rank)]), sizes)


# --- parts replaced

@lower("slice_scatter")
def slice_scatter(b, n, x, source, axis=0, start=None, end=None, step=1):
    axis = axis % x.rank
    first, last = bounds(b, n, value_of(n.args[0]).shape[axis], raw(n, 3), raw(n, 4))
    return replace(b, x, b.cast(source, x.dtype), axis, first, last, b.static(step, "a step"))


def replace(b, x, source, axis: int, first, last, step: int = 1):
    """x with its slice first:last:step along an axis replaced."""
    if step == 1:
        part = [*x.dims[:axis], b.subtract(last, first), *x.dims[axis + 1:]]
        source = b.bcast(source, part)
        parts = [p for p, size in ((b.slice(x, axis, 0, first), first), (source, None),
                                   (b.slice(x, axis, last, x.dims[axis]), b.subtract(x.dims[axis], last)))
                 if size is None or b.known(size) != 0]
        return parts[0] if len(parts) == 1 else b.op("concat", *parts, axis=axis)
    first, last = b.static(first, "a bound"), b.static(last, "a bound")
    count = len(range(first, last, step))
    if count == 0:
        return x
    places = b.constant(torch.arange(first, last, step))
    part = [*x.dims[:axis], count, *x.dims[axis + 1:]]
    return b.op("scatter_elements", x, b.along(places, part, [axis]), b.bcast(source, part), axis=axis)


@lower("select_scatter")
def select_scatter(b, n, x, source, axis, position):
    axis = axis % x.rank
    if isinstance(position, int) and position < 0:
        position = b.known(x.dims[axis]) + position if b.known(x.dims[axis]) is not None else b.g.combine(
            "+", x.dims[axis], position)
    return replace(b, x, b.unsqueeze(b.cast(source, x.dtype), axis), axis, position, b.add(position, 1))


@lower("diagonal_scatter")
def diagonal_scatter(b, n, x, source, offset=0, first=0, second=1):
    made = value_of(n)
    number = torch.arange(made.numel()).reshape(b.static_all(made.shape)) if made.numel() else None
    if number is None:
        return x
    return scatter_places(b, x, b.cast(source, x.dtype), number.diagonal(offset, first, second))


@lower("as_strided_scatter")
def as_strided_scatter(b, n, x, source, size, stride, offset=None):
    given = value_of(n.args[0])
    b.static_all(given.shape), b.static_all(given.stride()), b.static_all(size), b.static_all(stride)
    number = torch.empty_strided(given.shape, given.stride(), dtype=torch.int64)
    if not number.numel() or number.untyped_storage().nbytes() != 8 * number.numel():
        raise Refuse("memory of an array with gaps")
    number.copy_(torch.arange(given.numel()).reshape(given.shape))
    first = (given.storage_offset() if offset is None else b.static(offset)) - given.storage_offset()
    return scatter_places(b, x, b.cast(source, x.dtype), number.as_strided(size, stride, first))


def scatter_places(b, x, source, places: torch.Tensor):
    """x with the elements at these row-major places replaced."""
    if not places.numel():
        return x
    index = b.constant(places.contiguous().reshape(-1))
    made = b.op("scatter_elements", b.flat(x), index, b.flat(b.bcast(source, list(places.shape))), axis=0)
    return b.reshape(made, x.dims)


@lower("searchsorted.Tensor", "bucketize.Tensor", "bucketize.Scalar", "searchsorted.Scalar")
def search_sorted(b, n, x, y, *, out_int32=False, right=False, side=None, sorter=None):
    right = right or side == "right"
    bucketize = n.target._opname == "bucketize"
    if bucketize:
        x, y = y, x
    sizes = result_sizes(b, n)
    if not hasattr(y, "raw"):
        y = b.scalar(y, x.dtype)
    if sorter is not None:
        x = b.op("gather_elements", x, sorter, axis=x.rank - 1)
    common = WEFT_DTYPES[torch.promote_types(*[_dtype_of(v) for v in (x, y)])]
    x, y = b.cast(x, common), b.cast(y, common)
    if x.rank == 1 and y.rank != 1:
        y = b.flat(y)
    y = b.reshape(y, [1]) if y.rank == 0 else y
    made = b.op("search_sorted", x, y, form="right" if right else "left")
    return b.reshape(b.cast(made, result_dtype(n)), sizes)


def _dtype_of(x):
    from ..dtypes import TORCH_DTYPES

    return TORCH_DTYPES[int(x.dtype)]

# SPDX-License-Identifier: Apache-2.0
"""Ops that rearrange elements: views, parts, joins, paddings. In weft views are free and values never alias."""

from __future__ import annotations

import operator

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq

from ..dtypes import BOOL, I64
from .build import result_dtype, result_sizes, value_of
from .registry import TABLE, Refuse, lower, named


@lower("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze.dim", "squeeze.dims", "squeeze", "_reshape_alias",
       "flatten.using_ints", "view_as", "unflatten.int", "view_copy", "unsqueeze_copy", "squeeze_copy",
       "squeeze_copy.dim", "squeeze_copy.dims", "_reshape_copy", "atleast_1d", "atleast_2d", "ravel")
def view(b, n, x, *_):
    return b.reshape(x, result_sizes(b, n))


@lower("view.dtype")
def view_dtype(b, n, x, *_):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    if not b.same_dims(x.dims, sizes) or BOOL in (dtype, x.dtype):
        raise Refuse("a view as a type of another width")
    return x if dtype == x.dtype else b.op("bitcast", x, dtype=dtype, sizes=sizes)


@lower("expand", "expand_copy", "broadcast_to", "expand_as")
def expand(b, n, x, *_, **__):
    return b.bcast(x, result_sizes(b, n))


@lower("permute", "permute_copy")
def permute(b, n, x, perm):
    return b.transpose(x, [p % x.rank for p in perm]) if x.rank else x


@lower("t", "t_copy", "numpy_T")
def t(b, n, x):
    return b.transpose(x, [1, 0]) if x.rank == 2 else x


@lower("transpose.int", "transpose_copy.int", "swapaxes", "swapdims")
def transpose(b, n, x, i, j):
    if x.rank == 0:
        return x
    perm, i, j = list(range(x.rank)), i % x.rank, j % x.rank
    perm[i], perm[j] = perm[j], perm[i]
    return b.transpose(x, perm)


@lower("movedim.intlist", "movedim.int")
def movedim(b, n, x, source, target):
    source, target = ([v] if isinstance(v, int) else list(v) for v in (source, target))
    perm = [None] * x.rank
    for s, d in zip(source, target):
        perm[d % x.rank] = s % x.rank
    rest = iter(a for a in range(x.rank) if a not in perm)
    return b.transpose(x, [next(rest) if p is None else p for p in perm])


def raw(n, i: int, default=None):
    """Argument i of an FX node as torch has it: a number or a SymInt."""
    a = n.args[i] if len(n.args) > i else default
    return a.meta["val"] if isinstance(a, torch.fx.Node) else a


def _clean(b, size, v, default):
    """A bound of a slice, counted from the start and within the axis, as Python slices have it."""
    if v is None:
        return b.size(default)
    if all(isinstance(s, int) for s in (v, size)):
        return min(max(v + size if v < 0 else v, 0), size)
    if isinstance(v, int) and v < 0:
        return b.g.combine("M", b.g.combine("+", b.size(size), v), 0)
    if isinstance(v, int):
        return v if v == 0 else b.g.combine("m", b.size(size), v) if v < 2**31 else b.size(size)
    return b.size(torch.sym_max(0, torch.sym_min(size, v)))


def bounds(b, n, size, start, end):
    first = _clean(b, size, start, 0)
    last = _clean(b, size, end, size)
    if isinstance(first, int) and isinstance(last, int):
        return first, max(first, last)
    return first, last if isinstance(first, int) and first == 0 else b.g.combine("M", first, last)


@lower("slice.Tensor", "slice_copy.Tensor")
def slice_(b, n, x, axis=0, start=None, end=None, step=1):
    axis = axis % x.rank
    first, last = bounds(b, n, value_of(n.args[0]).shape[axis], raw(n, 2), raw(n, 3))
    return b.slice(x, axis, first, last, b.static(step, "a step"))


@lower("narrow", "narrow_copy")
def narrow(b, n, x, axis, start, length):
    axis = axis % x.rank
    if not isinstance(start, int):
        raise Refuse("a start that is a tensor or a symbol")
    start = b.size(start if start >= 0 else b.add(start, x.dims[axis]))
    return b.slice(x, axis, start, b.add(start, b.size(length)))


@lower("select.int", "select_copy.int")
def select(b, n, x, axis, index):
    axis = axis % x.rank
    if isinstance(index, int) and index < 0:
        index = b.g.combine("+", x.dims[axis], index)
    return b.reshape(b.slice(x, axis, index, b.add(index, 1)), result_sizes(b, n))


@lower("split.Tensor", "split_with_sizes", "unbind.int", "chunk", "split_copy.Tensor", "split_with_sizes_copy",
       "unbind_copy.int", "unsafe_split.Tensor", "unsafe_split_with_sizes", "unsafe_chunk", "tensor_split.sections",
       "tensor_split.indices")
def split(b, n, x, sizes=None, axis=0):
    single = n.target._opname.startswith("unbind")
    if single:
        axis = sizes or 0
    axis, at, parts = axis % x.rank, 0, []
    for value in value_of(n):
        end = b.add(at, 1 if single else b.size(value.shape[axis]))
        parts.append(b.reshape(b.slice(x, axis, at, end), b.sizes(value.shape)))
        at = end
    return parts


@lower("unfold", "unfold_copy")
def unfold(b, n, x, axis, size, step):
    """Windows along an axis: gathered by numbers, since they overlap."""
    axis = axis % x.rank if x.rank else 0
    if x.rank == 0:
        return b.reshape(x, result_sizes(b, n))
    count = b.static(value_of(n).shape[axis], "a number of windows")
    index = torch.arange(count).unsqueeze(1) * step + torch.arange(size).unsqueeze(0)
    made = b.op("gather", x, b.constant(index), axis=axis)
    return b.transpose(made, [*range(axis + 1), *range(axis + 2, x.rank + 1), axis + 1])


@lower("as_strided", "as_strided_copy")
def as_strided(b, n, x, size, stride, offset=None):
    """Elements by their place in memory, which follows from how torch says that x lies."""
    given, made = value_of(n.args[0]), value_of(n)
    if offset is None and is_restrided(given, made):
        return x
    sizes, strides = b.static_all(made.shape), b.static_all(stride, "a stride")
    flat, first = memory_order(b, x, given)
    offset = first if offset is None else b.static(offset, "an offset")
    if not all(sizes):
        return b.scalar(0, x.dtype, sizes)
    place = torch.tensor(offset - first)
    for length, step in zip(sizes, strides):
        place = place.unsqueeze(-1) + torch.arange(length) * step
    if int(place.min()) < 0 or int(place.max()) >= b.static(flat.dims[0]):
        raise Refuse("memory beyond the operand")
    return b.op("gather", flat, b.constant(place.contiguous()), axis=0)


def is_restrided(given, made) -> bool:
    """Do both have the same elements, where strides along axes of one element may differ? A mean of channels_last
    images over all pixels is laid out so."""
    def same(a, b):
        return statically_known_true(sym_eq(a, b))

    return given.dim() == made.dim() and all(
        same(a, b) and (same(a, 1) or same(p, q))
        for a, b, p, q in zip(given.shape, made.shape, given.stride(), made.stride()))


def memory_order(b, x, value):
    """The elements of x in the order in which they lie, and the place of the first. Refuses arrays with gaps."""
    shape, stride = b.static_all(value.shape), b.static_all(value.stride(), "a stride")
    order = sorted(range(x.rank), key=lambda a: (-stride[a], -shape[a]))
    dense = 1
    for a in reversed(order):
        if shape[a] != 1 and stride[a] != dense:
            raise Refuse("memory of an array with gaps")
        dense *= shape[a]
    return b.flat(b.transpose(x, order)), b.static(value.storage_offset(), "an offset")


@lower("diagonal", "diagonal_copy")
def diagonal(b, n, x, offset=0, first=0, second=1):
    first, second = first % x.rank, second % x.rank
    rows, columns = (b.static(x.dims[a], "the axis of a diagonal") for a in (first, second))
    low, high = max(0, -offset), max(0, offset)
    length = max(0, min(rows - low, columns - high))
    if length == 0:
        return b.scalar(0, x.dtype, result_sizes(b, n))
    x = b.slice(b.slice(x, first, low, low + length), second, high, high + length)
    return b.op("diagonal", x, axes=sorted((first, second)))


@lower("diag_embed")
def diag_embed(b, n, x, offset=0, first=-2, second=-1):
    """The line as the last axis, repeated as rows and kept where row and column meet."""
    sizes = result_sizes(b, n)
    rank = len(sizes)
    first, second = first % rank, second % rank
    side = b.static(sizes[first], "the axis of a diagonal")
    pads = [0] * (x.rank - 1) + [max(0, offset)] + [0] * (x.rank - 1) + [max(0, -offset)]
    line = b.op("pad", x, b.scalar(0, x.dtype), pad=pads)  # element at column i + offset
    square = [*x.dims[:-1], side, side]
    line = b.along(line, square, [*range(x.rank - 1), x.rank])
    row, column = b.iota(I64, square, x.rank - 1), b.iota(I64, square, x.rank)
    hit = b.op("eq", b.op("add", row, b.like(row, offset)), column)
    made = b.select(hit, line, b.like(line, 0))
    perm, rest = [0] * rank, iter(range(rank - 2))
    for a in range(rank):
        perm[a] = rank - 2 if a == first else rank - 1 if a == second else next(rest)
    return b.transpose(made, perm)


@lower("cat", "concat", "concatenate")
def cat(b, n, xs, axis=0):
    dtype = result_dtype(n)
    kept = [b.cast(x, dtype) for x in xs if not (x.rank == 1 and b.known(x.dims[0]) == 0)]
    if not kept:
        return b.scalar(0, dtype, result_sizes(b, n))
    return kept[0] if len(kept) == 1 else b.op("concat", *kept, axis=axis % kept[0].rank)


@lower("stack")
def stack(b, n, xs, axis=0):
    axis, dtype = axis % (xs[0].rank + 1), result_dtype(n)
    parts = [b.unsqueeze(b.cast(x, dtype), axis) for x in xs]
    return parts[0] if len(parts) == 1 else b.op("concat", *parts, axis=axis)


@lower("repeat", "tile")
def repeat(b, n, x, counts):
    sizes, counts = result_sizes(b, n), [b.size(c) for c in counts]
    counts = [1] * (x.rank - len(counts)) + counts
    dims = [1] * (len(counts) - x.rank) + list(x.dims)
    split_dims = [d for pair in zip(counts, dims) for d in pair]
    if len(split_dims) > 8:
        raise Refuse("a repetition along more than four axes")
    made = b.along(b.reshape(x, dims), split_dims, [2 * a + 1 for a in range(len(dims))])
    return b.reshape(made, sizes)


@lower("constant_pad_nd")
def constant_pad(b, n, x, pads, value=0):
    before, after = [0] * x.rank, [0] * x.rank
    for i in range(len(pads) // 2):
        before[x.rank - 1 - i], after[x.rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    return b.op("pad", x, b.scalar(value, x.dtype), pad=before + after)


@lower("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
       "replication_pad3d", "_pad_circular")
def form_pad(b, n, x, pads):
    name = n.target._opname
    before, after = [0] * x.rank, [0] * x.rank
    for i in range(len(pads) // 2):
        before[x.rank - 1 - i], after[x.rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    form = "reflect" if name.startswith("reflection") else "wrap" if "circular" in name else "edge"
    return b.op("pad", x, b.scalar(0, x.dtype), pad=before + after, form=form)


@lower("flip", "fliplr", "flipud")
def flip(b, n, x, axes=None):
    if axes is None:
        axes = [1] if n.target is named("fliplr") else [0]
    if not axes or x.rank == 0:
        return x
    return b.op("flip", x, axes=sorted({a % x.rank for a in axes}))


@lower("roll")
def roll(b, n, x, shifts, axes=()):
    shifts, axes = ([v] if isinstance(v, int) else list(v) for v in (shifts, axes))
    sizes = x.dims
    if not axes:
        x, axes = b.flat(x), [0]
    for shift, axis in zip(shifts, axes):
        axis = axis % x.rank if x.rank else 0
        size = b.known(x.dims[axis]) if x.rank else 0
        if size == 0:
            continue
        if size is None:
            raise Refuse("a roll along an axis whose size is a symbol")
        shift %= size
        if shift:
            x = b.op("concat", b.slice(x, axis, size - shift, size), b.slice(x, axis, 0, size - shift), axis=axis)
    return b.reshape(x, sizes)


@lower("rot90")
def rot90(b, n, x, k=1, axes=(0, 1)):
    first, second = (a % x.rank for a in axes)
    perm = list(range(x.rank))
    perm[first], perm[second] = second, first
    k %= 4
    if k == 2:
        return b.op("flip", x, axes=sorted((first, second)))
    if k == 1:
        return b.transpose(b.op("flip", x, axes=[second]), perm)
    return b.op("flip", b.transpose(x, perm), axes=[second]) if k == 3 else x


@lower("triu", "tril")
def triangle(b, n, x, diagonal=0):
    return b.op("triangle", x, diagonal=diagonal, upper=int(n.target is named("triu")))


@lower("pixel_shuffle")
def pixel_shuffle(b, n, x, factor):
    *batch, c, h, w = x.dims
    c = b.static(c, "channels") // (factor * factor)
    lead = len(batch)
    made = b.reshape(x, [*batch, c, factor, factor, h, w])
    made = b.transpose(made, [*range(lead), lead, lead + 3, lead + 1, lead + 4, lead + 2])
    return b.reshape(made, result_sizes(b, n))


@lower("pixel_unshuffle")
def pixel_unshuffle(b, n, x, factor):
    *batch, c, h, w = x.dims
    h, w = b.static(h) // factor, b.static(w) // factor
    lead = len(batch)
    made = b.reshape(x, [*batch, c, h, factor, w, factor])
    made = b.transpose(made, [*range(lead), lead, lead + 2, lead + 4, lead + 1, lead + 3])
    return b.reshape(made, result_sizes(b, n))


@lower("channel_shuffle")
def channel_shuffle(b, n, x, groups):
    first, channels, *rest = x.dims
    made = b.reshape(x, [first, groups, b.static(channels, "channels") // groups, *rest])
    return b.reshape(b.transpose(made, [0, 2, 1, *range(3, made.rank)]), x.dims)


def getitem(b, n, xs, i):
    return xs[i]


TABLE[operator.getitem] = getitem

# SPDX-License-Identifier: Apache-2.0
"""Ops that move elements: shapes, slices, gathers, scatters, paddings, and the integers of shapes themselves."""
import numpy as np
from onnx import helper, numpy_helper

from graph import BOOL, FLOATS, F32, I32, I64, INTEGERS, TYPES, is_float
from ops_reduce import axes_of, axis_of
from registry import op


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0] or [0]


def extent_values(g, x, axes):
    """A list of the extents of some axes, computed by nodes."""
    shape = g.value("Shape", [x])
    if axes == list(range(x.rank)):
        return shape
    if len(axes) == 1 and g.chance(0.5):
        start = axes[0]
        return g.value("Slice", [shape, g.numbers_of([start]), g.numbers_of([start + 1])]) if g.opset >= 10 else None
    return g.value("Gather", [shape, g.numbers_of(axes)])


def joined(g, parts):
    """Numbers and values of one axis, in one list."""
    values = [g.numbers_of([p]) if isinstance(p, int) else p for p in parts]
    if None in values:
        return None
    return values[0] if len(values) == 1 else g.value("Concat", values, axis=0)


@op(weight=8)
def reshape(g):
    x = g.pick(g.types("Reshape"), tame=False)
    fixed = len({a.shape for a in x.arrays}) == 1
    kind = g.one(["minus", "zero", "split", "shape", "flat", "any"])
    parts = None
    if kind == "minus":
        axes = g.some(range(x.rank), 0, 2)
        parts = [0 if i in axes else 1 for i in range(x.rank)] if x.rank else []
        parts = [0] * g.whole(0, x.rank) + [-1]
        if x.rank and g.chance(0.3):
            parts.insert(g.whole(0, len(parts)), 1) if parts[0] != 0 else parts.append(1)
    elif kind == "zero" and x.rank:
        parts = [0] * x.rank
        parts[g.whole(0, x.rank - 1)] = -1
    elif kind == "split" and x.rank:
        axis = g.whole(0, x.rank - 1)
        if x.fixed(axis):
            d = g.one(divisors(x.shape[axis]))
            pair = [d, x.shape[axis] // d if d else 0]
            parts = [0] * axis + pair + [-1] * (axis + 1 < x.rank)
    elif kind == "shape" and x.rank:
        cut = g.whole(0, x.rank)
        parts = [extent_values(g, x, [i]) for i in range(cut)] + [-1]
    elif kind == "flat":
        parts = [-1]
    elif fixed:
        left, parts = x.arrays[0].size, []
        for _ in range(g.whole(0, 3)):
            parts.append(g.one(divisors(left)) if left else 0)
            left = left // parts[-1] if parts[-1] else 0
        parts.append(left)
        g.random.shuffle(parts)
    if parts is None:
        return
    shape = joined(g, parts) if parts else g.constant(np.zeros([0], np.int64))
    if shape is not None:
        g.node("Reshape", [x, shape], allowzero=g.one([None, 0, 0, 1]) if g.opset >= 14 else None)


@op(weight=6)
def transpose(g):
    x = g.pick(g.types("Transpose"), tame=False)
    g.node("Transpose", [x], perm=g.one([None, g.some(range(x.rank), x.rank), g.some(range(x.rank), x.rank)]) or None)


@op(weight=4)
def squeeze(g):
    x = g.pick(g.types("Squeeze"), tame=False)
    if g.chance(0.5):
        count = g.whole(0 if g.opset >= 13 else 1, 2)
        rank = x.rank + count
        axes = [a - rank if g.chance(0.4) else a for a in g.some(range(rank), count, count)]
        name = "Unsqueeze"
    else:
        ones = [i for i in range(x.rank) if all(a.shape[i] == 1 for a in x.arrays)]
        axes = [a - x.rank if g.chance(0.4) else a for a in g.some(ones)]
        name = "Squeeze"
        if not axes:
            if len(ones) != sum(1 for i in range(x.rank) if any(a.shape[i] == 1 for a in x.arrays)):
                return
            g.node(name, [x])
            return
    if g.opset >= 13:
        g.node(name, [x, g.numbers_of(axes)])
    else:
        g.node(name, [x], axes=axes)


@op(weight=2)
def flatten(g):
    x = g.pick(g.types("Flatten"), tame=False)
    g.node("Flatten", [x], axis=g.one([None, g.whole(-x.rank, x.rank)]))


@op(weight=6)
def concat(g):
    x = g.pick(g.types("Concat"), low=1, tame=False)
    axis = axis_of(g, x)
    dims = g.known_dims(x)
    operands = [x]
    for _ in range(g.whole(0, 4)):
        same = [v for v in g.values if v.dtype == x.dtype and v.rank == x.rank and all(
            np.delete(a.shape, axis).tolist() == np.delete(b.shape, axis).tolist()
            for a, b in zip(v.arrays, x.arrays))]
        if g.chance(0.6) or None in dims[:axis % x.rank] + dims[axis % x.rank + 1:]:
            operands.append(g.one(same))
            continue
        other = list(dims)
        other[axis] = g.dim() if g.chance(0.9) else 0
        if all(g.elements(other, s) < 4000 for s in g.sizes):
            operands.append(g.fresh(x.dtype, other))
    g.random.shuffle(operands)
    g.node("Concat", operands, axis=axis)


@op(weight=5)
def split(g):
    x = g.pick(g.types("Split"), low=1, tame=False)
    axis = axis_of(g, x)
    count = g.whole(1, 4)
    stated = axis if axis % x.rank or g.chance(0.5) else None
    form = g.one(["equal", "sizes", "sizes", "number"])
    if form == "number" and g.opset >= 18:
        g.node("Split", [x], outputs=count, num_outputs=count, axis=stated)
        return
    if form == "equal":
        if g.opset < 18:
            g.node("Split", [x], outputs=count, axis=stated)
        return
    if not x.fixed(axis):
        return
    cuts = sorted(g.whole(0, x.shape[axis]) for _ in range(count - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, x.shape[axis]])]
    if g.opset >= 13:
        g.node("Split", [x, g.numbers_of(sizes)], outputs=count, axis=stated)
    else:
        g.node("Split", [x], outputs=count, axis=stated, split=sizes)


@op(weight=8)
def slice_(g):
    x = g.pick(g.types("Slice"), low=1, tame=False)
    axes = axes_of(g, x, 1)
    starts, ends, steps = [], [], []
    for axis in axes:
        least = x.least(axis)
        step = g.one([1, 1, 1, 2, 3, -1, -1, -2])
        far = g.one([2 ** 31 - 1, 2 ** 63 - 1, 1000])
        if step > 0:
            start = g.one([0, g.whole(0, least), -g.whole(0, least) or 0, 1, -far if far < 2 ** 60 else -2 ** 63])
            end = g.one([far, far, g.whole(0, least), -g.whole(0, least), -1, least])
        else:
            start = g.one([-1, far, g.whole(0, least), -g.whole(0, least), least - 1])
            end = g.one([-far, -far, g.whole(-least - 1, least), 0])
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
    kind = g.one([I64, I64, I32])
    if kind == I32 and any(not -2 ** 31 <= n < 2 ** 31 for n in starts + ends):
        kind = I64
    named = g.numbers_of(axes, kind)
    if axes == list(range(len(axes))) and g.chance(0.5):
        named = None
    stepped = None if all(s == 1 for s in steps) and g.chance(0.5) else g.numbers_of(steps, kind)
    begin, end = g.numbers_of(starts, kind), g.numbers_of(ends, kind)
    if g.sizes[0] and kind == I64 and len(axes) == 1 and g.chance(0.3): # up to an extent of something
        other = g.pick(TYPES, low=1, tame=False)
        end = extent_values(g, other, [g.whole(0, other.rank - 1)]) or end
    g.node("Slice", [x, begin, end, named, stepped])


@op(weight=5)
def pad(g):
    x = g.pick(g.types("Pad"), tame=g.chance(0.8), low=1)
    mode = g.one([None, "constant", "constant", "reflect", "edge"] + (["wrap"] if g.opset >= 19 else []))
    axes = list(range(x.rank))
    if g.opset >= 18 and g.chance(0.4):
        axes = axes_of(g, x, 1)
    def amount(axis):
        least = x.least(axis)
        most = {None: 4, "constant": 4, "reflect": max(least - 1, 0), "edge": 4, "wrap": least}[mode]
        n = g.one([0, 0, g.whole(0, most), g.whole(0, most)])
        return -g.whole(0, max(least // 2, 0)) if g.chance(0.12) and mode in (None, "constant") else n
    pads = [amount(a) for a in axes] + [amount(a) for a in axes]
    if g.opset < 11:
        return
    value = None
    if mode in (None, "constant"):
        value = g.one([None, g.constant(g.data(x.dtype, g.one([(), (1,)]) if g.opset >= 13 else (), 1, 3)
                                        if x.dtype != BOOL else np.array(True))])
    named = g.numbers_of(axes, g.one([I64, I32])) if axes != list(range(x.rank)) else None
    g.node("Pad", [x, g.numbers_of(pads), value, named], mode=mode)


@op(weight=3)
def tile(g):
    x = g.pick(g.types("Tile"), tame=False)
    repeats = [g.one([1, 1, 2, 3, 0 if g.chance(0.1) else 1]) for _ in range(x.rank)]
    g.node("Tile", [x, g.numbers_of(repeats)])


@op(weight=4)
def expand(g):
    x = g.pick(g.types("Expand"), tame=False)
    dims = [a if a != 1 or g.chance(0.5) else g.one([2, 3, 5, 1]) for a in x.shape]
    if g.chance(0.5):
        dims = [g.one([2, 3, 1])] * g.whole(0, 2) + dims
    parts = []
    for i, n in enumerate(dims):
        axis = i - (len(dims) - x.rank)
        if axis >= 0 and not x.fixed(axis):
            parts.append(g.one([1, extent_values(g, x, [axis])]))
        elif axis < 0 and g.sizes[0] and g.chance(0.5):
            other = g.pick(TYPES, low=1, tame=False)
            parts.append(extent_values(g, other, [g.whole(0, other.rank - 1)]))
        else:
            parts.append(g.one([n, n, 1]) if axis >= 0 else n)
    if not parts:
        return
    shape = joined(g, parts)
    if shape is not None:
        g.node("Expand", [x, shape])


def indices(g, least, dims, dtype=I64):
    """Places along an axis of at least so many elements, from either end."""
    if least == 0:
        return None
    return g.fresh(dtype, dims, -least if g.chance(0.5) else 0, least - 1)


@op(weight=6)
def gather(g):
    x = g.pick(g.types("Gather"), low=1, tame=False)
    axis = axis_of(g, x)
    index = indices(g, x.least(axis), g.dims(0, 2), g.one([I64, I32]))
    if index and max(a.size for a in x.arrays) * max(a.size for a in index.arrays) < 400000:
        g.node("Gather", [x, index], axis=g.one([None, axis]) if axis % x.rank == 0 else axis)


@op(weight=3)
def gather_elements(g):
    x = g.pick(g.types("GatherElements"), low=1, tame=False)
    axis = axis_of(g, x)
    dims = g.known_dims(x)
    if None in dims:
        return
    other = [g.whole(0 if g.chance(0.1) else 1, max(n, 1)) if isinstance(n, int) and n and g.chance(0.5) else n
             for n in dims]
    other[axis] = g.dim()
    index = indices(g, x.least(axis), other, g.one([I64, I32]))
    if index and max(a.size for a in index.arrays) < 5000:
        g.node("GatherElements", [x, index], axis=g.one([None, axis]) if axis % x.rank == 0 else axis)


def place_lists(g, x, batch):
    """Indices [batch…, …, k] into the axes after the batch."""
    k = g.whole(1, x.rank - batch)
    bounds = [x.least(batch + i) for i in range(k)]
    if 0 in bounds:
        return None
    lead = [x.shape[i] for i in range(batch)] + [g.one([1, 2, 3, 5]) for _ in range(g.whole(0, 2))]
    columns = [g.numbers.integers(-b if g.chance(0.3) else 0, b, lead) for b in bounds]
    return np.stack(columns, -1).astype(np.int64).reshape([*lead, k])


def index_value(g, array):
    if g.outer is None and g.chance(0.5):
        name = g.name("x")
        g.inputs.append((name, I64, list(array.shape)))
        return g.add(name, [array] * len(g.sizes))
    return g.constant(array)


@op(weight=3)
def gather_nd(g):
    x = g.pick(g.types("GatherND"), low=1, tame=False)
    batch = g.whole(0, x.rank - 1) if g.opset >= 12 and g.chance(0.4) else 0
    if not all(x.fixed(i) for i in range(batch)):
        return
    places = place_lists(g, x, batch)
    if places is not None and places.size:
        g.node("GatherND", [x, index_value(g, places)], batch_dims=batch or g.one([None, 0]) if g.opset >= 12 else None)


@op(weight=4)
def scatter_nd(g):
    x = g.pick(g.types("ScatterND"), low=1)
    places = place_lists(g, x, 0)
    if places is None:
        return
    reductions = [None, None] + (["none", "add", "mul"] if g.opset >= 16 else []) + (
        ["max", "min"] if g.opset >= 18 else [])
    reduction = g.one(reductions)
    k = places.shape[-1]
    if reduction in (None, "none"): # which of two wins is open
        flat = [tuple(int(n) % x.least(i) for i, n in enumerate(row)) for row in places.reshape(-1, k)]
        if len(set(flat)) < len(flat):
            return
    rest = g.known_dims(x)[k:]
    if None in rest:
        return
    updates = g.fresh(x.dtype, [*places.shape[:-1], *rest])
    g.node("ScatterND", [x, index_value(g, places), updates], reduction=reduction)


@op(weight=4)
def scatter_elements(g):
    x = g.pick(g.types("ScatterElements"), low=1)
    axis = axis_of(g, x)
    if any(not x.fixed(i) for i in range(x.rank)):
        return
    shape = [g.whole(1, max(n, 1)) for n in x.shape]
    if 0 in x.shape:
        return
    reductions = [None, None] + (["none", "add", "mul"] if g.opset >= 16 else []) + (
        ["max", "min"] if g.opset >= 18 else [])
    reduction = g.one(reductions)
    n = x.shape[axis]
    if reduction in (None, "none"):
        order = np.argsort(g.numbers.random([*shape[:axis % x.rank], n, *shape[axis % x.rank + 1:]]), axis % x.rank)
        places = np.take(order, range(shape[axis]), axis % x.rank)
    else:
        places = g.numbers.integers(0, n, shape)
    places = np.where(g.numbers.random(places.shape) < 0.3, places - n, places).astype(np.int64)
    g.node("ScatterElements", [x, index_value(g, places), g.fresh(x.dtype, shape)], axis=axis, reduction=reduction)


@op(weight=2)
def depth_space(g):
    if g.chance(0.5):
        block = g.one([1, 2, 3])
        x = g.fresh(g.one(g.types("DepthToSpace")), [g.dim(), block * block * g.one([1, 2, 3]), g.dim(), g.one([1, 2,
                                                                                                                5])])
        g.node("DepthToSpace", [x], blocksize=block, mode=g.one([None, "DCR", "CRD"]) if g.opset >= 11 else None)
    else:
        block = g.one([1, 2, 3])
        x = g.fresh(g.one(g.types("SpaceToDepth")), [g.dim(), g.one([1, 3, 4]), block * g.one([1, 3, 4]),
                                                     block * g.one([1, 2])])
        g.node("SpaceToDepth", [x], blocksize=block)


@op(weight=3)
def triangle(g):
    if not g.since("Trilu"):
        return
    x = g.pick(g.types("Trilu"), low=2, tame=False)
    k = g.one([None, g.numbers_of(g.whole(-4, 4))])
    g.node("Trilu", [x, k], upper=g.one([None, 0, 1]))


@op(weight=1)
def eye_like(g):
    x = g.pick(g.types("EyeLike"), low=2, high=2)
    to = g.one([None, *[d for d in g.types("EyeLike") if d.itemsize > 1]])
    g.node("EyeLike", [x], k=g.one([None, 1, -1, 40]),
           dtype=None if to is None else helper.np_dtype_to_tensor_dtype(to))


@op(weight=2)
def one_hot(g):
    depth = g.whole(1, 6)
    x = g.fresh(g.one([I64, I64, I32, F32]), g.dims(0, 3), -depth - 1, depth + 1)
    if is_float(x.dtype):
        x = g.value("Round", [x])
    kind = g.one([F32, I64, I32])
    values = g.constant(g.data(kind, (2,)))
    g.node("OneHot", [x, g.numbers_of(g.one([depth, [depth]])), values],
           axis=g.one([None, g.whole(-x.rank - 1, x.rank)]))


@op(weight=2)
def reverse_sequence(g):
    x = g.pick(g.types("ReverseSequence"), low=2, tame=False)
    batch = g.one([None, 0, 1])
    time = 1 - (1 if batch is None else batch)
    dims = g.known_dims(x)
    rows = dims[1 if batch is None else batch]
    if rows is None or x.least(time) == 0:
        return
    lengths = g.fresh(I64, [rows], 1, x.least(time))
    g.node("ReverseSequence", [x, lengths], batch_axis=batch, time_axis=time if time != 0 or g.chance(0.5) else None)


@op(weight=2)
def compress(g):
    x = g.pick(g.types("Compress"), low=1, tame=False)
    axis = g.one([None, axis_of(g, x)])
    length = min(a.size for a in x.arrays) if axis is None else x.least(axis)
    if length > 0:
        g.node("Compress", [x, g.fresh(BOOL, [g.whole(1, length)])], axis=axis)


@op(weight=2)
def nonzero(g):
    x = g.pick(g.types("NonZero"), tame=True)
    if x.rank and (x.exact or not is_float(x.dtype)):
        g.node("NonZero", [x])


@op(weight=4)
def shapes(g):
    x = g.pick(TYPES, tame=False)
    if g.chance(0.2):
        g.node("Size", [x])
        return
    bounds = {}
    if g.opset >= 15:
        bounds = {k: g.whole(-x.rank - 1, x.rank + 1) for k in ("start", "end") if g.chance(0.4)}
    made = g.node("Shape", [x], **bounds)
    if made and made[0].shape == (x.rank,) and x.rank and g.chance(0.3) and max(a.size for a in x.arrays) < 5000:
        kind = g.one([F32, I64, BOOL, I32, F32])
        value = numpy_helper.from_array(g.data(kind, (1,)), "value")
        g.node("ConstantOfShape", made, value=g.one([None, value]))


@op(weight=2)
def range_(g):
    kind = g.one(g.types("Range"))
    if is_float(kind):
        start, step = g.one([0, 0.5, -1.0]), g.one([0.5, 0.25, 1.0, -0.5])
    else:
        start, step = g.whole(-3, 3), g.one([1, 1, 2, 3, -1, -2])
    limit = start + step * g.whole(0, 9) + (g.one([0, 0.125]) if is_float(kind) else g.one([0, 1]))
    if kind == I64 and g.sizes[0] and g.chance(0.7):
        x = g.pick(TYPES, low=1, tame=False)
        extent = g.node("Gather", [g.value("Shape", [x]), g.numbers_of(g.whole(0, x.rank - 1))])
        if extent:
            g.node("Range", [g.constant(np.int64(0)), extent[0], g.constant(np.int64(g.one([1, 1, 2])))])
        return
    g.node("Range", [g.constant(np.asarray(n).astype(kind)) for n in (start, limit, step)], exact=True)


@op(weight=1)
def center_crop(g):
    if not g.since("CenterCropPad"):
        return
    x = g.pick(g.types("CenterCropPad"), low=1)
    axes = axes_of(g, x, 1)
    g.node("CenterCropPad", [x, g.numbers_of([g.whole(1, 12) for _ in axes], g.one([I64, I32]))], axes=axes)


@op(weight=1)
def col2im(g):
    if not g.since("Col2Im"):
        return
    n = g.one([1, 2])
    block, dilations = [g.whole(1, 3) for _ in range(n)], [g.one([1, 1, 2]) for _ in range(n)]
    strides, pads = [g.one([1, 2, 3]) for _ in range(n)], [g.whole(0, 2) for _ in range(2 * n)]
    image = [g.whole(3, 10) for _ in range(n)]
    blocks = [(image[i] + pads[i] + pads[i + n] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
              for i in range(n)]
    if min(blocks) <= 0:
        return
    x = g.fresh(F32, [g.dim(), g.whole(1, 4) * int(np.prod(block)), int(np.prod(blocks))])
    g.node("Col2Im", [x, g.numbers_of(image), g.numbers_of(block)], dilations=dilations, strides=strides, pads=pads)

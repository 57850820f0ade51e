# SPDX-License-Identifier: Apache-2.0
"""Ops over windows: convolutions, pools, resizes, samples of images."""
import numpy as np

from graph import BOOL, FLOATS, F32, I32, I64, I8, U8, is_float
from registry import op

MODES = ["NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


def image(g, dtype, axes, channels, low=None, high=None):
    """An image [batch, channels, …]: an earlier value of that form, or a new one."""
    if low is None:
        fits = [v for v in g.values if v.dtype == dtype and v.rank == axes + 2 and v.fixed(1) and not v.wild() and
                not v.vague and
                0 < v.shape[1] <= 48]
        if fits and g.chance(0.5):
            return g.one(fits)
    dims = [g.one([1, 1, 2, 3]) if not g.sizes[0] or g.chance(0.5) else g.one(g.sizes[0]), channels]
    for _ in range(axes):
        dims.append(g.one(g.sizes[0]) if g.sizes[0] and g.chance(0.6) else g.whole(1, 20 if axes < 3 else 7))
    x = g.input(dtype, dims, low, high)
    return shorter(g, x) if g.sizes[0] and g.chance(0.35) else x


def shorter(g, x):
    """Without its first picture, row or column, or with every second one: extents that are expressions, of which a hint
    of 1 makes nothing."""
    axis = g.one([0, 0, *range(2, x.rank)])
    start, step = g.one([(1, 1), (1, 1), (0, 2), (2, 1), (-3, 1)])
    made = g.node("Slice", [x, g.numbers_of([start]), g.numbers_of([2 ** 31]), g.numbers_of([axis]),
                            g.numbers_of([step])])
    return made[0] if made and not made[0].empty() else x


def window(g, axes, dilate=True, kernel=None):
    """Attributes that windows share, stated or left out."""
    attributes = {}
    kernel = kernel or [g.one([1, 2, 3, 3, 3, 4, 5, 7][:8 if axes < 3 else 5]) for _ in range(axes)]
    if g.chance(0.6):
        attributes["strides"] = [g.one([1, 1, 2, 2, 3, 4]) for _ in range(axes)]
    if dilate and g.chance(0.3):
        attributes["dilations"] = [g.one([1, 1, 2, 3]) for _ in range(axes)]
    mode = g.one(MODES)
    if mode != "NOTSET" or g.chance(0.1):
        attributes["auto_pad"] = mode
    if mode == "NOTSET" and g.chance(0.7):
        attributes["pads"] = [g.whole(0, max(k - 1, 0)) for k in kernel * 2] if g.chance(0.7) else [
            g.whole(0, 3) for _ in range(2 * axes)]
    return kernel, attributes


CHANNELS = [1, 2, 3, 4, 5, 6, 8, 8, 9, 12, 15, 16, 16, 17, 24, 32, 33]


def groups_of(g):
    """Groups, channels per group, results per group."""
    kind = g.one(["one", "one", "one", "depthwise", "grouped"])
    if kind == "one":
        return 1, g.one(CHANNELS), g.one(CHANNELS)
    if kind == "depthwise":
        return g.one(CHANNELS), 1, g.one([1, 1, 1, 2, 3])
    return g.one([2, 3, 4]), g.one([1, 2, 3, 4, 8]), g.one([1, 2, 3, 4, 8, 16])


@op(weight=8)
def conv(g):
    dtype = g.one([F32] * 8 + g.types("Conv"))
    axes = g.one([1, 2, 2, 2, 2, 3])
    groups, depth, width = groups_of(g)
    x = image(g, dtype, axes, groups * depth)
    if x.shape[1] != groups * depth:
        groups = g.one([1, x.shape[1]])
        depth = x.shape[1] // groups
    kernel, attributes = window(g, axes)
    w = g.fresh(dtype, [groups * width, depth, *kernel], -1, 1, constant=g.chance(0.85))
    b = g.one([None, g.fresh(dtype, [groups * width], -1, 1)])
    if g.chance(0.3):
        attributes["kernel_shape"] = kernel
    made = g.node("Conv", [x, w, b], group=groups if groups > 1 or g.chance(0.3) else None, **attributes)
    if made and g.chance(0.3): # what is fused or taken into weights
        after(g, made[0])


def after(g, x):
    channels = x.shape[1]
    kind = g.one(["relu", "norm", "clip", "scale", "bias"])
    if kind == "relu":
        g.node(g.one(["Relu", "Sigmoid", "LeakyRelu", "Tanh"]), [x])
    elif kind == "norm":
        row = [g.fresh(x.dtype, [channels], 0.2, 2, constant=True) for _ in range(4)]
        g.node("BatchNormalization", [x, *row])
    elif kind == "clip" and g.opset >= 11:
        g.node("Clip", [x, g.constant(np.zeros((), x.dtype)), g.constant(np.full((), 6, x.dtype))])
    else:
        other = g.fresh(x.dtype, [channels] + [1] * (x.rank - 2), -2, 2, constant=True)
        g.node("Mul" if kind == "scale" else "Add", [x, other])


@op(weight=6)
def conv_transpose(g):
    dtype = g.one([F32] * 8 + g.types("ConvTranspose"))
    axes = g.one([1, 2, 2, 2, 3])
    groups, depth, width = groups_of(g)
    x = image(g, dtype, axes, groups * depth)
    if x.shape[1] != groups * depth:
        groups = 1
        depth = x.shape[1]
    kernel, attributes = window(g, axes)
    strides = attributes.get("strides", [1] * axes)
    if g.chance(0.3):
        attributes["output_padding"] = [g.whole(0, s - 1) for s in strides]
    if g.chance(0.35):
        dilations = attributes.get("dilations", [1] * axes)
        pads = attributes.get("pads", [0] * (2 * axes))
        if all(x.fixed(2 + i) for i in range(axes)):
            full = [(x.shape[2 + i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 for i in range(axes)]
            attributes["output_shape"] = [max(1, f - g.whole(0, 3)) for f in full]
            attributes.pop("pads", None)
        elif g.chance(0.8):
            attributes["output_shape"] = [g.whole(3, 24) for _ in range(axes)]
            attributes.pop("pads", None)
    w = g.fresh(dtype, [groups * depth, width, *kernel], -1, 1, constant=g.chance(0.85))
    b = g.one([None, g.fresh(dtype, [groups * width], -1, 1)])
    if g.chance(0.3):
        attributes["kernel_shape"] = kernel
    made = g.node("ConvTranspose", [x, w, b], group=groups if groups > 1 or g.chance(0.3) else None, **attributes)
    if made and g.chance(0.2):
        after(g, made[0])


@op(weight=7)
def pool(g):
    name = g.one(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    since = g.since(name)
    dtype = g.one([F32] * 5 + g.types(name))
    axes = g.one([1, 2, 2, 2, 3])
    x = image(g, dtype, axes, g.one(CHANNELS))
    dilate = name == "MaxPool" or (name == "AveragePool" and since >= 19) or (name == "LpPool" and since >= 18)
    kernel, attributes = window(g, axes, dilate)
    if (name != "LpPool" or since >= 18) and g.chance(0.4):
        attributes["ceil_mode"] = g.whole(0, 1)
    outputs = 1
    if name == "AveragePool" and g.chance(0.5):
        attributes["count_include_pad"] = g.whole(0, 1)
    if name == "LpPool" and g.chance(0.6):
        attributes["p"] = g.one([1, 2, 3])
    if name == "MaxPool" and g.chance(0.25):
        outputs = 2
        attributes["storage_order"] = g.one([0, 0, 1])
    if name == "MaxPool" and attributes.get("dilations") and dtype not in FLOATS:
        attributes.pop("dilations")
    g.node(name, [x], outputs=outputs, kernel_shape=kernel, **attributes)


@op(weight=3)
def global_pool(g):
    name = g.one(["GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"])
    x = image(g, g.one(g.types(name)), g.one([1, 2, 2, 3]), g.one(CHANNELS))
    g.node(name, [x], p=g.one([None, 1, 2, 3]) if name == "GlobalLpPool" else None)


@op(weight=1)
def max_unpool(g):
    if g.since("MaxUnpool") == 0:
        return
    x = image(g, F32, 2, g.one([1, 3]))
    kernel, strides = [2, 2], [2, 2]
    made = g.node("MaxPool", [x], outputs=2, kernel_shape=kernel, strides=strides)
    if made:
        g.node("MaxUnpool", made, kernel_shape=kernel, strides=g.one([strides, strides]))


@op(weight=2)
def boxes(g):
    x = image(g, F32, 2, g.one([1, 2, 4]))
    if x.empty():
        return
    count = g.whole(1, 4)
    corners = g.numbers.uniform(0, 8, (count, 2, 2))
    rows = np.concatenate([corners.min(1), corners.max(1) + 0.5], 1).astype(np.float32)
    size = [g.whole(1, 4), g.whole(1, 4)]
    scale = g.one([None, 1.0, 0.5])
    if g.chance(0.3):
        first = np.round(np.concatenate([np.zeros((count, 1)), rows], 1)).astype(np.float32)
        g.node("MaxRoiPool", [x, g.constant(first)], pooled_shape=size, spatial_scale=scale)
        return
    if not g.since("RoiAlign"):
        return
    batch = g.constant(np.zeros(count, np.int64))
    g.node("RoiAlign", [x, g.constant(rows), batch], mode=g.one([None, "avg", "max"]), output_height=size[0],
           output_width=size[1], sampling_ratio=g.one([None, 0, 1, 2, 3]), spatial_scale=scale,
           coordinate_transformation_mode=g.one([None, "half_pixel", "output_half_pixel"]) if g.opset >= 16 else None)


@op(weight=8)
def resize(g):
    if g.opset < 11:
        return
    dtype = g.one([F32, F32, F32, U8, I32, I8] + [d for d in g.types("Resize") if is_float(d)])
    axes = g.one([1, 2, 2, 2, 3])
    x = image(g, dtype, axes, g.one([1, 2, 3, 4, 16]))
    mode = g.one(["nearest", "nearest", "linear", "linear", "cubic"])
    if mode != "nearest" and not is_float(dtype): # how integers are rounded, nobody says
        return
    if g.chance(0.1):
        x = g.pick([F32], low=1, high=5)
    attributes = {"mode": g.one([None, mode]) if mode == "nearest" else mode}
    coordinates = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
    if g.opset >= 19:
        coordinates.append("half_pixel_symmetric")
    transform = g.one([None, *coordinates])
    attributes["coordinate_transformation_mode"] = transform
    if mode == "nearest":
        attributes["nearest_mode"] = g.one([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attributes["cubic_coeff_a"] = g.one([None, -0.5])
        attributes["exclude_outside"] = g.one([None, 0, 1])
    spatial = list(range(max(x.rank - axes, 0), x.rank)) if x.rank > 2 else list(range(x.rank))
    if g.opset >= 18 and mode != "nearest" and g.chance(0.25):
        attributes["antialias"] = g.one([0, 1])
    named = None
    if g.opset >= 18 and g.chance(0.4):
        named = [a - x.rank if g.chance(0.3) else a for a in spatial]
        attributes["axes"] = named
    count = len(named) if named else x.rank
    change = lambda i: named is not None or i in spatial
    roi = None
    if transform == "tf_crop_and_resize":
        low = [g.one([0.0, 0.1, 0.25]) if change(i) else 0.0 for i in range(count)]
        high = [g.one([1.0, 0.8, 0.6, 1.2]) if change(i) else 1.0 for i in range(count)]
        roi = g.constant(np.array(low + high, g.one([np.float32]) if dtype != np.float64 else np.float32))
        attributes["extrapolation_value"] = g.one([None, 10.0])
    elif g.opset < 13:
        roi = g.constant(np.zeros([0], np.float32))
    if g.chance(0.5):
        scales = [g.one([1.0, 2.0, 0.5, 3.0, 1.5, 0.75, 0.6, 2.5, 1.25, 0.3]) if change(i) else 1.0
                  for i in range(count)]
        if transform in ("align_corners", "tf_crop_and_resize"):
            scales = [float(round(s) or 1) for s in scales]
        g.node("Resize", [x, roi, g.constant(np.array(scales, np.float32))], **attributes)
        return
    sizes = []
    for i in range(count):
        axis = (named[i] % x.rank) if named else i
        if not change(i):
            if not x.fixed(axis):
                return
            sizes.append(x.shape[axis])
        else:
            sizes.append(g.one([1, 2, 3, 4, 5, 7, 8, 9, 12, 16]))
    if g.opset >= 18 and named and g.chance(0.4):
        attributes["keep_aspect_ratio_policy"] = g.one(["stretch", "not_larger", "not_smaller"])
    empty = g.constant(np.zeros([0], np.float32)) if g.opset < 13 else None
    g.node("Resize", [x, roi, empty, g.numbers_of(sizes)], **attributes)


@op(weight=3)
def grid_sample(g):
    if not g.since("GridSample"):
        return
    axes = 3 if g.opset >= 20 and g.chance(0.25) else 2
    x = image(g, g.one([F32, F32, np.dtype(np.float64)]), axes, g.one([1, 2, 4]))
    batch = g.known_dims(x)[0]
    if batch is None:
        return
    out = [g.whole(1, 5) for _ in range(axes)]
    grid = g.fresh(x.dtype if x.dtype == F32 else F32, [batch, *out, axes], -1.3, 1.3)
    new = g.opset >= 20
    modes = ["linear", "nearest"] + (["cubic"] if axes == 2 else []) if new else ["bilinear", "nearest", "bicubic"]
    g.node("GridSample", [x, grid], mode=g.one([None, *modes]),
           padding_mode=g.one([None, "zeros", "border", "reflection"]),
           align_corners=g.one([None, 0, 1]))


@op(weight=1)
def affine_grid(g):
    if not g.since("AffineGrid"):
        return
    axes = g.one([2, 3])
    size = [g.whole(1, 3), g.whole(1, 3)] + [g.whole(1, 6) for _ in range(axes)]
    theta = g.fresh(F32, [size[0], axes, axes + 1])
    # The corners of one element: onnxruntime takes the first one, torch the middle.
    align = g.one([None, 0, 1] if min(size[2:]) > 1 else [None, 0])
    g.node("AffineGrid", [theta, g.numbers_of(size)], align_corners=align)


@op(weight=1)
def deform_conv(g):
    if not g.since("DeformConv"):
        return
    groups, parts = g.one([1, 2]), g.one([1, 2])
    channels, width, kernel = groups * parts * g.one([1, 2]), groups * g.one([1, 2]), [g.one([1, 2, 3])
                                                                                       for _ in range(2)]
    x = g.fresh(F32, [g.whole(1, 2), channels, g.whole(3, 8), g.whole(3, 8)], constant=False)
    strides, pads = [g.one([1, 2]) for _ in range(2)], [g.whole(0, 1) for _ in range(4)]
    dilations = [g.one([1, 1, 2]) for _ in range(2)]
    out = [(x.shape[2 + i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
           for i in (0, 1)]
    if min(out) < 1:
        return
    taps = kernel[0] * kernel[1]
    offset = g.fresh(F32, [x.shape[0], parts * 2 * taps, *out], -1, 1)
    mask = g.one([None, g.fresh(F32, [x.shape[0], parts * taps, *out], 0, 1)])
    w = g.fresh(F32, [width, channels // groups, *kernel])
    b = g.fresh(F32, [width]) if mask or g.chance(0.5) else None
    g.node("DeformConv", [x, w, offset, b, mask], strides=strides, pads=pads, dilations=dilations, group=groups,
           offset_group=parts, kernel_shape=g.one([None, kernel]))


@op(weight=3)
def conv_integer(g):
    if not g.since("ConvInteger"):
        return
    axes = g.one([1, 2, 2])
    groups, depth, width = groups_of(g)
    xt, wt = g.one([U8, U8, I8]), g.one([U8, I8, I8])
    x = image(g, xt, axes, groups * depth, 0 if xt == U8 else -50, 60)
    kernel, attributes = window(g, axes)
    w = g.fresh(wt, [groups * width, depth, *kernel], 0 if wt == U8 else -50, 60, constant=g.chance(0.85))
    group = groups if groups > 1 else None
    xz = g.constant(g.data(xt, (), 0, 20))
    wz = g.constant(g.data(wt, (), 0, 20))
    if g.chance(0.4):
        g.node("ConvInteger", [x, w, g.one([None, xz]), g.one([None, wz]) if g.chance(0.5) else None], group=group,
               **attributes)
        return
    scale = lambda: g.constant(np.float32(g.random.uniform(0.01, 0.2)))
    yt = xt
    bias = g.one([None, g.constant(g.data(I32, (groups * width,), -500, 500))])
    per_channel = g.chance(0.4)
    ws = g.constant(g.data(F32, (groups * width,), 0.01, 0.2)) if per_channel else scale()
    wz = g.constant(np.zeros(groups * width, wt)) if per_channel else wz
    g.node("QLinearConv", [x, scale(), xz, w, ws, wz, scale(), g.constant(g.data(yt, (), 0, 20)), bias], group=group,
           **attributes)

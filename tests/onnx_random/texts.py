# SPDX-License-Identifier: Apache-2.0
"""Ops as ONNX's text defines them, in exact fractions, where onnxruntime rounds coordinates or has mistakes of its
own."""
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
from onnx import helper

HALF = Fraction(1, 2)
FLOATS_OF_8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))


def attributes_of(node, **defaults):
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    given = {k: v.decode() if isinstance(v, bytes) else v for k, v in given.items()}
    return {**defaults, **given}


# --- Resize --------------------------------------------------------------------------------------------

def places(mode, length, resized, scale, start, end):
    """Where each element of the result lies on the axis."""
    for i in range(resized):
        if mode == "half_pixel":
            yield (i + HALF) / scale - HALF
        elif mode == "half_pixel_symmetric":
            adjustment = resized / (scale * length)
            yield Fraction(length, 2) * (1 - adjustment) + (i + HALF) / scale - HALF
        elif mode == "pytorch_half_pixel":
            yield (i + HALF) / scale - HALF if resized > 1 else Fraction(0)
        elif mode == "align_corners":
            yield Fraction(i * (length - 1), resized - 1) if resized > 1 else Fraction(0)
        elif mode == "asymmetric":
            yield i / scale
        else: # tf_crop_and_resize
            yield (start + i * (end - start) / (resized - 1) if resized > 1 else HALF * (start + end)) * (length - 1)


def nearest(place, mode):
    if mode == "floor":
        return math.floor(place)
    if mode == "ceil":
        return math.ceil(place)
    return math.ceil(place - HALF) if mode == "round_prefer_floor" else math.floor(place + HALF)


def simplest(number):
    """The fraction of the smallest denominator that rounds to this f32: 0.6 is written for 3/5."""
    x = np.float32(number)
    exact = Fraction(float(x))
    below, above = (Fraction(float(np.nextafter(x, np.float32(to)))) for to in (-np.inf, np.inf))
    low, high = (exact + below) / 2, (exact + above) / 2
    best = exact
    for denominator in range(1, 4096):
        numerator = round(exact * denominator)
        if low < Fraction(numerator, denominator) < high:
            return Fraction(numerator, denominator)
    return best


def resize(node, operands, shape):
    """The result, whose shape is known; None where the text is not precise, or not written down here."""
    facts = attributes_of(node, mode="nearest", coordinate_transformation_mode="half_pixel", antialias=0, axes=None,
                          nearest_mode="round_prefer_floor", extrapolation_value=0.0,
                          keep_aspect_ratio_policy="stretch", cubic_coeff_a=-0.75, exclude_outside=0)
    x, roi, scales, sizes = (list(operands) + [None] * 3)[:4]
    mode = facts["coordinate_transformation_mode"]
    filtered = facts["antialias"] and facts["mode"] != "nearest"
    if 0 in x.shape or 0 in shape or filtered and x.dtype.kind in "iu": # how integers are rounded is not said
        return None
    axes = [a % x.ndim for a in facts["axes"]] if facts["axes"] is not None else list(range(x.ndim))
    result, outside = np.asarray(x, x.dtype if facts["mode"] == "nearest" else np.float64), np.zeros(shape, bool)
    for k, axis in enumerate(axes):
        length, resized = x.shape[axis], shape[axis]
        given = scales is not None and scales.size
        scale = simplest(scales[k]) if given else Fraction(resized, length)
        if not given and facts["keep_aspect_ratio_policy"] != "stretch":
            pick = min if facts["keep_aspect_ratio_policy"] == "not_larger" else max
            scale = pick(Fraction(int(sizes[j]), x.shape[a]) for j, a in enumerate(axes))
        if given and mode in ("align_corners", "tf_crop_and_resize") and (scale * length).denominator != 1:
            return None # "the length of the resized tensor": before or after it is rounded
        crop = mode == "tf_crop_and_resize"
        ends = [simplest(roi[k + n * len(axes)]) if crop else Fraction(0) for n in (0, 1)]
        where = list(places(mode, length, resized, scale, *ends))
        if crop:
            mask = np.array([not 0 <= p <= length - 1 for p in where])
            outside |= mask.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
        result = filter_along(result, axis, where, scale, facts) if filtered else along(result, axis, where, facts)
    result = result.astype(x.dtype)
    return np.where(outside, np.asarray(facts["extrapolation_value"]).astype(x.dtype),
                    result) if outside.any() else result


def along(x, axis, where, facts):
    last = x.shape[axis] - 1
    clip = lambda i: min(max(i, 0), last)
    if facts["mode"] == "nearest":
        return np.take(x, [clip(nearest(p, facts["nearest_mode"])) for p in where], axis)
    below = [math.floor(p) for p in where]
    if facts["mode"] == "cubic":
        result = 0
        taps = [cubic(float(p - b), facts["cubic_coeff_a"]) for p, b in zip(where, below)]
        if facts["exclude_outside"]:
            taps = [[w if 0 <= b + n - 1 <= last else 0 for n, w in enumerate(row)] for b, row in zip(below, taps)]
            # None inside: such a place is outside of a crop, and replaced.
            taps = [[w / (sum(row) or 1) for w in row] for row in taps]
        for n in range(4):
            weight = np.array([row[n] for row in taps]).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
            result = result + weight * np.take(x, [clip(b + n - 1) for b in below], axis)
        return result
    share = np.array([float(p - b) for p, b in zip(where, below)]).reshape([-1 if a == axis else 1
                                                                            for a in range(x.ndim)])
    low, high = (np.take(x, [clip(b + n) for b in below], axis) for n in (0, 1))
    return low * (1 - share) + high * share


def filter_along(x, axis, where, scale, facts):
    """The filter is stretched by max(1, 1 / scale), and its weights have the sum 1; what lies outside is the nearest
    inside, or has no weight."""
    length, narrow = x.shape[axis], min(scale, Fraction(1))
    a, support = facts["cubic_coeff_a"], (2 if facts["mode"] == "cubic" else 1) / narrow
    weights = np.zeros((len(where), length))
    for row, place in zip(weights, where):
        for i in range(math.ceil(place - support), math.floor(place + support) + 1):
            d = float(abs(i - place) * narrow)
            weight = (cubic(d, a)[1] if d <= 1 else cubic(d - 1, a)[0]) if facts["mode"] == "cubic" else 1 - d
            if not facts["exclude_outside"] or 0 <= i < length:
                row[min(max(i, 0), length - 1)] += weight
        row /= row.sum() or 1
    return np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis)


def cubic(t, a):
    """The weights of four neighbours, the second of which is t before the place."""
    near = lambda d: (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    far = lambda d: a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a
    return far(1 + t), near(t), near(1 - t), far(2 - t)


# --- windows that fit nowhere -----------------------------------------------------------------------------------------

def has_room(node, operands):
    """Does every window lie within the padded input? The formula for the extent is 0 or less where none does, which
    onnxruntime rounds to 1 and torch refuses."""
    facts = attributes_of(node, kernel_shape=None, dilations=None, pads=None, auto_pad="NOTSET")
    x, axes = operands[0], operands[0].ndim - 2
    kernel = facts["kernel_shape"]
    if kernel is None and len(operands) <= (3 if node.op_type == "QLinearConv" else 1):
        return True # no legal node, which the others refuse
    if kernel is None:
        kernel = operands[3 if node.op_type == "QLinearConv" else 1].shape[2:]
    dilations, pads = facts["dilations"] or [1] * axes, facts["pads"] or [0] * (2 * axes)
    if facts["auto_pad"].startswith("SAME"):
        return True
    pads = pads if facts["auto_pad"] == "NOTSET" else [0] * (2 * axes)
    return all(x.shape[2 + i] + pads[i] + pads[i + axes] >= dilations[i] * (kernel[i] - 1) + 1 for i in range(axes))


# --- what may be one number or another --------------------------------------------------------------------------------

def is_open(node, operands, results):
    """For each result the elements about which ONNX says nothing, or None."""
    if node.op_type in ("Cast", "CastLike") and results[0].dtype.kind in "iu" and operands[0].dtype.kind not in "iub":
        x = operands[0].astype(np.float64)
        limits = np.iinfo(results[0].dtype)
        # "Out of range … undefined"; the fraction goes first.
        return [~(np.trunc(x) >= limits.min) | ~(np.trunc(x) <= limits.max)]
    if node.op_type == "Pow" and results[0].dtype.kind in "iu":
        limits = np.iinfo(results[0].dtype)
        with np.errstate(all="ignore"):
            y = np.power(operands[0].astype(np.float64), operands[1].astype(np.float64))
        return [~((np.abs(y) < 2.0 ** 53) & (np.trunc(y) >= limits.min) & (np.trunc(y) <= limits.max))]
    if node.op_type == "Sign" and results[0].dtype.kind not in "iub": # "> 0 … < 0 … == 0", and NaN is none of them
        return [np.isnan(operands[0].astype(np.float64))]
    if node.op_type == "Shrink" and results[0].dtype.kind in "iu":
        return [open_shrink(node, operands[0])]
    if node.op_type.startswith("Reduce"):
        return [open_reduction(node, operands, results[0])]
    if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear") and results[0].dtype not in FLOATS_OF_8:
        return [np.isnan(operands[0].astype(np.float64))] + [None] * 2
    return None


def open_shrink(node, x):
    """Integers that the type does not hold; and those that doubles do not hold beside a bias with a fraction: of which
    type x + bias is, when x is of integers and bias a float, is not said."""
    import exact
    bias, edge = exact.shrink_attributes(node)
    total, limits = exact.shrunk(x, bias, edge), np.iinfo(x.dtype)
    wide = np.abs(exact.whole(x)) > 2 ** 53 if bias.denominator != 1 else False
    return np.asarray((total > limits.max) | (total < limits.min) | wide, bool).reshape(x.shape)


def open_reduction(node, operands, result):
    """Integers that the type does not hold, on the way or at the end, and truncated ones beside a whole number; what is
    undefined of nothing; floats that overflow in one order and not in another, and squares that underflow."""
    import exact
    op, x, axes = node.op_type, operands[0], exact.axes_of(node, operands)
    if op in ("ReduceMax", "ReduceMin") or x.dtype == bool:
        return None
    with np.errstate(all="ignore"):
        if x.dtype.kind not in "iu":
            return open_order(op, x, axes).reshape(result.shape)
        limits = np.iinfo(x.dtype)
        total = np.asarray((np.prod if op == "ReduceProd" else np.sum)(
            np.asarray(exact.terms(op, exact.whole(x))), axis=axes))
        mask = (total > limits.max) | (total < limits.min)
        if op == "ReduceMean":
            mask = mask | (0 in [x.shape[a] for a in axes])
        if op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
            y = np.asarray(exact.reduced(op, x, axes)).astype(np.float64)
            near = np.abs(y - np.round(y)) <= 1e-6 * np.maximum(np.abs(y), 1)
            # One term, of which the logarithm of the power may be a rounding below it.
            mask = near & (op != "ReduceL2") & (y != 0) | ~np.isfinite(y) | (mask & (op != "ReduceLogSumExp"))
            if op == "ReduceL2": # the body takes the root in f32
                mask = mask | (np.trunc(np.sqrt(total.astype(np.float32))) != np.trunc(y))
    return np.asarray(mask, bool).reshape(result.shape)


def open_order(op, x, axes):
    size = np.abs(x.astype(np.longdouble))
    most = np.finfo(np.float64 if x.dtype == np.float64 else np.float32)
    if op == "ReduceMean" and 0 in [x.shape[a] for a in axes]:
        return np.asarray(np.any(size, axis=axes) | True)
    if op == "ReduceProd":
        return np.asarray((np.prod(np.maximum(size, 1), axis=axes) > most.max) |
                          (np.prod(np.where(size > 0, np.minimum(size, 1), 1), axis=axes) < most.tiny))
    if op == "ReduceLogSumExp":
        return np.zeros(np.any(size, axis=axes).shape, bool)
    total = np.sum(size * size if op in ("ReduceSumSquare", "ReduceL2") else size, axis=axes)
    beyond = np.isfinite(total) & (total > most.max)
    if op == "ReduceL2": # the function body squares within the type, which may hold the root and not the squares
        beyond = beyond | ((total > 0) & (total < int(np.prod([x.shape[a] for a in axes])) * most.tiny))
    return np.asarray(beyond)

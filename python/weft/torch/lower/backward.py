# SPDX-License-Identifier: Apache-2.0
"""Gradients that torch does not open into simpler ops."""

from __future__ import annotations

import torch


from .build import result_sizes, value_of
from .pooling import along_axis, pool_options
from .registry import Refuse, lower
from .windows import batched, per_axis


@lower("convolution_backward")
def convolution_backward(b, n, dy, x, w, bias_sizes, stride, padding, dilation, transposed, out_pad, groups, wanted):
    k = x.rank - 2
    if k not in (1, 2, 3):
        raise Refuse(f"a convolution of rank {x.rank}")
    stride, padding, dilation = (per_axis(v, k) for v in (stride, padding, dilation))
    options = dict(stride=stride, pad=padding * 2, dilation=dilation, groups=groups)
    dx = dw = db = None
    if wanted[0] and transposed:
        dx = b.cut(b.op("conv", dy, w, **options), x.dims)
    elif wanted[0]:
        dx = data_gradient(b, dy, w, x.dims, options)
    if wanted[1]:
        image, grad = (dy, x) if transposed else (x, dy)
        dw = weight_gradient(b, image, grad, w, padding, options)
    if wanted[2]:
        db = b.op("sum", dy, axes=[a for a in range(dy.rank) if a != 1])
    return [dx, dw, db]


def data_gradient(b, dy, w, dims, options):
    """The adjoint has as many places as its windows cover, and x may have some more, which no window sees. Where sizes
    are symbols, the most that there can be are made and those cut off that x has not."""
    taps, rest = b.static_all(w.dims[2:], "the size of a window"), []
    for i, (t, step, l) in enumerate(zip(taps, options["stride"], options["dilation"])):
        size, given = b.known(dims[2 + i]), b.known(dy.dims[2 + i])
        covered = None if given is None else (given - 1) * step - 2 * options["pad"][i] + l * (t - 1) + 1
        rest.append(step - 1 if size is None or covered is None else size - covered)
    return b.cut(b.op("conv_transpose", dy, w, out_pad=rest, **options), dims)


def weight_gradient(b, image, grad, w, padding, options):
    """conv_grad_weight with as many windows as grad has places: out_pad may leave room for more of them."""
    k = image.rank - 2
    taps = b.static_all(w.dims[2:], "the size of a window")
    after, sizes = list(padding), list(image.dims)
    for i in range(k):
        size, given = b.known(image.dims[2 + i]), b.known(grad.dims[2 + i])
        if size is not None and given is not None:
            reach = (given - 1) * options["stride"][i] + options["dilation"][i] * (taps[i] - 1) + 1 - padding[i]
            after[i], sizes[2 + i] = max(reach - size, 0), min(reach, size)
    return b.op("conv_grad_weight", b.cut(image, sizes), grad, kernel=taps, **{**options, "pad": [*padding, *after]})


@lower("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "adaptive_max_pool2d_backward",
       "adaptive_max_pool3d_backward")
def max_pool_backward(b, n, dy, x, *args):
    k, places = int(n.target._opname.split("_pool")[1][0]), args[-1]
    sizes = x.dims
    x, dy, places = (batched(b, v, k) for v in (x, dy, places))
    return b.reshape(b.op("max_pool_grad", dy, places, dtype=dy.dtype, sizes=x.dims), sizes)


@lower("avg_pool2d_backward")
def avg_pool_backward(b, n, dy, x, kernel, stride, padding, ceil, count_pad, divisor=None):
    """Each gradient divided by the taps of its window, and added to all of these."""
    sizes = x.dims
    x, dy = batched(b, x, 2), batched(b, dy, 2)
    if ceil:
        raise Refuse("windows rounded up")
    o = pool_options(2, kernel, stride, padding, (1,), False)
    taps = o["kernel"][0] * o["kernel"][1]
    if divisor is not None or count_pad or not any(o["pad"]):
        dy = b.op("div", dy, b.like(dy, float(divisor or taps)))
    else:
        what = "with padding that is not counted, the size of an image"
        size, out = (b.static_all(v.dims[2:], what) for v in (x, dy))
        ones = torch.ones(1, 1, *size)
        share = torch.nn.functional.avg_pool2d(ones, o["kernel"], o["stride"], o["pad"][:2], count_include_pad=True)
        count = (share * taps).round().reshape(out)
        dy = b.op("div", dy, b.bcast(b.cast(b.constant(count), dy.dtype), dy.dims))
    pixels = b.times(dy.dims[2:])
    columns = b.along(b.reshape(dy, [*dy.dims[:2], pixels]), [*dy.dims[:2], taps, pixels], [0, 1, 3])
    columns = b.reshape(columns, [dy.dims[0], b.times([dy.dims[1], taps]), pixels])
    return b.reshape(b.op("col2im", columns, dtype=dy.dtype, sizes=x.dims, kernel=o["kernel"], stride=o["stride"],
                          pad=o["pad"]), sizes)


# --- resize

def interpolation_matrix(kind: str, inner: int, outer: int, corners: bool, scale) -> torch.Tensor:
    """[outer, inner]: the weight of each element along one axis, as torch's own op gives it."""
    aten, lines = torch.ops.aten, torch.eye(inner, dtype=torch.float64)
    if kind == "cubic":
        made = aten.upsample_bicubic2d(lines[None, :, :, None], [outer, 1], corners, scale, None)[0, :, :, 0]
    elif kind == "linear":
        made = aten.upsample_linear1d(lines[None], [outer], corners, scale)[0]
    elif kind == "nearest_exact":
        made = aten._upsample_nearest_exact1d(lines[None], [outer], scale)[0]
    else:
        made = aten.upsample_nearest1d(lines[None], [outer], scale)[0]
    return made.t().contiguous()


@lower("upsample_nearest1d_backward", "upsample_nearest2d_backward", "upsample_nearest3d_backward",
       "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d_backward",
       "upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_trilinear3d_backward",
       "upsample_bicubic2d_backward")
def resize_backward(b, n, dy, out, size, *args):
    """The transposed matrix of each axis, one after the other."""
    name = n.target._opname
    smooth = "linear" in name or "cubic" in name
    kind = ("cubic" if "cubic" in name else "linear" if "linear" in name else
            "nearest_exact" if "exact" in name else "nearest")
    corners, scales = (args[0], list(args[1:])) if smooth else (False, list(args))
    k = dy.rank - 2
    scales += [None] * (k - len(scales))
    sizes, made = result_sizes(b, n), b.wide(dy)
    for a in range(k):
        inner, outer = b.static(sizes[2 + a]), b.static(dy.dims[2 + a])
        matrix = interpolation_matrix(kind, inner, outer, corners, scales[a])
        weights = b.cast(b.constant(matrix), made.dtype)
        made = along_axis(b, made, weights, 2 + a)
    return b.cast(made, dy.dtype)


@lower("slice_backward", "select_backward")
def part_backward(b, n, dy, sizes, axis, start, end=None, step=1):
    from .indices import replace

    sizes = result_sizes(b, n)
    axis = axis % len(sizes)
    zeros = b.scalar(0, dy.dtype, sizes)
    if n.target._opname == "select_backward":
        if not isinstance(start, int):
            raise Refuse("a position that is a symbol")
        size = b.static(sizes[axis], "an axis")
        start = start % size
        return replace(b, zeros, b.unsqueeze(dy, axis), axis, start, start + 1)
    from .shapes import bounds, raw

    value = value_of(n)
    first, last = bounds(b, n, value.shape[axis], raw(n, 3), raw(n, 4))
    return replace(b, zeros, dy, axis, first, last, step)


@lower("softplus_backward")
def softplus_backward(b, n, dy, x, beta, threshold):
    wide, grad = b.wide(x), b.wide(dy)
    scaled = b.op("mul", wide, b.like(wide, float(beta)))
    inner = b.op("mul", grad, b.op("sigmoid", scaled))
    return b.cast(b.select(b.op("gt", scaled, b.like(scaled, float(threshold))), grad, inner), dy.dtype)



# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pooling, and what reads between elements."""

from __future__ import annotations

import math

from ..dtypes import FLOATS, I64
from .build import result_sizes, used_results, value_of
from .registry import Refuse, lower


def per_axis(values, count: int) -> list:
    """A list with an element for each spatial axis: one number stands for all."""
    values = [values] if isinstance(values, int) else list(values)
    return values * count if len(values) == 1 else values


@lower("convolution", "_convolution")
def convolution(b, n, x, w, bias, stride, padding, dilation, transposed, out_pad, groups, *_):
    k = x.rank - 2
    if k not in (1, 2, 3) or x.dtype not in FLOATS:
        raise Refuse(f"a convolution of rank {x.rank}" if x.dtype in FLOATS else "a convolution of integers")
    if b.known(x.dims[1]) == 0 or b.known(x.dims[0]) == 0:
        raise Refuse("a convolution of nothing")
    stride, padding, dilation, out_pad = (per_axis(v, k) for v in (stride, padding, dilation, out_pad))
    options = dict(stride=stride, dilation=dilation, groups=groups)
    if transposed:
        y = b.op("conv_transpose", x, w, pad=padding * 2, out_pad=out_pad, **options)
    else:
        y = b.op("conv", x, w, pad=padding * 2, **options)
    return y if bias is None else b.op("add", y, b.along(bias, y.dims, [1]))


def batched(b, x, spatial: int):
    """x with the axes of batch and channels; ATen lets the batch be missing."""
    return x if x.rank == spatial + 2 else b.reshape(x, [1] * (spatial + 2 - x.rank) + list(x.dims))


@lower("max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool1d_with_indices", "max_pool2d", "max_pool3d",
       "max_pool1d")
def max_pool(b, n, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil=False):
    name = n.target._opname
    k = int(name[8])
    both = name.endswith("indices")
    sizes = b.sizes((value_of(n)[0] if both else value_of(n)).shape)
    options = pool_options(k, kernel, stride, padding, dilation, ceil)
    x = batched(b, x, k)
    y = b.reshape(b.op("max_pool", x, **options), sizes)
    if not both:
        return y
    if used_results(n) <= {0}:
        return [y, None]
    places = b.op("max_pool_index", x, **options)  # over all of x; ATen counts within a plane
    plane = b.operand(b.times(x.dims[2:]), I64, places.dims)
    return [y, b.reshape(b.op("mod", places, plane), sizes)]


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
    if ceil:
        raise Refuse("a divisor with windows rounded up")
    # all taps count, on padding too: the mean over a padded x, times the taps, over the divisor
    before = [0, 0] + options["pad"][:k]
    wide = b.op("pad", b.wide(x), b.scalar(0, b.wide(x).dtype), pad=before * 2)
    mean = b.op("mean_pool", wide, kernel=options["kernel"], stride=options["stride"])
    made = b.op("mul", mean, b.like(mean, math.prod(options["kernel"]) / divisor))
    return b.reshape(b.cast(made, x.dtype), sizes)


@lower("_adaptive_avg_pool2d", "adaptive_avg_pool1d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(b, n, x, _):
    """Windows that all have one size: where the result's extents divide x's."""
    k = {"1": 1, "2": 2, "3": 3}[n.target._opname.removeprefix("_")[17]]
    sizes = result_sizes(b, n)
    whole = batched(b, x, k)
    inner, outer = whole.dims[2:], sizes[-k:]
    if all(b.known(s) == 1 for s in outer):
        return b.reshape(b.op("mean", whole, axes=list(range(2, k + 2)), keepdims=1), sizes)
    inner, outer = b.static_all(inner), b.static_all(outer)
    if any(o == 0 or i % o for i, o in zip(inner, outer)):
        raise Refuse("windows of several sizes")
    step = [i // o for i, o in zip(inner, outer)]
    return b.reshape(b.op("mean_pool", whole, kernel=step, stride=step), sizes)


@lower("im2col")
def im2col(b, n, x, kernel, dilation, padding, stride):
    """Columns of windows: two gathers, one for each spatial axis."""
    import torch

    sizes, image = result_sizes(b, n), batched(b, x, 2)
    kernel, dilation, padding, stride = (per_axis(v, 2) for v in (kernel, dilation, padding, stride))
    image = b.op("pad", image, b.scalar(0, x.dtype), pad=[0, 0, *padding] * 2)
    for a in range(2):
        axis = 2 + 2 * a
        length = b.static(image.dims[axis], "the size of an image")
        count = (length - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1
        index = torch.arange(kernel[a]).unsqueeze(1) * dilation[a] + torch.arange(count).unsqueeze(0) * stride[a]
        image = b.op("gather", image, b.constant(index), axis=axis)
    return b.reshape(b.transpose(image, [0, 1, 2, 4, 3, 5]), sizes)  # n, c, kh, kw, oh, ow


@lower("col2im")
def col2im(b, n, x, size, kernel, dilation, padding, stride):
    sizes = result_sizes(b, n)
    x = x if x.rank == 3 else b.unsqueeze(x, 0)
    kernel, dilation, padding, stride = (per_axis(v, 2) for v in (kernel, dilation, padding, stride))
    channels = b.static(x.dims[1], "channels") // (kernel[0] * kernel[1])
    made = b.op("col2im", x, dtype=x.dtype, sizes=[x.dims[0], channels, *b.sizes(size)], kernel=kernel, stride=stride,
                pad=padding * 2, dilation=dilation)
    return b.reshape(made, sizes)


# --- between elements

FORMS = {"nearest": dict(form="nearest", coordinates="asymmetric", nearest="floor"),
         "nearest_exact": dict(form="nearest", coordinates="half_pixel", nearest="prefer_ceil"),
         "linear": dict(form="linear"), "cubic": dict(form="cubic")}


@lower("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_nearest1d.vec",
       "upsample_nearest2d.vec", "upsample_nearest3d.vec", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
       "_upsample_nearest_exact3d", "_upsample_nearest_exact2d.vec", "upsample_linear1d", "upsample_bilinear2d",
       "upsample_trilinear3d", "upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec",
       "upsample_bicubic2d", "upsample_bicubic2d.vec", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
def upsample(b, n, x, size=None, *args, **kwargs):
    name, vector = n.target._opname, n.target._overloadname == "vec"
    smooth = "linear" in name or "cubic" in name
    form = ("linear" if "linear" in name else "cubic" if "cubic" in name else
            "nearest_exact" if "exact" in name else "nearest")
    corners = bool(kwargs.get("align_corners", args[0] if args else False)) if smooth else False
    rest = list(args[1 if smooth else 0:])
    named_scales = [kwargs[k] for k in ("scales", "scales_d", "scales_h", "scales_w") if k in kwargs]
    scales = kwargs.get("scale_factors", rest[0] if rest else None) if vector else rest or named_scales
    return resize(b, x, result_sizes(b, n), form, corners, scales, antialias="_aa" in name)


def resize(b, x, sizes, form: str, corners: bool, scales, antialias: bool = False):
    """What F.interpolate does. Where torch is given factors, it steps by these and not by the quotient of the sizes."""
    if x.dtype not in FLOATS:
        raise Refuse("a resize of integers")
    options = dict(FORMS[form])
    if form in ("linear", "cubic"):
        options["coordinates"] = "align_corners" if corners else "half_pixel"
    if antialias:
        if corners:
            raise Refuse("antialiasing between the corners")
        options.update(antialias=1, exclude=1)
        if form == "cubic":
            options["cubic"] = -0.5
    scales = [s for s in scales or () if s is not None]
    if scales and not corners:
        if any(not isinstance(s, (int, float)) for s in scales):
            raise Refuse("a factor that is a symbol")
        inner, outer = x.dims[2:], sizes[2:]
        exact = all(b.known(i) is not None and b.known(o) == b.known(i) * s for i, o, s in zip(inner, outer, scales))
        if not exact:
            raise Refuse("a factor that is not the quotient of the sizes")
    return b.op("resize", x, dtype=x.dtype, sizes=sizes, **options)


@lower("grid_sampler_2d", "grid_sampler_3d")
def grid_sample(b, n, x, grid, mode, padding, corners):
    form = ("linear", "nearest", "cubic")[mode]
    border = ("zeros", "edge", "reflect")[padding]
    return b.op("grid_sample", x, grid, form=form, border=border, corners=int(corners))


@lower("max_unpool2d", "max_unpool3d")
def max_unpool(b, n, x, places, size, *_):
    """Elements put at their places in planes of zeros."""
    k, sizes = int(n.target._opname[10]), result_sizes(b, n)
    x, places = batched(b, x, k), batched(b, places, k)
    plane = [*x.dims[:2], b.times(x.dims[2:])]
    zeros = b.scalar(0, x.dtype, [*x.dims[:2], b.times(b.sizes(size))])
    made = b.op("scatter_elements", zeros, b.reshape(places, plane), b.reshape(x, plane), axis=2)
    return b.reshape(made, sizes)

# SPDX-License-Identifier: Apache-2.0
"""Convolutions, columns of windows, and what reads between elements."""

from __future__ import annotations

import torch

from ..dtypes import FLOATS
from .build import result_sizes
from .registry import Refuse, aten, lower


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
    corners = bool(kwargs.get("align_corners", args[0] if args else False)) if smooth else False
    rest = list(args[1 if smooth else 0:])
    named_scales = [kwargs[k] for k in ("scales", "scales_d", "scales_h", "scales_w") if k in kwargs]
    scales = kwargs.get("scale_factors", rest[0] if rest else None) if vector else rest or named_scales
    return lower_resize(b, n, x, name, corners, scales or [])


def lower_resize(b, n, x, name: str, corners: bool, factors):
    """The ATen op of this name. Where torch is given factors, it steps by these and not by the quotient of the sizes;
    None: by the quotient."""
    if x.dtype not in FLOATS:
        raise Refuse("a resize of integers")
    form = ("linear" if "linear" in name else "cubic" if "cubic" in name else
            "nearest_exact" if "exact" in name else "nearest")
    options, sizes = dict(FORMS[form]), result_sizes(b, n)
    if form in ("linear", "cubic"):
        options["coordinates"] = "align_corners" if corners else "half_pixel"
    if "_aa" in name:
        if corners:
            raise Refuse("antialiasing between the corners")
        options.update(antialias=1, exclude=1)
        if form == "cubic":
            options["cubic"] = -0.5
    if any(f is not None for f in factors) and not corners:
        scale = step_factors(b, x.dims[2:], sizes[2:], factors)
        if scale:
            known = all(b.known(d) is not None for d in (*x.dims[2:], *sizes[2:]))
            if form.startswith("nearest") and (known or not all(map(steps_exactly, scale))):
                return nearest(b, x, sizes, form, scale)
            options["scale"] = [1.0, 1.0, *scale]
    return b.op("resize", x, dtype=x.dtype, sizes=sizes, **options)


def steps_exactly(factor: float) -> bool:
    """Are places in f32 (a result's number times 1 / factor) free of rounding, so that torch finds the elements that
    weft finds? 0.5 and 4 do, 1.5 does not."""
    return (256 / factor).is_integer()


def nearest(b, x, sizes, form: str, factors):
    """torch rounds places in f32: which elements they are is asked of torch, and they are gathered."""
    upsample = aten.upsample_nearest1d if form == "nearest" else aten._upsample_nearest_exact1d
    for axis, factor in enumerate(factors, 2):
        inner, outer = b.static(x.dims[axis], "an axis"), b.static(sizes[axis], "an axis")
        places = upsample(torch.arange(inner, dtype=torch.float64)[None, None], [outer], factor)[0, 0]
        x = b.op("gather", x, b.constant(places.to(torch.int64)), axis=axis)
    return x


def step_factors(b, inner, outer, factors) -> list[float] | None:
    """None if each is the quotient of the sizes, which weft steps by unless told otherwise."""
    exact, made = True, []
    for i, o, f in zip(inner, outer, factors):
        i_known, o_known = b.known(i), b.known(o)
        if f is None:
            if i_known is None or o_known is None:
                raise Refuse("a size that is a symbol beside a factor")
            f = o_known / i_known
        elif not isinstance(f, (int, float)):
            raise Refuse("a factor that is a symbol")
        elif i_known is not None and o_known is not None:
            exact = exact and o_known == i_known * f
        else:
            exact = exact and f == int(f) and b.same_dims([b.times([i, int(f)])], [o])
        made.append(float(f))
    return None if exact else made


@lower("grid_sampler_2d", "grid_sampler_3d")
def grid_sample(b, n, x, grid, mode, padding, corners):
    form = ("linear", "nearest", "cubic")[mode]
    border = ("zeros", "edge", "reflect")[padding]
    return b.op("grid_sample", x, grid, form=form, border=border, corners=int(corners))

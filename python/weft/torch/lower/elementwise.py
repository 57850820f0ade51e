# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops of one operand: one weft node for each where weft has it, and short formulas elsewhere."""

from __future__ import annotations

import math

import torch

from ..dtypes import BOOL, FLOATS, INTEGERS, UNSIGNED
from .build import Build, result_dtype, result_sizes, value_of
from .registry import Refuse, lower, named

# --- one operand

UNARY = """
    abs neg relu ceil floor round trunc sqrt rsqrt reciprocal:recip exp exp2 expm1 log log2 log10 log1p sin cos tan asin
    acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid silu mish special_erf:erf special_erfc:erfc""".split()
KEPT_OF_INTEGERS = {"ceil", "floor", "round", "trunc"}  # they change no integer


def _unary(op: str):
    def make(b: Build, n, x):
        dtype = result_dtype(n)
        if dtype not in FLOATS and op in KEPT_OF_INTEGERS:
            return b.cast(x, dtype)
        if op == "abs" and dtype in UNSIGNED or op == "relu" and dtype in UNSIGNED:
            return x
        if dtype == BOOL:
            raise Refuse(f"{op} of bool")
        return b.op(op, b.cast(x, dtype))

    return make


for _entry in UNARY:
    _name, _, _op = _entry.partition(":")
    lower(_name)(_unary(_op or _name))


@lower("sign", "sgn")
def sign(b, n, x):
    if x.dtype == BOOL:
        return x
    made = b.op("sign", x)
    # ATen: a NaN has the sign 0 for `sign`; weft keeps it a NaN
    return b.select(b.op("is_nan", x), b.like(x, 0), made) if x.dtype in FLOATS else made


@lower("square")
def square(b, n, x):
    x = b.cast(x, result_dtype(n))
    return b.op("mul", x, x)


@lower("frac")
def frac(b, n, x):
    return b.op("sub", x, b.op("trunc", x))


@lower("signbit")
def signbit(b, n, x):
    if x.dtype in FLOATS:
        one = b.op("copysign", b.like(x, 1), x)
        return b.op("lt", one, b.like(x, 0))
    return b.op("lt", x, b.like(x, 0)) if x.dtype not in UNSIGNED | {BOOL} else b.scalar(0, BOOL, x.dims)


@lower("isnan")
def isnan(b, n, x):
    return b.op("is_nan", x) if x.dtype in FLOATS else b.scalar(0, BOOL, x.dims)


@lower("isinf")
def isinf(b, n, x):
    return b.op("is_inf", x) if x.dtype in FLOATS else b.scalar(0, BOOL, x.dims)


@lower("isposinf")
def isposinf(b, n, x):
    return b.op("is_inf", x, negative=0) if x.dtype in FLOATS else b.scalar(0, BOOL, x.dims)


@lower("isneginf")
def isneginf(b, n, x):
    return b.op("is_inf", x, positive=0) if x.dtype in FLOATS else b.scalar(0, BOOL, x.dims)


@lower("isfinite")
def isfinite(b, n, x):
    if x.dtype not in FLOATS:
        return b.scalar(1, BOOL, x.dims)
    return b.op("not", b.op("or", b.op("is_nan", x), b.op("is_inf", x)))


@lower("logical_not")
def logical_not(b, n, x):
    return b.op("not", b.cast(x, BOOL))


@lower("bitwise_not")
def bitwise_not(b, n, x):
    return b.op("not" if x.dtype == BOOL else "bit_not", x)


@lower("round.decimals")
def round_decimals(b, n, x, decimals=0):
    if x.dtype not in FLOATS:
        return x
    wide = b.wide(x)
    factor = b.like(wide, 10.0 ** abs(decimals))
    there, back = ("mul", "div") if decimals >= 0 else ("div", "mul")
    return b.cast(b.op(back, b.op("round", b.op(there, wide, factor)), factor), x.dtype)


@lower("nan_to_num")
def nan_to_num(b, n, x, nan=None, posinf=None, neginf=None):
    if x.dtype not in FLOATS:
        return x
    info = torch.finfo(value_of(n).dtype)
    x = b.select(b.op("is_nan", x), b.like(x, 0.0 if nan is None else nan),
                 b.select(b.op("is_inf", x, negative=0), b.like(x, info.max if posinf is None else posinf),
                          b.select(b.op("is_inf", x, positive=0), b.like(x, info.min if neginf is None else neginf),
                                   x)))
    return x


@lower("deg2rad", "rad2deg")
def angle_unit(b, n, x):
    dtype = result_dtype(n)
    factor = math.pi / 180 if n.target is named("deg2rad") else 180 / math.pi
    return b.binary("mul", b.cast(x, dtype), factor, dtype, x.dims)


@lower("angle")
def angle(b, n, x):
    x = b.cast(x, result_dtype(n))
    made = b.select(b.op("lt", x, b.like(x, 0)), b.like(x, math.pi), b.like(x, 0))
    return b.select(b.op("is_nan", x), x, made)


@lower("sinc")
def sinc(b, n, x):
    x = b.cast(x, result_dtype(n))
    wide = b.wide(x)
    p = b.op("mul", wide, b.like(wide, math.pi))
    ratio = b.op("div", b.op("sin", p), p)
    return b.cast(b.select(b.op("eq", wide, b.like(wide, 0)), b.like(wide, 1), ratio), x.dtype)


@lower("logit")
def logit(b, n, x, eps=None):
    x = b.cast(x, result_dtype(n))
    wide = b.wide(x)
    if eps is not None:
        wide = b.op("clamp", wide, low=float(eps), high=1 - float(eps))
    return b.cast(b.op("log", b.op("div", wide, b.op("sub", b.like(wide, 1), wide))), x.dtype)


# --- activations

@lower("gelu")
def gelu(b, n, x, approximate="none"):
    return b.op("gelu", x, form="tanh" if approximate == "tanh" else "erf")


@lower("hardtanh", "relu6")
def hardtanh(b, n, x, low=-1, high=1):
    if n.target is named("relu6"):
        low, high = 0, 6
    return _clamp_numbers(b, x, low, high)


@lower("leaky_relu")
def leaky_relu(b, n, x, slope=0.01):
    return b.op("leaky_relu", x, alpha=float(slope))


@lower("hardsigmoid")
def hardsigmoid(b, n, x):
    return b.op("hard_sigmoid", x, alpha=1 / 6, beta=0.5)


@lower("hardswish")
def hardswish(b, n, x):
    return b.op("hard_swish", x)


@lower("elu")
def elu(b, n, x, alpha=1.0, scale=1.0, input_scale=1.0):
    wide = b.wide(x)
    zero = b.like(wide, 0)
    inner = wide if input_scale == 1 else b.op("mul", wide, b.like(wide, float(input_scale)))
    below = b.op("mul", b.op("expm1", inner), b.like(wide, float(alpha) * float(scale)))
    above = wide if scale == 1 else b.op("mul", wide, b.like(wide, float(scale)))
    if scale == 1 and input_scale == 1:
        return b.op("elu", x, alpha=float(alpha))
    return b.cast(b.select(b.op("gt", wide, zero), above, below), x.dtype)


@lower("celu")
def celu(b, n, x, alpha=1.0):
    return b.op("celu", x, alpha=float(alpha))


@lower("selu")
def selu(b, n, x):
    return b.op("selu", x, alpha=1.6732632423543772848170429916717, gamma=1.0507009873554804934193349852946)


@lower("softplus")
def softplus(b, n, x, beta=1, threshold=20):
    wide = b.wide(x)
    scaled = wide if beta == 1 else b.op("mul", wide, b.like(wide, float(beta)))
    made = b.op("softplus", scaled)
    if beta != 1:
        made = b.op("div", made, b.like(wide, float(beta)))
    return b.cast(b.select(b.op("gt", scaled, b.like(wide, float(threshold))), wide, made), x.dtype)


@lower("softshrink")
def softshrink(b, n, x, bias=0.5):
    return b.select(b.op("is_nan", x), x, b.op("shrink", x, bias=float(bias), lambda_=float(bias)))


@lower("hardshrink")
def hardshrink(b, n, x, bias=0.5):
    inside = b.op("and", b.op("ge", x, b.like(x, -float(bias))), b.op("le", x, b.like(x, float(bias))))
    return b.select(inside, b.like(x, 0), x)


@lower("threshold")
def threshold(b, n, x, limit, value):
    return b.select(b.op("le", x, b.like(x, limit)), b.like(x, value), x)


@lower("log_sigmoid_forward")
def log_sigmoid(b, n, x):
    wide = b.wide(x)
    # min(0, x) - log1p(exp(-|x|)); the second result is a scratch buffer of ATen's, which is empty on CPU or this
    buffer = b.op("exp", b.op("neg", b.op("abs", wide)))
    made = b.op("sub", b.op("min", wide, b.like(wide, 0)), b.op("log1p", buffer))
    value = value_of(n)[1]
    empty = b.known(value.shape[0] if value.dim() else 1) == 0
    second = b.scalar(0, x.dtype, [0]) if empty else b.cast(buffer, x.dtype)
    return [b.cast(made, x.dtype), second]


@lower("prelu", "_prelu_kernel")
def prelu(b, n, x, weight):
    if weight.rank == 1 and x.rank > 1:
        weight = b.along(weight, x.dims, [1])
    return b.op("prelu", x, b.bcast(weight, x.dims))


@lower("glu")
def glu(b, n, x, axis=-1):
    axis = b.axis(x, axis)
    half = b.size(value_of(n).shape[axis])
    first, second = b.slice(x, axis, 0, half), b.slice(x, axis, half, x.dims[axis])
    return b.op("mul", first, b.op("sigmoid", second))


# --- clamping

def _clamp_numbers(b: Build, x, low, high):
    limits = {}
    if low is not None and not (x.dtype not in FLOATS and low == -math.inf):
        limits["low"] = low
    if high is not None and not (x.dtype not in FLOATS and high == math.inf):
        limits["high"] = high
    if any(isinstance(v, float) and math.isnan(v) for v in limits.values()):
        return b.like(x, math.nan)
    if x.dtype == BOOL:
        raise Refuse("clamp of bool")
    if x.dtype in INTEGERS or any(not isinstance(v, (int, float)) for v in limits.values()):
        for name, op in (("low", "max"), ("high", "min")):
            if name in limits:
                x = b.op(op, x, b.operand(limits[name], x.dtype, x.dims))
        return x
    return b.op("clamp", x, **{k: float(v) for k, v in limits.items()}) if limits else x


@lower("clamp", "clamp_min", "clamp_max")
def clamp(b, n, x, low=None, high=None):
    if n.target is named("clamp_max"):
        low, high = None, low
    return _clamp_numbers(b, b.cast(x, result_dtype(n)), low, high)


@lower("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor")
def clamp_tensor(b, n, x, low=None, high=None):
    if n.target is named("clamp_max.Tensor"):
        low, high = None, low
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    x = b.operand(x, dtype, sizes)
    if low is not None:
        x = b.op("max", x, b.operand(low, dtype, sizes))
    return x if high is None else b.op("min", x, b.operand(high, dtype, sizes))

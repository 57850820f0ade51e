# SPDX-License-Identifier: Apache-2.0
"""Random numbers: weft's generator, with a number of the call that is drawn from torch's.

torch.manual_seed repeats what a compiled graph draws; the numbers are others than eager's, as with every compiler.
"""

from __future__ import annotations

import math

from ..dtypes import BOOL, F32, FLOATS, I64
from .build import result_dtype, result_sizes, value_of
from .registry import Refuse, lower

SEED = 0x77656674  # one for all graphs: what differs between nodes is the stream, between calls the step


def draw(b, op: str, sizes, dtype=F32, **attributes):
    """A random node of its own stream."""
    if b.step is None:
        b.step = b.g.param(I64, [])
    b.streams += 1
    return b.op(op, b.step, dtype=dtype, sizes=list(sizes), seed=SEED, stream=b.streams, **attributes)


@lower("rand", "rand_like", "rand.generator")
def rand(b, n, *_, **__):
    dtype = result_dtype(n)
    return draw(b, "rand_uniform", result_sizes(b, n), dtype)


@lower("randn", "randn_like", "randn.generator")
def randn(b, n, *_, **__):
    return draw(b, "rand_normal", result_sizes(b, n), result_dtype(n))


@lower("uniform")
def uniform(b, n, x, low=0.0, high=1.0, **_):
    return draw(b, "rand_uniform", result_sizes(b, n), result_dtype(n), low=float(low), high=float(high))


@lower("normal_functional")
def normal(b, n, x, mean=0.0, deviation=1.0, **_):
    return draw(b, "rand_normal", result_sizes(b, n), result_dtype(n), mean=float(mean), deviation=float(deviation))


@lower("exponential")
def exponential(b, n, x, rate=1.0, **_):
    wide = b.op("sub", b.scalar(1, F32, x.dims), draw(b, "rand_uniform", x.dims))  # in (0, 1]
    made = b.op("mul", b.op("log", wide), b.like(wide, -1 / float(rate)))
    return b.cast(made, result_dtype(n))


@lower("randint", "randint.low", "randint_like", "randint_like.low_dtype")
def randint(b, n, *args, **_):
    sizes, dtype = result_sizes(b, n), result_dtype(n)
    like = n.target._opname == "randint_like"
    numbers = [a for a in args if isinstance(a, int)]
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    if like and len(numbers) not in (1, 2) or high - low > 2**24:
        raise Refuse("integers of more than 24 bits")
    u = b.op("mul", draw(b, "rand_uniform", sizes), b.scalar(float(high - low), F32, sizes))
    i = b.op("min", b.cast(u, I64), b.scalar(high - low - 1, I64, sizes))
    return b.cast(b.op("add", i, b.scalar(low, I64, sizes)), dtype)


@lower("bernoulli", "bernoulli.p")
def bernoulli(b, n, x, p=None, **_):
    sizes = result_sizes(b, n)
    p = b.scalar(float(p), F32, sizes) if p is not None else b.cast(x, F32)
    return b.cast(b.op("lt", draw(b, "rand_uniform", sizes), p), result_dtype(n))


@lower("native_dropout")
def dropout(b, n, x, p, train):
    if train is False or p == 0:
        return [x, b.scalar(1, BOOL, x.dims)]
    if x.dtype not in FLOATS:
        raise Refuse("dropout of integers")
    if p == 1:
        return [b.op("mul", x, b.like(x, 0)), b.scalar(0, BOOL, x.dims)]
    kept = b.op("ge", draw(b, "rand_uniform", x.dims), b.scalar(float(p), F32, x.dims))
    wide = b.wide(x)
    scaled = b.op("mul", b.op("mul", wide, b.cast(kept, wide.dtype)), b.like(wide, 1 / (1 - p)))
    return [b.cast(scaled, x.dtype), kept]


@lower("randperm")
def randperm(b, n, count, **_):
    """The order of random numbers: no two alike for lengths for which 24 bits are many."""
    length = b.static(value_of(n).shape[0], "the length of a permutation")
    if length > 1024:
        raise Refuse("a permutation of more than 1024 elements")
    _, places = b.op("sort", draw(b, "rand_uniform", [length]), axis=0)
    return b.cast(places, result_dtype(n))


@lower("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "normal.float_float")
def normal_of(b, n, mean, deviation=1.0, *_, **__):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    z = draw(b, "rand_normal", sizes)
    wide = b.op("add", b.op("mul", z, b.operand(deviation, F32, sizes)), b.operand(mean, F32, sizes))
    return b.cast(wide, dtype)


def _open_uniform(b, sizes):
    """Numbers in (0, 1): the middles of the steps of a 24-bit number."""
    u = draw(b, "rand_uniform", sizes)
    return b.op("add", u, b.like(u, 2.0**-25))


@lower("cauchy")
def cauchy(b, n, x, median=0.0, sigma=1.0, **_):
    angle = b.op("sub", _open_uniform(b, x.dims), b.scalar(0.5, F32, x.dims))
    made = b.op("tan", b.op("mul", angle, b.like(angle, math.pi)))
    made = b.op("add", b.op("mul", made, b.like(made, float(sigma))), b.like(made, float(median)))
    return b.cast(made, result_dtype(n))


@lower("log_normal")
def log_normal(b, n, x, mean=1.0, deviation=2.0, **_):
    z = draw(b, "rand_normal", x.dims, mean=float(mean), deviation=float(deviation))
    return b.cast(b.op("exp", z), result_dtype(n))


@lower("geometric")
def geometric(b, n, x, p, **_):
    if p >= 1:
        return b.scalar(1, result_dtype(n), x.dims)
    u = b.op("log", _open_uniform(b, x.dims))
    return b.cast(b.op("ceil", b.op("mul", u, b.like(u, 1 / math.log1p(-float(p))))), result_dtype(n))


@lower("multinomial")
def multinomial(b, n, x, samples, replacement=False, **_):
    weights = b.op("log", b.cast(x, F32))
    if replacement or samples == 1:
        if b.step is None:
            b.step = b.g.param(I64, [])
        b.streams += 1
        return b.op("multinomial", weights, b.step, seed=SEED, stream=b.streams, samples=samples)
    noise = b.op("neg", b.op("log", b.op("neg", b.op("log", _open_uniform(b, x.dims)))))
    return b.op("top_k", b.op("add", weights, noise), axis=x.rank - 1, k=samples)[1]


@lower("rrelu_with_noise_functional")
def rrelu(b, n, x, noise, low=0.125, high=1 / 3, training=False, *_, **__):
    if not training:
        slope = b.like(x, (float(low) + float(high)) / 2)
        return [b.select(b.op("lt", x, b.like(x, 0)), b.op("mul", x, slope), x), noise]
    slope = draw(b, "rand_uniform", x.dims, low=float(low), high=float(high))
    below = b.op("le", x, b.like(x, 0))
    slope = b.cast(b.select(below, slope, b.like(slope, 1)), x.dtype)
    return [b.op("mul", x, slope), slope]

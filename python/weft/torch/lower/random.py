# SPDX-License-Identifier: Apache-2.0
"""Random numbers: weft's generator, with a number of the call that is drawn from torch's.

torch.manual_seed repeats what a compiled graph draws; the numbers are others than eager's, as with every compiler.
"""

from __future__ import annotations

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

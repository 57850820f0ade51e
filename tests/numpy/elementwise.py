# SPDX-License-Identifier: Apache-2.0
"""Cases of sources, ops element by element, reductions, and ops along an axis, over all dtypes that they admit."""
import math

import numpy as np

from harness import DTYPES, FLOATS, INTEGERS, Case, cast, make, tame, wide

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def keep(condition, x, y):
    """x where the condition holds, else y; NaN where x is."""
    return np.where(np.isnan(x), x, np.where(condition, x, y))


UNARY = {
    "ceil": np.ceil, "floor": np.floor, "round": np.rint, "trunc": np.trunc, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "recip": lambda x: 1 / x, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": erf, "erfc": erfc, "sigmoid": sigmoid,
    "softplus": softplus, "log_sigmoid": lambda x: -softplus(-x), "softsign": lambda x: x / (1 + np.abs(x)),
}
# Some give NaN at an infinity, by their definition; those are compared on finite numbers.
ACTIVATIONS = {
    "gelu": lambda x: x / 2 * (1 + erf(x / np.sqrt(2))),
    "gelu %a form=tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * sigmoid(x), "swish %a alpha=1.5": lambda x: x * sigmoid(1.5 * x),
    "mish": lambda x: x * np.tanh(softplus(x)), "leaky_relu %a alpha=0.25": lambda x: np.where(x >= 0, x, 0.25 * x),
    "thresholded_relu %a alpha=0.5": lambda x: np.where(x > 0.5, x, 0),
    "shrink %a bias=0.25 lambda=1": lambda x: np.where(x < -1, x + 0.25, np.where(x > 1, x - 0.25, 0)),
    "elu %a alpha=0.5": lambda x: np.where(x >= 0, x, 0.5 * np.expm1(x)),
    "celu %a alpha=2": lambda x: np.where(x >= 0, x, 2 * np.expm1(x / 2)),
    "selu": lambda x: 1.05070102214813232421875 * np.where(x >= 0, x, 1.67326319217681884765625 * np.expm1(x)),
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1), "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
}


def truncated(a, b):
    """Integer quotient that truncates, and 0 where b is 0, in numbers of any size."""
    quotient = np.vectorize(lambda p, q: 0 if q == 0 else (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1),
                            otypes=[object])
    return quotient(a.astype(object), b.astype(object))


def wrapped(array, dtype):
    """Integers of any size in the width of a type."""
    bits = np.iinfo(DTYPES[dtype]).bits
    low = np.vectorize(lambda v: int(v) & (2**bits - 1), otypes=[object])(array)
    return low.astype(np.uint64).astype(DTYPES[dtype])


def whole_power(a, b):
    def power(x, y):
        if y < 0:
            return x if x == 1 else (1 if y % 2 == 0 else -1) if x == -1 else 0
        return pow(x, y, 2**64)
    return np.vectorize(power, otypes=[object])(a.astype(object), b.astype(object))


def compared(a, b):
    for op, function in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
                         ("gt", np.greater), ("ge", np.greater_equal)):
        yield Case(f"{op} %a, %b", (a, b), function(np.asarray(a), np.asarray(b)))


def sources(rng):
    yield Case("const value=[[1 2 -3] [4 5 6]]", (), np.array([[1, 2, -3], [4, 5, 6]], np.int8))
    yield Case("const value=0.1", (), np.full((2, 3), 0.1, np.float32))
    yield Case("extents value=[3 4]", (), np.array([3, 4], np.int64))
    for d in INTEGERS + FLOATS:
        yield Case("iota axis=1", (), cast(np.broadcast_to(np.arange(5), (3, 5)), d))


def of_floats(rng):
    for d in FLOATS:
        a, b = make(rng, d, 4, 7), make(rng, d, 4, 7)
        x, y = wide(a), wide(b)
        for op, function in UNARY.items():
            yield Case(f"{op} %a", (a,), cast(function(x), d), rtol=None if d != "f64" else 1e-10)
        calm = tame(rng, d, 4, 7)
        for op, function in ACTIVATIONS.items():
            yield Case(op if "%a" in op else op + " %a", (calm,), cast(function(wide(calm)), d))
        for op, function in (("div", np.divide), ("mod", np.mod), ("mod %a, %b form=trunc", np.fmod),
                             ("atan2", np.arctan2), ("copysign", np.copysign), ("floor_div", np.floor_divide)):
            yield Case(op if "%a" in op else f"{op} %a, %b", (a, b), cast(function(x, y), d))
        yield Case("pow %a, %b", (a, b), cast(np.power(x, y), d))
        yield Case("is_nan %a", (a,), np.isnan(x))
        yield Case("is_inf %a positive=0", (a,), np.isneginf(x))
        yield Case("is_inf %a", (a,), np.isinf(x))
        yield Case("fma %a, %b, %c", (calm, calm, calm), cast(wide(calm) * wide(calm) + wide(calm), d))
        yield Case("prelu %a, %b", (calm, b), cast(np.where(wide(calm) >= 0, wide(calm), wide(calm) * y), d))
        for to in FLOATS:
            yield Case("cast %a", (a,), cast(x, to))
        for to in INTEGERS:
            yield Case("cast %a", (calm,), np.trunc(wide(calm)).astype(np.int64).astype(DTYPES[to]))
        yield Case("cast %a", (a,), wide(a) != 0)


def of_integers(rng):
    for d in INTEGERS:
        a, b, kind = make(rng, d, 4, 5), make(rng, d, 4, 5), DTYPES[d]
        yield Case("div %a, %b", (a, b), wrapped(truncated(a, b), d))
        for op, function in (("mod", np.mod), ("mod %a, %b form=trunc", np.fmod), ("floor_div", np.floor_divide),
                             ("bit_and", np.bitwise_and), ("bit_or", np.bitwise_or), ("bit_xor", np.bitwise_xor)):
            yield Case(op if "%a" in op else f"{op} %a, %b", (a, b), function(a, b))
        yield Case("bit_not %a", (a,), np.invert(a))
        amount = rng.integers(0, a.dtype.itemsize * 8 + 3, a.shape).astype(a.dtype)
        yield Case("shift_left %a, %b", (a, amount), np.left_shift(a, amount))
        yield Case("shift_right %a, %b", (a, amount), np.right_shift(a, amount))
        small = tame(rng, d, 4, 5, low=-3, high=9)
        yield Case("pow %a, %b", (a, small), wrapped(whole_power(a, small), d))
        exact = a.astype(object) * b.astype(object) + a.astype(object)
        yield Case("fma %a, %b, %c", (a, b, a), wrapped(exact, d))
        yield Case("prelu %a, %b", (a, b), np.where(a >= 0, a, a * b))
        yield Case("sum %a axes=[0]", (a,), np.sum(a, axis=0, dtype=kind))
        yield Case("prod %a axes=[0 1]", (a,), np.prod(a, dtype=kind))
        yield Case("cumsum %a axis=1", (a,), np.cumsum(a, axis=1, dtype=kind))
        yield Case("cumprod %a axis=0 reverse=1", (a,), np.cumprod(a[::-1], axis=0, dtype=kind)[::-1])
        few = tame(rng, d, 3, 4, low=-20, high=20)
        total = few.astype(object).sum(1)
        yield Case("mean %a axes=[1]", (few,), truncated(total, np.full(3, 4)).astype(kind))
        for to in INTEGERS:
            yield Case("cast %a", (a,), a.astype(DTYPES[to]))
        for to in FLOATS:
            yield Case("cast %a", (small,), cast(small.astype(np.float64), to))
        yield Case("cast %a", (a,), a != 0)


def of_numbers(rng):
    for d in FLOATS + INTEGERS:
        a, b = make(rng, d, 3, 6), make(rng, d, 3, 6)
        x, y = wide(a), wide(b)
        for op, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("min", np.minimum),
                             ("max", np.maximum)):
            yield Case(f"{op} %a, %b", (a, b), cast(function(x, y), d))
        yield from compared(a, b)
        for op, function in (("abs", np.abs), ("neg", np.negative), ("sign", np.sign)):
            yield Case(f"{op} %a", (a,), cast(function(x), d))
        yield Case("relu %a", (a,), cast(np.maximum(x, 0), d))
        yield Case("clamp %a low=1 high=3", (a,), cast(np.clip(x, 1, 3), d))
        for op, function in (("reduce_max", np.max), ("reduce_min", np.min)):
            yield Case(f"{op} %a axes=[1]", (a,), cast(function(x, axis=1), d))
        for op, function in (("max", np.max), ("min", np.min)):
            parts = [function(x[:, i:i + 4], axis=1) for i in range(0, x.shape[1], 4)]
            yield Case(f"fold_chunks %a axis=1 chunk=4 fold={op}", (a,), cast(np.stack(parts, axis=1), d))
        yield Case("arg_max %a axis=1", (a,), np.argmax(x, axis=1))
        yield Case("arg_min %a axis=0 keepdims=1", (a,), np.argmin(x, axis=0, keepdims=True))
        yield Case("cummax %a axis=1", (a,), cast(np.maximum.accumulate(x, axis=1), d))
        yield Case("cummin %a axis=0", (a,), cast(np.minimum.accumulate(x, axis=0), d))
        ties = tame(rng, d, 3, 9, low=0, high=3) if d in INTEGERS else cast(np.rint(tame(rng, "f64", 3, 9)), d)
        order = np.argsort(wide(ties), axis=1, kind="stable")
        yield Case("sort %a axis=1", (ties,), (cast(np.take_along_axis(wide(ties), order, 1), d), order))
        yield Case("sort %a axis=1", (a,), (cast(np.sort(x, axis=1), d), np.argsort(x, axis=1, kind="stable")))
        places = np.argsort(wide(ties), axis=1, kind="stable")[:, :4]
        least = cast(np.take_along_axis(wide(ties), places, 1), d)
        yield Case("top_k %a axis=1 k=4 largest=0", (ties,), (least, places))
        condition = make(rng, "bool", 3, 6)
        yield Case("select %a, %b, %c", (condition, a, b), cast(np.where(condition, x, y), d))


def of_truths(rng):
    a, b = make(rng, "bool", 3, 5), make(rng, "bool", 3, 5)
    for op, function in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor), ("eq", np.equal),
                         ("ne", np.not_equal)):
        yield Case(f"{op} %a, %b", (a, b), function(a, b))
    yield Case("not %a", (a,), ~a)
    yield Case("any %a axes=[1]", (a,), a.any(1))
    yield Case("all %a axes=[0] keepdims=1", (a,), a.all(0, keepdims=True))
    for to in ("f32", "i8", "u64"):
        yield Case("cast %a", (a,), a.astype(DTYPES[to]))


def of_bits(rng):
    a = make(rng, "f64", 3, 5)
    yield Case("bitcast %a", (a,), a.view(np.int64))
    yield Case("bitcast %a", (a.astype(np.float32),), a.astype(np.float32).view(np.uint32))
    yield Case("bitcast %a", (a.astype(np.float16),), a.astype(np.float16).view(np.int16))
    b = make(rng, "i8", 3, 5)
    yield Case("bitcast %a", (b,), b.view(np.uint8))


def reductions(rng):
    for d in FLOATS:
        a = tame(rng, d, 2, 3, 4)
        x, near = wide(a), 1e-6 if d == "f32" else None
        for axes in ((0,), (1,), (0, 2), (0, 1, 2), ()):
            text = " ".join(map(str, axes))
            yield Case(f"sum %a axes=[{text}]", (a,), cast(x.sum(axes), d), rtol=near, atol=1e-6)
            yield Case(f"mean %a axes=[{text}] keepdims=1", (a,), cast(x.mean(axes, keepdims=True), d), atol=1e-6)
            yield Case(f"prod %a axes=[{text}]", (a,), cast(x.prod(axes), d), rtol=near)
        yield Case("variance %a axes=[1] correction=1", (a,), cast(x.var(1, ddof=1), d), rtol=near)
        yield Case("log_sum_exp %a axes=[0 2]", (a,), cast(np.log(np.exp(x).sum((0, 2))), d), rtol=near)
        e = np.exp(x - x.max(1, keepdims=True))
        yield Case("softmax %a axis=1", (a,), cast(e / e.sum(1, keepdims=True), d), rtol=near)
        yield Case("log_softmax %a axis=1", (a,), cast(np.log(e / e.sum(1, keepdims=True)), d), rtol=near)
        first = np.argmax(x, 2)[..., None] == np.arange(4)
        yield Case("hardmax %a axis=2", (a,), cast(first.astype(np.float64), d))
    none = np.zeros((3, 0), np.float32)
    with np.errstate(all="ignore"):
        yield Case("sum %a axes=[1]", (none,), none.sum(1))
        yield Case("prod %a axes=[1]", (none,), none.prod(1))
        yield Case("mean %a axes=[1]", (none,), np.full(3, np.nan, np.float32))
        yield Case("reduce_max %a axes=[1]", (none,), np.full(3, -np.inf, np.float32))
        yield Case("add %a, %b", (none, none), none)


def cases(rng):
    for group in (sources, of_floats, of_integers, of_numbers, of_truths, of_bits, reductions):
        yield from group(rng)

# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops of two and three operands: arithmetic, comparisons, logic, bits, choices."""

from __future__ import annotations

import math

import torch

from ..dtypes import BOOL, F32, F64, FLOATS, HALVES, I64, INTEGERS, WEFT_DTYPES
from .build import result_dtype, result_sizes
from .registry import Refuse, lower, named

# --- arithmetic of two operands

def _arithmetic(op: str):
    logical = {"add": "or", "mul": "and"}

    def make(b, n, x, y, alpha=1):
        dtype, sizes = result_dtype(n), result_sizes(b, n)
        if dtype == BOOL:
            if op not in logical or alpha is not True and alpha != 1:
                raise Refuse(f"{op} of bool")
            return b.binary(logical[op], x, y, dtype, sizes)
        if alpha != 1:
            if dtype in HALVES:  # rounded once, as ATen does
                y = b.op("mul", b.operand(y, F32, sizes), b.scalar(alpha, F32, sizes))
                return b.cast(b.op(op, b.operand(x, F32, sizes), y), dtype)
            y = b.binary("mul", y, alpha, dtype, sizes)
        return b.binary(op, x, y, dtype, sizes)

    return make


for _name in ("add", "sub", "mul"):
    lower(f"{_name}.Tensor", f"{_name}.Scalar")(_arithmetic(_name))


@lower("rsub.Scalar", "rsub.Tensor")
def rsub(b, n, x, y, alpha=1):
    return _arithmetic("sub")(b, n, y, x, alpha)


@lower("div.Tensor", "div.Scalar", "true_divide.Tensor")
def div(b, n, x, y):
    return b.binary("div", x, y, result_dtype(n), result_sizes(b, n))


@lower("div.Tensor_mode", "div.Scalar_mode", "floor_divide", "floor_divide.Scalar")
def div_mode(b, n, x, y, rounding_mode="floor"):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    if n.target in (named("floor_divide"), named("floor_divide.Scalar")):
        rounding_mode = "floor"
    if rounding_mode is None:
        return b.binary("div", x, y, dtype, sizes)
    if dtype == BOOL:
        raise Refuse("division of bool")
    if rounding_mode == "floor":
        return b.binary("floor_div", x, y, dtype, sizes)
    if dtype in FLOATS:
        wide = F32 if dtype in HALVES else dtype
        return b.cast(b.op("trunc", b.binary("div", x, y, wide, sizes)), dtype)
    return b.binary("div", x, y, dtype, sizes)


def _remainder(form: str):
    def make(b, n, x, y):
        dtype, sizes = result_dtype(n), result_sizes(b, n)
        if dtype == BOOL:
            raise Refuse("remainder of bool")
        x, y = b.operand(x, dtype, sizes), b.operand(y, dtype, sizes)
        return b.op("mod", x, y, form=form)

    return make


lower("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")(_remainder("floor"))
lower("fmod.Tensor", "fmod.Scalar")(_remainder("trunc"))


def _extreme(op: str, ignore_nan: bool):
    def make(b, n, x, y):
        dtype, sizes = result_dtype(n), result_sizes(b, n)
        x, y = b.operand(x, dtype, sizes), b.operand(y, dtype, sizes)
        if dtype == BOOL:
            return b.op("or" if op == "max" else "and", x, y)
        made = b.op(op, x, y)
        if not ignore_nan or dtype not in FLOATS:
            return made
        return b.select(b.op("is_nan", x), y, b.select(b.op("is_nan", y), x, made))

    return make


lower("maximum")(_extreme("max", False))
lower("minimum")(_extreme("min", False))
lower("fmax")(_extreme("max", True))
lower("fmin")(_extreme("min", True))


@lower("pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar")
def power(b, n, x, y):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    if dtype == BOOL:
        raise Refuse("pow of bool")
    if isinstance(y, (int, float)) and not isinstance(y, bool) and not isinstance(x, (int, float)):
        x = b.operand(x, dtype, sizes)
        if y == 1:
            return x
        if y == 2:
            return b.op("mul", x, x)
        if y == 0.5 and dtype in FLOATS:
            return b.op("sqrt", x)
        if y == -1 and dtype in FLOATS:
            return b.op("recip", x)
        if y == -0.5 and dtype in FLOATS:
            return b.op("rsqrt", x)
        if y == 3:
            wide = b.wide(x)
            return b.cast(b.op("mul", b.op("mul", wide, wide), wide), dtype)
    return b.binary("pow", x, y, dtype, sizes)


@lower("atan2", "arctan2")
def atan2(b, n, y, x):
    return b.binary("atan2", y, x, result_dtype(n), result_sizes(b, n))


@lower("copysign.Tensor", "copysign.Scalar")
def copysign(b, n, x, y):
    return b.binary("copysign", x, y, result_dtype(n), result_sizes(b, n))


@lower("hypot")
def hypot(b, n, x, y):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    wide = F64 if dtype in (F32, F64) else F32  # squares of f32 are within the range of f64
    if dtype == F64:
        raise Refuse("hypot of f64, whose squares overflow")
    x, y = b.operand(b.cast(x, wide), wide, sizes), b.operand(b.cast(y, wide), wide, sizes)
    root = b.op("sqrt", b.op("add", b.op("mul", x, x), b.op("mul", y, y)))
    infinite = b.op("or", b.op("is_inf", x), b.op("is_inf", y))
    return b.cast(b.select(infinite, b.like(root, math.inf), root), dtype)


@lower("logaddexp", "logaddexp2")
def logaddexp(b, n, x, y):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    base2 = n.target is named("logaddexp2")
    x, y = b.wide(b.operand(x, dtype, sizes)), b.wide(b.operand(y, dtype, sizes))
    top = b.op("max", x, y)
    less = b.op("neg", b.op("abs", b.op("sub", x, y)))
    if base2:
        grown = b.op("mul", b.op("log1p", b.op("exp2", less)), b.like(x, 1 / math.log(2)))
    else:
        grown = b.op("log1p", b.op("exp", less))
    same = b.op("and", b.op("is_inf", x), b.op("eq", x, y))  # inf - inf
    return b.cast(b.select(same, x, b.op("add", top, grown)), dtype)


@lower("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other", "special_xlog1py", "special_xlog1py.other_scalar",
       "special_xlog1py.self_scalar")
def xlogy(b, n, x, y):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    x, y = b.wide(b.operand(x, dtype, sizes)), b.wide(b.operand(y, dtype, sizes))
    log = b.op("log1p" if "log1py" in str(n.target) else "log", y)
    zero = b.select(b.op("eq", x, b.like(x, 0)), b.like(x, 0), b.op("mul", x, log))
    return b.cast(b.select(b.op("is_nan", y), y, zero), dtype)


@lower("heaviside")
def heaviside(b, n, x, values):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    x, values = b.operand(x, dtype, sizes), b.operand(values, dtype, sizes)
    if dtype == BOOL:
        return b.op("or", x, values)
    step = b.cast(b.op("gt", x, b.like(x, 0)), dtype)
    return b.select(b.op("eq", x, b.like(x, 0)), values, step)


@lower("ldexp.Tensor")
def ldexp(b, n, x, y):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    wide = F64 if dtype == F32 else dtype
    factor = b.op("exp2", b.operand(y, wide, sizes))
    return b.cast(b.op("mul", b.operand(x, wide, sizes), factor), dtype)


@lower("addcmul", "addcdiv")
def addcmul(b, n, x, y, z, value=1):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    wide = F32 if dtype in HALVES else dtype
    x, y, z = (b.operand(v, wide, sizes) for v in (x, y, z))
    if value != 1:
        y = b.op("mul", y, b.scalar(value, wide, sizes))
    product = b.op("mul" if n.target is named("addcmul") else "div", y, z)
    return b.cast(b.op("add", x, product), dtype)


@lower("prims::fma")
def fma(b, n, x, y, z):
    """What dynamo makes of addcmul_ and addcdiv_, as optimizers have them."""
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    return b.op("fma", *(b.operand(v, dtype, sizes) for v in (x, y, z)))


@lower("lerp.Scalar", "lerp.Tensor")
def lerp(b, n, x, y, weight):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    wide = F32 if dtype in HALVES else dtype
    x, y, w = (b.operand(v, wide, sizes) for v in (x, y, weight))
    gap = b.op("sub", y, x)
    near = b.op("add", x, b.op("mul", w, gap))  # exact at both ends, as ATen's
    far = b.op("sub", y, b.op("mul", gap, b.op("sub", b.like(w, 1), w)))
    return b.cast(b.select(b.op("lt", b.op("abs", w), b.like(w, 0.5)), near, far), dtype)


# --- comparisons, logic, bits

def operand_dtype(n, count: int = 2) -> int:
    """The type in which ATen compares: what its operands are promoted to."""
    real = [a.meta["val"] if isinstance(a, torch.fx.Node) else a for a in n.args[:count]]
    real = [r if isinstance(r, (torch.Tensor, int, float, bool)) else 1 for r in real]  # a SymInt is an integer
    dtype = torch.result_type(*real)
    if dtype not in WEFT_DTYPES:
        raise Refuse(f"dtype {dtype}")
    return WEFT_DTYPES[dtype]


def _compare(op: str):
    def make(b, n, x, y):
        dtype, sizes = operand_dtype(n), result_sizes(b, n)
        if dtype == BOOL and op not in ("eq", "ne"):
            dtype = I64
        if dtype in INTEGERS and any(isinstance(v, int) and not -2**63 <= v < 2**63 for v in (x, y)):
            raise Refuse("a number beyond 64 bits")
        if dtype in HALVES and any(isinstance(v, float) for v in (x, y)):
            dtype = F32  # ATen rounds no number to 16 bits before it compares
        return b.op(op, b.operand(x, dtype, sizes), b.operand(y, dtype, sizes))

    return make


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    lower(f"{_name}.Tensor", f"{_name}.Scalar")(_compare(_name))


def _logic(op: str):
    return lambda b, n, x, y: b.op(op, b.bcast(b.cast(x, BOOL), result_sizes(b, n)),
                                   b.bcast(b.cast(y, BOOL), result_sizes(b, n)))


def _bits(op: str):
    def make(b, n, x, y):
        dtype, sizes = result_dtype(n), result_sizes(b, n)
        return b.op(op if dtype == BOOL else "bit_" + op, b.operand(x, dtype, sizes), b.operand(y, dtype, sizes))

    return make


for _name in ("and", "or", "xor"):
    lower(f"logical_{_name}")(_logic(_name))
    lower(f"bitwise_{_name}.Tensor", f"bitwise_{_name}.Scalar", f"bitwise_{_name}.Scalar_Tensor",
          f"__{_name}__.Tensor", f"__{_name}__.Scalar")(_bits(_name))


def _shift(op: str):
    def make(b, n, x, y):
        dtype, sizes = result_dtype(n), result_sizes(b, n)
        if dtype not in INTEGERS:
            raise Refuse("a shift of floats")
        return b.op(op, b.operand(x, dtype, sizes), b.operand(y, dtype, sizes))

    return make


for _name, _op in (("left", "shift_left"), ("right", "shift_right")):
    _old = "__lshift__" if _name == "left" else "__rshift__"
    lower(f"bitwise_{_name}_shift.Tensor", f"bitwise_{_name}_shift.Tensor_Scalar",
          f"bitwise_{_name}_shift.Scalar_Tensor", f"{_old}.Tensor", f"{_old}.Scalar")(_shift(_op))


@lower("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(b, n, c, x, y):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    return b.select(b.operand(c, BOOL, sizes), b.operand(x, dtype, sizes), b.operand(y, dtype, sizes))


@lower("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(b, n, x, mask, value):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    return b.select(b.operand(mask, BOOL, sizes), b.operand(value, dtype, sizes), b.operand(x, dtype, sizes))

# SPDX-License-Identifier: Apache-2.0
"""Matrix products."""

from __future__ import annotations

from ..dtypes import BOOL, F32, HALVES
from .build import result_dtype, result_sizes
from .registry import Refuse, lower, named


@lower("mm", "bmm", "mm.dtype", "bmm.dtype")
def mm(b, n, x, y, *_):
    if x.dtype == BOOL:
        raise Refuse("a product of bool")
    dtype = result_dtype(n)
    return b.cast(b.op("matmul", b.cast(x, dtype), b.cast(y, dtype)), dtype)


@lower("mv", "dot", "vdot")
def mv(b, n, x, y):
    if x.dtype == BOOL:
        raise Refuse("a product of bool")
    if x.rank == 1:
        x = b.unsqueeze(x, 0)
    return b.reshape(b.op("matmul", x, b.unsqueeze(y, 1)), result_sizes(b, n))


@lower("addmm", "baddbmm", "addbmm", "addmv", "addr")
def addmm(b, n, c, x, y, *, beta=1, alpha=1):
    """beta * c + alpha * (x @ y), in f32 of 16-bit floats where there are factors, since ATen rounds once."""
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    if dtype == BOOL:
        raise Refuse("a product of bool")
    name = n.target._opname
    scaled = alpha != 1 or beta not in (0, 1)
    wide = F32 if dtype in HALVES and (scaled or name in ("addbmm", "addr")) else dtype
    x, y = b.cast(x, wide), b.cast(y, wide)
    if name == "addr":
        p = b.op("mul", b.along(x, sizes, [0]), b.along(y, sizes, [1]))
    elif name == "addmv":
        p = b.reshape(b.op("matmul", x, b.unsqueeze(y, 1)), sizes)
    else:
        p = b.op("matmul", x, y)
    if name == "addbmm":
        p = b.op("sum", p, axes=[0])
    if alpha != 1:
        p = b.op("mul", p, b.like(p, alpha))
    if beta == 0:
        return b.cast(p, dtype)
    c = b.bcast(b.cast(c, wide), sizes)
    if beta != 1:
        c = b.op("mul", c, b.like(c, beta))
    return b.cast(b.op("add", p, c), dtype)


@lower("linear")
def linear(b, n, x, w, bias=None):
    sizes = result_sizes(b, n)
    if x.rank < 1 or w.rank != 2:
        raise Refuse("a vector as weights")
    rows = b.reshape(x, [b.times(x.dims[:-1]), x.dims[-1]])
    made = b.reshape(b.op("matmul", rows, w, trans_b=1), sizes)
    return made if bias is None else b.op("add", made, b.bcast(bias, sizes))


@lower("linalg_det", "_linalg_det")
def det(b, n, x):
    if n.target is named("_linalg_det"):
        raise Refuse("a factorization")
    return b.op("det", x)

# SPDX-License-Identifier: Apache-2.0
"""Matrix products."""

from __future__ import annotations

import math

import torch

from ..dtypes import BOOL, F32, HALVES
from .build import result_dtype, result_sizes, used_results
from .registry import Refuse, lower, named


#: Products of more terms than this are cut where a graph is trained, into pieces of so many.
LONG, PIECE = 4096, 1024


def matmul(b, x, y):
    """x @ y. A product of weft's is one chain of sums over all terms, whose rounding errors grow with the root of their
    number: over a vocabulary of 30,000 they are ten times those of ATen. So gradients are summed in pieces, each of
    which adds the sum of those before to its results in registers."""
    terms = b.known(x.dims[-1])
    if not b.training or x.dtype != F32 or terms is None or terms <= LONG:
        return b.op("matmul", x, y)
    count, made = -(-terms // PIECE), None
    for i in range(count):
        first, end = terms * i // count, terms * (i + 1) // count
        piece = b.op("matmul", b.slice(x, x.rank - 1, first, end), b.slice(y, y.rank - 2, first, end))
        made = piece if made is None else b.op("add", piece, made)
    return made


@lower("mm", "bmm", "mm.dtype", "bmm.dtype")
def mm(b, n, x, y, *_):
    if x.dtype == BOOL:
        raise Refuse("a product of bool")
    dtype = result_dtype(n)
    return b.cast(matmul(b, b.cast(x, dtype), b.cast(y, dtype)), dtype)


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
        p = matmul(b, x, y)
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
    made = b.op("det", x)
    if n.target is not named("_linalg_det"):
        return made
    if used_results(n) - {0}:
        raise Refuse("a factorization")
    return [made, None, None]


@lower("_trilinear")
def trilinear(b, n, x, y, z, expand_x, expand_y, expand_z, summed, unroll=1):
    """The sum of products of three operands, each with axes of extent 1 put in."""
    def opened(v, axes):
        for axis in sorted(axes):
            v = b.unsqueeze(v, axis)
        return v

    x, y, z = opened(x, expand_x), opened(y, expand_y), opened(z, expand_z)
    sizes = [next((d for d in dims if b.known(d) != 1), 1) for dims in zip(x.dims, y.dims, z.dims)]
    product = b.op("mul", b.op("mul", b.bcast(b.wide(x), sizes), b.bcast(b.wide(y), sizes)), b.bcast(b.wide(z), sizes))
    return b.cast(b.op("sum", product, axes=sorted(summed)), result_dtype(n))


@lower("_cdist_forward")
def cdist(b, n, x, y, order, _):
    sizes = result_sizes(b, n)
    whole = [*sizes, x.dims[-1]]
    gap = b.op("sub", b.bcast(b.unsqueeze(x, x.rank - 1), whole), b.bcast(b.unsqueeze(y, y.rank - 2), whole))
    return length(b, gap, float(order))


@lower("_pdist_forward")
def pdist(b, n, x, order=2):
    i, j = torch.triu_indices(*[b.static(x.dims[0], "a number of points")] * 2, offset=1)
    if i.numel() == 0:
        return b.scalar(0, x.dtype, [0])
    first, second = (b.op("gather", x, b.constant(v.contiguous()), axis=0) for v in (i, j))
    return length(b, b.op("sub", first, second), float(order))


def length(b, gap, order: float):
    """The norm along the last axis."""
    axes, size = [gap.rank - 1], b.op("abs", gap)
    if order == 0:
        return b.op("sum", b.cast(b.op("ne", gap, b.like(gap, 0)), gap.dtype), axes=axes)
    if order == 1:
        return b.op("sum", size, axes=axes)
    if order == 2:
        return b.op("sqrt", b.op("sum", b.op("mul", gap, gap), axes=axes))
    if math.isinf(order):
        return b.op("max", (made := b.op("reduce_max", size, axes=axes)), b.like(made, 0))
    total = b.op("sum", b.op("pow", size, b.like(size, order)), axes=axes)
    return b.op("pow", total, b.like(total, 1 / order))

# SPDX-License-Identifier: Apache-2.0
"""What every lowering needs: ATen's silent broadcasting and promotion, spelled out in weft nodes.

A ``Build`` holds the weft graph in the making. Values are nodes of ``weft.graph`` (dtype, dims, rank). Sizes are
integers where they are known and weft extents (``Dim``) where they are symbols; nothing here looks at the number that
a symbol happens to have, because that would be a guard.
"""

from __future__ import annotations

import ctypes as C
import math
import struct

import torch

from ... import _c
from ..dtypes import BOOL, F32, FLOATS, HALVES, I64, INTEGERS, WEFT_DTYPES
from .registry import Refuse

Dim = _c.Dim


class Build:
    """Makes weft nodes for a graph of ATen ops."""

    def __init__(self, graph, sizes, training: bool = False):
        self.g = graph
        self.size = sizes  # SymInt, int or Dim -> int or Dim
        self.training = training
        self.streams = 0  # how many random nodes there are: each draws from a stream of its own
        self.elements: dict[str, torch.Tensor] = {}  # of inputs that are constants
        self.step = None  # the node that holds the number of the call, for random ops

    # --- sizes

    def sizes(self, values) -> list:
        return [self.size(v) for v in values]

    def known(self, dim) -> int | None:
        """A size as a number, or None if it depends on a symbol."""
        if isinstance(dim, int):
            return dim
        if isinstance(dim, torch.SymInt):
            dim = self.size(dim)
            if isinstance(dim, int):
                return dim
        at_hint = C.c_int64()
        self.g.context.call(_c.lib.weft_extent_at, self.g.handle, dim, None, 0, C.byref(at_hint))
        return at_hint.value if _c.lib.weft_extent(at_hint.value).bits == dim.bits else None

    def static(self, dim, what: str = "a size") -> int:
        """The same where only a number will do."""
        number = self.known(dim)
        if number is None:
            raise Refuse(f"{what} that is a symbol")
        return number

    def static_all(self, dims, what: str = "a size") -> list[int]:
        return [self.static(d, what) for d in dims]

    def same_dims(self, a, b) -> bool:
        return len(a) == len(b) and all(self.g.dim(x).bits == self.g.dim(y).bits for x, y in zip(a, b))

    def add(self, a, b):
        return a + b if isinstance(a, int) and isinstance(b, int) else self.g.combine("+", a, b)

    def subtract(self, a, b):
        return a - b if isinstance(a, int) and isinstance(b, int) else self.g.combine("-", a, b)

    def times(self, dims):
        return math.prod(dims) if all(isinstance(d, int) for d in dims) else self.g.product(dims)

    def axis(self, x, axis: int) -> int:
        """An axis counted from the front; of a scalar too, which has the axes 0 and -1 for ATen."""
        return axis % max(1, x.rank)

    # --- types and shapes

    def cast(self, x, dtype: int):
        return x if x.dtype == dtype else self.g.op("cast", x, dtype=dtype, sizes=x.dims)

    def bcast(self, x, sizes):
        """x repeated to ``sizes``, axes aligned at the end as ATen does."""
        if self.same_dims(x.dims, sizes):
            return x
        first = len(sizes) - x.rank
        if first < 0:
            raise Refuse("broadcast to fewer axes")
        return self.g.op("bcast", x, dtype=x.dtype, sizes=sizes, dims=list(range(first, len(sizes))))

    def along(self, x, sizes, axes):
        """x repeated to ``sizes``, its axes being ``axes`` of those."""
        return self.g.op("bcast", x, dtype=x.dtype, sizes=sizes, dims=list(axes))

    def reshape(self, x, sizes):
        return x if self.same_dims(x.dims, sizes) else self.g.op("reshape", x, dtype=x.dtype, sizes=sizes)

    def flat(self, x):
        return self.reshape(x, [self.times(x.dims)])

    def transpose(self, x, perm):
        perm = list(perm)
        return x if perm == list(range(x.rank)) else self.g.op("transpose", x, perm=perm)

    def unsqueeze(self, x, axis: int):
        return self.reshape(x, [*x.dims[:axis], 1, *x.dims[axis:]])

    def slice(self, x, axis: int, start, end, step: int = 1):
        starts, ends, steps = [0] * x.rank, list(x.dims), [1] * x.rank
        starts[axis], ends[axis], steps[axis] = start, end, step
        return self.g.op("slice", x, start=starts, end=ends, step=steps)

    def cut(self, x, dims):
        """The first elements of x along each axis, as many as ``dims`` says."""
        return x if self.same_dims(x.dims, dims) else self.g.op("slice", x, start=[0] * x.rank, end=list(dims))

    # --- numbers

    def scalar(self, value, dtype: int, sizes=()):
        """All elements of a shape equal to a Python number."""
        if dtype == BOOL:
            value = int(bool(value))
        elif dtype in INTEGERS and isinstance(value, float):
            if not math.isfinite(value):
                raise Refuse(f"the number {value} as an integer")
            value = int(value)
        return self.g.splat(dtype, list(sizes), value)

    def like(self, x, value):
        return self.scalar(value, x.dtype, x.dims)

    def extent(self, dim, dtype: int = I64):
        """A size as a scalar value of the graph."""
        number = self.known(dim)
        if number is not None:
            return self.scalar(number, dtype)
        made = self.g.op("extents", dtype=I64, sizes=[], value=[dim])
        return self.cast(made, dtype)

    def operand(self, x, dtype: int, sizes):
        """A number, a size or a node as an operand of that type and shape."""
        if isinstance(x, (bool, int, float)):
            return self.scalar(x, dtype, sizes)
        if isinstance(x, (Dim, torch.SymInt)):
            return self.bcast(self.extent(self.size(x), dtype), sizes)
        if not hasattr(x, "raw"):
            raise Refuse(f"an operand of type {type(x).__name__}")
        return self.bcast(self.cast(x, dtype), sizes)

    def op(self, name: str, *operands, **attributes):
        return self.g.op(name, *operands, **attributes)

    def binary(self, name: str, a, b, dtype: int, sizes):
        """An op of two operands. Of 16-bit floats and a number that they do not hold, it is computed in f32, as ATen
        does, which rounds the result alone."""
        if dtype in HALVES and any(isinstance(v, (int, float)) and not isinstance(v, bool) and not exact(v, dtype)
                                   for v in (a, b)):
            wide = self.op(name, self.operand(a, F32, sizes), self.operand(b, F32, sizes))
            return self.cast(wide, dtype)
        return self.op(name, self.operand(a, dtype, sizes), self.operand(b, dtype, sizes))

    def iota(self, dtype: int, sizes, axis: int):
        return self.op("iota", dtype=dtype, sizes=list(sizes), axis=axis)

    def select(self, condition, a, b):
        return self.op("select", condition, a, b)

    def wide(self, x):
        """x in a type in which several steps lose nothing that ATen would keep: f32 of 16-bit floats."""
        return self.cast(x, F32) if x.dtype in HALVES else x

    def positive(self, index, size):
        """Indices that may count from the end, made to count from the start, as i64."""
        index = self.cast(index, I64)
        return self.select(self.op("lt", index, self.like(index, 0)),
                           self.op("add", index, self.operand(size, I64, index.dims)), index)

    def constant(self, tensor: torch.Tensor):
        """The elements of a real tensor; they are read where they lie if they are row-major there. An input of the
        graph until the program is opened."""
        t = tensor.detach().contiguous()
        if t.numel() == 0:
            return self.scalar(0, WEFT_DTYPES[t.dtype], list(t.shape))
        name = f"c{len(self.elements)}"
        self.elements[name] = t
        return self.g.param(WEFT_DTYPES[t.dtype], list(t.shape), name=name)


def exact(value, dtype: int) -> bool:
    """Is a number one of a 16-bit float type's?"""
    if not math.isfinite(value):
        return True
    if dtype == _c.F16:
        try:
            return struct.unpack("<e", struct.pack("<e", value))[0] == value
        except (OverflowError, struct.error):
            return False
    single = struct.unpack("<I", struct.pack("<f", value))[0] if abs(value) < 3e38 else 1
    return single & 0xFFFF == 0 and struct.unpack("<f", struct.pack("<I", single))[0] == value


def value_of(n):
    return n.meta["val"]


def result_dtype(n) -> int:
    """The weft type of a node's result."""
    dtype = value_of(n).dtype
    if dtype not in WEFT_DTYPES:
        raise Refuse(f"dtype {str(dtype).removeprefix('torch.')}")
    return WEFT_DTYPES[dtype]


def result_sizes(b: Build, n) -> list:
    return b.sizes(value_of(n).shape)


def used_results(n) -> set[int]:
    """Which results of a node of several are read."""
    return {u.args[1] for u in n.users}


def is_float(x) -> bool:
    return x.dtype in FLOATS

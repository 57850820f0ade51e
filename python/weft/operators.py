# SPDX-License-Identifier: Apache-2.0
"""Python's operators on values of a graph. weft repeats nothing silently; these do as numpy does, by `bcast` nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

import numpy as np

if TYPE_CHECKING:
    from .graph import Graph, Value

    Operand = Union["Value", np.ndarray, float, int, bool]


def broadcast(graph: Graph, value: Value, dims: list) -> Value:
    """The value repeated to these extents, as numpy would."""
    if [d.bits for d in value.dims] == [d.bits for d in dims]:
        return value
    first = len(dims) - value.rank
    return graph.op("bcast", value, dtype=value.dtype, sizes=dims, dims=list(range(first, len(dims))))


def together(a: Value, b: Operand) -> tuple[Value, Value]:
    """Both operands with the extents of the result. A number gets the element type of the other operand; an array
    becomes a constant."""
    graph = a.graph
    other: Any = graph.constant(b) if isinstance(b, np.ndarray) else b
    if not hasattr(other, "raw"):
        return a, graph.splat(a.dtype, a.dims, other)
    one, dims = graph.dim(1), []
    for k in range(max(a.rank, other.rank), 0, -1):
        x = a.dims[-k] if k <= a.rank else one
        y = other.dims[-k] if k <= other.rank else one
        if x.bits != y.bits and one.bits not in (x.bits, y.bits):
            raise ValueError(f"{a.type} and {other.type} cannot be repeated to one shape")
        dims.append(y if x.bits == one.bits else x)
    return broadcast(graph, a, dims), broadcast(graph, other, dims)


def _binary(name: str):
    def apply(self: Any, other: Operand) -> Any:
        return self.graph.op(name, *together(self, other))

    def reflected(self: Any, other: Operand) -> Any:
        return self.graph.op(name, *reversed(together(self, other)))

    return apply, reflected


class Operators:
    __slots__ = ()
    __array_ufunc__ = None  # array + value comes here, too

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("div")
    __floordiv__, __rfloordiv__ = _binary("floor_div")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")
    __lt__ = _binary("lt")[0]
    __le__ = _binary("le")[0]
    __gt__ = _binary("gt")[0]
    __ge__ = _binary("ge")[0]

    def __neg__(self: Any) -> Any:
        return self.graph.op("neg", self)

    def __abs__(self: Any) -> Any:
        return self.graph.op("abs", self)

    def __invert__(self: Any) -> Any:
        return self.graph.op("not", self)

    def __matmul__(self: Any, other: Any) -> Any:
        return self.graph.op("matmul", self, other)

# SPDX-License-Identifier: Apache-2.0
"""The reference evaluator: the definition of correct."""

from __future__ import annotations

import ctypes as C
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import _c
from .arrays import View, dense_view, unpack
from .dtypes import DType

if TYPE_CHECKING:
    from .graph import Graph


def take(graph: Graph, tensor: Any) -> np.ndarray:
    """A copy of a dense tensor that weft has allocated, which is freed."""
    try:
        dtype, shape = DType(tensor.dtype), tuple(tensor.extent[: tensor.rank])
        if dtype.packed:
            size = (int(np.prod(shape, dtype=np.int64)) + 1) // 2
            return unpack(View(tensor.data, DType.U8, (size,), (1,), False, None).numpy(), dtype, shape)
        return View(tensor.data, dtype, shape, tuple(tensor.stride[: tensor.rank]), False, None).numpy().copy()
    finally:
        _c.lib.weft_tensor_free(graph.context.handle, C.byref(tensor))


def evaluate(graph: Graph, arguments: Sequence[object]) -> Any:
    """One array for one result, a tuple for several."""
    params = graph.inputs
    if len(arguments) != len(params):
        raise TypeError(f"{len(arguments)} inputs given, but the graph has {len(params)}")
    views = [dense_view(argument, param.dtype) for argument, param in zip(arguments, params)]
    inputs = _c.array_of(_c.Tensor, (view.tensor() for view in views))
    count = _c.lib.weft_graph_returns(graph.handle)
    outputs = (_c.Tensor * max(1, count))()
    graph.context.call(_c.lib.weft_evaluate, graph.handle, inputs, len(params), outputs, count)
    results = tuple(take(graph, outputs[i]) for i in range(count))
    return results[0] if count == 1 else results

# SPDX-License-Identifier: Apache-2.0
"""Ops that make tensors out of numbers, and those that copy a tensor as it is."""

from __future__ import annotations

import math

from ..dtypes import F64, FLOATS, I64
from .build import result_dtype, result_sizes
from .registry import Refuse, lower


@lower("_to_copy", "clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "contiguous", "to.dtype",
       "_conj_physical", "conj_physical", "_conj", "resolve_conj", "resolve_neg", "real", "positive", "lift",
       "view_copy.dtype", "detach_copy", "alias_copy", "prims::convert_element_type")
def copy(b, n, x, *args, **_):
    if str(n.target).startswith("aten.view_copy"):
        raise Refuse("a change of type bit by bit")
    return b.cast(x, result_dtype(n))


@lower("copy")
def copy_values(b, n, x, source, *_):
    return b.operand(source, result_dtype(n), result_sizes(b, n))


NUMBERS = {"zeros": 0, "zeros_like": 0, "ones": 1, "ones_like": 1, "empty": 0, "empty_like": 0, "new_zeros": 0,
           "new_ones": 1, "new_empty": 0, "empty_strided": 0, "new_empty_strided": 0, "empty_permuted": 0}


@lower("full", "full_like", "zeros", "ones", "zeros_like", "ones_like", "scalar_tensor", "empty.memory_format",
       "empty_like", "new_zeros", "new_ones", "new_full", "new_empty", "empty_strided", "new_empty_strided",
       "empty_permuted", "fill.Scalar", "fill.Tensor")
def full(b, n, *args, **kwargs):
    name = n.target._opname
    value = NUMBERS.get(name)
    if value is None:
        place = {"scalar_tensor": 0, "new_full": 2}.get(name, 1)
        value = args[place] if len(args) > place else kwargs["fill_value"]
    return b.operand(value, result_dtype(n), result_sizes(b, n))


@lower("arange.start_step", "arange", "arange.start")
def arange(b, n, *args, **kwargs):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    start, step = 0, 1
    if n.target._overloadname != "default":
        start, step = args[0], args[2] if len(args) > 2 else kwargs.get("step", 1)
    return _line(b, dtype, sizes, start, step)


def _line(b, dtype, sizes, start, step):
    """start + i * step, in f64 where a rounding could be seen."""
    if dtype not in FLOATS:  # ATen makes integers of both first
        start, step = (int(v) if isinstance(v, float) else v for v in (start, step))
    whole = not any(isinstance(v, float) for v in (start, step))
    wide = dtype if whole and dtype not in FLOATS else I64 if whole else F64
    x = b.iota(wide, sizes, 0)
    if not (isinstance(step, (int, float)) and step == 1):
        x = b.binary("mul", x, step, wide, sizes)
    if not (isinstance(start, (int, float)) and start == 0):
        x = b.binary("add", x, start, wide, sizes)
    return b.cast(x, dtype)


@lower("linspace", "logspace")
def linspace(b, n, start, end, steps, base=10.0, **_):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    if any(not isinstance(v, (int, float)) for v in (start, end)):
        raise Refuse("ends that are tensors")
    if dtype not in FLOATS:
        raise Refuse("steps of integers, which round as they go")
    steps = b.static(sizes[0], "a number of steps")
    if steps < 2:
        x = b.scalar(float(start), F64, sizes)
    else:  # from both ends, as ATen does, so that both are exact
        i, step = b.iota(F64, sizes, 0), (end - start) / (steps - 1)
        low = b.binary("add", b.binary("mul", i, step, F64, sizes), float(start), F64, sizes)
        back = b.binary("sub", float(steps - 1), i, F64, sizes)
        high = b.binary("sub", float(end), b.binary("mul", back, step, F64, sizes), F64, sizes)
        x = b.select(b.binary("lt", i, float(steps // 2), F64, sizes), low, high)
    if n.target._opname == "logspace":
        x = b.op("exp2", b.binary("mul", x, math.log2(base), F64, sizes)) if base == 2 else b.binary(
            "pow", float(base), x, F64, sizes)
    return b.cast(x, dtype)


@lower("eye", "eye.m")
def eye(b, n, *_, **__):
    dtype, sizes = result_dtype(n), result_sizes(b, n)
    return b.cast(b.op("eq", b.iota(I64, sizes, 0), b.iota(I64, sizes, 1)), dtype)


@lower("tril_indices", "triu_indices")
def triangle_indices(b, n, rows, columns, offset=0, **_):
    import torch

    make = torch.tril_indices if n.target._opname == "tril_indices" else torch.triu_indices
    return b.cast(b.constant(make(b.static(rows), b.static(columns), b.static(offset))), result_dtype(n))


@lower("_assert_tensor_metadata", "_assert_async.msg", "_assert_scalar", "sym_constrain_range_for_size",
       "sym_constrain_range", "_assert_async")
def assertion(b, n, *args, **_):
    if n.target._opname == "_assert_tensor_metadata":
        return None
    raise Refuse("a check while running")



# SPDX-License-Identifier: Apache-2.0
"""Inputs and results of a plan: their types, and the strides that arrays for them must have."""

from __future__ import annotations

import ctypes as C
import functools
import re
from dataclasses import dataclass
from typing import Any, Mapping

from . import _c
from .arrays import dense_strides
from .dtypes import DType
from .extents import number_or_text, split_outside, symbols_of, value_of


@dataclass(frozen=True, repr=False)
class Port:
    """One input or result. Extents that depend on symbols are texts, "n" or "2*n + 1"."""

    name: str  #: "" if it has none
    dtype: DType
    shape: tuple[int | str, ...]
    text: str  #: the type with its layout, "f32[n,3,240,320]{0 2 3 1}"
    mutable: bool = False  #: an input that the run updates
    static: bool = False  #: an input whose elements change only when ``Execution.refresh`` says so
    updates: int | None = None  #: of a result: the number of the mutable input whose new value it is
    _strides: tuple[int | str, ...] | None = None  # stated in the layout
    _order: tuple[int, ...] | None = None  # axes from the outermost on, of packed storage

    @property
    def rank(self) -> int:
        return len(self.shape)

    @functools.cached_property
    def symbols(self) -> frozenset[str]:
        return frozenset().union(*map(symbols_of, self.shape))

    @functools.cached_property
    def row_major(self) -> bool:
        """Is it packed, with the axes in their order?"""
        return self._order == tuple(range(self.rank)) and self._strides is None and not self.dtype.packed

    def strides(self, shape: tuple[int, ...], sizes: Mapping[str, int]) -> tuple[int, ...] | None:
        """In elements, for an array of this shape; None if the layout splits an axis."""
        if self._strides is not None:
            return tuple(value_of(stride, sizes) for stride in self._strides)
        return None if self._order is None else dense_strides(shape, self._order)

    def __str__(self) -> str:
        word = "mut " if self.mutable else "static " if self.static else ""
        return f"{self.name}: {word}{self.text}" if self.name else self.text

    def __repr__(self) -> str:
        return f"<weft.Port {self}>"


_TYPE = re.compile(r"(\w+)\[(.*?)\](?:\{(.*)\})?$")
_STORED = re.compile(r"(\s*align=\d+|\s*hint|\s*free)+\s*$")


def _layout(text: str | None, rank: int) -> tuple[tuple[int | str, ...] | None, tuple[int, ...] | None]:
    """Strides by logical axis and the order of axes, as far as the text of a layout states them."""
    if text is None:
        return None, tuple(range(rank))
    stated, _, after = _STORED.sub("", text).partition("|")
    axes = split_outside(stated.partition("+")[0], " ")
    if sorted(axes) != sorted(map(str, range(rank))):
        return None, None
    order = tuple(map(int, axes))
    if not after:
        return None, order
    strides = [number_or_text(part) for part in split_outside(after.partition("+")[0], " ")]
    by_axis: list[int | str] = [0] * rank
    for axis, stride in zip(order, strides):
        by_axis[axis] = stride
    return tuple(by_axis), order


def _port(raw: Any, **more: Any) -> Port:
    text = raw.text.decode()
    match = _TYPE.match(text)
    assert match, text
    shape = tuple(number_or_text(part) for part in split_outside(match[2], ","))
    strides, order = _layout(match[3], raw.rank)
    return Port((raw.name or b"").decode(), DType(raw.dtype), shape, text, _strides=strides, _order=order, **more)


def read_ports(plan: C.c_void_p) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """The inputs and results of a plan."""
    inputs, outputs = [], []
    raw = _c.sized(_c.Port)
    for i in range(_c.lib.weft_plan_inputs(plan)):
        _c.check(_c.lib.weft_plan_input(plan, i, C.byref(raw)))
        inputs.append(_port(raw, mutable=bool(raw.is_mutable), static=bool(raw.is_static)))
    for i in range(_c.lib.weft_plan_outputs(plan)):
        _c.check(_c.lib.weft_plan_output(plan, i, C.byref(raw)))
        outputs.append(_port(raw, updates=raw.updates if raw.updates >= 0 else None))
    return tuple(inputs), tuple(outputs)

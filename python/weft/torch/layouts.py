# SPDX-License-Identifier: Apache-2.0
"""Strides: how arguments lie and how results have to, as weft's layouts.

torch guards the strides of arguments, and whoever reads results may rely on theirs, so both are stated exactly. Axes
of one element may have any stride.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from .lower.registry import Refuse
from .sizes import expression, hint_of, is_symbolic, same


def layout_text(shape: Sequence, stride: Sequence) -> str | None:
    """The layout with these strides, or None for a packed row-major array."""
    rank = len(shape)
    if rank == 0 or any(not is_symbolic(n) and int(n) == 0 for n in shape):
        return None
    order = sorted(range(rank), key=lambda a: (-hint_of(stride[a]), -hint_of(shape[a]), a))
    one = [not is_symbolic(n) and int(n) == 1 for n in shape]
    if is_packed(shape, stride, range(rank), one):
        return None
    if is_packed(shape, stride, order, one):
        return "{" + " ".join(map(str, order)) + "}"
    steps = [_atom(expression(stride[a])) for a in order]
    return "{" + " ".join(map(str, order)) + " | " + " ".join(steps) + "}"


def is_packed(shape: Sequence, stride: Sequence, order, one: Sequence[bool]) -> bool:
    """Do axes in this order, outermost first, follow each other without gaps?"""
    dense = sympy.Integer(1)
    for a in reversed(list(order)):
        if not one[a] and not same(stride[a], dense):
            return False
        dense = dense * expression(shape[a])
    return True


def _atom(e: sympy.Expr) -> str:
    """An extent in weft's text form, in parentheses where it is more than a number or a name."""
    return str(e) if e.is_Integer or e.is_Symbol else f"({_text(e)})"


def _text(e: sympy.Expr) -> str:
    if e.is_Integer or e.is_Symbol:
        return str(e)
    name, parts = type(e).__name__, []
    if not e.is_Pow:
        parts = [_text(a) for a in e.args]
    if name == "Add":
        return "(" + " + ".join(parts) + ")"
    if name == "Mul":
        return " * ".join(parts)
    if name in ("Max", "Min"):
        return f"{name.lower()}({', '.join(parts)})"
    if name in ("FloorDiv", "CleanDiv"):
        return f"(({parts[0]}) / ({parts[1]}))"
    if name in ("Mod", "PythonMod"):
        return f"(({parts[0]}) % ({parts[1]}))"
    if e.is_Pow and e.args[1].is_Integer and e.args[1] > 0:
        return "(" + " * ".join([_text(e.args[0])] * int(e.args[1])) + ")"
    raise Refuse(f"the stride {e}")


def overlaps(shape: Sequence, stride: Sequence) -> bool:
    """May two elements share a place? Then no result can be written so."""
    reach = 0
    axes = [a for a in range(len(shape)) if is_symbolic(shape[a]) or int(shape[a]) > 1]
    for a in sorted(axes, key=lambda a: hint_of(stride[a])):
        step = hint_of(stride[a])
        if step <= reach:
            return True
        reach += step * (hint_of(shape[a]) - 1)
    return False

# SPDX-License-Identifier: Apache-2.0
"""Strides: how arguments lie and how results have to, as weft's layouts.

torch guards the strides of arguments, and whoever reads results may rely on theirs, so both are stated exactly. Axes
of one element may have any stride.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from .sizes import Sizes, expression, hint_of, is_symbolic, same


def layout_text(sizes: Sizes, shape: Sequence, stride: Sequence) -> str | None:
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
    steps = [sizes.text(stride[a]) for a in order]
    return "{" + " ".join(map(str, order)) + " | " + " ".join(steps) + "}"


def is_packed(shape: Sequence, stride: Sequence, order, one: Sequence[bool]) -> bool:
    """Do axes in this order, outermost first, follow each other without gaps?"""
    dense = sympy.Integer(1)
    for a in reversed(list(order)):
        if not one[a] and not same(stride[a], dense):
            return False
        dense = dense * expression(shape[a])
    return True


def overlaps(shape: Sequence, stride: Sequence) -> bool:
    """May two elements share a place? Then no result can be written so."""
    reach = 0
    axes = [a for a in range(len(shape)) if is_symbolic(shape[a]) or int(shape[a]) > 1]
    for a in sorted(axes, key=lambda a: (hint_of(stride[a]), hint_of(shape[a]))):  # of one element: no reach
        step = hint_of(stride[a])
        if step <= reach:
            return True
        reach += step * (hint_of(shape[a]) - 1)
    return False

# SPDX-License-Identifier: Apache-2.0
"""Sizes: torch's symbolic integers as weft's extents, and back as numbers when a plan is called.

torch writes an unknown size as a sympy expression over symbols; so does weft, in a language of its own. Nothing here
asks a SymInt for its truth or its number, which would add a guard and so another compilation: decisions are made on
expressions alone, and on ranges and hints that torch has written down already.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy
import torch

from .. import _c
from .lower.registry import Refuse
from .program import Formula

LARGEST = 2**31 - 1  # of a symbol in weft
Dim = _c.Dim


def expression(value) -> sympy.Expr:
    """A size as a sympy expression."""
    if isinstance(value, sympy.Expr):
        return value
    return value.node.expr if isinstance(value, torch.SymInt) else sympy.Integer(int(value))


def is_symbolic(value) -> bool:
    return isinstance(value, torch.SymInt) and not value.node.expr.is_Integer


def same(a, b) -> bool:
    """Are two sizes equal whatever their symbols are? False where that cannot be seen."""
    a, b = expression(a), expression(b)
    return a == b or sympy.expand(a - b) == 0


def hint_of(value) -> int:
    """The number that a size had when torch traced it: for decisions about how fast a plan is, not what it does."""
    if not isinstance(value, torch.SymInt):
        return int(value)
    return int(value.node.hint) if value.node.has_hint() else 1


class Sizes:
    """Turns sizes into extents of one weft graph; remembers the symbols that came up."""

    def __init__(self, graph):
        self.graph = graph
        self.dims: dict[sympy.Symbol, Dim] = {}
        self._ranges: dict[sympy.Symbol, tuple[int, int, int]] = {}
        self._names: dict[sympy.Symbol, str] = {}

    def see(self, value) -> None:
        """Notes the ranges of a size's symbols."""
        if not isinstance(value, torch.SymInt):
            return
        env = value.node.shape_env
        for symbol in value.node.expr.free_symbols:
            if symbol in self._ranges:
                continue
            known = env.var_to_range.get(symbol)
            low = int(known.lower) if known is not None and known.lower.is_Integer else 0
            high = int(known.upper) if known is not None and known.upper.is_Integer else LARGEST
            hints = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else env.var_to_val
            hint = hints.get(symbol, 0)
            if not isinstance(hint, (int, sympy.Integer)):
                raise Refuse("a length of a jagged tensor as a size")
            hint = int(hint)
            low, high = min(max(low, 0), LARGEST), min(max(high, 0), LARGEST)
            self._ranges[symbol] = low, high, hint if low <= hint <= high else 0

    def __call__(self, value):
        if isinstance(value, Dim):
            return value
        if isinstance(value, torch.SymInt):
            self.see(value)
            return self.of(value.node.expr)
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise Refuse(f"a {type(value).__name__} as a size")
        return int(value)

    def of(self, e: sympy.Expr):
        """An expression as an integer or an extent."""
        if e.is_Integer:
            return int(e)
        if e.is_Symbol:
            return self._symbol(e)
        if e.is_Float:
            raise Refuse(f"a size times {float(e)}")
        if e.is_Pow:
            base, power = e.args
            if not (power.is_Integer and power > 0):
                raise Refuse(f"the size {e}")
            return self.graph.product([self.of(base)] * int(power))
        name, parts = type(e).__name__, [self.of(a) for a in e.args]
        fold = {"Add": "+", "Mul": "*", "Max": "M", "Min": "m"}.get(name)
        if fold:
            out = parts[0]
            for part in parts[1:]:
                out = self.graph.combine(fold, out, part)
            return out
        if name in ("FloorDiv", "CleanDiv", "PythonMod", "Mod"):
            return self.graph.combine("%" if "Mod" in name else "/", *parts)
        if name == "ModularIndexing":
            return self.graph.combine("%", self.graph.combine("/", parts[0], parts[1]), parts[2])
        raise Refuse(f"the size {e}")

    def text(self, value) -> str:
        """A size in weft's text form, in parentheses where it is more than a number or a name."""
        size = self(value)
        text = str(self.graph.size_text(size) if isinstance(size, Dim) else size)
        return text if text.isidentifier() or text.isdecimal() else f"({text})"

    def _symbol(self, symbol: sympy.Symbol) -> Dim:
        if symbol not in self.dims:
            if symbol not in self._ranges:
                raise Refuse(f"the size {symbol} of unknown range")
            low, high, hint = self._ranges[symbol]
            self.dims[symbol] = self.graph.symbol(str(symbol), low, high, hint)
        return self.dims[symbol]


class Solver:
    """Finds what symbols are from the arguments of a call, and evaluates sizes with that.

    ``arguments`` are the fake tensors and SymInts that a graph was traced with, by position."""

    def __init__(self, arguments: Sequence):
        self.rules: dict[sympy.Symbol, tuple[int, int | None, int, int]] = {}  # argument, axis, factor, offset
        for i, value in enumerate(arguments):
            places = enumerate(value.shape) if isinstance(value, torch.Tensor) else [(None, value)]
            for axis, size in places:
                if is_symbolic(size):
                    self._learn(i, axis, size.node.expr)

    def _learn(self, argument: int, axis: int | None, e: sympy.Expr) -> None:
        symbols = e.free_symbols
        if len(symbols) != 1:
            return
        (symbol,) = symbols
        factor, offset = e.coeff(symbol), e.subs(symbol, 0)
        if factor.is_Integer and factor > 0 and sympy.expand(factor * symbol + offset - e) == 0:
            old = self.rules.get(symbol)
            if old is None or old[2] != 1:
                self.rules[symbol] = argument, axis, int(factor), int(offset)

    def formula(self, sizes: Sequence) -> Formula:
        """From arguments of a call to the numbers that these sizes are. Refuses sizes whose symbols no argument
        tells."""
        expressions = [expression(s) for s in sizes]
        symbols = sorted(set().union(*[e.free_symbols for e in expressions]), key=str)
        unknown = [str(s) for s in symbols if s not in self.rules]
        if unknown:
            raise Refuse(f"sizes {' '.join(unknown)} that no argument tells")
        if not symbols:
            return Formula(tuple(int(e) for e in expressions))
        from torch.utils._sympy.printers import PythonPrinter

        names = ", ".join(str(s) for s in symbols)
        body = ", ".join(PythonPrinter().doprint(e) for e in expressions)
        return Formula(None, f"lambda {names}: [{body}]", tuple(self.rules[s] for s in symbols))

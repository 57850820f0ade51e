# SPDX-License-Identifier: Apache-2.0
"""Extents as text, "2*n + 1": how graphs and plans print sizes that depend on symbols, read back and computed."""

from __future__ import annotations

import ast
import functools
import re
from typing import Callable, Mapping, TypeVar

T = TypeVar("T")

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%"}
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_FUNCTIONS = {"min": "m", "max": "M"}


@functools.lru_cache(4096)
def _parse(text: str) -> ast.AST:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"size {text!r} cannot be read") from None


def fold(text: str, number: Callable[[int], T], symbol: Callable[[str], T], combine: Callable[[str, T, T], T]) -> T:
    """What the text means, made by the three functions; `combine` gets the signs of weft_extent_combine."""

    def visit(node: ast.AST) -> T:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                return number(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return number(-value)
            case ast.Name() | ast.Attribute():
                return symbol(ast.unparse(node))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return combine(_OPERATORS[type(op)], visit(left), visit(right))
            case ast.Call(func=ast.Name(id=name), args=[first, *rest], keywords=[]) if name in _FUNCTIONS:
                result = visit(first)
                for part in rest:
                    result = combine(_FUNCTIONS[name], result, visit(part))
                return result
        raise ValueError(f"size {text!r}: an extent is made of integers, symbols, + - * / %, min and max")

    return visit(_parse(text))


def is_symbol(text: object) -> bool:
    """Is it the name of a symbol alone?"""
    return isinstance(text, str) and _SYMBOL.fullmatch(text) is not None


def symbols_of(text: object) -> frozenset[str]:
    """The symbols that an extent depends on."""
    return frozenset(_SYMBOL.findall(text)) - _FUNCTIONS.keys() if isinstance(text, str) else frozenset()


def _compute(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a // b
        case "%":
            return a % b
    return min(a, b) if op == "m" else max(a, b)


def value_of(text: int | str, sizes: Mapping[str, int]) -> int:
    """The extent for these sizes of symbols."""
    return text if isinstance(text, int) else fold(text, int, sizes.__getitem__, _compute)


def number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def split_outside(text: str, separator: str) -> list[str]:
    """The parts between separators that stand in no parentheses, without blank ones."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text + separator):
        depth += (letter == "(") - (letter == ")")
        if letter == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in parts if part]

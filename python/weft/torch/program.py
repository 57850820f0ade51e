# SPDX-License-Identifier: Apache-2.0
"""A translated graph as plain data: weft text, and what a call has to bind and to put together.

A program holds no tensor of torch's tracing and no weft graph, so it can be pickled and opened by another process, and
opened again with other weights. Weights and other arrays that are constants of the plan are inputs of the text; they
become constants when it is opened, with the elements of tensors that are there then.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import torch

from ..graph import Graph, Known

HEAD_END = ") {\n"  # of the first line of a graph's text


@functools.lru_cache(maxsize=4096)
def _function(text: str) -> Callable:
    return eval(text, {"math": math, "torch": torch})  # noqa: S307 - sizes.Solver wrote it


@dataclasses.dataclass(frozen=True)
class Formula:
    """Numbers that follow from the sizes of a call's arguments."""

    numbers: tuple[int, ...] | None  #: if no symbol is in them
    text: str = ""  #: else a function of the symbols
    symbols: tuple[tuple[int, int | None, int, int], ...] = ()  #: what tells each: argument, axis, factor, offset

    def __call__(self, args: Sequence) -> Sequence[int]:
        if self.numbers is not None:
            return self.numbers
        found = []
        for argument, axis, factor, offset in self.symbols:
            size = args[argument] if axis is None else args[argument].shape[axis]
            found.append((int(size) - offset) // factor)
        return _function(self.text)(*found)


@dataclasses.dataclass(frozen=True)
class Shapes:
    """Extents and strides of tensors whose sizes may be symbols, for the arguments of a call."""

    kinds: tuple[tuple[int, torch.dtype], ...]  #: rank and element type
    formula: Formula

    @classmethod
    def of_values(cls, values: Sequence[torch.Tensor], solver) -> Shapes:
        return cls(tuple((v.dim(), v.dtype) for v in values),
                   solver.formula([size for v in values for size in (*v.shape, *v.stride())]))

    def of(self, args: Sequence) -> list[tuple[Sequence[int], Sequence[int], torch.dtype]]:
        numbers, out, at = self.formula(args), [], 0
        for rank, dtype in self.kinds:
            out.append((numbers[at: at + rank], numbers[at + rank: at + 2 * rank], dtype))
            at += 2 * rank
        return out


@dataclasses.dataclass(frozen=True)
class Input:
    """What is bound to an input of the plan."""

    kind: str  #: "tensor", "mutable" (the run updates it), "size" (tells a symbol), "step" (number of the call)
    argument: int  #: of kinds tensor and mutable: which argument
    dtype: int
    told: Formula | None = None  #: of kind size

    def of(self, arguments: frozenset[int]) -> bool:
        """Is it one of these arguments, and does the run leave it alone?"""
        return self.kind == "tensor" and self.argument in arguments


@dataclasses.dataclass(frozen=True)
class Result:
    """How a result of the FX graph comes about."""

    kind: str  #: "output" of the plan, "argument", "view" of one of these, "size", or "value": the object itself
    index: int = -1  #: of an output or argument
    value: object = None
    base: str = ""  #: of a view: "output" or "argument"
    formula: Formula | None = None  #: of a size; of a view: extents, strides and offset


@dataclasses.dataclass(frozen=True)
class Weight:
    """An input of the text that becomes a constant: an argument, with its axes in this order."""

    name: str
    argument: int
    order: tuple[int, ...]


@dataclasses.dataclass
class Program:
    text: str
    inputs: tuple[Input, ...]
    expected: Shapes  #: of the inputs of kinds tensor and mutable
    outputs: Shapes  #: that are returned; those of mutable inputs come behind
    specs: tuple[tuple, ...]  #: of outputs: weft's element type, extents, strides; -1 where they depend on symbols
    results: tuple[Result, ...]
    weights: tuple[Weight, ...]
    elements: dict[str, torch.Tensor]  #: inputs of the text that become constants and are no arguments
    nodes: int  #: ATen ops of the graph

    @property
    def empty(self) -> bool:
        """Is there nothing to run: results that are arguments alone, no mutation?"""
        return not self.specs and all(i.kind != "mutable" for i in self.inputs)

    @property
    def plain(self) -> bool:
        """Are the results the plan's outputs, in order, and nothing else?"""
        return (all(r.kind == "output" for r in self.results) and
                [r.index for r in self.results] == list(range(len(self.specs))) and
                not any(i.kind == "step" for i in self.inputs))

    def open(self, context, arguments: dict[int, torch.Tensor], static: frozenset[int] = frozenset()) -> Graph:
        """The weft graph, with the elements of these arguments as constants, and with inputs that are ``static``."""
        found = dict(self.elements)
        for w in self.weights:
            found[w.name] = arguments[w.argument].detach().permute(w.order)
        ids = {name: f"{number:032x}" for number, name in enumerate(found)}
        known = []
        for name, tensor in found.items():
            tensor = tensor.contiguous()
            known.append(Known(ids[name], tensor.data_ptr(), tensor.nbytes, tensor))
        return Graph.of_text(context, with_words(self.text, ids, [i.of(static) for i in self.inputs]), known)


def with_words(text: str, ids: dict[str, str], static: Sequence[bool]) -> str:
    """The text of a graph with some inputs, by name, as constants whose elements are known by an id; of the others
    those that are ``static`` get the word."""
    end = text.index(HEAD_END)
    start = text.index("(%") + 1 if "(%" in text[:end + 1] else end
    kept, made = [], []
    for param in text[start:end].split(", %") if end > start else []:
        name, _, kind = param.removeprefix("%").partition(": ")
        if name in ids:
            made.append(f"  %{name}: {kind} = const blob={ids[name]}\n")
        else:
            kept.append(f"%{name}: {'static ' if static[len(kept)] else ''}{kind}")
    return text[:start] + ", ".join(kept) + HEAD_END + "".join(made) + text[end + len(HEAD_END):]

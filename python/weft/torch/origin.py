# SPDX-License-Identifier: Apache-2.0
"""Where a graph comes from: the function that dynamo compiled, and the sizes of what it is given. For people who look
at several graphs; nothing is decided by it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterable

import torch

from ..warn import STANDARD
from .sizes import is_symbolic

_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+")  # what is behind a graph break, a function to dynamo
#: what reading torch's insides may end in where they are others than this expects
UNEXPECTED = (AttributeError, TypeError, IndexError, KeyError)
_LOCAL = re.compile(r"^[LG]\['(\w+)'\]")  # how dynamo writes the name of an argument or global
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in ', re.MULTILINE)  # of the stack that dynamo keeps, as text
_INSIDE = (os.path.dirname(torch.__file__) + os.sep, STANDARD)


@dataclasses.dataclass(frozen=True)
class Origin:
    name: str = ""  #: of the function ("Model.forward"), or the class of one of torch's own modules; "": not known
    place: str = ""  #: where it begins, or goes on behind a graph break: file:line
    inputs: tuple[str, ...] = ()  #: "x float32[s77=8,16]", 8 being the size that was seen; no parameters, no buffers;
    #: of a backward graph the gradients of results

    def __str__(self) -> str:
        return self.name + (f" ({self.place})" if self.place else "")

    @property
    def of_name(self) -> str:
        """" of Model.forward", for a sentence."""
        return self.name and f" of {self.name}"

    @classmethod
    def of(cls, model: torch.fx.GraphModule) -> Origin:
        """Of dynamo's graph, while it is compiled; empty where torch's insides, which this reads, are others."""
        try:
            return cls.read(model)
        except UNEXPECTED:
            return cls()

    @classmethod
    def read(cls, model: torch.fx.GraphModule) -> Origin:
        holders = model.graph.find_nodes(op="placeholder")
        tensors = [(source_name(n), n.meta.get("example_value")) for n in holders if not is_state(n)]
        name, place = function(model)
        return cls(name, place, tuple(described(tensors)))

    def of_gradients(self, backward: torch.fx.GraphModule) -> Origin:
        """The same for AOTAutograd's backward graph."""
        tangents = [(n.name, n.meta.get("val")) for n in backward.graph.find_nodes(op="placeholder")
                    if n.name.startswith("tangents")]
        try:
            return dataclasses.replace(self, inputs=tuple(described(tangents)))
        except UNEXPECTED:
            return self

    def without_hints(self) -> Origin:
        """Without the sizes that symbols had in the process that stored it."""
        return dataclasses.replace(self, inputs=tuple(re.sub(r"=\d+", "", text) for text in self.inputs))


def function(model: torch.fx.GraphModule) -> tuple[str, str]:
    """Name and place; "" for what torch does not tell."""
    codes = getattr(torch._guards.TracingContext.try_get(), "traced_code", None)
    if not codes:
        return "", ""
    code = codes[0]
    if code.co_filename.endswith("_dynamo/external_utils.py"):  # a wrapper around a module of torch's own
        return module_class(model), ""
    name = getattr(code, "co_qualname", code.co_name)  # a qualified name: from Python 3.11 on
    place = "" if code.co_filename.startswith("<") else f"{code.co_filename}:{code.co_firstlineno}"
    return _RESUMED.sub(r"\1, resumed", name).replace("<locals>.", ""), place


def place_of(n: torch.fx.Node) -> str:
    """The innermost line of the program (not of torch) that asks for what a node computes, as file:line, with a file
    below the current directory named from there; "" where torch does not tell."""
    frames = _FRAME.findall(n.meta.get("stack_trace") or "")
    theirs = [frame for frame in frames if not frame[0].startswith(_INSIDE)]
    if not frames:
        return ""
    file, line = (theirs or frames)[-1]
    with contextlib.suppress(OSError):  # a current directory that is gone
        file = file.removeprefix(os.getcwd() + os.sep)
    return f"{file}:{line}"


def module_class(model: torch.fx.GraphModule) -> str:
    """Of the outermost module."""
    for n in model.graph.nodes:
        for _, kind in (n.meta.get("nn_module_stack") or {}).values():
            return kind.__qualname__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
    return ""


def source(n: torch.fx.Node) -> str:
    """As dynamo writes it: "L['self']._buffers['mean']"."""
    name = getattr(getattr(n.meta.get("grapharg"), "source", None), "name", "")
    return name() if callable(name) else name


def source_name(n: torch.fx.Node) -> str:
    return _LOCAL.sub(r"\1", source(n)) or n.name


def is_state(n: torch.fx.Node) -> bool:
    """Is it a parameter, or a buffer of a module?"""
    return (isinstance(n.type, type) and issubclass(n.type, torch.nn.Parameter)) or "._buffers[" in source(n)


def described(values: Iterable[tuple[str, object]]) -> list[str]:
    """Tensors, and numbers whose symbol is in the shape of none."""
    values = list(values)
    tensors = [v for _, v in values if isinstance(v, torch.Tensor)]
    told = set().union(*(s.node.expr.free_symbols for v in tensors for s in v.shape if is_symbolic(s)))
    out = []
    for name, v in values:
        if isinstance(v, torch.Tensor):
            out.append(f"{name} {str(v.dtype).removeprefix('torch.')}[{','.join(map(size_text, v.shape))}]")
        elif is_symbolic(v) and not v.node.expr.free_symbols <= told:
            out.append(f"{name} {size_text(v)}")
    return out


def size_text(size) -> str:
    """"8", or "s77=8" for a symbol that was 8 when torch traced it."""
    if not is_symbolic(size):
        return str(int(size))
    text = str(size.node.expr).replace(" ", "")
    return f"{text}={size.node.hint}" if size.node.has_hint() else text

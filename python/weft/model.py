# SPDX-License-Identifier: Apache-2.0
"""Models: a graph and its plan as one callable."""

from __future__ import annotations

import ctypes as C
import itertools
import os
import threading
from typing import Any, Mapping, Union

from . import _c
from .arrays import dense_view
from .context import Context, default_context
from .graph import Graph
from .plan import Plan, compile_graph

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


class Model:
    """A graph that is compiled when it is first called; ``compile`` makes further plans with other options.

    It is called as a plan is. A plan is made once, and again after the graph was changed through ``run_pass``."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._plan: Plan | None = None
        self._lock = threading.Lock()

    context = property(lambda self: self.graph.context)
    inputs = property(lambda self: self.plan.inputs)
    outputs = property(lambda self: self.plan.outputs)

    @property
    def plan(self) -> Plan:
        with self._lock:
            if self._plan is None:
                self._plan = compile_graph(self.graph)
            return self._plan

    def compile(self, **options: Any) -> Plan:
        """A plan with options: ``threads``, ``cpu``, ``flags`` and the others of ``weft.compile``."""
        return compile_graph(self.graph, **options)

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        return self.plan(*arguments, out=out, **named)

    def run_pass(self, name: str) -> bool:
        """Runs a pass on the graph; True: it changed."""
        with self._lock:
            changed = self.graph.run_pass(name)
            if changed:
                self._plan = None
        return changed

    def wait(self) -> Model:
        """Compiles, and returns when all code that can be compiled for the plan is there."""
        self.plan.wait()
        return self

    def explain(self, node: str | None = None) -> str:
        """What became of each node, and why; with ``node``, of the value of that name alone."""
        return self.plan.explain(node)

    def dot(self, *, planned: bool = True, **options: Any) -> str:
        """The plan, or the graph as it was read, for Graphviz; options as those of ``weft.dot``."""
        return (self.plan if planned else self.graph).dot(**options)

    def _repr_svg_(self) -> str | None:
        return self.plan._repr_svg_()

    def text(self) -> str:
        """The graph as text."""
        return self.graph.text()

    __str__ = text

    def __repr__(self) -> str:
        return f"<weft.Model of {self.graph!r}>"


# --- reading

_bytes_in_use: dict[int, bytes] = {}
_numbers = itertools.count(1)


@_c.RELEASE_BYTES
def _release(user: int, data: int, size: int) -> None:
    _bytes_in_use.pop(user, None)


def _fixed_inputs(fixed: Mapping[str, object] | None) -> tuple[Any, int, list]:
    """An array of struct weft_fixed_input, its length, and what must live meanwhile."""
    views = [(name.encode(), dense_view(value)) for name, value in (fixed or {}).items()]
    tensors = [view.tensor() for _, view in views]
    inputs = [_c.FixedInput(name, C.pointer(tensor)) for (name, _), tensor in zip(views, tensors)]
    return _c.array_of(_c.FixedInput, inputs), len(inputs), [views, tensors]


def _load_file(path: str, fixed: Mapping[str, object] | None, context: Context) -> Graph:
    handle, (inputs, count, _keep) = C.c_void_p(), _fixed_inputs(fixed)
    context.call(_c.lib.weft_load_fixed if count else _c.lib.weft_load, context.handle, os.fsencode(path),
                 *((inputs, count) if count else ()), C.byref(handle))
    return Graph(context, handle=handle)


def _load_bytes(data: bytes, name: str, folder: str | None, fixed: Mapping[str, object] | None,
                context: Context) -> Graph:
    """The weights stay in `data`, which is kept until the last plan that reads them is gone."""
    handle, number, (inputs, count, _keep) = C.c_void_p(), next(_numbers), _fixed_inputs(fixed)
    options = _c.sized(_c.LoadOptions, name=name.encode(), folder=os.fsencode(folder) if folder else None,
                       fixed=inputs, fixed_count=count, release=C.cast(_release, C.c_void_p), release_user=number)
    _bytes_in_use[number] = data
    try:
        context.call(_c.lib.weft_load_memory, context.handle, C.cast(C.c_char_p(data), C.c_void_p), len(data),
                     C.byref(options), C.byref(handle))
    except BaseException:
        _bytes_in_use.pop(number, None)
        raise
    return Graph(context, handle=handle)


def load(source: Source, *, threads: int = 0, cpu: str | None = None, fixed: Mapping[str, object] | None = None,
         name: str = "memory", folder: str | os.PathLike[str] | None = None, context: Context | None = None) -> Model:
    """Reads an ONNX model or weft text, from a file or from bytes.

    ``threads``: at most so many (0: all that the process may use); ``cpu``: the highest CPU level, "avx2". ``fixed``:
    inputs of an ONNX model that become constants, by name. ``name`` is what messages call bytes, and ``folder`` where
    the files lie that they name. Weights stay mapped from the file, or in the bytes."""
    context = context or default_context(threads, cpu)
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)  # the same object if it is bytes
        home = None if folder is None else os.fspath(folder)

        def read(context: Context) -> Graph:
            return _load_bytes(data, name, home, fixed, context)
    else:
        path = os.path.abspath(source)  # for those who read it again from another folder

        def read(context: Context) -> Graph:
            return _load_file(path, fixed, context)

        graph = _load_file(os.fspath(source), fixed, context)
        graph._source = read
        return Model(graph)

    graph = read(context)
    graph._source = read
    return Model(graph)


def parse(text: str, *, name: str = "text", threads: int = 0, cpu: str | None = None,
          context: Context | None = None) -> Model:
    """The first graph of a weft text; messages show ``name`` as the file, relative to whose folder it names others."""
    context, raw, handle = context or default_context(threads, cpu), text.encode(), C.c_void_p()
    context.call(_c.lib.weft_parse, context.handle, raw, len(raw), name.encode(), C.byref(handle))
    graph = Graph(context, handle=handle)
    graph._source = lambda other: parse(text, name=name, context=other).graph
    return Model(graph)


def compile(graph: Graph | Model, **options: Any) -> Plan:  # noqa: A001 - the C function's name
    """A plan of a graph; options as those of ``compile_graph``."""
    return compile_graph(graph.graph if isinstance(graph, Model) else graph, **options)

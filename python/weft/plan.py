# SPDX-License-Identifier: Apache-2.0
"""Plans: a graph compiled for this CPU."""

from __future__ import annotations

import ctypes as C
import weakref
from typing import Any, Sequence

from . import _c
from .graph import Graph


class Plan:
    """A compiled graph. Any number of threads may use it at once."""

    def __init__(self, graph: Graph, handle: C.c_void_p):
        self.context, self.handle = graph.context, handle
        weakref.finalize(self, _c.lib.weft_plan_destroy, handle).atexit = False

    def text(self) -> str:
        return self.context.text(_c.lib.weft_plan_print, self.handle)


def compile_graph(graph: Graph, *, flags: int = 0, only: str | None = None, skip: str | None = None,
                  constant_bytes: int = 0, assume_aligned: int = 0) -> Plan:
    options = _c.sized(_c.CompileOptions, flags=flags, constant_bytes=constant_bytes, assume_aligned=assume_aligned)
    if only or skip:
        pipeline = _c.sized(_c.PipelineOptions, only=only and only.encode(), skip=skip and skip.encode())
        options.pipeline = C.pointer(pipeline)
    handle = C.c_void_p()
    graph.context.call(_c.lib.weft_compile, graph.handle, C.byref(options), C.byref(handle))
    return Plan(graph, handle)

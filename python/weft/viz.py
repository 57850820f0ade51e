# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs and plans: DOT by libweft-viz, SVG by Graphviz's program `dot`."""

from __future__ import annotations

import ctypes as C
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING, Sequence, Union

from . import _c
from .errors import Error
from .execution import Timing
from .graph import Graph

if TYPE_CHECKING:
    from .plan import Plan

    Drawable = Union[Graph, Plan]

_lock = threading.Lock()  # cgraph keeps global state
_viz: C.CDLL | None = None


def _library() -> C.CDLL:
    global _viz
    if _viz is None:
        path = _c.find("weft-viz")
        try:
            _viz = C.CDLL(path)
        except OSError as reason:
            raise Error(f"libweft-viz, which draws graphs, cannot be loaded: {reason}") from None
        _c.declare(_viz, _c.VIZ_PROTOTYPES)
    return _viz


def dot(drawn: Drawable, *, focus: str | None = None, radius: int = 0, max_nodes: int = 0, scopes: int = 0,
        repeats: int = 0, expand: Sequence[str] = (), timings: Sequence[Timing] = (), note: str | None = None) -> str:
    """A graph or plan for Graphviz. ``focus`` and ``radius``: only what is near the value of this name;
    ``max_nodes``: where it is cut (0: 2000, -1: nowhere); ``scopes``, ``repeats`` and ``expand`` as struct
    weft_dot_options has them; ``timings`` colour nodes, ``note`` says how they were measured."""
    handle = drawn.handle if isinstance(drawn, Graph) else _c.lib.weft_plan_graph(drawn.handle)
    names = _c.array_of(C.c_char_p, (timing.value.encode() for timing in timings))
    times = _c.array_of(C.c_int64, (timing.ns for timing in timings))
    options = _c.sized(_c.DotOptions, focus=focus.encode() if focus else None, radius=radius, max_nodes=max_nodes,
                       heat_name=names, heat_ns=times, heats=len(timings), heat_note=note.encode() if note else None,
                       scopes=scopes, repeats=repeats, expand=_c.array_of(C.c_char_p, (e.encode() for e in expand)),
                       expands=len(expand))
    with _lock:
        return drawn.context.text(_library().weft_dot, handle, C.byref(options))


def svg(drawn: Drawable, **options: object) -> str:
    """The same as a picture; needs Graphviz's program `dot`."""
    program = shutil.which("dot")
    if program is None:
        raise Error("Graphviz's program `dot`, which makes pictures, is not in the path")
    text = dot(drawn, **options)  # type: ignore[arg-type]
    done = subprocess.run([program, "-Tsvg"], input=text.encode(), capture_output=True, check=False)
    if done.returncode:
        raise Error(f"{program} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


def notebook_picture(drawn: Drawable) -> str | None:
    """An SVG for a notebook, of at most 300 nodes; None where it cannot be made, so that the text is shown."""
    try:
        return svg(drawn, max_nodes=300)
    except Error:
        return None

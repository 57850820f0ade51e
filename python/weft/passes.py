# SPDX-License-Identifier: Apache-2.0
"""Passes on graphs and on texts."""

from __future__ import annotations

from typing import Iterable

from .context import Context
from .graph import Graph
from .model import Model, parse


def run_pass(graph: Graph | Model, name: str) -> bool:
    """Runs one pass by its name, "fold-batchnorm"; True: the graph changed."""
    return graph.run_pass(name)


def opt(text: str, passes: str | Iterable[str] | None = None, *, name: str = "text",
        context: Context | None = None) -> str:
    """The text of a graph after passes: "cse,dce" or a list of names, one after the other; None: the default
    pipeline."""
    graph = parse(text, name=name, context=context).graph
    if passes is None:
        graph.run_pipeline()
    else:
        for one in passes.split(",") if isinstance(passes, str) else passes:
            graph.run_pass(one.strip())
    return graph.text()

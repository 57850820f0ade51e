# SPDX-License-Identifier: Apache-2.0
"""The backend: dynamo's graph -> AOTAutograd -> weft plans.

torch finds ``weft`` by its entry point. Nothing is set for the process: options are arguments of torch.compile.
"""

from __future__ import annotations

import copy
import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence

import torch

from ..context import Context, default_context
from ..errors import Error
from . import fast
from .call import Assemble, boxed, python_call
from .freeze import Watch, Weight, frozen_arguments
from .lower import Refuse
from .partition import Unboxed, WeftGraphWarning, partition
from .report import Piece, Report, reports
from .table import decompositions
from .translate import Translation, translate
from .whole import keep_whole


@dataclasses.dataclass(frozen=True)
class Options:
    """``torch.compile(model, backend="weft", options={...})``."""

    freeze: bool = True  #: weights of modules become constants of inference plans, and are watched
    threads: int = 0  #: of the plans; 0: as many as torch.get_num_threads() says when a graph is compiled
    outputs: str = "pool"  #: where results lie: "pool", memory that is kept between calls, or "torch", its allocator,
    #: which the call in Python asks; results can then be resized
    report: bool = True  #: keep a report of each graph in weft.torch.reports
    call: str = "auto"  #: "auto": from C where it can be; "python": for comparison

    @classmethod
    def of(cls, given: dict | None) -> Options:
        names = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(given or {}) - names)
        if unknown:
            raise ValueError(f"backend weft has no option {', '.join(unknown)}; it has {', '.join(sorted(names))}")
        made = cls(**(given or {}))
        if made.outputs not in ("pool", "torch") or made.call not in ("auto", "python"):
            raise ValueError(f"backend weft: outputs is \"pool\" or \"torch\", call is \"auto\" or \"python\", "
                             f"not {made.outputs!r} and {made.call!r}")
        return made


def weft(model: torch.fx.GraphModule, inputs: Sequence, *, options: dict | None = None,
         mode: str | None = None) -> Callable:
    """The backend of torch.compile. ``mode`` is taken and means nothing: there is one way to compile."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    chosen = Options.of(options)
    keep_whole(model)

    def compiler(kind: str) -> Callable:
        def compile_graph(gm: torch.fx.GraphModule, _: Sequence) -> Callable:
            with torch._dynamo.utils.preserve_rng_state(), torch.utils._python_dispatch._disable_current_modes():
                return Graphs(model, gm, kind, chosen).compile()

        return compile_graph

    return aot_autograd(
        fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference"),
        decompositions=decompositions(), partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True)(model, inputs)


def context_of(options: Options) -> Context:
    return default_context(options.threads or torch.get_num_threads())


class Graphs:
    """Compiles one graph of AOTAutograd's, again whenever its frozen weights change."""

    def __init__(self, model, gm: torch.fx.GraphModule, kind: str, options: Options):
        self.model, self.gm, self.kind, self.options = model, gm, kind, options
        self.context = context_of(options)

    def compile(self) -> Callable:
        frozen = frozen_arguments(self.model, self.gm) if self.kind == "inference" and self.options.freeze else {}
        run = Watch(self.once, frozen).entry() if frozen else self.once((), None)
        # torch wraps what runs backward, and keeps attributes of functions alone
        return boxed(run) if self.kind == "backward" else run

    def once(self, weights: tuple[Weight, ...], stale: Callable | None) -> Callable:
        report = Report(self.kind, sum(n.op == "call_function" for n in self.gm.graph.nodes))
        if self.options.report:
            reports.add(report)
        foreign = self.foreign()
        if foreign:
            return self.eager(foreign, report)
        start = time.perf_counter()
        try:
            translation = translate(self.gm, self.context, {w.argument: w.tensor for w in weights},
                                    self.kind != "inference")
            if not translation.refused:
                return self.plan(self.gm, translation, report, weights, stale, time.perf_counter() - start)
        except (Refuse, Error) as problem:
            return self.eager(str(problem), report)
        whole = copy.deepcopy(self.gm)
        twins = dict(zip(self.gm.graph.nodes, whole.graph.nodes))
        refused = {twins[n]: reason for n, reason in translation.refused.items()}
        holders = self.gm.graph.find_nodes(op="placeholder")
        named = {holders[w.argument].name: w.tensor for w in weights}
        return partition(whole, refused, lambda piece: self.piece(piece, report, named), report)

    def foreign(self) -> str | None:
        """Why the whole graph is not weft's: no tensor in it lies in memory of the CPU."""
        values = [n.meta.get("val") for n in self.gm.graph.nodes if n.op == "placeholder"]
        devices = {v.device.type for v in values if isinstance(v, torch.Tensor)}
        return f"device {' '.join(sorted(devices - {'cpu'}))}" if devices - {"cpu"} else None

    def eager(self, reason: str, report: Report) -> Callable:
        report.eager["the whole graph"] = report.nodes
        report.reasons["the whole graph"] = reason
        warnings.warn(f"weft runs a {self.kind} graph in eager: {reason}", WeftGraphWarning, stacklevel=2)
        return boxed(lambda args: self.gm(*args))

    def piece(self, piece: torch.fx.GraphModule, report: Report, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
        """A part of a partitioned graph as a module. Its arguments of these names are constants."""
        start = time.perf_counter()
        holders = piece.graph.find_nodes(op="placeholder")
        frozen = {i: weights[n.name] for i, n in enumerate(holders) if n.name in weights}
        out = next(n for n in piece.graph.nodes if n.op == "output")
        single = not isinstance(out.args[0], (tuple, list))
        try:
            translation = translate(piece, self.context, frozen, self.kind != "inference")
            if translation.refused:
                raise Refuse("; ".join(translation.refused.values()))
            # no weights to compare: who calls the pieces does
            run = self.plan(piece, translation, report, (), None, time.perf_counter() - start)
        except (Refuse, Error) as problem:
            report.eager["a piece"] = report.eager.get("a piece", 0) + len(piece.graph.nodes)
            report.reasons["a piece"] = str(problem)
            return piece
        return Unboxed(run, single)

    def plan(self, gm, translation: Translation, report: Report, weights: tuple[Weight, ...], stale: Callable | None,
             translate_s: float) -> Callable:
        """``weights`` are those that the call compares; when one has changed, it calls ``stale``."""
        if translation.empty:
            return boxed(Assemble(lambda args: [], translation))
        start = time.perf_counter()
        plan = translation.graph.compile()
        if self.options.call != "python" and self.options.outputs == "pool" and fast.serves(translation):
            run, how = fast.fast_call(plan, translation, weights, stale), "C"
        else:
            run, how = python_call(plan, translation), "Python"
        nodes = sum(n.op == "call_function" for n in gm.graph.nodes)
        report.pieces.append(Piece(nodes, plan, translation.graph, translation.frozen, translate_s,
                                   time.perf_counter() - start, how))
        return run

# SPDX-License-Identifier: Apache-2.0
"""The backend: dynamo's graph -> AOTAutograd -> weft plans.

torch finds ``weft`` by its entry point. Options are arguments of torch.compile, and nothing stays set for the process;
while a graph is compiled, ``aot_cache.py`` sets what torch's cache of AOTAutograd asks of its settings.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
import time
import unittest.mock
from collections.abc import Callable, Sequence

import torch

from ..errors import Error
from ..plan import Flags
from ..warn import warn
from . import aot_cache, fast, offload
from .cache import Cache, default_folder
from .call import Assemble, boxed, python_call
from .freeze import Watch, Weight, can_freeze, frozen_arguments, watched
from .lower import Refuse
from .origin import Origin
from .partition import Unboxed, WeftGraphWarning, partition
from .program import Program
from .report import Piece, Report, reports
from .sizes import is_symbolic
from .table import decompositions
from .translate import Translation, translate
from .whole import keep_whole


@dataclasses.dataclass(frozen=True)
class Options:
    """``torch.compile(model, backend="weft", options={...})``."""

    freeze: bool = True  #: weights of modules become constants of inference plans, and are watched
    offload: bool = False  #: frozen weights move to a file behind their tensors, so that memory has them packed alone
    threads: int = 0  #: of the plans; 0: as many as torch.get_num_threads() says when a graph is compiled
    outputs: str = "pool"  #: where results lie: "pool", memory that is kept between calls, or "torch", its allocator,
    #: which the call in Python asks; results can then be resized
    cache: bool | str = True  #: keep plans on disk for later processes; a folder: there, and not in the default one
    winograd: bool = True  #: 3x3 convolutions and gradients of their weights may use Winograd's transforms
    report: bool = True  #: keep a report of each graph in weft.torch.reports
    call: str = "auto"  #: "auto": from C where it can be; "python": for comparison

    @classmethod
    def of(cls, given: dict | None) -> Options:
        names = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(given or {}) - names)
        if unknown:
            raise ValueError(f"backend weft has no option {', '.join(unknown)}; it has {', '.join(sorted(names))}")
        made = cls(**(given or {}))
        for name, right, what in (
                ("freeze", isinstance(made.freeze, bool), "True or False"),
                ("offload", isinstance(made.offload, bool), "True or False"),
                ("threads", type(made.threads) is int and made.threads >= 0, "a number of at least 0"),
                ("outputs", made.outputs in ("pool", "torch"), '"pool" or "torch"'),
                ("cache", isinstance(made.cache, (bool, str)), "True, False or a folder"),
                ("winograd", isinstance(made.winograd, bool), "True or False"),
                ("report", isinstance(made.report, bool), "True or False"),
                ("call", made.call in ("auto", "python"), '"auto" or "python"')):
            if not right:
                raise ValueError(f"backend weft: {name} is {what}, not {getattr(made, name)!r}")
        return made


def weft(model: torch.fx.GraphModule, inputs: Sequence, *, options: dict | None = None,
         mode: str | None = None) -> Callable:
    """The backend of torch.compile. ``mode`` is taken and means nothing: there is one way to compile."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    chosen = Options.of(options)
    keep_whole(model)
    cache = Cache.of(chosen.cache, chosen.threads)
    origin = Origin.of(model)

    def compiler(kind: str) -> Callable[..., Graphs]:
        return lambda gm, _: Graphs(model, gm, kind, chosen, cache, origin)

    with aot_cache.session(model, chosen, cache, origin) as wrap, without_donated_buffers():
        return aot_autograd(
            fw_compiler=wrap(compiler("forward")), bw_compiler=wrap(compiler("backward")),
            inference_compiler=wrap(compiler("inference")), decompositions=decompositions(),
            partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True)(model, inputs)


def without_donated_buffers() -> contextlib.AbstractContextManager:
    """torch counts values that only a backward graph reads as given away to it, and refuses ``retain_graph=True`` then.
    weft writes to none of them. The setting of that name would have to stay off for the process."""
    from torch._functorch._aot_autograd import graph_compile

    name = "collect_bw_donated_buffer_idxs"  # hooks that torch compiles into a graph ask it as well
    if not hasattr(graph_compile, name) or torch._C._autograd._top_saved_tensors_default_hooks(True):
        return contextlib.nullcontext()
    return unittest.mock.patch.object(graph_compile, name, lambda *_: [])


def restored(stored: Stored, model, options: Options, cache: Cache, origin: Origin) -> Callable:
    """What is called for a graph of AOTAutograd's that another process has translated."""
    return Graphs(model, None, stored.kind, options, cache, origin, stored).compile()


def installed(stored: Stored) -> Callable:
    """The same where dynamo has not traced either, so that weights are known by the first call's arguments alone."""
    cache = Cache.of(stored.options.cache, stored.options.threads)
    graphs = Graphs(None, None, stored.kind, stored.options, cache, stored.origin, stored)
    return FirstCall(graphs) if stored.frozen else graphs.compile()


class FirstCall:
    """Compiles a graph when its arguments are there, some of which are its weights."""

    def __init__(self, graphs: Graphs):
        self.graphs, self.lock, self.run = graphs, threading.Lock(), None
        self._boxed_call = True

    def __call__(self, args: list):
        if self.run is None:
            with self.lock:
                if self.run is None:
                    given = {i: args[i] for i in self.graphs.frozen}
                    self.run = self.graphs.compile(given if all(map(can_freeze, given.values())) else {})
        return self.run(args)


@dataclasses.dataclass
class Stored:
    """What another process needs of a graph that is one plan."""

    kind: str
    nodes: int
    arguments: int
    frozen: tuple[int, ...]
    programs: dict[frozenset[int], Program]  #: by the arguments that are constants: those above, and none
    options: Options  #: of the process that stored it
    origin: Origin  #: with the sizes that were seen in that process


class Graphs:
    """Compiles one graph of AOTAutograd's, again whenever its frozen weights change."""

    def __init__(self, model, gm: torch.fx.GraphModule | None, kind: str, options: Options, cache: Cache,
                 origin: Origin, stored: Stored | None = None):
        self.model, self.gm, self.kind, self.options, self.cache = model, gm, kind, options, cache
        self.programs: dict[frozenset[int], Program] = dict(stored.programs) if stored else {}
        self.origin = origin
        if kind == "backward":
            self.origin = (origin.of_gradients(gm) if gm is not None else
                           dataclasses.replace(origin, inputs=stored.origin.without_hints().inputs))
        self.whole = True  # one plan, and nothing in eager
        self.nodes = stored.nodes if stored else sum(n.op == "call_function" for n in gm.graph.nodes)
        self.arguments = stored.arguments if stored else len(gm.graph.find_nodes(op="placeholder"))
        self.aot = "hit" if stored else ""
        self.frozen: tuple[int, ...] = stored.frozen if stored else ()  # arguments that are constants at first

    def compile(self, frozen: dict[int, torch.Tensor] | None = None) -> Callable:
        """What is to be called. ``frozen``: the arguments that are weights, where the caller knows them."""
        if frozen is None:
            frozen = self.weights()
            self.frozen = tuple(frozen)
        with torch._dynamo.utils.preserve_rng_state(), torch.utils._python_dispatch._disable_current_modes():
            run = Watch(self.once, frozen).entry() if frozen else self.once({}, None)[0]
        # torch wraps what runs backward, and keeps attributes of functions alone
        return boxed(run) if self.kind == "backward" else run

    def weights(self) -> dict[int, torch.Tensor]:
        if self.kind != "inference" or not self.options.freeze:
            return {}
        frozen = frozen_arguments(self.model, self.arguments, self.frozen if self.gm is None else None)
        if self.gm is None and set(frozen) != set(self.frozen):
            raise LookupError("other arguments are weights than in the process that stored the graph")
        if self.gm is not None:  # what grows from call to call is no weight
            holders = self.gm.graph.find_nodes(op="placeholder")
            frozen = {i: t for i, t in frozen.items() if not any(map(is_symbolic, holders[i].meta["val"].shape))}
        return frozen

    def once(self, frozen: dict[int, torch.Tensor], stale: Callable | None,
             static: frozenset[int] = frozenset()) -> tuple[Callable, tuple[Weight, ...]]:
        """As Watch has it."""
        self.report = report = Report(self.kind, self.nodes, self.origin, aot=self.aot)
        if self.options.report:
            reports.add(report)
        start = time.perf_counter()
        if self.options.offload and frozen:
            report.offload = offload.offload(frozen.values(), self.cache.folder or default_folder())
        weights = watched(frozen)  # where they are now
        return self.made(report, frozen, weights, stale, static, start), weights

    def made(self, report: Report, frozen: dict[int, torch.Tensor], weights: tuple[Weight, ...],
             stale: Callable | None, static: frozenset[int], start: float) -> Callable:
        try:
            program, translation = self.program(frozen)
            if program:
                return self.plan(program, report, frozen, weights, stale, static, time.perf_counter() - start)
        except (Refuse, Error) as problem:
            self.whole = False
            return self.eager(str(problem), report)
        self.whole = False
        return self.cut(translation, report, weights)

    def program(self, tensors: dict[int, torch.Tensor]) -> tuple[Program | None, Translation | None]:
        """The graph with these arguments as constants; or what was refused of it."""
        key = frozenset(tensors)
        if key not in self.programs:
            if self.gm is None:
                raise Refuse("the stored graph has no such weights")
            foreign = self.foreign()
            if foreign:
                raise Refuse(foreign)
            translation = translate(self.gm, self.cache.context, tensors, self.kind != "inference")
            if translation.refused:
                return None, translation
            self.programs[key] = translation.program()
        return self.programs[key], None

    def stored(self) -> Stored | None:
        """For another process; None if the graph runs in eager in part. Holds what the call needs once weights have
        changed too often to be constants."""
        if not self.whole:
            return None
        frozen = frozenset(self.frozen)
        programs = {frozen: self.programs[frozen], frozenset(): self.program({})[0]}
        return Stored(self.kind, self.nodes, self.arguments, self.frozen, programs, self.options, self.origin)

    def cut(self, translation: Translation, report: Report, weights: tuple[Weight, ...]) -> Callable:
        """A graph with ops that weft lacks."""
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
        if self.gm is None:  # torch then traces the graph itself
            raise LookupError(f"the stored graph cannot be compiled: {reason}")
        report.eager["the whole graph"] = report.nodes
        report.reasons["the whole graph"] = reason
        warn(f"weft runs all of the {self.kind} graph{self.origin.of_name} in eager: {reason}",
             WeftGraphWarning)
        return boxed(lambda args: self.gm(*args))

    def piece(self, piece: torch.fx.GraphModule, report: Report, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
        """A part of a partitioned graph as a module. Its arguments of these names are constants."""
        start = time.perf_counter()
        holders = piece.graph.find_nodes(op="placeholder")
        frozen = {i: weights[n.name] for i, n in enumerate(holders) if n.name in weights}
        out = next(n for n in piece.graph.nodes if n.op == "output")
        single = not isinstance(out.args[0], (tuple, list))
        try:
            translation = translate(piece, self.cache.context, frozen, self.kind != "inference")
            if translation.refused:
                raise Refuse("; ".join(translation.refused.values()))
            # no weights to compare: who calls the pieces does
            run = self.plan(translation.program(), report, frozen, (), None, frozenset(), time.perf_counter() - start)
        except (Refuse, Error) as problem:
            report.eager["a piece"] = report.eager.get("a piece", 0) + len(piece.graph.nodes)
            report.reasons["a piece"] = str(problem)
            return piece
        return Unboxed(run, single)

    def plan(self, program: Program, report: Report, tensors: dict[int, torch.Tensor], weights: tuple[Weight, ...],
             stale: Callable | None, static: frozenset[int], translate_s: float) -> Callable:
        """The plan of a program with these arguments as constants. ``weights`` are those that the call compares; when
        one has changed, it calls ``stale``. Inputs that are ``static`` it binds when they have changed."""
        if program.empty:
            return boxed(Assemble(lambda args: [], program))
        start = time.perf_counter()
        graph = program.open(self.cache.context, tensors, static)
        plan, cached = self.cache.compile(graph, Flags(0) if self.options.winograd else Flags.NO_WINOGRAD)
        offload.forget()  # what was read for packing
        asked = {"call": self.options.call == "python", "outputs": self.options.outputs == "torch"}
        why = " ".join(f"option {name}" for name in asked if asked[name]) or fast.why_not(program)
        run = python_call(plan, program, static) if why else fast.fast_call(plan, program, weights, stale, static)
        report.pieces.append(Piece(program.nodes, plan, graph, len(program.weights), translate_s,
                                   time.perf_counter() - start, "Python" if why else "C", why, cached,
                                   sum(i.of(static) for i in program.inputs)))
        return run

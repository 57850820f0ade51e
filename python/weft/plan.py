# SPDX-License-Identifier: Apache-2.0
"""Plans: a graph compiled for this CPU."""

from __future__ import annotations

import ctypes as C
import enum
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Tuple

from . import _c
from .errors import ArgumentError
from .execution import Execution, Statistics, Timing
from .extents import is_symbol, value_of
from .graph import Graph, pipeline_options
from .ports import Port, read_ports


Place = Tuple[Tuple[int, ...], Tuple[int, ...]]  # extents and strides
_MOST_PLACES = 1024  # sizes that a plan remembers


class Flags(enum.IntFlag):
    """How to compile; include/weft/plan.h says what each means."""

    NO_PASSES = _c.COMPILE_NO_PASSES
    REFERENCE = _c.COMPILE_REFERENCE
    NO_WINOGRAD = _c.COMPILE_NO_WINOGRAD
    SHARE_RESULTS = _c.COMPILE_SHARE_RESULTS
    WINOGRAD_4 = _c.COMPILE_WINOGRAD_4
    KEEP_CONSTANTS = _c.COMPILE_KEEP_CONSTANTS
    NO_FUSE = _c.COMPILE_NO_FUSE
    NO_COMPILER = _c.COMPILE_NO_COMPILER
    STORE = _c.COMPILE_STORE


class Align(enum.IntEnum):
    """What a plan assumes of the addresses of inputs; enum weft_assume_aligned."""

    NEVER = _c.ALIGN_NEVER
    PAYS = _c.ALIGN_PAYS
    ALWAYS = _c.ALIGN_ALWAYS


class Results(tuple):
    """Several results in order; also by name: ``y["logits"]``."""

    names: tuple[str, ...]

    def __new__(cls, values: Sequence[Any], names: Sequence[str]) -> Results:
        self = super().__new__(cls, values)
        self.names = tuple(names)
        return self

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            if which not in self.names:
                raise KeyError(f"there is no result {which!r}: they are {' '.join(filter(None, self.names))}")
            which = self.names.index(which)
        return super().__getitem__(which)

    def asdict(self) -> dict[str, Any]:
        return dict(zip(self.names, self))

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" if name else repr(value) for name, value in zip(self.names, self))
        return f"Results({', '.join(shown)})"


class Compiled(NamedTuple):
    """How far a plan's groups have compiled code."""

    compiled: int
    groups: int
    reason: str | None  #: why others have none


class Step(NamedTuple):
    """One step of a run, with sizes at their hints."""

    kernel: str
    value: str  #: what it computes
    op: str | None  #: None of a group
    group: str | None
    nodes: int  #: of the planned graph; 0: a copy into a result
    parts: int  #: into how many parts its work is cut, for as many threads
    operands: tuple[str, ...]
    results: tuple[str, ...]


class Remark(NamedTuple):
    """One explained decision."""

    who: str
    where: str
    verdict: str
    reason: str


class Plan:
    """A compiled graph. Any number of threads may call it at once; each has an execution of its own meanwhile.

    ``plan(x, y)``, ``plan(x=…)`` or ``plan({"input.1": …})`` runs it. Inputs are numpy arrays, objects with DLPack or
    the buffer protocol, numbers and lists. They are read where they lie, and copied only if the plan's layout (for
    most: packed, row-major) is not theirs. There is one array for one result, and ``Results`` for several. ``out``
    names arrays of the caller's for results: one, or a list (None: a new one), or a dict by name."""

    def __init__(self, graph: Graph, handle: C.c_void_p):
        self.context, self.handle = graph.context, handle
        weakref.finalize(self, _c.lib.weft_plan_destroy, handle).atexit = False
        self.inputs: tuple[Port, ...]
        self.outputs: tuple[Port, ...]
        self.inputs, self.outputs = read_ports(handle)
        self._names = tuple(port.name for port in self.outputs)
        self._symbols = [(i, axis, str(text)) for i, port in enumerate(self.inputs)
                         for axis, text in enumerate(port.shape) if is_symbol(text)]
        known = frozenset(text for _, _, text in self._symbols)
        self._determined = [port.symbols <= known for port in self.outputs]
        self._idle: list[Execution] = []
        self._places: dict[tuple, list[Place | None]] = {}

    # --- calls

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        return self._call(arguments, named, out, None)

    def timings(self, *arguments: Any, **named: Any) -> list[Timing]:
        """Runs once and tells how long each step took."""
        timed: list[Timing] = []
        self._call(arguments, named, None, timed)
        return timed

    def _call(self, arguments: tuple[Any, ...], named: Mapping[str, Any], out: Any, timed: list[Timing] | None) -> Any:
        sources, targets = self._sources(arguments, named), self._targets(out)
        execution = self._take()
        try:
            results = execution.call(sources, targets, timed)
        finally:
            execution.release()
            self._idle.append(execution)
        return results[0] if len(results) == 1 else Results(results, self._names)

    def _sources(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Sequence[Any]:
        if len(arguments) == len(self.inputs) and not named and (
                len(arguments) != 1 or not isinstance(arguments[0], Mapping)):
            return arguments
        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            return self._sources((), {**arguments[0], **named})
        if len(arguments) > len(self.inputs):
            raise TypeError(f"{len(arguments)} inputs given, but the plan has {len(self.inputs)}: {self._signature()}")
        sources = list(arguments) + [None] * (len(self.inputs) - len(arguments))
        given = [True] * len(arguments) + [False] * (len(self.inputs) - len(arguments))
        for name, value in named.items():
            number = self.find_input(name)
            if given[number]:
                raise TypeError(f"input {name!r} is given twice")
            sources[number], given[number] = value, True
        missing = [str(port) for port, there in zip(self.inputs, given) if not there]
        if missing:
            raise TypeError(f"inputs are missing: {', '.join(missing)}")
        return sources

    def _targets(self, out: Any) -> Sequence[Any]:
        targets: list[Any] = [None] * len(self.outputs)
        if isinstance(out, Mapping):
            for name, target in out.items():
                targets[self.find_output(name)] = target
        elif isinstance(out, (list, tuple)):
            if len(out) != len(targets):
                raise TypeError(f"out has {len(out)} arrays, but the plan has {len(targets)} results")
            targets = list(out)
        elif out is not None:
            if len(targets) != 1:
                raise TypeError(f"the plan has {len(targets)} results: out is a list or a dict by name")
            targets = [out]
        return targets

    def _take(self) -> Execution:
        try:
            return self._idle.pop()
        except IndexError:
            return Execution(self)

    def execution(self) -> Execution:
        """A new execution, for a program that binds memory once and runs many times."""
        return Execution(self)

    # --- ports

    def _signature(self) -> str:
        return ", ".join(map(str, self.inputs)) or "none"

    def find_input(self, which: int | str) -> int:
        """The number of the input of this name."""
        return self._find(which, self.inputs, "input")

    def find_output(self, which: int | str) -> int:
        return self._find(which, self.outputs, "output")

    @staticmethod
    def _find(which: int | str, ports: tuple[Port, ...], kind: str) -> int:
        if isinstance(which, str):
            for number, port in enumerate(ports):
                if port.name == which:
                    return number
        elif 0 <= which < len(ports):
            return which
        raise ArgumentError(f"there is no {kind} {which!r}: the plan has {', '.join(map(str, ports)) or 'none'}")

    def sizes_of(self, shapes: Sequence[tuple[int, ...] | None]) -> dict[str, int]:
        """The sizes of symbols that inputs of these shapes have."""
        return {text: shape[axis] for i, axis, text in self._symbols
                if (shape := shapes[i]) is not None and axis < len(shape)}

    def result_places(self, shapes: tuple[tuple[int, ...], ...]) -> list[Place | None]:
        """Extents and strides of all results for inputs of these shapes; None for one whose sizes depend on data."""
        places = self._places.get(shapes)
        if places is None:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            places = self._places[shapes] = [self._place(number, shapes) for number in range(len(self.outputs))]
        return places

    def _place(self, number: int, shapes: tuple[tuple[int, ...], ...]) -> Place | None:
        port = self.outputs[number]
        if not self._determined[number]:
            return None
        try:
            sizes = self.sizes_of(shapes) if port.symbols else {}
            shape = tuple(value_of(extent, sizes) for extent in port.shape)
            strides = port.strides(shape, sizes)
        except (KeyError, ZeroDivisionError):  # inputs that the run will refuse
            return None
        return None if strides is None or min(shape, default=0) < 0 else (shape, strides)

    # --- what it says of itself

    def text(self) -> str:
        """The planned graph, with kernels and storage right of `!`."""
        return self.context.text(_c.lib.weft_plan_print, self.handle)

    __str__ = text

    def __repr__(self) -> str:
        return f"<weft.Plan ({self._signature()}) -> {', '.join(map(str, self.outputs))}>"

    def wait(self) -> Plan:
        """Returns when all code that can be compiled for its groups is there; until then they are interpreted."""
        _c.check(_c.lib.weft_plan_wait(self.handle))
        return self

    def stored(self) -> tuple[bool, str | None]:
        """Was the plan, compiled with ``Flags.STORE``, there already; and why not."""
        found, reason = C.c_int32(), C.c_char_p()
        _c.check(_c.lib.weft_plan_stored(self.handle, C.byref(found), C.byref(reason)))
        return bool(found.value), reason.value.decode(errors="replace") if reason.value else None

    @property
    def compiled(self) -> Compiled:
        compiled, groups, reason = C.c_int32(), C.c_int32(), C.c_char_p()
        _c.check(_c.lib.weft_plan_compiled(self.handle, C.byref(compiled), C.byref(groups), C.byref(reason)))
        return Compiled(compiled.value, groups.value, reason.value.decode() if reason.value else None)

    @property
    def statistics(self) -> Statistics:
        """Of an execution that has run last, or of a new one."""
        execution = self._take()
        try:
            return execution.statistics()
        finally:
            self._idle.append(execution)

    @property
    def threads(self) -> int:
        return self.statistics.workers

    @property
    def relayouts(self) -> int:
        """Steps of a run that only copy a value into another layout; docs/explain.md says what is counted."""
        return self.statistics.relayouts

    @property
    def order_changes(self) -> int:
        """In how many places data changes its storage order: those relayouts and copies that change it, and operands
        that a kernel reads in another order than it writes its result in."""
        return _c.lib.weft_plan_relayouts(self.handle)

    @property
    def remarks(self) -> list[Remark]:
        """What passes and the planner decided, in order."""
        graph, raw = _c.lib.weft_plan_graph(self.handle), _c.sized(_c.Remark)
        remarks = []
        for i in range(_c.lib.weft_remark_count(graph)):
            _c.check(_c.lib.weft_remark_get(graph, i, C.byref(raw)))
            remarks.append(Remark(*((text or b"").decode() for text in (raw.who, raw.where, raw.verdict, raw.reason))))
        return remarks

    @property
    def steps(self) -> list[Step]:
        """The steps of a run, in order."""
        raw, steps = _c.sized(_c.PlanStep), []
        for i in range(_c.lib.weft_plan_steps(self.handle)):
            _c.check(_c.lib.weft_plan_step(self.handle, i, C.byref(raw)))
            steps.append(Step(raw.kernel.decode(), raw.value.decode(), raw.op and raw.op.decode(),
                              raw.group and raw.group.decode(), raw.nodes, raw.parts,
                              self._values(_c.lib.weft_plan_step_operand, i, raw.operands),
                              self._values(_c.lib.weft_plan_step_result, i, raw.results)))
        return steps

    def _values(self, read: Any, step: int, count: int) -> tuple[str, ...]:
        raw, names = _c.sized(_c.PlanOperand), []
        for k in range(count):
            _c.check(read(self.handle, step, k, C.byref(raw)))
            names.append((raw.value or b"").decode())
        return tuple(names)

    def explain(self, node: str | None = None) -> str:
        """What became of each node, and why; with ``node``, of the value of that name alone."""
        from .explain import explain
        return explain(self, node)

    def dot(self, **options: Any) -> str:
        """The planned graph for Graphviz; options as those of ``weft.dot``."""
        from .viz import dot
        return dot(self, **options)

    def _repr_svg_(self) -> str | None:
        from .viz import notebook_picture
        return notebook_picture(self)


def compile_graph(graph: Graph, *, threads: int | None = None, cpu: str | None = None, flags: int = 0,
                  only: str | None = None, skip: str | None = None, until: str | None = None, rewrites: int = 0,
                  constant_bytes: int = 0, assume_aligned: int | Mapping[str, int] = Align.NEVER) -> Plan:
    """Makes a plan of a graph.

    ``threads`` and ``cpu`` bound them as those of a context do; if they are not those of the graph's context, a copy
    of the graph is planned in another one. ``flags``: Flags. ``only``, ``skip`` ("cse,dce"), ``until`` and
    ``rewrites``: which passes run. ``constant_bytes``: how much memory values may take that are computed when the plan
    is made; below 0: none. ``assume_aligned``: Align, for all inputs, or by their names."""
    wanted = graph.context.like(threads, cpu)
    if wanted is not graph.context:
        graph = graph.moved_to(wanted)
    options = _c.sized(_c.CompileOptions, flags=flags, constant_bytes=constant_bytes)
    if isinstance(assume_aligned, Mapping):
        listed = [_c.InputAlignment(name.encode(), how) for name, how in assume_aligned.items()]
        options.input_alignment, options.input_alignments = _c.array_of(_c.InputAlignment, listed), len(listed)
    else:
        options.assume_aligned = assume_aligned
    if only is not None or skip is not None or until is not None or rewrites:
        options.pipeline = C.pointer(pipeline_options(only, skip, until, rewrites))
    handle = C.c_void_p()
    graph.context.call(_c.lib.weft_compile, graph.handle, C.byref(options), C.byref(handle))
    return Plan(graph, handle)

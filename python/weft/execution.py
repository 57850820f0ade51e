# SPDX-License-Identifier: Apache-2.0
"""Executions: one thread's use of a plan. Plans make and keep them; a program that binds the same memory for many runs
may hold one of its own."""

from __future__ import annotations

import ctypes as C
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

import numpy as np

from . import _c
from .arrays import View, empty, unpack, view
from .dtypes import DType
from .errors import BindingError
from .ports import Port

if TYPE_CHECKING:
    from .plan import Plan


class Timing(NamedTuple):
    """One step of a timed run."""

    kernel: str
    value: str  #: what it computes
    ns: int


class Statistics(NamedTuple):
    """Of an execution, as struct weft_statistics has it; times are those of the last timed run."""

    arena_bytes: int  #: memory for intermediate values
    constant_bytes: int  #: packed, copied or computed constants that the plan holds besides the files
    kernels: int  #: steps that do work
    relayouts: int  #: of these, steps that only change a layout
    fallbacks: int  #: of these, steps in the reference evaluator
    workers: int  #: threads
    fallback_ns: int
    relayout_ns: int
    total_ns: int
    copied_bytes: int  #: bytes that steps write in a run that only move elements
    inside: int  #: values that are computed in their place in a concat or padding
    overwriting: int  #: in place over the value that they are the last reader of
    updating: int  #: in the mutable input whose new value they are
    plain_ns: int
    shared_bytes: int  #: of constant_bytes: in memory once for several plans
    staged_bytes: int
    staged_inputs: int
    mapped_bytes: int  #: of constant_bytes: packed weights that are mapped files


def _where(kind: str, number: int, port: Port) -> str:
    return f"{kind} {number}" + (f" '{port.name}'" if port.name else "")


def _lies_as(found: View, strides: tuple[int, ...]) -> bool:
    """Axes of extent 1 have no place in memory, nor has an empty array."""
    return 0 in found.shape or all(n == 1 or s == want for n, s, want in zip(found.shape, found.strides, strides))


class Execution:
    """Binds arrays and runs. It is for one thread at a time; ``cancel`` may come from any."""

    def __init__(self, plan: Plan):
        self.plan, self.handle = plan, C.c_void_p()
        _c.check(_c.lib.weft_execution_create(plan.handle, C.byref(self.handle)))
        self._inputs: list[View | None] = [None] * len(plan.inputs)
        self._outputs: list[object] = [None] * len(plan.outputs)
        weakref.finalize(self, _c.lib.weft_execution_destroy, self.handle).atexit = False

    def _check(self, status: int) -> None:
        if status < 0:
            _c.check(status, _c.lib.weft_execution_error(self.handle))

    # --- inputs

    def bind(self, which: int | str, source: Any) -> None:
        """The next runs read this input from ``source``: its memory where the plan's layout allows it, a copy of what
        is there now otherwise."""
        number = self.plan.find_input(which)
        port = self.plan.inputs[number]
        try:
            found = view(source, port.dtype)
        except (TypeError, ValueError, BufferError) as reason:
            raise type(reason)(f"{_where('input', number, port)}: {reason}") from None
        found = self._placed(number, port, found)
        self._check(_c.lib.weft_bind_input(self.handle, number, C.byref(found.tensor())))
        self._inputs[number] = found

    def _placed(self, number: int, port: Port, found: View) -> View:
        """The same elements with the strides that the plan wants. What the plan refuses anyway stays as it is."""
        if found.dtype != port.dtype or len(found.shape) != port.rank:
            return found
        want = port.strides(found.shape, self._sizes(found.shape, port))
        if port.mutable and not found.writable:
            raise BindingError(f"{_where('input', number, port)}: the run updates it, but the array is read-only")
        if want is None:
            return found
        if _lies_as(found, want) and found.address % found.dtype.numpy.itemsize == 0:
            return found._replace(strides=want)
        if port.mutable:
            raise BindingError(f"{_where('input', number, port)}: the run updates it where it lies, but its strides are "
                               f"{list(found.strides)} elements and the plan's {list(want)}")
        if port.dtype.packed:
            raise BindingError(f"{_where('input', number, port)}: 4-bit elements are taken row-major only")
        copy = empty(found.dtype, found.shape, want)
        copy[...] = found.numpy()
        return View(copy.ctypes.data, found.dtype, found.shape, want, True, copy)

    def _sizes(self, shape: tuple[int, ...], port: Port) -> dict[str, int]:
        """Sizes of symbols as far as this array and those that are bound tell them."""
        sizes = self.plan.sizes_of([found.shape if found is not None else None for found in self._inputs])
        sizes.update((text, n) for text, n in zip(port.shape, shape) if isinstance(text, str))
        return sizes

    # --- results

    def bind_output(self, which: int | str, target: Any) -> None:
        """The next runs write this result to ``target``, an array of the caller's with the plan's strides; None: to
        memory of the execution."""
        number = self.plan.find_output(which)
        if target is None:
            self._check(_c.lib.weft_bind_output(self.handle, number, None))
            self._outputs[number] = None
            return
        port = self.plan.outputs[number]
        found = target if isinstance(target, View) else view(target, port.dtype)
        if not found.writable:
            raise BindingError(f"{_where('output', number, port)}: the array is read-only")
        self._check(_c.lib.weft_bind_output(self.handle, number, C.byref(found.tensor())))
        self._outputs[number] = found

    def output(self, which: int | str) -> np.ndarray:
        """A copy of a result of the last run."""
        number = self.plan.find_output(which)
        tensor = _c.Tensor()
        _c.check(_c.lib.weft_output(self.handle, number, C.byref(tensor)),
                 f"output {number}: nothing has run yet")
        rank, dtype = tensor.rank, DType(tensor.dtype)
        shape, strides = tuple(tensor.extent[:rank]), tuple(tensor.stride[:rank])
        if dtype.packed:
            size = (int(np.prod(shape, dtype=np.int64)) + 1) // 2
            bits = np.frombuffer((C.c_uint8 * size).from_address(tensor.data), np.uint8) if size else np.empty(0, "u1")
            return unpack(bits, dtype, shape)
        copy = empty(dtype, shape, strides)
        if copy.size:
            copy[...] = View(tensor.data, dtype, shape, strides, False, None).numpy()
        return copy

    def release(self) -> None:
        """Lets go of the arrays that are bound. They have to be bound again before the next run."""
        self._inputs, self._outputs = [None] * len(self._inputs), [None] * len(self._outputs)

    # --- runs

    def run(self) -> None:
        self._check(_c.lib.weft_run(self.handle))

    def run_timed(self) -> list[Timing]:
        """Runs once and tells how long each step took."""
        timings: list[Timing] = []

        @_c.TIMED
        def note(_: int, kernel: bytes, value: bytes | None, ns: int) -> None:
            timings.append(Timing(kernel.decode(), (value or b"").decode(), ns))

        self._check(_c.lib.weft_run_timed(self.handle, C.cast(note, C.c_void_p), None))
        return timings

    def cancel(self) -> None:
        """Ends the run that is in progress, or the next one, with CancelledError."""
        self._check(_c.lib.weft_cancel(self.handle))

    def statistics(self) -> Statistics:
        raw = _c.sized(_c.Statistics)
        self._check(_c.lib.weft_execution_statistics(self.handle, C.byref(raw)))
        return Statistics(**{name: getattr(raw, name) for name in Statistics._fields})

    # --- whole calls

    def call(self, sources: Sequence[Any], targets: Sequence[Any], timed: list[Timing] | None = None) -> list[Any]:
        """Binds all inputs, runs, and returns the results: new arrays, the targets that are not None, and of mutable
        inputs the arrays that were given for them."""
        self.release()
        for number, source in enumerate(sources):
            self.bind(number, source)
        shapes = [found.shape for found in self._inputs if found is not None]
        results = [self._bind_target(number, target, shapes) for number, target in enumerate(targets)]
        if timed is None:
            self.run()
        else:
            timed.extend(self.run_timed())
        return [self._finish(number, *result, sources) for number, result in enumerate(results)]

    def _bind_target(self, number: int, target: Any, shapes: list[tuple[int, ...]]) -> tuple[Any, View | None]:
        """Where the result goes: the object to return (None: a copy of what the execution holds), and the memory that
        it has to be copied from first, if the caller's has other strides."""
        port = self.plan.outputs[number]
        place = self.plan.result_place(number, shapes)
        if target is None:
            if place is None or port.updates is not None or port.dtype.packed:
                self.bind_output(number, None)
                return None, None
            made = empty(port.dtype, *place)
            self.bind_output(number, View(made.ctypes.data, port.dtype, *place, True, made))
            return made, None
        found = view(target, port.dtype)
        if not found.writable:
            raise BindingError(f"{_where('output', number, port)}: the array is read-only")
        fits = place is None or found.shape != place[0] or _lies_as(found, place[1])
        if fits:
            self.bind_output(number, found._replace(strides=place[1]) if place and found.shape == place[0] else found)
            return target, None
        if found.dtype != port.dtype:
            raise BindingError(f"{_where('output', number, port)}: the plan has {port.dtype}, the array {found.dtype}")
        self.bind_output(number, None)
        return target, found

    def _finish(self, number: int, result: Any, target: View | None, sources: Sequence[Any]) -> Any:
        port = self.plan.outputs[number]
        if target is not None:
            target.numpy()[...] = self.output(number)
        if result is None and port.updates is not None:
            return sources[port.updates]
        return self.output(number) if result is None else result

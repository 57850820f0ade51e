# SPDX-License-Identifier: Apache-2.0
"""Executions: one thread's use of a plan. Plans make and keep them; a program that binds the same memory for many runs
may hold one of its own."""

from __future__ import annotations

import ctypes as C
import itertools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

import numpy as np

from . import _c
from .arrays import View, dense_strides, empty, unpack, view
from .dtypes import DType
from .errors import BindingError
from .ports import Port

if TYPE_CHECKING:
    from .plan import Place, Plan


_ALL_INPUTS = C.c_size_t(-1).value  # WEFT_ALL_INPUTS


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
    relayouts: int  #: of these, steps that only copy a value into another layout
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
    static_bytes: int  #: packed weights of static inputs that the execution holds
    static_packs: int  #: how many packs all of its runs have made


def _where(kind: str, number: int, port: Port) -> str:
    return f"{kind} {number}" + (f" '{port.name}'" if port.name else "")


def _memory(where: str, source: Any, dtype: DType) -> View:
    """The memory of an array that is written to; a copy of it would not do."""
    if isinstance(source, (bool, int, float, list, tuple, np.generic)):
        raise BindingError(f"{where}: it is written to, so it has to be an array, not {type(source).__name__}")
    found = view(source, dtype)
    if isinstance(source, np.ndarray) and found.owner is not source:
        raise BindingError(f"{where}: it is written to, and an array of {source.dtype} with strides of "
                           f"{list(source.strides)} bytes cannot be, for {dtype}")
    if not found.writable:
        raise BindingError(f"{where}: it is written to, but the array is read-only")
    return found


def _lies_as(found: View, strides: tuple[int, ...]) -> bool:
    """Axes of extent 1 have no place in memory, nor has an empty array."""
    return 0 in found.shape or all(n == 1 or s == want for n, s, want in zip(found.shape, found.strides, strides))


class _Slot:
    """What is bound to one input or result: the C structure, kept from call to call, and whoever owns the memory."""

    __slots__ = ("port", "kind", "plain", "tensor", "pointer", "shape", "strides", "owner", "source")

    def __init__(self, port: Port):
        self.port, self.kind, self.plain = port, port.dtype.numpy, port.row_major
        self.tensor = _c.Tensor(None, port.dtype, port.rank)
        self.pointer = C.pointer(self.tensor)
        self.shape: tuple[int, ...] | None = None
        self.strides: tuple[int, ...] | None = None
        self.owner: object = None
        self.source: object = None  # of a static input: what was bound, if its elements may have been copied

    def hold(self, found: View) -> Any:
        """The structure for this array."""
        self.owner = found.owner
        tensor = self.tensor
        tensor.data, tensor.dtype, tensor.rank = found.address, found.dtype, len(found.shape)
        tensor.extent, tensor.stride = found.shape, found.strides
        self.shape, self.strides = found.shape, found.strides
        return self.pointer

    def hold_plain(self, array: np.ndarray) -> Any:
        """The same for an array of the port's element type and rank that is packed and row-major."""
        shape, tensor = array.shape, self.tensor
        if shape != self.shape or tensor.dtype != self.port.dtype or self.strides is not None:
            tensor.dtype, tensor.rank = self.port.dtype, len(shape)
            tensor.extent, tensor.stride = shape, dense_strides(shape)
            self.shape, self.strides = shape, None
        tensor.data = array.__array_interface__["data"][0]
        self.owner = array
        return self.pointer

    def is_plain(self, source: object) -> bool:
        """Is the source such an array? (To be sure of that takes a microsecond, what `view` does five.)"""
        if not self.plain or type(source) is not np.ndarray or source.dtype != self.kind:
            return False
        flags = source.flags
        return flags.c_contiguous and flags.aligned and (flags.writeable or not self.port.mutable) and (
            source.ndim == self.port.rank)


class Execution:
    """Binds arrays and runs. It is for one thread at a time; ``cancel`` may come from any."""

    def __init__(self, plan: Plan):
        self.plan, self.handle = plan, C.c_void_p()
        _c.check(_c.lib.weft_execution_create(plan.handle, C.byref(self.handle)))
        self._inputs = [_Slot(port) for port in plan.inputs]
        self._outputs = [_Slot(port) for port in plan.outputs]
        weakref.finalize(self, _c.lib.weft_execution_destroy, self.handle).atexit = False

    def _check(self, status: int) -> None:
        if status < 0:
            _c.check(status, _c.lib.weft_execution_error(self.handle))

    # --- inputs

    def bind(self, which: int | str, source: Any) -> None:
        """The next runs read this input from ``source``: its memory where the plan's layout allows it, a copy of what
        is there now otherwise."""
        self._bind(self.plan.find_input(which), source)

    def _bind(self, number: int, source: Any) -> None:
        slot = self._inputs[number]
        is_plain = slot.is_plain(source)
        bound = slot.hold_plain(source) if is_plain else slot.hold(self._read(number, source))
        self._check(_c.lib.weft_bind_input(self.handle, number, bound))
        slot.source = source if slot.port.static and not is_plain else None

    def refresh(self, which: int | str | None = None) -> None:
        """The elements of this static input have changed, or of all static inputs: the next run reads them anew. Until
        then it may have computed from the old ones, the new ones or some of each. Binding an input does the same."""
        number = _ALL_INPUTS if which is None else self.plan.find_input(which)
        self._check(_c.lib.weft_refresh(self.handle, number))
        for i, slot in enumerate(self._inputs):
            if slot.source is not None and (which is None or i == number):
                self._bind(i, slot.source)

    def _read(self, number: int, source: Any) -> View:
        """An array for an input as the plan wants it."""
        port = self.plan.inputs[number]
        where = _where("input", number, port)
        try:
            found = _memory(where, source, port.dtype) if port.mutable else view(source, port.dtype)
        except (TypeError, ValueError, BufferError) as reason:
            raise reason if isinstance(reason, BindingError) else BindingError(f"{where}: {reason}") from None
        return self._placed(number, port, found)

    def _placed(self, number: int, port: Port, found: View) -> View:
        """The same elements with the strides that the plan wants. What the plan refuses anyway stays as it is."""
        if found.dtype != port.dtype or len(found.shape) != port.rank:
            return found
        want = port.strides(found.shape, self._sizes(found.shape, port))
        if want is None:
            return found
        if _lies_as(found, want) and found.address % found.dtype.numpy.itemsize == 0:
            return found._replace(strides=want)
        if port.mutable:
            raise BindingError(f"{_where('input', number, port)}: the run updates it where it lies, but its strides "
                               f"are {list(found.strides)} elements and the plan's {list(want)}")
        if port.dtype.packed:
            raise BindingError(f"{_where('input', number, port)}: 4-bit elements are taken row-major only")
        copy = empty(found.dtype, found.shape, want)
        copy[...] = found.numpy()
        return View(copy.ctypes.data, found.dtype, found.shape, want, True, copy)

    def _sizes(self, shape: tuple[int, ...], port: Port) -> dict[str, int]:
        """Sizes of symbols as far as this array and those that are bound tell them."""
        sizes = self.plan.sizes_of([slot.shape if slot.owner is not None else None for slot in self._inputs])
        sizes.update((text, n) for text, n in zip(port.shape, shape) if isinstance(text, str))
        return sizes

    # --- results

    def bind_output(self, which: int | str, target: Any) -> None:
        """The next runs write this result to ``target``, an array of the caller's with the plan's strides; None: to
        memory of the execution."""
        number = self.plan.find_output(which)
        if target is None:
            self._check(_c.lib.weft_bind_output(self.handle, number, None))
            self._outputs[number].owner = None
            return
        port = self.plan.outputs[number]
        found = target if isinstance(target, View) else _memory(_where("output", number, port), target, port.dtype)
        self._check(_c.lib.weft_bind_output(self.handle, number, self._outputs[number].hold(found)))

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
            return unpack(View(tensor.data, DType.U8, (size,), (1,), False, None).numpy(), dtype, shape)
        copy = empty(dtype, shape, strides)
        if copy.size:
            copy[...] = View(tensor.data, dtype, shape, strides, False, None).numpy()
        return copy

    def release(self) -> None:
        """Lets go of the arrays that are bound. They have to be bound again before the next run."""
        for slot in itertools.chain(self._inputs, self._outputs):
            slot.owner = slot.source = None

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
            self._bind(number, source)
        places = self.plan.result_places(tuple(slot.shape or () for slot in self._inputs))
        made = [self._place_result(number, *pair) for number, pair in enumerate(zip(targets, places))]
        if timed is None:
            self.run()
        else:
            timed.extend(self.run_timed())
        return [self._finish(number, *result, sources) for number, result in enumerate(zip(targets, made))]

    def _place_result(self, number: int, target: Any, place: Place | None) -> np.ndarray | None:
        """Binds a result to the caller's array, or to a new one, which is returned. It stays with the execution if its
        sizes depend on data, if the caller's array has other strides, or if it is what a mutable input becomes."""
        slot = self._outputs[number]
        port = slot.port
        if port.dtype.packed:
            place = None
        elif target is not None:
            place = self._place_of(number, port, target, place)
            if place is not None:
                return None
        if place is None or port.updates is not None:
            self.bind_output(number, None)
            return None
        if slot.plain:
            made = np.empty(place[0], slot.kind)
            bound = slot.hold_plain(made)
        else:
            made = empty(port.dtype, *place)
            bound = slot.hold(View(made.ctypes.data, port.dtype, *place, True, made))
        self._check(_c.lib.weft_bind_output(self.handle, number, bound))
        return made

    def _place_of(self, number: int, port: Port, target: Any, place: Place | None) -> Place | None:
        """Binds a result to the caller's array, if that lies as the plan wants it; else None."""
        where = _where("output", number, port)
        found = _memory(where, target, port.dtype)
        if found.dtype != port.dtype:
            raise BindingError(f"{where}: the plan has {port.dtype}, the array {found.dtype}")
        if place is not None and found.shape != place[0]:
            raise BindingError(f"{where}: the result has extents {list(place[0])}, the array {list(found.shape)}")
        if place is None or not _lies_as(found, place[1]) or found.address % port.dtype.numpy.itemsize:
            return None
        self.bind_output(number, found._replace(strides=place[1]))
        return place

    def _finish(self, number: int, target: Any, made: np.ndarray | None, sources: Sequence[Any]) -> Any:
        port = self.plan.outputs[number]
        if made is not None:
            return made
        if target is None:
            return self.output(number) if port.updates is None else sources[port.updates]
        if self._outputs[number].owner is None:
            result, to = self.output(number), view(target).numpy()
            if result.shape != to.shape:
                raise BindingError(f"{_where('output', number, port)}: the result has extents {list(result.shape)}, "
                                   f"the array {list(to.shape)}")
            to[...] = result if to.dtype == result.dtype else result.view(to.dtype)
        return target

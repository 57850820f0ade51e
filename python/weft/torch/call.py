# SPDX-License-Identifier: Apache-2.0
"""Calling a plan with torch's tensors.

``PlanCall`` is the call in Python, through ctypes: it serves every plan, also with sizes that are symbols. ``fast.py``
has the call in C (``weft._fast``) for where that serves. Both take one list of arguments and empty it, as AOTAutograd
has it, so that arguments die while the plan's results are handed on.
"""

from __future__ import annotations

import ctypes as C
import weakref
from collections.abc import Callable, Sequence

import torch

from .. import _c
from ..errors import BindingError
from ..warn import warn
from .dtypes import WEFT_DTYPES
from .elements import Elements
from .program import Program, Result


def describe(tensor: torch.Tensor):
    """A tensor as weft sees it; it stays torch's."""
    if tensor.dtype not in WEFT_DTYPES:
        raise BindingError(f"weft has no {tensor.dtype}")
    return _c.Tensor(tensor.data_ptr(), WEFT_DTYPES[tensor.dtype], tensor.dim(),
                     (C.c_int64 * _c.MAX_RANK)(*tensor.shape), (C.c_int64 * _c.MAX_RANK)(*tensor.stride()))


def draw_step() -> torch.Tensor:
    """The number of a call for random ops: from torch's generator, so that torch.manual_seed repeats a run."""
    return torch.randint(2**32, (), dtype=torch.int64)


class PlanCall:
    """call(list) -> list of the plan's outputs. Each of several callers at once gets an execution of its own.
    Arguments that are ``static`` are bound when they have changed."""

    def __init__(self, plan, program: Program, static: frozenset[int] = frozenset()):
        self.plan, self.program, self.static = plan, program, static
        self.free: list[C.c_void_p] = []
        self.seen: dict[int | None, dict[int, tuple[weakref.ref, Elements]]] = {}  # by execution and input
        self.byte = C.create_string_buffer(1)

    def __del__(self):
        for execution in getattr(self, "free", ()):
            _c.lib.weft_execution_destroy(execution)

    def _execution(self) -> C.c_void_p:
        try:
            return self.free.pop()
        except IndexError:
            made = C.c_void_p()
            _c.check(_c.lib.weft_execution_create(self.plan.handle, C.byref(made)))
            return made

    def _check(self, execution, status: int) -> None:
        if status < 0:
            _c.check(status, _c.lib.weft_execution_error(execution))

    def __call__(self, args: list) -> list[torch.Tensor]:
        made = [torch.empty_strided(s, st, dtype=d) for s, st, d in self.program.outputs.of(args)]
        execution = self._execution()
        try:
            try:
                self._run(execution, args, made)
            except BindingError:
                self._run_on_copies(execution, args, made)
        finally:
            self.free.append(execution)
        args.clear()
        return made

    def _run(self, execution, args: list, made: list[torch.Tensor]) -> None:
        for k, i in enumerate(self.program.inputs):
            if i.kind == "size":
                (size,) = i.told(args)
                tensor = _c.Tensor(C.addressof(self.byte), i.dtype, 1, (C.c_int64 * _c.MAX_RANK)(size))
            elif i.of(self.static) and self._as_seen(execution, k, args[i.argument]):
                continue
            else:
                tensor = describe(args[i.argument])
            self._check(execution, _c.lib.weft_bind_input(execution, k, C.byref(tensor)))
        for k, tensor in enumerate(made):
            self._check(execution, _c.lib.weft_bind_output(execution, k, C.byref(describe(tensor))))
        self._check(execution, _c.lib.weft_run(execution))

    def _as_seen(self, execution, k: int, tensor: torch.Tensor) -> bool:
        """Is this the tensor that was bound to the input last, where it was and with the elements that it had?"""
        seen = self.seen.setdefault(execution.value, {})
        reference, elements = seen.pop(k, (lambda: None, None))
        if tensor.is_inference():
            return False
        as_seen = reference() is tensor and elements.are_of(tensor)
        seen[k] = (reference, elements) if as_seen else (weakref.ref(tensor), Elements.of(tensor))
        return as_seen

    def _run_on_copies(self, execution, args: list, made: list[torch.Tensor]) -> None:
        """Arguments that lie otherwise than they did when the graph was traced, or over each other, are copied."""
        copies, back, expected = list(args), [], iter(self.program.expected.of(args))
        self.seen.pop(execution.value, None)
        for i in self.program.inputs:
            if i.kind not in ("tensor", "mutable"):
                continue
            shape, stride, dtype = next(expected)
            given = args[i.argument]
            if tuple(given.shape) != tuple(shape) or given.dtype != dtype:
                told = f"argument {i.argument} has the shape {tuple(given.shape)} and {given.dtype}, where the graph " \
                       f"was traced with {tuple(shape)} and {dtype}"
                # an op that runs in eager may give another type than torch's trace of it has
                is_float = given.dtype.is_floating_point and dtype.is_floating_point
                if tuple(given.shape) != tuple(shape) or not is_float or i.kind == "mutable":
                    raise BindingError(told)
                warn(f"weft: {told}: it is converted in each call")
            copies[i.argument] = torch.empty_strided(shape, stride, dtype=dtype).copy_(given)
            if i.kind == "mutable":
                back.append((given, copies[i.argument]))
        self._run(execution, copies, made)
        self.seen.pop(execution.value, None)  # what is bound goes with the copies
        for given, copy in back:
            given.copy_(copy)


class Assemble:
    """Puts the results of an FX graph together from a plan's outputs, arguments and sizes."""

    def __init__(self, inner: Callable, program: Program):
        self.inner, self.recipe = inner, program.results
        self.random = any(i.kind == "step" for i in program.inputs)

    def __call__(self, args: list) -> list:
        results = [before(r, args) for r in self.recipe]
        if self.random:
            args.append(draw_step())
        outputs = self.inner(args)
        for k, r in enumerate(self.recipe):
            if r.kind == "output":
                results[k] = outputs[r.index]
            elif r.kind == "view" and r.base == "output":
                results[k] = view(outputs[r.index], results[k])
        return results


def before(r: Result, args: list):
    """What is known of a result before the plan has run and the arguments are gone."""
    if r.kind == "argument":
        return args[r.index]
    if r.kind == "size":
        return r.formula(args)[0]
    if r.kind == "view":
        numbers = r.formula(args)
        return view(args[r.index], numbers) if r.base == "argument" else numbers
    return r.value


def view(base: torch.Tensor, numbers: Sequence[int]) -> torch.Tensor:
    rank = len(numbers) // 2
    return base.as_strided(numbers[:rank], numbers[rank:-1], base.storage_offset() + numbers[-1])


def python_call(plan, program: Program, static: frozenset[int]) -> Callable:
    """The call in Python, with results put together."""
    inner = PlanCall(plan, program, static)
    return boxed(inner if program.plain else Assemble(inner, program))


def boxed(run: Callable) -> Callable:
    """Marks a callable that takes one list."""

    def call(args: list):
        return run(args)

    call._boxed_call = True
    return call


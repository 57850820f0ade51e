# SPDX-License-Identifier: Apache-2.0
"""The call of a plan in C (``weft._fast``), with fixed sizes and with those that follow from the extents of arguments.

It needs torch's table of DLPack functions (torch 2.10) and the extension module; without either, and for sizes that
are arguments of their own, ``call.PlanCall`` does the same in Python."""

from __future__ import annotations

import ctypes as C
import functools
from collections.abc import Callable

import torch

from .. import _c
from .call import Assemble, PlanCall, boxed
from .dtypes import WEFT_DTYPES
from .freeze import Weight
from .program import Program

FUNCTIONS = ("execution_create", "execution_destroy", "bind_input", "bind_output", "rebind_input", "rebind_output",
             "output_needed", "run", "execution_error")  # in the order of src/fast.c
KINDS = {"output": 0, "argument": 1, "value": 2}


@functools.cache
def module():
    """The extension, or None where it or torch's table is missing."""
    try:
        from .. import _fast

        addresses = tuple(C.cast(getattr(_c.lib, f"weft_{name}"), C.c_void_p).value for name in FUNCTIONS)
        _fast.setup(torch.Tensor.__dlpack_c_exchange_api__, torch._C.TensorBase._version, addresses)
    except (ImportError, AttributeError):
        return None
    return _fast


def why_not(program: Program) -> str:
    """Why the call in C cannot do it; empty where it can."""
    if module() is None:
        return "weft._fast was not built, or does not go with this torch"
    return "a size is an argument of its own" if any(i.kind == "size" for i in program.inputs) else ""


def fast_call(plan, program: Program, weights: tuple[Weight, ...], stale: Callable | None,
              static: frozenset[int]) -> Callable:
    """A callable of one list that compares the frozen weights and calls ``stale`` with the list if one has changed.
    It binds the arguments that are ``static`` only when they have changed."""
    fast = module()
    simple = all(r.kind in KINDS for r in program.results) and all(i.kind != "step" for i in program.inputs)
    if simple:
        recipe = tuple((KINDS[r.kind], r.index, r.value) for r in program.results)
    else:
        recipe = tuple((KINDS["output"], i, None) for i in range(len(program.specs)))
    call = fast.make(
        plan, plan.handle.value, tuple((i.argument, i.dtype, i.of(static)) for i in program.inputs), program.specs,
        recipe, tuple(map(facts, weights)) if simple else (), Other(plan, program, simple, static), stale)
    return call if simple else boxed(Assemble(call, program))


def facts(w: Weight) -> tuple:
    """What the call in C compares; ``stale`` keeps the storage."""
    e = w.elements
    return w.argument, w.tensor, e.version, e.address, WEFT_DTYPES[e.dtype], tuple(e.shape), e.stride


class Other:
    """The call in Python, made when the one in C cannot serve: arguments that lie otherwise than was traced."""

    def __init__(self, plan, program: Program, simple: bool, static: frozenset[int]):
        self.plan, self.program, self.simple, self.static = plan, program, simple, static
        self.call: Callable | None = None

    def __call__(self, args: list):
        if self.call is None:
            inner = PlanCall(self.plan, self.program, self.static)
            self.call = Assemble(inner, self.program) if self.simple else inner
        return self.call(args)

# SPDX-License-Identifier: Apache-2.0
"""Weights as constants of a plan, watched: a plan whose weights have changed is made anew.

A weight has changed if the module holds another tensor in its place, if its version counter has moved, which every
operation in place does (optimizers, load_state_dict, add_), or if its elements lie elsewhere or otherwise, as behind
``p.data = tensor`` (vector_to_parameters, half, float). Elements written through ``.data`` (``p.data.add_(1)``,
``p.data[0] = 1``), and from numpy or C, change none of these and are not seen: results are then those of the old
elements or of both. After such writes call ``torch.compiler.reset()``, or compile with ``options={"freeze": False}``.
Tensors made in inference mode have no counter and are never frozen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from . import dtypes
from .call import boxed
from .elements import Elements

#: after so many changes the weights of a graph are arguments: they are being trained, not served
MOST_CHANGES = 3
#: and those with so many axes are static ones. Convolutions transform plain weights in each call, so that it costs
#: nothing more to do that behind a change alone. Products of few rows read plain weights as they lie, and packing them
#: behind a change would take as long as dozens of calls.
STATIC_RANK = 3


def frozen_arguments(model: torch.fx.GraphModule, arguments: int,
                     known: Sequence[int] | None = None) -> dict[int, torch.Tensor]:
    """Arguments of AOTAutograd's graph, which has so many, that are parameters or buffers of modules, with their
    tensors; or those that are ``known`` to be, from another process that traced an equal graph.

    torch's prepare_freezing does this with settings for the whole process; here it is read off what the tracing
    context knows already. Nothing is frozen where arguments were merged or split, so that positions mean nothing. In
    front of all arguments stand the tokens that keep ops with side effects in order, as of linalg.inv, which checks."""
    tracing = torch._guards.TracingContext.try_get()
    if tracing is None or (tracing.fw_metadata is None and known is None):
        return {}
    holders = model.graph.find_nodes(op="placeholder")
    attributes = list(tracing.params_flat or ())
    tokens = arguments - len(attributes) - len(holders)
    if tokens < 0 or (tracing.fw_metadata is not None and tokens != len(tracing.fw_metadata.tokens)):
        return {}
    if known is None:
        known = static_arguments(tracing.fw_metadata, len(attributes))
    real = dict(enumerate(attributes, tokens))
    for i, n in enumerate(holders, tokens + len(attributes)):
        source = n.meta.get("grapharg")
        real[i] = source.example if source is not None else None
    return {i: real[i] for i in known if isinstance(real.get(i), torch.Tensor) and can_freeze(real[i])}


def static_arguments(metadata, attributes: int) -> list[int]:
    """Arguments that stay where they are from call to call and that nobody writes to."""
    first = len(metadata.tokens)
    mutated = {i for i, info in enumerate(metadata.input_info, first) if info.mutates_data or info.mutates_metadata}
    static = {*range(first, first + attributes), *metadata.static_input_indices}
    return sorted(static - mutated)


def can_freeze(t: torch.Tensor) -> bool:
    return (type(t) in (torch.Tensor, torch.nn.Parameter) and not t.is_inference() and dtypes.fits(t) is None and
            t.numel() > 0)


class Weight(NamedTuple):
    """A frozen argument, with the elements that its plan has read."""

    argument: int
    tensor: torch.Tensor
    storage: torch.UntypedStorage  #: kept, so that no other comes to lie at its address
    elements: Elements


def watched(frozen: dict[int, torch.Tensor]) -> tuple[Weight, ...]:
    """To be asked for before elements are read, so that what is written meanwhile is seen."""
    return tuple(Weight(i, t, t.untyped_storage(), Elements.of(t)) for i, t in frozen.items())


class Watch:
    """Runs a compiled graph and compiles it anew when its weights have changed.

    ``compile(frozen, stale, static)`` takes tensors by argument and returns a callable of one list, with a tuple of
    Weight. One that has ``forward_to`` compares these itself, in C, and calls ``stale`` when one has changed; for
    others ``Watch`` compares. ``static``: arguments that are inputs of the plan, and that the call binds when they have
    changed."""

    def __init__(self, compile: Callable, frozen: dict[int, torch.Tensor]):  # noqa: A002
        self.compile, self.changes = compile, 0
        self.lock = threading.Lock()
        self.state = self.compile(frozen, self.stale, frozenset())  # together, since another thread may be calling
        self.first = self.state[0] if hasattr(self.state[0], "forward_to") else None  # which lets go of its plan

    def entry(self) -> Callable:
        """What is to be called. torch copies attributes of callables, and would keep the first plan with them."""
        return self.first or boxed(self)

    def __call__(self, args: list):
        run, weights = self.state
        return self.stale(args) if changed(args, weights) else run(args)

    def stale(self, args: list):
        """Makes a plan for the weights that are there now, and calls it."""
        with self.lock:
            run, weights = self.state
            if changed(args, weights):  # and no other thread has seen to it
                self.changes += 1
                given = {w.argument: args[w.argument] for w in weights}
                freeze = self.changes <= MOST_CHANGES and all(can_freeze(t) for t in given.values())
                static = frozenset(i for i, t in given.items() if t.dim() >= STATIC_RANK and not freeze)
                self.state = self.compile(given if freeze else {}, self.stale, static)
                run = self.state[0]
                if self.first:
                    self.first.forward_to(run)
        return run(args)


def changed(args: Sequence, weights: Sequence[Weight]) -> bool:
    """Is one of these arguments another tensor than it was, or has it other elements?"""
    return any(args[w.argument] is not w.tensor or not w.elements.are_of(w.tensor) for w in weights)

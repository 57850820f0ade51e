# SPDX-License-Identifier: Apache-2.0
"""The table of lowerings: ATen overload -> function that builds weft nodes."""

from __future__ import annotations

from collections.abc import Callable

import torch

aten = torch.ops.aten
#: overload (or operator.getitem) -> function(build, FX node, *arguments with weft nodes in place of FX nodes)
TABLE: dict[object, Callable] = {}
#: the same by name, of ops in libraries that torch loads when a program needs them
LATE: dict[str, Callable] = {}


class Refuse(NotImplementedError):
    """This call of an op has no lowering; the text says why. The node then runs in eager."""


def named(name: str):
    """The overload ``add.Tensor`` or, without a point, ``relu.default`` of aten, or ``weft::resize`` of another
    namespace; None if this torch has none."""
    namespace, _, name = name.rpartition("::")
    packet, _, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, namespace) if namespace else aten, packet, None)
    return getattr(packet, overload or "default", None) if packet is not None else None


def lowering(target) -> Callable | None:
    return TABLE.get(target) or LATE.get(str(target))


def lower(*names: str):
    """Registers a lowering for ops by name, of aten where no namespace is given. Names that this torch lacks are passed
    over."""

    def note(function):
        for name in names:
            target = named(name)
            if target is not None:
                if target in TABLE:
                    raise KeyError(f"two lowerings of {name}")
                TABLE[target] = function
            elif "::" in name:
                LATE[f"{name.replace('::', '.')}.default"] = function
        return function

    return note

# SPDX-License-Identifier: Apache-2.0
"""Graphs with ops that weft lacks: cut into plans and eager ops, and never without saying so."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ..errors import WeftWarning
from ..warn import warn
from .origin import place_of
from .report import Report
from .translate import COPY_IN_PLACE

#: smaller pieces cost more as plans than in eager
LEAST_NODES = 3
#: they compute nothing: views of what is there, and constants
FREE = {getattr(torch.ops.aten, name) for name in """
    view _unsafe_view reshape permute transpose t expand unsqueeze squeeze select slice alias detach
    as_strided split split_with_sizes unbind full empty diagonal unfold""".split()}


class WeftGraphWarning(WeftWarning):
    """A part of a graph runs in eager."""


def computes(n: torch.fx.Node) -> bool:
    return (n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload) and
            n.target.overloadpacket not in FREE and isinstance(n.meta.get("val"), (torch.Tensor, tuple, list)))


class _Supported(OperatorSupportBase):
    def __init__(self, refused: dict[torch.fx.Node, str]):
        self.refused = refused

    def is_node_supported(self, submodules, node: torch.fx.Node) -> bool:
        if node.op == "get_attr":
            return True
        return (node.op == "call_function" and node not in self.refused and
                (node.target is operator.getitem or isinstance(node.target, torch._ops.OpOverload)) and
                isinstance(node.meta.get("val"), (torch.Tensor, tuple, list)))


def op_name(n: torch.fx.Node) -> str:
    if n.op != "call_function":
        return f"{n.op} {n.target}"
    op = n.args[1] if str(n.target) == "with_effects" else n.target  # torch wraps ops with effects: a token, the op
    return str(op).removeprefix("aten.")


def take_mutations(gm: torch.fx.GraphModule) -> list[int]:
    """Turns the mutations at the end of a graph into more results, so that pieces may run in any order that keeps
    the data right: returns which argument each of these results is to be copied into."""
    holders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    out = next(n for n in gm.graph.nodes if n.op == "output")
    targets, values = [], []
    for n in [n for n in gm.graph.nodes if n.op == "call_function" and n.target is COPY_IN_PLACE]:
        if n.args[0] not in holders:
            raise NotImplementedError("a mutation of something that is no argument")
        targets.append(holders.index(n.args[0]))
        values.append(n.args[1])
        n.replace_all_uses_with(n.args[0])
        gm.graph.erase_node(n)
    out.args = ((*out.args[0], *values),)
    gm.recompile()
    return targets


def partition(gm: torch.fx.GraphModule, refused: dict[torch.fx.Node, str], compile: Callable,  # noqa: A002
              report: Report) -> Callable:
    """Compiles what can be with ``compile`` (GraphModule -> callable of one list); the rest is eager."""
    targets = take_mutations(gm)
    refused = {n: reason for n, reason in refused.items() if n.graph is gm.graph and not n._erased}
    tell(refused, report)
    partitioner = CapabilityBasedPartitioner(gm, _Supported(refused), allows_single_node_partition=True)
    pieces = [p for p in partitioner.propose_partitions() if sum(map(computes, p.nodes)) >= LEAST_NODES]
    inside = {n for p in pieces for n in p.nodes}
    for n in gm.graph.nodes:
        if n not in inside and computes(n):
            report.eager[op_name(n)] = report.eager.get(op_name(n), 0) + 1
    fused = partitioner.fuse_partitions(pieces)
    for n in list(fused.graph.nodes):
        if n.op == "call_module":
            setattr(fused, n.target, compile(getattr(fused, n.target)))
    fused.recompile()
    return run_pieces(fused, targets)


def run_pieces(fused: torch.fx.GraphModule, targets: list[int]) -> Callable:
    def run(args: list):
        kept = [args[i] for i in targets]
        given = tuple(args)
        args.clear()
        results = list(fused(*given))
        values = results[len(results) - len(targets):] if targets else []
        for target, value in zip(kept, values):
            target.copy_(value)
        return results[: len(results) - len(targets)]

    run._boxed_call = True
    return run


def tell(refused: dict[torch.fx.Node, str], report: Report) -> None:
    """One warning that names all ops which weft does not take, and where the program asks for them."""
    for n, reason in refused.items():
        if n.target is operator.getitem:  # which goes with its op
            continue
        op, place = op_name(n), place_of(n)
        report.reasons.setdefault(op, reason)
        places = report.places.setdefault(op, [])
        if place and place not in places:
            places.append(place)
    if not refused:
        return
    ops = ", ".join(report.placed(op) if reason == "no lowering" else f"{report.placed(op)} ({reason})"
                    for op, reason in sorted(report.reasons.items()))
    warn(f"weft runs a part of the {report.kind} graph{report.origin.of_name} in eager: {ops}", WeftGraphWarning)


class Unboxed(torch.nn.Module):
    """A callable of one list as a module that is called with arguments, for generated code."""

    def __init__(self, run: Callable, single: bool):
        super().__init__()
        self.run, self.single = run, single

    def forward(self, *args):
        results = self.run(list(args))
        return results[0] if self.single else tuple(results)

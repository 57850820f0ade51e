# SPDX-License-Identifier: Apache-2.0
"""An FX graph of ATen ops as a weft graph, with the book of what becomes of arguments and results.

A node whose op has no lowering, or whose lowering refuses this call, does not end the translation: its results become
inputs of the weft graph, the node is written down with the reason, and all other nodes are tried too. So one pass over
the graph tells everything that has to run in eager; if that is nothing, the graph is ready to be compiled.
"""

from __future__ import annotations

import collections
import ctypes as C
import dataclasses
import math
import operator

import torch

from .. import _c
from ..errors import Error
from . import dtypes
from .dtypes import WEFT_DTYPES
from .layouts import layout_text, overlaps
from .lower import Refuse, lowering
from .lower.build import Build
from .program import Input, Program, Result, Shapes, Weight
from .sizes import Sizes, Solver, hint_of, is_symbolic

COPY_IN_PLACE = torch.ops.aten.copy_.default


@dataclasses.dataclass(frozen=True)
class Bound:
    """What is bound to an input of the plan, as torch's tracing has it."""

    kind: str  #: as of program.Input
    argument: int = -1
    dtype: int = 0
    value: object = None  #: the fake tensor; of kind size: the symbol


@dataclasses.dataclass(frozen=True)
class Made:
    """How a result of the FX graph comes about, as torch's tracing has it."""

    kind: str  #: as of program.Result
    index: int = -1
    value: object = None  #: of a size: the SymInt; of a view: the fake tensor
    base: str = ""
    offset: object = 0  #: of a view: of its first element, in elements from the base's


class Opaque:
    """Stands for a value that weft cannot hold."""

    def __init__(self, reason: str):
        self.reason = reason


@dataclasses.dataclass
class Translation:
    graph: object
    inputs: list[Bound]
    outputs: list  #: fake tensors of the outputs that are returned; those of mutable inputs come behind
    results: list[Made]
    refused: dict[torch.fx.Node, str]
    solver: Solver
    weights: list[Weight]
    elements: dict[str, torch.Tensor]  #: of inputs of the graph that are constants and no arguments
    nodes: int

    def program(self) -> Program:
        """The same without anything of torch's tracing."""
        tensors = [i.value for i in self.inputs if i.kind in ("tensor", "mutable")]
        return Program(
            text=self.graph.text(), expected=Shapes.of_values(tensors, self.solver),
            inputs=tuple(Input(i.kind, i.argument, i.dtype,
                               self.solver.formula([i.value]) if i.kind == "size" else None) for i in self.inputs),
            outputs=Shapes.of_values(self.outputs, self.solver),
            specs=tuple(spec_of(v) for v in self.outputs), results=tuple(map(self._result, self.results)),
            weights=tuple(self.weights), elements=self.elements, nodes=self.nodes)

    def _result(self, r: Made) -> Result:
        if r.kind == "size":
            return Result(r.kind, formula=self.solver.formula([r.value]))
        if r.kind == "view":
            return Result(r.kind, r.index, base=r.base,
                          formula=self.solver.formula([*r.value.shape, *r.value.stride(), r.offset]))
        return Result(r.kind, r.index, r.value)


def spec_of(value: torch.Tensor) -> tuple:
    """weft's element type, extents and strides; -1 where they depend on symbols."""
    known = (tuple(-1 if is_symbolic(n) else int(n) for n in numbers) for numbers in (value.shape, value.stride()))
    return WEFT_DTYPES[value.dtype], *known


def translate(gm: torch.fx.GraphModule, context, frozen: dict[int, torch.Tensor] | None = None,
              training: bool = False) -> Translation:
    """Translates the graph; the arguments in ``frozen`` become constants, which lie as these tensors do. ``training``:
    the graph runs forward for a gradient, or backward."""
    return _Translator(gm, context, frozen or {}, training).run()


class _Translator:
    def __init__(self, gm, context, frozen, training):
        from ..graph import Graph

        self.gm, self.frozen = gm, frozen
        self.graph = Graph(context, "torch")
        self.sizes = Sizes(self.graph)
        self.build = Build(self.graph, self.sizes, training)
        self.env: dict[torch.fx.Node, object] = {}
        self.inputs: list[Bound] = []
        self.weights: list[Weight] = []
        self.refused: dict[torch.fx.Node, str] = {}
        self.updated: dict[torch.fx.Node, tuple] = {}  # mutated placeholder -> old value, new value
        self.holders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self.arguments = [n.meta.get("val") for n in self.holders]
        self.solver = Solver(self.arguments)

    def run(self) -> Translation:
        mutated = {n.args[0] for n in self.gm.graph.nodes if n.op == "call_function" and n.target is COPY_IN_PLACE}
        for value in self.arguments:
            for size in (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,):
                self.sizes.see(size)
        for i, n in enumerate(self.holders):
            self.holder(i, n, n in mutated)
        for n in self.gm.graph.nodes:
            if n.op == "get_attr":
                self.attribute(n)
            elif n.op == "call_function":
                self.node(n)
            elif n.op == "call_module":
                self.refuse(n, "a module")
        results, outputs, nodes = self.results()
        if not self.refused:
            self.finish(nodes, outputs)
        return Translation(self.graph, self.inputs, outputs, results, self.refused, self.solver, self.weights,
                           self.build.elements, sum(n.op == "call_function" for n in self.gm.graph.nodes))

    # --- arguments

    def holder(self, i: int, n: torch.fx.Node, mutable: bool) -> None:
        value = self.arguments[i]
        if not isinstance(value, torch.Tensor):
            self.env[n] = value if value is not None else Opaque("an argument without a value")
            return
        reason = dtypes.fits(value)
        if reason:
            self.env[n] = Opaque(reason)
        elif i in self.frozen:
            self.env[n] = self.weight(i, self.frozen[i])
        elif n.users:
            try:
                self.env[n] = self.param(value, mutable)
            except (Refuse, Error) as problem:
                self.env[n] = Opaque(str(problem))
                return
            self.inputs.append(Bound("mutable" if mutable else "tensor", i, WEFT_DTYPES[value.dtype], value))

    def param(self, value: torch.Tensor, mutable: bool = False):
        node = self.graph.param(WEFT_DTYPES[value.dtype], [self.sizes(s) for s in value.shape], mutable)
        text = layout_text(self.sizes, value.shape, value.stride())
        if text:
            for size in value.stride():  # symbols that stand in strides alone have to be known too
                self.sizes(size)
            self.graph.layout(node, text)
        return node

    def weight(self, argument: int, tensor: torch.Tensor):
        """What becomes a constant with the elements of the argument, from where they lie if its axes only stand in
        another order than row-major."""
        order = tuple(sorted(range(tensor.dim()), key=lambda a: (-tensor.stride(a), a)))
        if not tensor.permute(order).is_contiguous():
            order = tuple(range(tensor.dim()))
        self.weights.append(Weight(f"w{argument}", argument, order))
        turned = self.graph.param(WEFT_DTYPES[tensor.dtype], [tensor.shape[a] for a in order], name=f"w{argument}")
        return self.build.transpose(turned, [order.index(a) for a in range(tensor.dim())])

    def attribute(self, n: torch.fx.Node) -> None:
        value = self.gm
        for part in n.target.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor):
            reason = dtypes.fits(value) if type(value) in (torch.Tensor, torch.nn.Parameter) else "a subclass"
            self.env[n] = Opaque(reason) if reason else self.build.constant(value)
        else:
            self.env[n] = Opaque(f"an attribute of type {type(value).__name__}")

    # --- nodes

    def refuse(self, n: torch.fx.Node, reason: str) -> None:
        self.refused[n] = reason
        self.env[n] = self.stand_in(n.meta["val"]) if "val" in n.meta else Opaque(f"a result of {n.target}")

    def stand_in(self, value):
        """An input in the place of what the node would have made, so that those behind it can be tried."""
        if isinstance(value, (tuple, list)):
            return [self.stand_in(v) for v in value]
        if not isinstance(value, torch.Tensor):
            return value
        reason = dtypes.fits(value)
        if reason:
            return Opaque(reason)
        for size in (*value.shape, *value.stride()):
            self.sizes.see(size)
        try:
            return self.graph.param(WEFT_DTYPES[value.dtype], [self.sizes(s) for s in value.shape])
        except (Refuse, Error) as problem:
            return Opaque(str(problem))

    def real(self, a):
        """An argument of a node for its lowering: sizes as extents, nodes as weft's."""
        if not isinstance(a, torch.fx.Node):
            return a
        value = self.env[a]
        if isinstance(value, Opaque):
            raise Refuse(value.reason)
        if isinstance(value, torch.SymInt):
            return self.sizes(value)
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise Refuse(f"a {type(value).__name__}")
        return value

    def node(self, n: torch.fx.Node) -> None:
        value = n.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            if any(isinstance(a, torch.fx.Node) and isinstance(a.meta.get("val"), torch.Tensor) and
                   n.target is not torch.ops.aten.sym_size.int and n.target is not torch.ops.aten.sym_stride.int
                   for a in n.args):
                self.refuse(n, "a number out of a tensor")
            else:
                self.env[n] = value
            return
        if n.target is operator.getitem and isinstance(self.env[n.args[0]], (tuple, list)):
            self.env[n] = self.env[n.args[0]][n.args[1]]
            if self.env[n] is None:
                self.refuse(n.args[0], f"result {n.args[1]}")
                self.env[n] = self.env[n.args[0]][n.args[1]]
            return
        if n.target is operator.getitem and isinstance(self.env[n.args[0]], Opaque):  # torch traced no values for it
            self.refuse(n, self.env[n.args[0]].reason)
            return
        try:
            if n.target is COPY_IN_PLACE:
                self.env[n] = self.copy_into(n)
            elif not (lower := lowering(n.target)):
                raise Refuse("no lowering")
            else:
                self.env[n] = self.checked(n, lower(
                    self.build, n, *torch.fx.map_arg(n.args, self.real), **torch.fx.map_arg(n.kwargs, self.real)))
        except (Refuse, Error) as problem:
            self.refuse(n, str(problem))

    def checked(self, n: torch.fx.Node, made):
        """Refuses what a lowering made if it is not what torch says the node gives: a mistake of the lowering."""
        values, nodes = n.meta.get("val"), made
        if not isinstance(values, (tuple, list)):
            values, nodes = [values], [made]
        if len(nodes) < len(values):
            raise Refuse(f"{len(nodes)} results instead of {len(values)}")
        for node, value in zip(nodes, values):
            if node is None or not isinstance(value, torch.Tensor):
                continue
            reason = dtypes.fits(value)
            if reason:
                raise Refuse(reason)
            for size in value.shape:
                self.sizes.see(size)
            sizes = [self.sizes(s) for s in value.shape]
            if node.dtype != WEFT_DTYPES[value.dtype] or not self.build.same_dims(node.dims, sizes):
                raise Refuse(f"lowered to {node.type} instead of {tuple(value.shape)} of {value.dtype}")
        return made

    def copy_into(self, n: torch.fx.Node):
        """A mutation of an argument: its new value, which the plan stores in it."""
        target, source = n.args[:2]
        if target not in self.holders or target in self.updated or self.holders.index(target) in self.frozen:
            raise Refuse("a mutation of something that is no argument")
        old, new = self.real(target), self.real(source)
        new = self.build.bcast(self.build.cast(new, old.dtype), old.dims)
        self.updated[target] = old, new
        return new

    # --- results

    def results(self) -> tuple[list[Made], list, list]:
        out = next(n for n in self.gm.graph.nodes if n.op == "output").args[0]
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        self.wanted = collections.Counter(view_root(o) for o in out if isinstance(o, torch.fx.Node))
        self.wanted.update(o for o in out if isinstance(o, torch.fx.Node) and view_root(o) is not o)
        self.places: dict[torch.fx.Node, int] = {}
        self.nodes, self.values = [], []
        return [self.result(o) for o in out], self.values, self.nodes

    def result(self, o) -> Made:
        if not isinstance(o, torch.fx.Node):
            return Made("value", value=o)
        value = o.meta.get("val")
        if o.op == "call_function" and o.target is COPY_IN_PLACE and o not in self.refused:
            o = o.args[0]
        if o.op == "placeholder":
            return Made("argument", self.holders.index(o))
        if isinstance(value, torch.SymInt):
            return Made("size", value=value)
        if not isinstance(value, torch.Tensor):
            self.refused.setdefault(o, "a result that is no tensor")
            return Made("value")
        root = view_root(o)
        if root is not o and root not in self.updated:
            whole = root.meta["val"]
            offset = value.storage_offset() - whole.storage_offset()
            if root.op == "placeholder":
                return Made("view", self.holders.index(root), value, "argument", offset)
            if root.op == "call_function" and self.worth_whole(root, value, whole) and self.output(root):
                return Made("view", self.places[root], value, "output", offset)
        return Made("output", self.places[o]) if self.output(o) else Made("value")

    def worth_whole(self, root: torch.fx.Node, value: torch.Tensor, whole: torch.Tensor) -> bool:
        """Is a view made of the whole value, as eager makes it? Not if it is the only result that shows a part of it,
        and a small one: then nothing else of it need be computed."""
        return self.wanted[root] > 1 or repeated(value) or 2 * elements(value) > elements(whole)

    def output(self, o: torch.fx.Node) -> bool:
        """Makes a node an output of the plan, once. False if it cannot be one, and then it is refused."""
        if o in self.places:
            return True
        value, node = o.meta["val"], self.env[o]
        if isinstance(node, Opaque) or overlaps(value.shape, value.stride()):
            self.refused.setdefault(o, node.reason if isinstance(node, Opaque) else "a result whose elements overlap")
            return False
        self.places[o] = len(self.nodes)
        self.nodes.append(node)
        self.values.append(value)
        return True

    def own(self, node, value: torch.Tensor, seen: set[int]):
        """A node that no other result is and that is neither input nor constant, so that it can have a layout."""
        facts = _c.sized(_c.ValueFacts)
        self.graph.context.call(_c.lib.weft_value_read, self.graph.handle, node.raw, C.byref(facts))
        if node.raw.id in seen or facts.node.id == 0 or facts.constant:
            node = self.graph.op("reshape", node, dtype=node.dtype, sizes=node.dims)
        seen.add(node.raw.id)
        text = layout_text(self.sizes, value.shape, value.stride())
        if text:
            self.graph.layout(node, text)
        return node

    def finish(self, nodes: list, values: list) -> None:
        """Declares results, and inputs for what no tensor tells: sizes, and the number of the call."""
        seen: set[int] = set()
        returned = [self.own(node, value, seen) for node, value in zip(nodes, values)]
        updated = [None] * len(returned)
        for n, (old, new) in self.updated.items():
            returned.append(self.own(new, n.meta["val"], seen))
            updated.append(old)
        told = Solver([i.value for i in self.inputs]).rules
        for symbol, dim in list(self.sizes.dims.items()):
            if symbol not in told:
                self.graph.layout(self.graph.param(dtypes.U8, [dim]), "{0 | 0}")  # one byte, repeated
                self.inputs.append(Bound("size", -1, dtypes.U8, symbol))
        if self.build.step is not None:
            self.inputs.append(Bound("step", len(self.holders), dtypes.I64))
        if returned:
            self.graph.returns(returned, updated)


def view_root(n: torch.fx.Node) -> torch.fx.Node:
    """The node whose memory a node shows in eager: itself, unless it is a view of the same type."""
    dtype = getattr(n.meta.get("val"), "dtype", None)
    root = n
    while root.op == "call_function":
        target = root.target
        if target is operator.getitem and isinstance(root.args[0], torch.fx.Node):
            source = root.args[0]
            if not (isinstance(source.target, torch._ops.OpOverload) and source.target.is_view):
                break
            root = source.args[0]
        elif isinstance(target, torch._ops.OpOverload) and target.is_view and isinstance(root.args[0], torch.fx.Node):
            root = root.args[0]
        else:
            break
    return root if getattr(root.meta.get("val"), "dtype", None) == dtype else n


def elements(value: torch.Tensor) -> int:
    """How many there were when the graph was traced."""
    return math.prod(hint_of(size) for size in value.shape)


def repeated(value: torch.Tensor) -> bool:
    """Does one element stand for several?"""
    return any(not is_symbolic(s) and int(s) == 0 and (is_symbolic(n) or int(n) != 1)
               for n, s in zip(value.shape, value.stride()))

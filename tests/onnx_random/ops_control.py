# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan, with bodies drawn like the model itself, reading what is outside."""
import numpy as np
from onnx import helper

from graph import BOOL, F32, I64, TYPES, Graph
from reference import Refused
from registry import op

SIMPLE = ("unary", "binary", "activation", "reduce", "matmul", "transpose", "reshape", "where", "concat", "slice_",
          "cast",
          "softmax", "gather", "variadic", "expand", "squeeze", "pad", "conv", "layer_norm", "clip", "topk", "resize",
          "pool", "shapes", "split", "cumsum")


def body_of(g, given, count, draw):
    """A body that has `given` values, {name: arrays}, and sees some of those outside."""
    body = Graph(None, g.opset, g.sizes, outer=g, prefix=f"{g.name('b')}_")
    body.values = [v for v in g.values if g.chance(0.5)]
    own = [body.add(name, arrays) for name, arrays in given]
    for _ in range(count):
        draw(body, SIMPLE)
    return body, own


def finish(body, inputs, results, name):
    def info(value, keep):
        return helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(value.dtype),
                                             [None] * value.rank if keep else None)
    nodes = [node for node, _, _ in body.nodes]
    return helper.make_graph(nodes, name, [info(v, True) for v in inputs], [info(v, True) for v in results],
                             initializer=body.initializers)


def made_in(body, value):
    """The value, or a copy of it if it comes from outside."""
    if any(value is v for _, _, made in body.nodes for v in made):
        return value
    return body.value("Identity", [value])


@op(weight=2)
def if_(g):
    from draw import draw_node
    if g.outer is not None and g.chance(0.7):
        return
    kind = g.one(["input", "input", "constant", "data"])
    if kind == "data":
        x = g.pick([F32], low=1)
        total = g.node("ReduceMax", [x], keepdims=0)
        condition = g.node("Greater", [total[0], g.constant(np.float32(0.5))]) if total else None
        condition = condition and condition[0]
    else:
        condition = g.fresh(BOOL, [], constant=kind == "constant")
    if condition is None:
        return
    bodies = [body_of(g, [], g.whole(1, 3), draw_node)[0] for _ in range(2)]
    pairs = [(a, b) for a in bodies[0].values for b in bodies[1].values if a.dtype == b.dtype and a.rank == b.rank]
    same = [(a, b) for a, b in pairs if a.shapes == b.shapes] or pairs
    if not same:
        return
    chosen = g.some(same, 1, 2)
    results = [[made_in(body, pair[i]) for pair in chosen] for i, body in enumerate(bodies)]
    if any(len({v.name for v in row}) < len(row) for row in results):
        return
    graphs = [finish(body, [], row, word) for body, row, word in zip(bodies, results, ("then", "otherwise"))]
    node = helper.make_node("If", [condition.name], [g.name() for _ in chosen], then_branch=graphs[0],
                            else_branch=graphs[1])
    add(g, node, bodies)


def add(g, node, bodies):
    try:
        results = g.compute(node)
    except KeyError:
        return
    if results is None:
        return
    inner = [v for body in bodies for _, _, made in body.nodes for v in made]
    collects = node.op_type == "Loop" and len(node.output) > len(node.input) - 2
    for i, value in enumerate(g.join(node, results, False)):
        value.exact = value.exact and all(v.exact for v in inner)
        value.coarse = value.coarse or any(v.coarse for v in inner)
        # Collected in no trips: nobody says what its other extents are.
        value.vague = collects and i >= len(node.input) - 2 and any(a.shape[0] == 0 for a in value.arrays)


def carried(body, value):
    """A value of the body that can be the next one of a carried value."""
    fits = [v for v in body.values if v.dtype == value.dtype and v.shapes == value.shapes and v is not value
            and not v.wild()]
    mine = [v for v in fits if any(v is m for _, _, made in body.nodes for m in made)]
    if mine:
        return body.one(mine)
    if value.dtype == BOOL:
        made = body.node("Not", [value])
    else:
        made = body.node("Add", [value, body.one(fits) if fits else value])
    return made[0] if made else None


@op(weight=2)
def loop(g):
    from draw import draw_node
    if g.outer is not None and g.chance(0.8):
        return
    trips = g.one([0, 1, 2, 3, 5, 40])
    starts = [g.pick(low=0, high=3) for _ in range(g.whole(0, 2))]
    given = [(g.name("i"), [np.int64(0).reshape(())] * len(g.sizes)), (g.name("k"), [np.array(True)] * len(g.sizes))]
    given += [(g.name("s"), v.arrays) for v in starts]
    body, own = body_of(g, given, g.whole(1, 3), draw_node)
    nexts = [carried(body, v) for v in own[2:]]
    if None in nexts:
        return
    if g.chance(0.3) and not g.chance(0.0):
        go = body.node("Less", [own[0], body.constant(np.int64(g.whole(0, 4)))])
    else:
        go = [body.value("Identity", [own[1]])]
    if go is None:
        return
    fits = [v for _, _, made in body.nodes for v in made if max(a.size for a in v.arrays) < 500]
    scans = g.some(fits, 0, 2)
    results = [go[0], *nexts, *[body.value("Identity", [v]) for v in scans]]
    results = [made_in(body, v) for v in results]
    if len({v.name for v in results}) < len(results):
        return
    graph = finish(body, own, results, "body")
    count = g.constant(np.int64(trips)) if g.chance(0.7) or scans else g.fresh(I64, [], 0, 5, constant=False)
    first = g.one([None, g.constant(np.array(True)), g.fresh(BOOL, [], constant=False)])
    node = helper.make_node("Loop", [count.name, first.name if first else "", *[v.name for v in starts]],
                            [g.name() for _ in results[1:]], body=graph)
    if node.output:
        add(g, node, [body])


@op(weight=2)
def scan(g):
    from draw import draw_node
    if g.opset < 9 or (g.outer is not None and g.chance(0.8)):
        return
    length = g.one([1, 2, 3, 5, *g.sizes[0]])
    starts = [g.pick(low=0, high=2) for _ in range(g.whole(0, 2))]
    read, axes = [], []
    for _ in range(g.whole(1, 2)):
        dims = g.dims(0, 2)
        axis = g.whole(0, len(dims))
        read.append(g.fresh(g.one([F32, F32, I64]), dims[:axis] + [length] + dims[axis:], constant=False))
        axes.append(axis)
    if any(v.empty() for v in read):
        return
    given = [(g.name("s"), v.arrays) for v in starts]
    given += [(g.name("e"), [np.take(a, 0, axis) for a in v.arrays]) for v, axis in zip(read, axes)]
    body, own = body_of(g, given, g.whole(1, 3), draw_node)
    nexts = [carried(body, v) for v in own[:len(starts)]]
    if None in nexts:
        return
    fits = [v for _, _, made in body.nodes for v in made if max(a.size for a in v.arrays) < 500]
    scans = g.some(fits, 0 if nexts else 1, 2)
    results = [made_in(body, v) for v in [*nexts, *[body.value("Identity", [v]) for v in scans]]]
    if not results or len({v.name for v in results}) < len(results):
        return
    attributes = {"body": finish(body, own, results, "body"), "num_scan_inputs": len(read)}
    if any(axes) or g.chance(0.3):
        attributes["scan_input_axes"] = [a - v.rank if g.chance(0.3) else a for a, v in zip(axes, read)]
    if g.chance(0.3):
        attributes["scan_input_directions"] = [g.whole(0, 1) for _ in read]
    if scans and g.chance(0.3):
        attributes["scan_output_directions"] = [g.whole(0, 1) for _ in scans]
    if scans and g.chance(0.3):
        attributes["scan_output_axes"] = [g.whole(0, v.rank) for v in scans]
    node = helper.make_node("Scan", [v.name for v in [*starts, *read]], [g.name() for _ in results], **attributes)
    add(g, node, [body])

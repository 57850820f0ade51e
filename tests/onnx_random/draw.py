# SPDX-License-Identifier: Apache-2.0
"""From a seed to a model: python3 draw.py SEED [--symbolic] prints it."""
import onnx
from onnx import helper

import ops_control  # noqa: F401 each registers what it draws
import ops_elementwise  # noqa: F401
import ops_movement  # noqa: F401
import ops_product  # noqa: F401
import ops_reduce  # noqa: F401
import ops_window  # noqa: F401
from graph import Graph
from reference import Refused
from registry import DRAWERS

OPSETS = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 23, 23, 21, 18, 17, 13]
SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 17, 20, 31, 33]


def draw_node(g, names=None):
    """One op, or none where what was drawn is no legal node."""
    rows = [(f, w) for name, (f, w) in DRAWERS.items() if names is None or name in names]
    function = g.random.choices([f for f, _ in rows], [w for _, w in rows])[0]
    before = len(g.nodes)
    for _ in range(3):
        try:
            function(g)
        except Refused:
            pass
        except onnx.defs.SchemaError:
            pass
        if len(g.nodes) > before:
            return


def draw_sizes(g_random):
    """Symbols with a number for each trial, no two alike."""
    count = g_random.randint(1, 3)
    low = 0 if g_random.random() < 0.35 else 1
    names = ["N", "M", "L"][:count]
    while True:
        sizes = [{n: g_random.choice([s for s in SIZES if s >= low]) for n in names} for _ in range(4)]
        if all(len({s[n] for s in sizes}) >= 3 for n in names) and \
                len({tuple(s[n] for s in sizes) for n in names}) == count:
            return sizes


def draw_graph(seed, symbolic, only=None):
    import random
    chance = random.Random(f"{seed} {symbolic}")
    opset = chance.choice(OPSETS)
    sizes = draw_sizes(chance) if symbolic else [{}]
    g = Graph(seed * 2 + symbolic, opset, sizes)
    for _ in range(chance.choice([1, 2, 3, 4, 5, 6, 8, 10, 14])):
        draw_node(g, only)
    return g


def live(nodes, outputs):
    """Those that the outputs need, in order."""
    wanted, kept = {v.name for v in outputs}, []
    for node, operands, made in reversed(nodes):
        if any(v.name in wanted for v in made):
            kept.append((node, operands, made))
            wanted |= {v.name for v in operands}
    return kept[::-1], wanted


def choose_outputs(g):
    made = [v for _, _, values in g.nodes for v in values if not v.constant]
    outputs = [v for v in made if v.uses == 0 or g.chance(0.12)]
    return outputs or made[-1:]


def model_of(g, outputs, nodes=None, inputs=None, initializers=None):
    """The model with just what its outputs need, and its inputs' names."""
    nodes, wanted = live(g.nodes if nodes is None else nodes, outputs)
    inputs = [i for i in (g.inputs if inputs is None else inputs) if i[0] in wanted]
    initializers = [i for i in (g.initializers if initializers is None else initializers) if i.name in wanted]
    graph = helper.make_graph(
        [node for node, _, _ in nodes], "g",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), dims) for name, dtype,
         dims in inputs],
        [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.dtype), [None] * v.rank)
         for v in outputs],
        initializer=initializers)
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", g.opset)])
    return model, [name for name, _, _ in inputs]


if __name__ == "__main__":
    import sys
    drawn = draw_graph(int(sys.argv[1]), "--symbolic" in sys.argv)
    print(drawn.sizes)
    print(onnx.printer.to_text(model_of(drawn, choose_outputs(drawn))[0]) if drawn.nodes else "nothing")
    for name, reasons in drawn.refused.items():
        print("refused:", name, len(reasons), reasons[0][:200])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs by which choices of layouts are judged (bench/layouts.py --choices), as weft text.

    python3 bench/layout_graphs.py FOLDER [SET...]

    cases    those of graphs/layouts.weft, each of which was stored badly once
    gqa      attention in which groups of queries share keys and values: 14 heads to 2, 32 to 8, batches of 1 to 8
    swin     attention in windows of 7 by 7 pixels, shifted and not, four sizes
    random   drawn at random: pictures and sequences through convolutions, products, views, reductions; random:101 are
             the next hundred

Each is written to a file of its own; random ones are the same whenever and wherever they are drawn.
"""
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def text_of(shape, layout=None):
    return "f32[" + ",".join(map(str, shape)) + "]" + (layout or "")


class Graph:
    """Lines of a graph in the making; values are (name, shape)."""

    def __init__(self, name):
        self.name, self.params, self.lines, self.count = name, [], [], 0

    def param(self, shape, layout=None):
        name = f"p{len(self.params)}"
        self.params.append(f"%{name}: {text_of(shape, layout)}")
        return name, tuple(shape)

    def add(self, op, operands, shape, attributes="", layout=None):
        self.count += 1
        name = f"v{self.count}"
        words = ", ".join(f"%{x[0]}" for x in operands)
        self.lines.append(f"  %{name}: {text_of(shape, layout)} = {' '.join(filter(None, (op, words, attributes)))}")
        return name, tuple(shape)

    def weight(self, shape, scale=0.05):
        return self.add("const", [], shape, f"random={self.count + 1} scale={scale}")

    def reshape(self, x, shape):
        return self.add("reshape", [x], shape)

    def transpose(self, x, perm):
        return self.add("transpose", [x], [x[1][i] for i in perm], f"perm=[{' '.join(map(str, perm))}]")

    def bcast(self, x, shape, dims):
        return self.add("bcast", [x], shape, f"dims=[{' '.join(map(str, dims))}]")

    def matmul(self, a, b, turned=False):
        columns = b[1][-2] if turned else b[1][-1]
        return self.add("matmul", [a, b], a[1][:-1] + (columns,), "trans_b=1" if turned else "")

    def linear(self, x, width):
        rows = 1
        for extent in x[1][:-1]:
            rows *= extent
        flat = self.reshape(x, (rows, x[1][-1])) if len(x[1]) > 2 else x
        y = self.matmul(flat, self.weight((x[1][-1], width)))
        return self.reshape(y, x[1][:-1] + (width,)) if len(x[1]) > 2 else y

    def slice(self, x, axis, start, end):
        begin = [start if i == axis else 0 for i in range(len(x[1]))]
        stop = [end if i == axis else e for i, e in enumerate(x[1])]
        shape = [b - a for a, b in zip(begin, stop)]
        return self.add("slice", [x], shape,
                        f"start=[{' '.join(map(str, begin))}] end=[{' '.join(map(str, stop))}]")

    def concat(self, parts, axis):
        shape = list(parts[0][1])
        shape[axis] = sum(p[1][axis] for p in parts)
        return self.add("concat", parts, shape, f"axis={axis}")

    def roll(self, x, axis, by):
        return self.concat([self.slice(x, axis, by, x[1][axis]), self.slice(x, axis, 0, by)], axis)

    def text(self, results, layouts=None):
        for i, x in enumerate(results):
            if layouts and layouts[i] is not None:
                at = next(k for k, line in enumerate(self.lines) if line.startswith(f"  %{x[0]}:"))
                self.lines[at] = self.lines[at].replace("] = ", "]" + layouts[i] + " = ", 1)
        return (f"weft 1\ngraph @{self.name}({', '.join(self.params)}) {{\n" + "\n".join(self.lines) +
                f"\n  return {', '.join('%' + x[0] for x in results)}\n}}\n")


# --- cases ------------------------------------------------------------------------------------------------------------


def cases():
    with open(os.path.join(HERE, "graphs", "layouts.weft"), encoding="utf-8") as file:
        text = file.read()
    for graph in re.findall(r"^graph @.*?^}", text, re.M | re.S):
        yield re.match(r"graph @(\w+)", graph)[1], "weft 1\n" + graph + "\n"


# --- attention --------------------------------------------------------------------------------------------------------


def attention(g, q, k, v):
    """Of [batches, heads, rows, width]."""
    scores = g.matmul(q, k, turned=True)
    scale = g.add("const", [], scores[1], "value=0.125")
    weights = g.add("softmax", [g.add("mul", [scores, scale], scores[1])], scores[1], "axis=3")
    return g.matmul(weights, v)


def gqa():
    for heads, shared, width in ((14, 2, 64), (32, 8, 64)):
        for batch in range(1, 9):
            rows = 64
            g = Graph(f"gqa_{heads}_{shared}_b{batch}")
            x = g.param((batch, rows, heads * width))

            def project(count):
                y = g.reshape(g.linear(x, count * width), (batch, rows, count, width))
                return g.transpose(y, (0, 2, 1, 3))

            def repeat(y):
                group = heads // shared
                e = g.bcast(y, (batch, shared, group, rows, width), (0, 1, 3, 4))
                return g.reshape(e, (batch, heads, rows, width))

            y = attention(g, project(heads), repeat(project(shared)), repeat(project(shared)))
            y = g.reshape(g.transpose(y, (0, 2, 1, 3)), (batch, rows, heads * width))
            yield g.name, g.text([g.linear(y, heads * width)])


def swin():
    for side, channels in ((56, 96), (28, 192), (14, 384), (7, 768)):
        for batch in (1, 2):
            for shift in ((0, 3) if side > 7 else (0,)):
                g = Graph(f"swin_{side}_b{batch}" + ("_shifted" if shift else ""))
                x = y = g.param((batch, side, side, channels))
                for axis in ((1, 2) if shift else ()):
                    y = g.roll(y, axis, shift)
                count, heads = side // 7, channels // 32
                y = g.reshape(y, (batch, count, 7, count, 7, channels))
                y = g.reshape(g.transpose(y, (0, 1, 3, 2, 4, 5)), (batch * count * count, 49, channels))
                parts = g.transpose(g.reshape(g.linear(y, 3 * channels), (y[1][0], 49, 3, heads, 32)), (2, 0, 3, 1, 4))
                q, k, v = (g.reshape(g.slice(parts, 0, i, i + 1), (y[1][0], heads, 49, 32)) for i in range(3))
                y = g.transpose(attention(g, q, k, v), (0, 2, 1, 3))
                y = g.linear(g.reshape(y, (batch * count * count, 49, channels)), channels)
                y = g.reshape(y, (batch, count, count, 7, 7, channels))
                y = g.reshape(g.transpose(y, (0, 1, 3, 2, 4, 5)), (batch, side, side, channels))
                for axis in ((1, 2) if shift else ()):
                    y = g.roll(y, axis, side - shift)
                yield g.name, g.text([g.add("add", [x, y], x[1])])


# --- at random --------------------------------------------------------------------------------------------------------

MOST = 1 << 21  # elements of a value


def draw_picture(draw, g):
    """A network over [n, c, h, w]; its end."""
    n, c, side = draw.choice((1, 1, 2, 4)), draw.choice((3, 8, 16, 32, 64)), draw.choice((14, 28, 56))
    x = g.param((n, c, side, side), draw.choice((None, None, "{0 2 3 1}")))
    seen = [x]
    for _ in range(draw.randint(3, 10)):
        kind = draw.choice(("conv", "conv", "conv1", "depth", "pool", "relu", "relu", "add", "concat", "bias", "norm",
                            "turn", "resize", "pad", "slice", "gate", "up"))
        n, c, h, w = x[1]
        if kind in ("conv", "conv1"):
            taps, out = (3, draw.choice((3, 8, 16, 32, 64))) if kind == "conv" else (1, draw.choice((16, 32, 64, 128)))
            pad = " ".join([str(taps // 2)] * 4)
            x = g.add("conv", [x, g.weight((out, c, taps, taps))], (n, out, h, w), f"pad=[{pad}]")
        elif kind == "depth" and c >= 8:
            x = g.add("conv", [x, g.weight((c, 1, 3, 3))], x[1], f"groups={c} pad=[1 1 1 1]")
        elif kind == "pool" and h >= 14:
            x = g.add(draw.choice(("max_pool", "mean_pool")), [x], (n, c, h // 2, w // 2), "kernel=[2 2] stride=[2 2]")
        elif kind == "relu":
            x = g.add(draw.choice(("relu", "sigmoid", "tanh", "abs")), [x], x[1])
        elif kind == "add":
            same = [s for s in seen if s[1] == x[1]]
            x = g.add(draw.choice(("add", "mul", "max")), [x, draw.choice(same or [x])], x[1])
        elif kind == "concat":
            same = [s for s in seen if s[1][0] == n and s[1][2:] == x[1][2:] and s[1][1] + c <= 256]
            x = g.concat([x, draw.choice(same)], 1) if same else x
        elif kind == "bias":
            b = g.bcast(g.weight((c,)), x[1], (1,))
            x = g.add("add", [x, b], x[1])
        elif kind == "norm":
            m = g.add("mean", [x], (n, h, w), "axes=[1]")
            x = g.add("sub", [x, g.bcast(m, x[1], (0, 2, 3))], x[1])
        elif kind == "turn":
            y = g.transpose(x, (0, 2, 3, 1))
            y = g.add("exp", [g.add("neg", [g.add("abs", [y], y[1])], y[1])], y[1])
            x = g.transpose(y, (0, 3, 1, 2))
        elif kind == "resize" and h <= 28:
            x = g.add("resize", [x], (n, c, 2 * h, 2 * w), "form=nearest coordinates=asymmetric nearest=floor")
        elif kind == "pad" and c in (3, 8):
            zero = g.add("const", [], (), "value=0")
            x = g.add("pad", [x, zero], (n, c + 5, h, w), "pad=[0 0 0 0 0 5 0 0]")
        elif kind == "slice" and c >= 16:
            x = g.slice(x, 1, draw.choice((0, c // 4)), c - c // 4)
        elif kind == "gate":
            m = g.add("mean", [x], (n, c), "axes=[2 3]")
            s = g.add("sigmoid", [g.linear(m, c)], (n, c))
            x = g.add("mul", [x, g.bcast(s, x[1], (0, 1))], x[1])
        elif kind == "up" and h <= 28 and c >= 8:
            out = draw.choice((3, 16))
            x = g.add("conv_transpose", [x, g.weight((c, out, 2, 2))], (n, out, 2 * h, 2 * w), "stride=[2 2]")
        seen.append(x)
    return x


def draw_sequence(draw, g):
    """A network over [n, rows, width] with heads; its end."""
    n, rows, heads = draw.choice((1, 2, 4)), draw.choice((1, 8, 49, 64, 128)), draw.choice((4, 8, 12))
    width = heads * draw.choice((16, 32, 64))
    x = g.param((n, rows, width), draw.choice((None, None, None, "{1 0 2}", "{0 2 1}")))
    for _ in range(draw.randint(2, 5)):
        kind = draw.choice(("linear", "heads", "mlp", "mix", "norm", "turned", "scan", "add"))
        n, rows, width = x[1]
        if kind == "linear":
            x = g.linear(x, width)
        elif kind == "mlp":
            x = g.linear(g.add("relu", [y := g.linear(x, 2 * width)], y[1]), width)
        elif kind == "heads" and width % heads == 0:
            each = width // heads
            y = g.transpose(g.reshape(x, (n, rows, heads, each)), (0, 2, 1, 3))
            y = g.transpose(attention(g, y, y, g.add("tanh", [y], y[1])), (0, 2, 1, 3))
            x = g.reshape(y, (n, rows, width))
        elif kind == "mix":
            y = g.transpose(x, (0, 2, 1))
            y = g.matmul(y, g.bcast(g.weight((rows, rows)), (n, rows, rows), (1, 2)))
            x = g.transpose(y, (0, 2, 1))
        elif kind == "norm":
            axis = draw.choice((1, 2))
            m = g.add("mean", [x], (n, width) if axis == 1 else (n, rows), f"axes=[{axis}]")
            x = g.add("sub", [x, g.bcast(m, x[1], (0, 3 - axis))], x[1])
        elif kind == "turned":
            y = g.transpose(x, (1, 0, 2))
            y = g.add("add", [y, g.bcast(g.weight((width,)), y[1], (2,))], y[1])
            x = g.transpose(y, (1, 0, 2))
        elif kind == "scan":
            x = g.add("cumsum", [g.add("tanh", [x], x[1])], x[1], f"axis={draw.choice((1, 2))}")
        elif kind == "add":
            x = g.add("add", [x, g.add("sigmoid", [x], x[1])], x[1])
    return x


def layouts_of(draw, rank):
    turned = "{0 2 3 1}" if rank == 4 else "{0 2 1}"
    return draw.choice((None, None, "{?}", turned))


def drawn(count=100, seed=1):
    for number in range(seed, seed + count):
        draw = random.Random(number)
        g = Graph(f"random_{number}")
        x = draw_picture(draw, g) if draw.random() < 0.6 else draw_sequence(draw, g)
        if not g.lines or not any(f"%{x[0]}:" in line for line in g.lines):
            x = g.add("relu", [x], x[1])
        x = g.add("abs", [x], x[1])
        yield g.name, g.text([x], [layouts_of(draw, len(x[1]))])


SETS = {"cases": cases, "gqa": gqa, "swin": swin, "random": drawn}


def graphs_of(name):
    """Of a set; of "random:401" the hundred from number 401 on."""
    kind, _, seed = name.partition(":")
    return drawn(seed=int(seed)) if seed else SETS[kind]()


def is_set(name):
    kind, _, seed = name.partition(":")
    return kind in SETS and (not seed or (kind == "random" and seed.isdigit()))


def write(folder, names):
    """Paths of the files, by set."""
    os.makedirs(folder, exist_ok=True)
    paths = {}
    for name in names:
        paths[name] = []
        for graph, text in graphs_of(name):
            paths[name].append(os.path.join(folder, f"{graph}.weft"))
            with open(paths[name][-1], "w", encoding="utf-8") as file:
                file.write(text)
    return paths


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all(map(is_set, sys.argv[2:])):
        sys.exit(__doc__)
    for found in write(sys.argv[1], sys.argv[2:] or list(SETS)).values():
        print("\n".join(found))

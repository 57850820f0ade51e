# SPDX-License-Identifier: Apache-2.0
"""Reads shape files (shapes/README.md), as check/speed_shapes.c does, which is the one that checks them."""

import sys
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Case:
    group: str
    family: str
    name: str
    keys: dict = field(default_factory=dict)

    def number(self, key, otherwise=0):
        return self.keys.get(key, [otherwise])[0]

    def numbers(self, key, count, otherwise=0):
        """One number stands for all axes."""
        given = self.keys.get(key, [otherwise])
        return given * count if len(given) == 1 else given

    def word(self, key, otherwise=""):
        return self.keys.get(key, otherwise)

    def flag(self, key):
        return key in self.keys


WORDS = ("b", "w", "kind", "layout", "as", "relu", "front")


def read_value(key, text):
    return text if key in WORDS else [int(number) for number in text.split("x")]


def read_shapes(path):
    group = ""
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "group":
            group = words[1]
            continue
        case = Case(group, words[0], words[1])
        for word in words[2:]:
            key, sign, value = word.partition("=")
            try:
                case.keys[key] = read_value(key, value) if sign else True
            except ValueError:
                raise SystemExit(f"{path}:{number}: {word}") from None
        yield case


@dataclass
class Window:
    """A convolution or pooling, with the defaults filled in."""

    case: Case

    def __post_init__(self):
        case = self.case
        self.inside = case.keys["in"]
        self.axes = len(self.inside)
        self.n, self.c = case.number("n", 1), case.number("c")
        self.o, self.groups = case.number("o", self.c), case.number("groups", 1)
        self.kernel = case.numbers("k", self.axes)
        self.stride = case.numbers("stride", self.axes, 1)
        self.pad = case.numbers("pad", self.axes, 0)
        self.dilation = case.numbers("dilation", self.axes, 1)
        self.transposed = case.flag("transposed")
        self.last = case.word("layout", "nchw") == "nhwc"
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation)]
        if self.transposed:
            self.out = [(i - 1) * s + r - 2 * p for i, s, r, p in zip(self.inside, self.stride, reach, self.pad)]
        else:
            self.out = [(i + 2 * p - r) // s + 1 for i, s, r, p in zip(self.inside, self.stride, reach, self.pad)]
        outer, inner = (self.c, self.o) if self.transposed else (self.o, self.c)
        self.weights = [outer, inner // self.groups, *self.kernel]


def gemm_shapes(case):
    """Of A and B as they lie, and of C."""
    m, k, n = case.number("m"), case.number("k"), case.number("n")
    batch = [case.number("batch")] if case.number("batch", 1) > 1 else []
    a = batch + ([k, m] if case.flag("ta") else [m, k])
    b = batch + ([n, k] if case.flag("tb") else [k, n])
    return a, b, batch + [m, n]


def operands(case):
    """Arrays in logical order (channels second), from fixed numbers: everybody computes the same. The second is the
    constant one, where there is one."""
    import numpy

    random = numpy.random.default_rng(7)

    def uniform(shape):
        return (random.random(shape, dtype=numpy.float32) * 2 - 1).astype(numpy.float32)

    if case.family == "gemm":
        a, b, _ = gemm_shapes(case)
        return [uniform(a), uniform(b)]
    if case.family == "relayout":
        dtype = {1: numpy.int8, 2: numpy.float16, 4: numpy.float32, 8: numpy.float64}[case.number("bytes", 4)]
        return [(uniform(case.keys["shape"]) * 100).astype(dtype)]
    window = Window(case)
    x = uniform([window.n, window.c, *window.inside])
    return [x, uniform(window.weights)] if case.family == "conv" else [x]


def is_constant(case):
    """Is the second operand a constant?"""
    if case.family == "gemm":
        return case.word("b", "plain") == "const"
    return case.family == "conv" and case.word("w", "const") == "const"


def first_axis_last(axes):
    """Logical axes of a channels-last array from the outermost to the innermost: 0, axes…, 1."""
    return [0, *range(2, 2 + axes), 1]


if __name__ == "__main__":  # names what it read, a case a line
    for file in sys.argv[1:]:
        for one in read_shapes(file):
            print(one.name)

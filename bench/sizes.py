#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One plan of open sizes beside plans that are made for each size, in one process, in turns.

usage: sizes.py [--library build/libweft.so] [--weft build/weft] [--threads N] [--pairs N] [--fix NAME=N]
                MODEL.onnx NAME=N,N,…

One plan is compiled of the model as it is; for each size of the symbol another one of the same graph with the size in
the symbol's place (`weft opt --passes=canonicalize` prints the text). Both run in turns, as many runs at a time as take
100 ms. A line a size: the time of a run (medians), fixed / open as a geometric mean of all pairs with its 95 %
interval. Above 1 the open plan is faster. Inputs: whole numbers are 1, others random. Needs numpy."""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

import numpy

from pairs import BATCH_S, Library, interval

DTYPES = {"f32": numpy.float32, "f64": numpy.float64, "i64": numpy.int64, "i32": numpy.int32, "bool": numpy.bool_}


def fixed_text(text, sizes):
    """The graph with numbers instead of symbols."""
    head, brackets, rest = re.match(r"(weft 1\ngraph @\S+?)(<[^>]*>)(\(.*)", text, re.S).groups()
    open_symbols = [s for s in brackets[1:-1].split(", ") if re.split("[=]", s)[0] not in sizes]
    for name, size in sizes.items():
        rest = re.sub(rf"(?<![\w.%@\"/-]){re.escape(name)}(?![\w.\"/-])", str(size), rest)
    return head + (f"<{', '.join(open_symbols)}>" if open_symbols else "") + rest


def arrays_of(text):
    params = re.match(r"weft 1\ngraph @[^(]*\((.*?)\) {", text, re.S).group(1)
    rng = numpy.random.default_rng(1)
    for dtype, extents in re.findall(r"%\S+: (\w+)\[([^\]]*)\]", params):
        shape = [eval(e, {}) for e in extents.split(",")] if extents else []  # products of numbers
        kind = DTYPES[dtype]
        yield (rng.standard_normal(shape).astype(kind) if numpy.issubdtype(kind, numpy.floating)
               else numpy.ones(shape, kind))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/libweft.so")
    parser.add_argument("--weft", default="build/weft")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--fix", action="append", default=[], metavar="NAME=N")
    parser.add_argument("model")
    parser.add_argument("sizes", metavar="NAME=N,N,…")
    options = parser.parse_args()
    name, sizes = options.sizes.split("=")
    fixed = {part.split("=")[0]: int(part.split("=")[1]) for part in options.fix}
    library = Library(options.library, options.threads, 0)
    text = subprocess.run([options.weft, "opt", os.path.abspath(options.model), "--passes=canonicalize"],
                          capture_output=True, text=True, check=True).stdout
    with tempfile.NamedTemporaryFile("w", suffix=".weft") as file:
        file.write(text)
        file.flush()
        open_graph = library.load(file.name)
    open_plan, _ = library.compile(open_graph)
    print(f"| {name} | open ms | fixed ms | fixed / open | 95 % |\n|---|---|---|---|---|")
    for size in map(int, sizes.split(",")):
        own = fixed_text(text, {name: size, **fixed})
        arrays = list(arrays_of(own))
        with tempfile.NamedTemporaryFile("w", suffix=".weft") as file:
            file.write(own)
            file.flush()
            graph = library.load(file.name)
        plan, _ = library.compile(graph)
        executions = [library.execution(p, arrays) for p in (open_plan, plan)]
        for p, execution in zip((open_plan, plan), executions):
            library.time(execution, 2)
            library.wait(p)
            library.time(execution, 2)
        a, b = (library.outputs(p, e)[0] for p, e in zip((open_plan, plan), executions))
        if a is not None and not numpy.allclose(a, b, rtol=1e-3, atol=1e-3 * max(1.0, numpy.abs(a).max())):
            sys.exit(f"{name}={size}: outputs differ by {numpy.abs(a - b).max():.3g}")
        runs = max(1, int(BATCH_S / library.time(executions[1], 2)))
        times = [[], []]
        for pair in range(options.pairs):
            for side in (0, 1) if pair % 2 == 0 else (1, 0):
                times[side].append(library.time(executions[side], runs))
        mean, low, high = interval([f / o for o, f in zip(*times)])
        print(f"| {size} | {1e3 * statistics.median(times[0]):.3f} | {1e3 * statistics.median(times[1]):.3f} | "
              f"{mean:.3f} | {low:.3f}-{high:.3f} |", flush=True)
        for execution in executions:
            library.lib.weft_execution_destroy(execution)
        library.lib.weft_plan_destroy(plan)
        library.lib.weft_graph_destroy(graph)


if __name__ == "__main__":
    main()

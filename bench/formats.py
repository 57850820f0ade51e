#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it is worth that weft chooses how results lie: bench/graphs/pointwise.weft in turns, its results in whatever
order weft chooses, and promised row-major, beside the machine's bandwidth.

    chrt -f 10 python3 bench/formats.py [--threads N] [--rounds N] [--library build/libweft.so]

A line a type: kernels of the open plan, the time of a run (medians), row-major over open, and the probe of
bench/figures_limit.c over open: two operands read and one result written, with streaming stores or plain ones,
whichever is faster; its time is scaled to the bytes that the graph has to read and write, since its two results are of
two types.
Needs numpy and a C compiler."""
import argparse
import ctypes
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy

from figures import build_limit
from pairs import Library

FOLDER = Path(__file__).resolve().parent
SHAPE = 32, 1024, 25, 25


def channels_last(shape, kind, rng):
    """Values that lie channels-last, seen as NCHW."""
    n, c, h, w = shape
    return rng.standard_normal((n, h, w, c)).astype(kind).transpose(0, 3, 1, 2)


def aligned(floats):
    whole = numpy.ones(floats + 16, numpy.float32)
    return whole[(-whole.ctypes.data % 64) // 4:][:floats]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--library", default=str(FOLDER.parent / "build" / "libweft.so"))
    options = parser.parse_args()
    library = Library(options.library, options.threads, 0)
    weft = str(Path(options.library).parent / "tools" / "weft")
    head, *graphs = re.split(r"(?m)^(?=graph )", (FOLDER / "graphs" / "pointwise.weft").read_text())
    print("| type | kernels | open ms | row-major ms | row-major / open | of limit |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        probe = ctypes.CDLL(build_limit(folder))
        probe.limit.restype = ctypes.c_float
        for number, (kind, width) in enumerate((("float16", 2), ("float32", 4))):
            rng = numpy.random.default_rng(1)
            arrays = [channels_last(s, kind, rng) for s in (SHAPE, (1, SHAPE[1], 1, 1), (1, SHAPE[1], 1, 1), SHAPE)]
            executions, kernels = [], 0
            for variant in range(2):
                path = Path(folder, f"{number}{variant}.weft")
                path.write_text(head + graphs[2 * number + variant])
                if variant == 0:
                    stats = subprocess.run([weft, "opt", str(path), "--print=stats"], capture_output=True, text=True,
                                           check=True).stdout
                    kernels = re.search(r"  all: kernels=(\d+)", stats).group(1)
                plan, _ = library.compile(library.load(str(path)))
                executions.append(library.execution(plan, arrays))
                library.wait(plan)
            elements = int(numpy.prod(SHAPE))
            moved = elements * (2 * width + 6)
            floats = elements * width // 4 // 16 * 16
            sides, out = [aligned(floats) for _ in range(2)], aligned(floats)
            pointers = (ctypes.c_void_p * 3)(*[a.ctypes.data for a in sides])
            times = {"open": [], "row": [], "limit": []}
            for turn in range(options.rounds + 1):
                now = {"open": library.time(executions[0], 2), "row": library.time(executions[1], 2)}
                spent = []
                for way in (0, 1):
                    begin = time.perf_counter()
                    probe.limit(pointers, 2, ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(floats), way,
                                options.threads)
                    spent.append(time.perf_counter() - begin)
                now["limit"] = min(spent) * moved / (12 * floats)
                for name in times:
                    if turn:  # the first one warms up
                        times[name].append(now[name])
            ratio = {name: statistics.median(t / o for t, o in zip(times[name], times["open"])) for name in times}
            print(f"| {kind} | {kernels} | {1e3 * statistics.median(times['open']):.2f} | "
                  f"{1e3 * statistics.median(times['row']):.2f} | {ratio['row']:.2f} | {ratio['limit']:.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()

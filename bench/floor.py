#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far models are from what the machine can do: weft, its peers and the machine's limits in short turns.

    python3 bench/floor.py [--threads 2] [--pairs 15] [--weft build/weft] [--peers NAME,...] LIB.so FOLDER...

A folder holds model.onnx and input_N.npy. The *floor* of a model is the larger one of two times:
- its multiply-adds at the rate of the probe (floor_probe.c), those of Winograd's convolutions counted as the transform
  does them (a 2.25th), without the transforms;
- its weights at the bandwidth of reading memory (figures_limit.c), if they do not fit the last cache.
Elementwise arithmetic, intermediate values and steps count nothing: no runtime reaches the floor. Probes take turns
with the runtimes, as the speed of shared machines changes by the second, and each turn has a floor of its own.

A line a model: floor and times in ms (medians), floor / weft, floor / the fastest peer, fastest peer / weft, and the
most that the last could be, with a weft that reaches the floor. Needs numpy, a C compiler with OpenMP, and the peers.
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import turns

HERE = Path(__file__).resolve().parent
WINOGRAD_2 = 36 / 16  # products of a plain 3x3 convolution for those of Winograd's F(2x2,3x3)
CONTRACTIONS = ("gemm", "conv", "attention", "product", "matmul")
MEMORY_FLOATS = 64 << 20


def build(source, folder):
    """The compiled probe."""
    path = Path(folder) / (source + ".so")
    subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC",
                    str(HERE / (source + ".c")), "-o", path], check=True)
    return ctypes.CDLL(str(path))


def last_cache():
    """Bytes of the largest cache that this machine reports."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    return max((int(path.read_text().strip().rstrip("K")) << 10 for path in sizes), default=32 << 20)


def probe(name, threads):
    """A function that gives operations, or bytes, a second."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "multiply-add":
            library = build("floor_probe", folder)
            library.multiply_add.restype = ctypes.c_double
            library.multiply_add.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.POINTER(ctypes.c_float)]
            total = ctypes.c_float()

            def operations():
                begin = time.perf_counter()
                done = library.multiply_add(2_000_000, threads, ctypes.byref(total))
                return done / (time.perf_counter() - begin)

            return operations
        library = build("figures_limit", folder)
    import numpy

    library.limit.restype = ctypes.c_float
    memory = numpy.ones(MEMORY_FLOATS + 16, dtype=numpy.float32)  # lives as long as the function below
    first = memory.ctypes.data + -memory.ctypes.data % 64
    arrays = (ctypes.c_void_p * 3)(first, first, first)

    def bandwidth():
        begin = time.perf_counter()
        library.limit(arrays, 1, None, ctypes.c_size_t(MEMORY_FLOATS), 2, threads)
        return (memory.nbytes - 64) / (time.perf_counter() - begin)

    return bandwidth


def work(name, folder, threads):
    """In a process of its own: a time a run, or a rate, for each line on standard input."""
    if name in ("multiply-add", "memory"):
        rate = probe(name, threads)
        rate()
        timed = lambda runs: rate()
    else:
        timed = turns.prepare(name, Path(folder), threads)
        timed(3)
    print(json.dumps(timed(1)), flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(int(line))), flush=True)


def count(folder, options):
    """Operations of the model's contractions as its kernels do them, and bytes of its weights."""
    lines = subprocess.run([options.weft, "explain", "--json", "--measure", "--threads", str(options.threads),
                            str(Path(folder) / "model.onnx")], check=True, capture_output=True, text=True).stdout
    operations = 0
    for unit in (json.loads(line) for line in lines.splitlines()):
        if unit["kind"] == "unit" and any(word in unit["kernel"] for word in CONTRACTIONS):
            operations += unit["flops"] / (WINOGRAD_2 if "winograd_2" in unit["kernel"] else 1)
    done = subprocess.run([options.weft, "bench", "--json", "--no-verify", "--seconds", "0.01", "--threads",
                           str(options.threads), str(Path(folder) / "model.onnx")], check=True, capture_output=True,
                          text=True).stdout
    return operations, 1e6 * json.loads(done.splitlines()[-1])["weights_mb"]


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--weft", default="build/weft", help="the command, which counts operations")
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("library")
    parser.add_argument("folder", nargs="+")
    options = parser.parse_args()
    peers = options.peers.split(",")
    names = ["multiply-add", "memory", options.library] + peers
    print("| model | floor ms | bound by | weft |" + "".join(f" {peer} |" for peer in peers)
          + " floor / weft | floor / peer | peer / weft | at most |\n|---|---|---|---|" + "---|" * (len(peers) + 4))
    shares = []
    for folder in options.folder:
        taken = dict(zip(names, turns.measure(names, folder, options, __file__, first=2)))
        operations, weights = count(folder, options)
        weights = weights if weights > last_cache() else 0
        arithmetic = [operations / rate for rate in taken["multiply-add"]]
        memory = [weights / rate for rate in taken["memory"]]
        floor = [max(pair) for pair in zip(arithmetic, memory)]
        best = min(peers, key=lambda peer: statistics.median(taken[peer]))
        ratio = lambda a, b: statistics.median(x / y for x, y in zip(a, b))
        share = (ratio(floor, taken[options.library]), ratio(floor, taken[best]),
                 ratio(taken[best], taken[options.library]), ratio(taken[best], floor))
        shares.append(share)
        times = "".join(f" {1e3 * statistics.median(taken[name]):.2f} |" for name in names[2:])
        bound = "memory" if statistics.median(memory) > statistics.median(arithmetic) else "arithmetic"
        print(f"| {Path(folder).resolve().name} | {1e3 * statistics.median(floor):.2f} | {bound} |{times}"
              + "".join(f" {value:.2f} |" for value in share), flush=True)
    means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*shares)]
    print("| geometric mean | | | |" + " |" * len(peers) + "".join(f" {mean:.2f} |" for mean in means))
    return 0


if __name__ == "__main__":
    sys.exit(main())

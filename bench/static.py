# SPDX-License-Identifier: Apache-2.0
"""Times products and convolutions whose weights are a plain input, a static input, and a constant, by turns.

    WEFT_LIBRARY=build/libweft.so PYTHONPATH=python python bench/static.py [TURNS] [THREADS]

Of each: least and median microseconds of a run; of the static input also of a run behind a refresh."""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

import weft

SHAPES = [(1, 2048, 2048), (64, 1024, 1024), (1, 768, 3072), (512, 768, 768)]
WINDOWS = [(64, 64, 56, 3), (256, 256, 14, 3), (512, 512, 7, 3), (2048, 512, 7, 1)]  # channels, size, window
KINDS = ("input", "static", "constant")


def product(kind: str, rows: int, terms: int, columns: int, context: weft.Context, transposed: bool = False):
    g = weft.Graph(name=kind, context=context)
    rng = np.random.default_rng(7)
    weights = rng.random((columns, terms) if transposed else (terms, columns), np.float32)
    x = g.input("x", "f32", [rows, terms])
    w = g.constant(weights) if kind == "constant" else g.input("w", "f32", weights.shape, static=kind == "static")
    g.returns([g.matmul(x, w, trans_b=int(transposed))])
    return bound(g, weights, rng.random((rows, terms), np.float32), kind)


def convolution(kind: str, given: int, made: int, size: int, window: int, context: weft.Context):
    g = weft.Graph(name=kind, context=context)
    rng = np.random.default_rng(7)
    weights = rng.random((made, given, window, window), np.float32)
    x = g.input("x", "f32", [1, given, size, size])
    w = g.constant(weights) if kind == "constant" else g.input("w", "f32", weights.shape, static=kind == "static")
    g.returns([g.conv(x, w, pad=[window // 2] * 4)])
    return bound(g, weights, rng.random((1, given, size, size), np.float32), kind)


def bound(g: weft.Graph, weights: np.ndarray, x: np.ndarray, kind: str):
    e = g.compile().execution()
    e.bind("x", x)
    if kind != "constant":
        e.bind("w", weights)
    e.run()
    return e


def microseconds(run) -> float:
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e3


def compare(what: str, runners: dict, turns: int) -> None:
    times: dict[str, list[float]] = {kind: [] for kind in (*KINDS, "refreshed")}
    for _ in range(turns):
        for kind, e in runners.items():
            e.run()
            times[kind].append(microseconds(e.run))
        runners["static"].refresh()
        times["refreshed"].append(microseconds(runners["static"].run))
    print(f"{what:34}" + "".join(f"{min(t):10.0f}{statistics.median(t):10.0f}" for t in times.values()))


def main(turns: int = 200, threads: int = 2) -> None:
    context = weft.Context(threads=threads)
    print(f"{'':34}" + "".join(f"{kind:>20}" for kind in (*KINDS, "refreshed")))
    for shape in SHAPES:
        for transposed in (False, True):
            compare(" x ".join(map(str, shape)) + " transposed" * transposed,
                    {kind: product(kind, *shape, context, transposed) for kind in KINDS}, turns)
    for given, made, size, window in WINDOWS:
        compare(f"{window}x{window}, {given} to {made}, {size} x {size}",
                {kind: convolution(kind, given, made, size, window, context) for kind in KINDS}, turns)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Times products whose weights are a plain input, a static input, and a constant, by turns.

    WEFT_LIBRARY=build/libweft.so PYTHONPATH=python python bench/static.py [TURNS] [THREADS]

Of each: least and median microseconds of a run; of the static input also of a run behind a refresh."""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

import weft

SHAPES = [(1, 2048, 2048), (64, 1024, 1024), (1, 768, 3072), (512, 768, 768)]
KINDS = ("input", "static", "constant")


def execution(kind: str, rows: int, terms: int, columns: int, context: weft.Context, transposed: bool = False):
    g = weft.Graph(name=kind, context=context)
    rng = np.random.default_rng(7)
    weights = rng.random((columns, terms) if transposed else (terms, columns), np.float32)
    x = g.input("x", "f32", [rows, terms])
    w = g.constant(weights) if kind == "constant" else g.input("w", "f32", weights.shape, static=kind == "static")
    g.returns([g.matmul(x, w, trans_b=int(transposed))])
    e = g.compile().execution()
    e.bind("x", rng.random((rows, terms), np.float32))
    if kind != "constant":
        e.bind("w", weights)
    e.run()
    return e


def microseconds(run) -> float:
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e3


def main(turns: int = 200, threads: int = 2) -> None:
    context = weft.Context(threads=threads)
    print(f"{'rows x terms x columns':24}{'weights':10}" + "".join(f"{kind:>20}" for kind in (*KINDS, "refreshed")))
    for rows, terms, columns in SHAPES:
        for transposed in (False, True):
            runners = {kind: execution(kind, rows, terms, columns, context, transposed) for kind in KINDS}
            times: dict[str, list[float]] = {kind: [] for kind in (*KINDS, "refreshed")}
            for _ in range(turns):
                for kind, e in runners.items():
                    e.run()
                    times[kind].append(microseconds(e.run))
                runners["static"].refresh()
                times["refreshed"].append(microseconds(runners["static"].run))
            shape = f"{rows} x {terms} x {columns}"
            print(f"{shape:24}{'by rows' if transposed else 'as read':10}" +
                  "".join(f"{min(t):10.0f}{statistics.median(t):10.0f}" for t in times.values()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

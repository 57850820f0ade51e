#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a model's time goes into kernels of one op that a group could have had.

usage: singles.py [--weft PATH] [--threads N] [--turns N] FOLDER...

Each FOLDER holds model.onnx, input_N.npy and output_N.npy. `weft run --kernels` lists the kernels of a run with the
best time of each; of several turns the least counts. A line a model: the sum of all steps, and which share of it goes
into
  op      elementwise ops, reductions, softmaxes by themselves: weft_strip_…, weft_reduce_…, weft_scan_…
  move    copies: relayouts (also those that concats, pads, slices and reshapes end in), gathers, tables, fills
  groups  groups of several nodes
and the largest kernel of `op` and `move`. What is left are contractions, pooling and resizing. Exit status 1 where a
model fails or `op` and `move` together take more than 3 %."""
import argparse
import os
import re
import subprocess
import sys

ROW = re.compile(r"^ *([0-9.]+) +[0-9.]+ % +(\d+)  (weft_\w+)$", re.MULTILINE)
OPS = ("weft_strip_", "weft_reduce_", "weft_scan_", "weft_arg_", "weft_map_", "weft_softmax")
MOVES = ("weft_relayout_", "weft_gather_", "weft_table", "weft_copy_", "weft_fill_", "weft_pad_", "weft_scatter_")
BOUND = 3.0


def kind_of(kernel):
    """Names of groups begin with those of their ops, but have no CPU level behind them."""
    if "__" not in kernel:
        return "groups"
    if kernel.startswith(OPS):
        return "op"
    return "move" if kernel.startswith(MOVES) else "other"


def measure(options, folder):
    """By kernel: the least time of all turns, in ms."""
    best = {}
    for _ in range(options.turns):
        run = subprocess.run([options.weft, "run", os.path.join(folder, "model.onnx"), "--check", folder, "--kernels",
                              "--threads", str(options.threads)], capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(run.stderr.strip() or run.stdout.strip()[-200:])
        for ms, count, kernel in ROW.findall(run.stdout):
            name = f"{kernel} x {count}"
            best[name] = min(float(ms), best.get(name, float("inf")))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/weft")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("folder", nargs="+")
    options = parser.parse_args()
    bad = False
    print("| model | ms | op | move | groups | largest of op and move |\n|---|---|---|---|---|---|")
    for folder in options.folder:
        name = os.path.basename(os.path.normpath(folder))
        try:
            best = measure(options, folder)
        except RuntimeError as error:
            print(f"| {name} | {error} | | | | |")
            bad = True
            continue
        total = sum(best.values())
        share = {"op": 0.0, "move": 0.0, "groups": 0.0, "other": 0.0}
        for kernel, ms in best.items():
            share[kind_of(kernel)] += 100 * ms / total
        single = [(ms, kernel) for kernel, ms in best.items() if kind_of(kernel) in ("op", "move")]
        largest = "{1} ({0:.1f} %)".format(100 * max(single)[0] / total, max(single)[1]) if single else ""
        bad |= share["op"] + share["move"] > BOUND
        print(f"| {name} | {total:.2f} | {share['op']:.1f} % | {share['move']:.1f} % | {share['groups']:.1f} % "
              f"| {largest} |", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds of weft beside onnxruntime and OpenVINO in short turns, for machines whose speed changes by the second.

    python3 bench/turns.py [--threads 2] [--pairs 25] [--peers onnxruntime,openvino] LIB.so[,LIB.so...] FOLDER...

A folder holds model.onnx and input_N.npy. Each runtime has a process for the whole comparison of a model; they take
turns of about 50 ms, one at a time, in one order and then the other, with 15 ms of rest, so that what disturbs one
disturbs all. A line a model: the median and the least time of each, and the median over the turns of the first
library's time over the other's (below 1 the first is faster); then the geometric means. The peer `torch` runs models of
bench/unseen.py, whose folders have their names. Needs numpy and the peers that are named. Nothing is compared but time:
bench/beside_onnxruntime.py compares answers.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import cores
import pairs
import unseen

TURN_S, REST_S, MOST_TRIES = 0.05, 0.015, 4


def prepare(name, folder, threads):
    """A function that gives the seconds of a run, the mean of so many."""
    if name in ("onnxruntime", "openvino", "torch"):
        call = unseen.prepare(name, folder.name, folder, threads)

        def timed(runs):
            begin = time.perf_counter()
            for _ in range(runs):
                call()
            return (time.perf_counter() - begin) / runs

        return timed
    weft, arrays = pairs.Library(name, threads, 0), pairs.load_inputs(folder)
    plan, _ = weft.compile(weft.load(str(folder / "model.onnx")))
    execution = weft.execution(plan, arrays)
    weft.wait(plan)
    return lambda runs, bound=arrays: weft.time(execution, runs)  # the execution reads the arrays


def work(name, folder, threads):
    """In a process of its own: a time for each number of runs that is asked for."""
    timed = prepare(name, Path(folder), threads)
    timed(3)
    print(json.dumps(timed(1)), flush=True)
    for line in sys.stdin:
        timed(1)
        print(json.dumps(timed(int(line))), flush=True)


def measure(names, folder, options, script=__file__, first=0):
    """Seconds a run, by name, one for each turn; what `script --work` gives. Turns take TURN_S of the fastest one from
    the first-th name on. Pairs during which two CPUs were one core are measured again, at most MOST_TRIES times as many
    as are asked for (cores.py)."""
    are_apart = cores.watch() if options.threads > 1 else lambda: True
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    workers = [subprocess.Popen([sys.executable, script, "--work", name, folder, str(options.threads)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
               for name in names]
    once = [json.loads(worker.stdout.readline()) for worker in workers]
    runs = max(1, int(TURN_S / min(once[first:])))
    times, turn, dropped = [], 0, 0
    while len(times) < options.pairs and turn < MOST_TRIES * options.pairs:
        pair, good = [0] * len(names), are_apart()
        for i in range(len(names)) if turn % 2 == 0 else reversed(range(len(names))):
            time.sleep(REST_S)
            print(runs, file=workers[i].stdin, flush=True)
            pair[i] = json.loads(workers[i].stdout.readline())
        good = are_apart() and good
        turn, dropped = turn + 1, dropped + (not good)
        times += [pair] if good else []
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    if dropped:
        print(f"{folder}: {dropped} of {turn} pairs left out, in which both CPUs were one core", file=sys.stderr)
    if not times:
        raise SystemExit(f"{folder}: the two CPUs were one core all the time")
    return [list(turns) for turns in zip(*times)]


def main():
    if sys.argv[1:2] == ["--work"]:
        return work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--peers", default="onnxruntime,openvino")
    parser.add_argument("libraries")
    parser.add_argument("folder", nargs="+")
    options = parser.parse_args()
    names = options.libraries.split(",") + [peer for peer in options.peers.split(",") if peer]
    shown = [os.path.basename(name) for name in names]
    print("| model |" + "".join(f" {name} ms (least) |" for name in shown)
          + "".join(f" {shown[0]} / {name} |" for name in shown[1:]) + "\n|---|" + "---|" * (2 * len(names) - 1))
    ratios = {name: [] for name in names[1:]}
    for folder in options.folder:
        times = measure(names, folder, options)
        line = f"| {os.path.basename(os.path.normpath(folder))} |"
        line += "".join(f" {1e3 * statistics.median(t):.2f} ({1e3 * min(t):.2f}) |" for t in times)
        for name, other in zip(names[1:], times[1:]):
            ratios[name].append(statistics.median(a / b for a, b in zip(times[0], other)))
            line += f" {ratios[name][-1]:.3f} |"
        print(line, flush=True)
    means = (math.exp(statistics.fmean(map(math.log, ratios[name]))) for name in names[1:])
    print("| geometric mean |" + " |" * len(names) + "".join(f" {mean:.3f} |" for mean in means))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds of weft beside onnxruntime and OpenVINO in short turns, for machines whose speed changes by the second.

    python3 bench/turns.py [--threads 2] [--pairs 25] [--peers onnxruntime,openvino] LIB.so[,LIB.so...] FOLDER...

A folder holds model.onnx and input_N.npy. Each runtime has a process for the whole comparison of a model; they take
turns of about 50 ms, one at a time, in one order and then the other, with 15 ms of rest, so that what disturbs one
disturbs all. A line a model: the median and the least time of each, and the median over the turns of the first
library's time over the other's (below 1 the first is faster); then the geometric means. Needs numpy and the peers that
are named. Nothing is compared but time: bench/beside_onnxruntime.py compares answers.
"""

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TURN_S, REST_S = 0.05, 0.015


def load_inputs(folder):
    import numpy

    paths = sorted(Path(folder).glob("input_*.npy"), key=lambda path: int(path.stem.split("_")[1]))
    return [numpy.load(path).copy(order="C") for path in paths]


def onnxruntime_run(folder, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
    feed = dict(zip((i.name for i in session.get_inputs()), load_inputs(folder)))
    return lambda: session.run(None, feed)


def openvino_run(folder, threads):
    import openvino

    core = openvino.Core()
    config = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(core.read_model(f"{folder}/model.onnx"), "CPU", config).create_infer_request()
    arrays = load_inputs(folder)
    return lambda: request.infer(arrays)


def weft_run(library, folder, threads):
    import pairs

    weft, arrays = pairs.Library(library, threads, 0), load_inputs(folder)
    plan, _ = weft.compile(weft.load(f"{folder}/model.onnx"))
    execution = weft.execution(plan, arrays)
    weft.wait(plan)

    def run(keep=arrays):
        if weft.lib.weft_run(execution):
            raise RuntimeError(weft.lib.weft_execution_error(ctypes.c_void_p(execution.value)).decode())

    return run


def work(name, folder, threads):
    """In a process of its own: a time for each number of runs that is asked for."""
    peers = {"onnxruntime": onnxruntime_run, "openvino": openvino_run}
    run = peers[name](folder, threads) if name in peers else weft_run(name, folder, threads)
    for _ in range(3):
        run()
    runs = 1
    print(json.dumps(timed(run, runs)), flush=True)
    for line in sys.stdin:
        run()
        print(json.dumps(timed(run, int(line))), flush=True)


def timed(run, runs):
    begin = time.perf_counter()
    for _ in range(runs):
        run()
    return (time.perf_counter() - begin) / runs


def measure(names, folder, options):
    """Seconds a run, by name, one for each turn."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    workers = [subprocess.Popen([sys.executable, __file__, "--work", name, folder, str(options.threads)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
               for name in names]
    once = [json.loads(worker.stdout.readline()) for worker in workers]
    runs = max(1, int(TURN_S / min(once)))
    times = [[] for _ in names]
    for turn in range(options.pairs):
        for i in range(len(names)) if turn % 2 == 0 else reversed(range(len(names))):
            time.sleep(REST_S)
            print(runs, file=workers[i].stdin, flush=True)
            times[i].append(json.loads(workers[i].stdout.readline()))
    for worker in workers:
        worker.stdin.close()
        worker.wait()
    return times


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

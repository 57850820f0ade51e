#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft beside onnxruntime on the same machine, in turns, so that what disturbs one disturbs the other.

    python3 bench/beside_onnxruntime.py [--weft build/weft] [--rounds 5] [--threads 1,2] MODEL_FOLDER…

A model folder holds model.onnx and input_N.npy. Each round runs `weft bench` and then an onnxruntime process (so that
neither's threads linger while the other is measured), both on the same inputs and with the same number of threads; the
table has the median over the rounds of each one's median run, and of memory and start. Needs numpy and onnxruntime
(pip install onnxruntime). Prints a table in Markdown.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path


def peak_memory_mb():
    """High-water mark of this process's memory."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024e-6
    return float("nan")


def load_inputs(folder):
    import numpy

    return [numpy.load(path) for path in sorted(folder.glob("input_*.npy"), key=lambda p: int(p.stem.split("_")[1]))]


def measure_peer(folder, threads, seconds):
    """In a process of its own: one session, timed like `weft bench` does it."""
    import onnxruntime

    inputs = load_inputs(folder)
    base = peak_memory_mb()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    ready = time.perf_counter() - start
    feed = {port.name: array for port, array in zip(session.get_inputs(), inputs)}
    start = time.perf_counter()
    session.run(None, feed)
    first = time.perf_counter() - start
    for _ in range(2):
        session.run(None, feed)
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - start)
    return {
        "median_ms": 1e3 * statistics.median(times),
        "min_ms": 1e3 * min(times),
        "ready_ms": 1e3 * ready,
        "first_ms": 1e3 * first,
        "peak_rss_mb": peak_memory_mb() - base,
        "version": onnxruntime.__version__,
    }


def run_json(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def measure_weft(weft, folder, threads, seconds):
    inputs = sorted(folder.glob("input_*.npy"), key=lambda p: int(p.stem.split("_")[1]))
    command = [weft, "bench", folder / "model.onnx", "--json", "--no-verify"]
    command += ["--seconds", seconds, "--threads", threads]
    for path in inputs:
        command += ["-i", path]
    return run_json([str(word) for word in command])


def middle(rounds, key):
    return statistics.median(figures[key] for figures in rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--weft", default="build/weft")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        print(json.dumps(measure_peer(arguments.folders[0], arguments.threads[0], arguments.seconds)))
        return
    print("| model | threads | weft ms | onnxruntime ms | weft / ort | best ms, weft / ort | ready ms, weft / ort "
          "| first ms, weft / ort | MB, weft / ort |")
    print("|---|---|---|---|---|---|---|---|---|")
    version = ""
    for folder in arguments.folders:
        for threads in arguments.threads:
            own, peer = [], []
            for _ in range(arguments.rounds):
                own.append(measure_weft(arguments.weft, folder, threads, arguments.seconds))
                peer.append(run_json([sys.executable, os.path.abspath(__file__), "--peer", "--threads", str(threads),
                                      "--seconds", str(arguments.seconds), str(folder)]))
                version = peer[-1]["version"]
            mine, theirs = middle(own, "median_ms"), middle(peer, "median_ms")
            pairs = [f"{middle(own, key):.3g} / {middle(peer, key):.3g}"
                     for key in ("min_ms", "ready_ms", "first_ms", "peak_rss_mb")]
            print(f"| {folder.resolve().name} | {threads} | {mine:.3f} | {theirs:.3f} | {mine / theirs:.2f} "
                  f"| {' | '.join(pairs)} |", flush=True)
    print(f"\nonnxruntime {version}; {arguments.rounds} rounds of {arguments.seconds} s each, in turns; medians. "
          "Memory of onnxruntime is what it adds to the Python process.")


if __name__ == "__main__":
    main()

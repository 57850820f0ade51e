#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One operation at a time, weft beside torch, onnxruntime, openvino and numpy, on the cases of the shape files.

    python3 bench/beside_peers.py [--threads 1,2] [--peers torch,onnxruntime] [--json FILE] [FAMILY | GROUP | PATTERN]…

Each library has a process of its own, so that their thread pools do not meet, and only one works at a time: in each of
the rounds every one takes a turn of some milliseconds, after a pause in which the threads of the one before go to
sleep. weft is called through its public interface (ctypes) on a graph of one operation. A turn counts with its fastest
sample. Two ratios are printed, time of the peer over ours, so that more than 1 is good for us: the median of those made
within a round, and that of the fastest turns of all, which is the better one where the machine has other work. Calls
from Python cost a microsecond or two on all sides, which blurs cases as short as that; `weft-check --bench` has no such
cost.

A library may have several ways: torch eager, and its products and convolutions on weights that were packed before
(torch-mkl, torch-onednn: what its compiler does to frozen weights). x and y lie as the case says for weft and torch;
onnxruntime and openvino have layouts of their own and always get channels in front. Cases with gaps are left out. Sums
over the results are compared.
Needs numpy, and torch, onnxruntime, onnx, openvino as far as they are named in --peers.
"""

import argparse
import fnmatch
import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
from shape_files import read_shapes  # noqa: E402

PAUSE = 0.02


class Worker:
    """A process that answers a line of JSON with another one: `script`, started with the peer, threads and library."""

    def __init__(self, peer, threads, library, script=(str(FOLDER / "peer_workers.py"),), **more):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), **more)
        environment["MKL_NUM_THREADS"] = str(threads)
        self.peer = peer
        self.process = subprocess.Popen([sys.executable, *script, peer, str(threads), library], env=environment,
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)

    def ask(self, line=""):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else {"failed": "the process ended"}

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


def choose(arguments):
    for path in arguments.shapes or sorted((FOLDER / "shapes").glob("*.shapes")):
        for case in read_shapes(path):
            words = case.family, case.group, case.name
            if any(case.flag(key) for key in ("gap", "relu", "front")):  # libraries that read models have no arrays
                continue  # with gaps, nor does a plan of one op begin or end it with another
            if not arguments.words or any(fnmatch.fnmatchcase(w, p) for w in words for p in arguments.words):
                yield case


def same(a, b):
    """The second sum is of magnitudes: what rounding does is small beside it."""
    return all(abs(x - y) <= 1e-3 * max(abs(a[1]), 1e-6) for x, y in zip(a, b))


def measure(case, threads, workers, rounds):
    """By way: the fastest turn in seconds, the two ratios; and who failed or computed something else."""
    line = json.dumps(asdict(case))
    sums, troubles, times = {}, {}, {}
    for worker in workers:
        got = worker.ask(line)
        if "failed" in got:
            troubles[worker.peer] = got["failed"]
        else:
            sums[worker] = got["sums"]
    own = next((s["weft"] for w, s in sums.items() if w.peer == "weft"), None)
    if own is None:
        return None, {}, {}, troubles
    for _ in range(rounds):
        for worker in sums:
            time.sleep(PAUSE)
            for way, seconds in worker.ask().get("seconds", {}).items():
                times.setdefault(way, []).append(seconds)
    ratios, least = {}, {}
    for worker, ways in sums.items():
        for way, value in ways.items():
            if way == "weft":
                continue
            if not same(own, value):
                troubles[way] = "another result"
            elif len(times.get(way, [])) == rounds:
                ratios[way] = statistics.median(t / o for t, o in zip(times[way], times["weft"]))
                least[way] = min(times[way]) / min(times["weft"])
    return {way: min(t) for way, t in times.items()}, ratios, least, troubles


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def summary(results):
    print("\n| group | threads | cases | geometric mean | worst | of | by fastest turns | worst | of |")
    print("|---|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys((r["group"], r["threads"]) for r in results):
        cells = []
        for ratio in ("ratio", "least_ratio"):
            rows = [r for r in results if (r["group"], r["threads"]) == key and r[ratio]]
            if rows:
                worst = min(rows, key=lambda r: r[ratio])
                cells += [f"{geometric_mean([r[ratio] for r in rows]):.2f}", f"{worst[ratio]:.2f}", worst["case"]]
        if cells:
            print("| " + " | ".join([key[0], str(key[1]), str(len(rows)), *cells]) + " |")


def row_of(result):
    seconds, ratios, best = result["seconds"], result["ratios"], result["best"]
    others = ", ".join(f"{way} {ratio:.2f}" for way, ratio in sorted(ratios.items(), key=lambda x: x[1])[1:])
    notes = "; ".join(f"{who}: {why}" for who, why in result["troubles"].items() if "products only" not in why)
    cells = [result["case"], str(result["threads"]), f"{1e6 * seconds['weft']:.1f}" if seconds else "-"]
    if best:
        cells += [f"{1e6 * seconds[best]:.1f}", best, f"{ratios[best]:.2f}", f"{result['least_ratio']:.2f}"]
    else:
        cells += ["-"] * 4
    return "| " + " | ".join([*cells, "; ".join(word for word in (others, notes) if word)]) + " |"


def run(arguments):
    cases, results, group = list(choose(arguments)), [], None
    if not cases:
        sys.exit("no case has such a name")
    for threads in arguments.threads:
        workers = [Worker(peer, threads, str(arguments.library)) for peer in ["weft", *arguments.peers]]
        for case in cases:
            seconds, ratios, least, troubles = measure(case, threads, workers, arguments.rounds)
            best = min(ratios, key=ratios.get) if ratios else None
            results.append({"family": case.family, "group": case.group, "case": case.name, "threads": threads,
                            "seconds": seconds, "ratios": ratios, "least": least, "best": best,
                            "ratio": best and ratios[best], "least_ratio": min(least.values()) if least else None,
                            "troubles": troubles})
            if case.group != group:
                print(f"\n{case.group}\n")
                print("| case | threads | weft us | best peer us | who | ratio | by fastest | others |")
                print("|---|---|---|---|---|---|---|---|")
                group = case.group
            print(row_of(results[-1]), flush=True)
        for worker in workers:
            worker.close()
    if arguments.json:
        with open(arguments.json, "a", encoding="utf-8") as out:
            for result in results:
                out.write(json.dumps(result) + "\n")
    summary(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="families, groups or names; * and ? match")
    parser.add_argument("--shapes", action="append", help="a shape file instead of all")
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["torch", "onnxruntime"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--library", type=Path, default=FOLDER.parent / "build" / "libweft.so")
    parser.add_argument("--json", help="adds a line of JSON for each case to this file")
    parser.add_argument("--summary", help="only the summary of a file that --json has made")
    arguments = parser.parse_args()
    if arguments.summary:
        summary([json.loads(line) for line in Path(arguments.summary).read_text(encoding="utf-8").splitlines()])
    else:
        run(arguments)


if __name__ == "__main__":
    main()

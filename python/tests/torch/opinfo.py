# SPDX-License-Identifier: Apache-2.0
"""Every CPU op of torch's own test database through the backend, beside eager.

    python opinfo.py run [--ops PATTERN] [--modes forward,backward,dynamic] [--dtypes f32,bf16,i64,bool]
                         [--samples N] [--shards N] [--limit SECONDS] [--out results.json]
    python opinfo.py check results.json      compares with missing.json: nothing wrong, nothing newly missing
    python opinfo.py accept results.json     rewrites missing.json, which may only shrink (--grow: a newer torch)
    python opinfo.py show results.json       what is missing, by how often it stands in the way

Samples are traced by AOTAutograd as torch.compile does it, with the backend's decompositions and compiler, but without
dynamo, which would take most of the time. Each op runs in a process of a shard that is ended after a time limit.

    right         every sample is one plan, and equals eager in value, dtype, shape and strides
    missing       a sample has ops that run in eager; they are named
    wrong         a sample differs from eager
    untraceable   AOTAutograd cannot trace a sample (sizes that the data says, no formula)
    eager-fails   eager refuses the samples
    random        as right, but values are drawn: only types and strides are compared
    time, crash   the process took too long or ended
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import os
import queue
import subprocess
import sys
import threading
import warnings
from pathlib import Path

HERE = Path(__file__).parent
MISSING = HERE / "missing.json"
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f64": "float64", "f16": "float16", "i64": "int64", "bool": "bool"}


def op_names() -> list[str]:
    from torch.testing._internal.common_methods_invocations import op_db

    return [full_name(op) for op in op_db]


def full_name(op) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


# --- a shard

def shard(samples: int) -> None:
    """Reads lines "op dtype mode" and answers each with a line of JSON."""
    import opinfo_check

    for line in sys.stdin:
        name, dtype, mode = line.split()
        answer = opinfo_check.check(name, DTYPES[dtype], mode, samples)
        print("\x1e" + json.dumps(answer), flush=True)


class Shard:
    """A process that answers questions, started anew when it took too long or died."""

    def __init__(self, samples: int, limit: float):
        self.samples, self.limit = samples, limit
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "shard", "--samples", str(self.samples)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()

    @staticmethod
    def _read(process, lines) -> None:
        for line in process.stdout:
            if line.startswith("\x1e"):
                lines.put(line[1:])
        lines.put(None)

    def ask(self, question: tuple[str, str, str]) -> dict:
        first = self.process is None
        if first:
            self.start()
        try:
            self.process.stdin.write(" ".join(question) + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=self.limit + (60 if first else 0))
        except queue.Empty:
            self.stop()
            return {"status": "time"}
        except BrokenPipeError:
            line = None
        if line is None:
            self.stop()
            return {"status": "crash"}
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def run(args) -> None:
    names = [n for n in op_names() if any(fnmatch.fnmatch(n, p) for p in args.ops.split(","))]
    questions: queue.Queue = queue.Queue()
    for name in names:
        for mode in args.modes.split(","):
            for dtype in args.dtypes.split(","):
                questions.put((name, dtype, mode))
    results: dict[str, dict] = {}
    lock, total = threading.Lock(), questions.qsize()

    def work() -> None:
        process = Shard(args.samples, args.limit)
        while True:
            try:
                question = questions.get_nowait()
            except queue.Empty:
                process.stop()
                return
            answer = process.ask(question)
            with lock:
                if answer["status"] != "unsupported":
                    results[" ".join(question)] = answer
                if args.verbose or answer["status"] in ("wrong", "crash", "time"):
                    print(*question, answer["status"], answer.get("detail", ""), answer.get("ops", ""), flush=True)
                if questions.qsize() % 200 == 0:
                    print(f"{total - questions.qsize()}/{total}", flush=True)

    threads = [threading.Thread(target=work) for _ in range(args.shards)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    Path(args.out).write_text(json.dumps(dict(sorted(results.items())), indent=0) + "\n")
    summary(results)


# --- results

def summary(results: dict[str, dict]) -> None:
    by_mode = collections.defaultdict(collections.Counter)
    for question, answer in results.items():
        by_mode[question.split()[2]][answer["status"]] += 1
    for mode, counts in by_mode.items():
        print(mode, dict(counts.most_common()))
    print(f"{len(lowered(results))} ops lowered")


def lowered(results: dict[str, dict]) -> set[str]:
    """Ops that are right forward in each type that eager has for them, or drawn."""
    statuses = collections.defaultdict(set)
    for question, answer in results.items():
        name, _, mode = question.split()
        if mode == "forward" and answer["status"] != "eager-fails":
            statuses[name].add(answer["status"])
    return {name for name, found in statuses.items() if found and found <= {"right", "random"}}


def gaps(results: dict[str, dict]) -> dict[str, list[str]]:
    """What is not lowered: question -> names of the ops in the way."""
    return {q: sorted(set(a.get("ops", [])) or {a["status"]}) for q, a in results.items()
            if a["status"] in ("missing", "untraceable", "time", "crash")}


def check(args) -> int:
    results, known = json.loads(Path(args.results).read_text()), json.loads(MISSING.read_text())
    problems = [f"wrong: {q}: {a.get('detail')}" for q, a in results.items() if a["status"] == "wrong"]
    problems += [f"newly missing: {q}: {ops}" for q, ops in gaps(results).items() if q not in known]
    print("\n".join(problems) or "nothing wrong, nothing newly missing")
    done = [q for q in known if results.get(q, {}).get("status") in ("right", "random")]
    if done:
        print(f"{len(done)} entries of missing.json are lowered by now: accept rewrites it")
    return bool(problems)


def accept(args) -> int:
    results = json.loads(Path(args.results).read_text())
    known = json.loads(MISSING.read_text()) if MISSING.exists() else None
    found = gaps(results)
    new = [q for q in found if known is not None and q not in known]
    if new and not args.grow:
        print("missing.json may only shrink; newly missing: " + ", ".join(new))
        return 1
    rest = {q: ops for q, ops in (known or {}).items() if q not in results}
    entries = [f"{json.dumps(q)}: {json.dumps(ops)}" for q, ops in sorted({**rest, **found}.items())]
    MISSING.write_text("{\n" + ",\n".join(entries) + "\n}\n")
    return 0


def show(args) -> int:
    results = json.loads(Path(args.results).read_text())
    summary(results)
    reasons = collections.defaultdict(set)
    for question, ops in gaps(results).items():
        for op in ops:
            reasons[op].add(question.split()[0])
    for op, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(names):4} {op}: {' '.join(sorted(names)[:6])}")
    for question, answer in results.items():
        if answer["status"] == "wrong":
            print("wrong", question, answer.get("detail"))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "shard", "check", "accept", "show"])
    parser.add_argument("results", nargs="?")
    parser.add_argument("--ops", default="*")
    parser.add_argument("--modes", default="forward")
    parser.add_argument("--dtypes", default="f32,bf16,i64,bool")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--out", default="opinfo.json")
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.what == "shard":
        return shard(args.samples) or 0
    return {"run": run, "check": check, "accept": accept, "show": show}[args.what](args) or 0


if __name__ == "__main__":
    sys.exit(main())

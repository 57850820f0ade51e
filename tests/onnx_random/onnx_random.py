#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random ONNX models through weft, beside onnxruntime and ONNX's reference evaluator.

usage: onnx_random.py [COUNT] [SEED] [--symbolic] [--choices] [--keep FOLDER] [--runner PROGRAM]      see README.md
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def variant(seed, choices):
    """How weft is to run the model: processors, threads, flags; with `choices`, which choice every unit takes."""
    import client
    chance = random.Random(f"variant {seed}")
    flags = 0
    for flag in (client.NO_PASSES, client.NO_WINOGRAD, client.SHARE_RESULTS):
        flags |= flag if chance.random() < 0.15 else 0
    if not flags & client.NO_WINOGRAD and chance.random() < 0.1:
        flags |= client.WINOGRAD_4
    return {"cpu": chance.choice(["-", "-", "-", "avx2", "baseline"]), "threads": chance.choice([1, 2]), "flags": flags,
            "choice": random.Random(f"choice {seed}").randint(2, 9) if choices else 1}


def hints_of(seed, g):
    chance = random.Random(f"hints {seed}")
    choices = [0, 0, 1, 1, 2, 3, 5, 7, 8, 13, 64] + [s for sizes in g.sizes for s in sizes.values()]
    return {name: chance.choice(choices) for name in g.sizes[0]}


class Case:
    """A drawn model, what weft is asked, and what it said."""

    def __init__(self, seed, symbolic, g, outputs, choices):
        self.seed, self.symbolic, self.g, self.outputs = seed, symbolic, g, outputs
        self.variant = variant(seed, choices)
        self.hints = hints_of(seed, g)
        self.left_out = []
        self.build()

    def build(self):
        import draw
        self.model, self.names = draw.model_of(self.g, self.outputs)
        self.nodes, _ = draw.live(self.g.nodes, self.outputs)

    def given(self, trial):
        made = {v.name for _, _, values in self.nodes for v in values if not v.constant}
        return {v.name: v.arrays[trial] for v in self.g.values if v.name not in made}

    def trials(self):
        return [[self.g.find(name).arrays[t] for name in self.names] for t in range(len(self.g.sizes))]

    def ask(self, runner, path, **other):
        with open(path, "wb") as file:
            file.write(self.model.SerializeToString())
        text = {**self.variant, **other}
        symbols = {d for _, _, dims in self.g.inputs if _ is not None for d in dims if isinstance(d, str)}
        used = {name for name, _, dims in self.g.inputs if name in self.names for name in dims if isinstance(name, str)}
        return runner.run(path, self.trials(), hints={n: h for n, h in self.hints.items() if n in used and h}, **text)

    def leave_out(self, name):
        """Without the node that weft refuses, and without what needs it."""
        bad = set()
        for node, operands, made in self.g.nodes:
            if node.name == name or any(v.name == name for v in made) or any(v.name in bad for v in operands):
                bad |= {v.name for v in made}
        if not bad:
            return False
        self.g.nodes = [row for row in self.g.nodes if not any(v.name in bad for v in row[2])]
        made = {v.name for _, _, values in self.g.nodes for v in values if not v.constant}
        read = {v.name for _, operands, _ in self.g.nodes for v in operands}
        self.outputs = [v for _, _, values in self.g.nodes for v in values if not v.constant and v.name not in read]
        self.outputs = self.outputs[-40:]
        if not self.outputs:
            return False
        self.build()
        return True


def name_nodes(g):
    for i, (node, _, made) in enumerate(g.nodes):
        node.name = f"node{i}"


def refused_node(case, message):
    """The node that a message of the importer is about, or in whose body that one is."""
    for line in message.splitlines():
        words = [w[:-1] for w in line.split() if w.endswith(":")]
        for node, _, made in case.nodes:
            if any(word in words for word in [node.name, *node.output, *inner_names(node)] if word):
                return node
    return None


def inner_names(node):
    return [name for a in node.attribute if a.type == a.GRAPH for inner in a.g.node
            for name in [inner.name, *inner.output, *inner_names(inner)]]


def try_seed(runner, seed, arguments, path, tally):
    """None, or a finding: (kind, text, case)."""
    import client
    import draw
    import judge
    symbolic = arguments.symbolic
    g = draw.draw_graph(seed, symbolic, arguments.ops and arguments.ops.split(","))
    for op, reasons in g.refused.items():
        tally["not drawn " + op] += len(reasons)
    if not any(not v.constant for _, _, values in g.nodes for v in values):
        return None
    name_nodes(g)
    case = Case(seed, symbolic, g, draw.choose_outputs(g), arguments.choices)
    while True:
        try:
            answer = case.ask(runner, path)
        except client.Died as died:
            return "crash", str(died), case
        if not answer.error:
            break
        stage, status, message = answer.error
        node = refused_node(case, message)
        tally["refused " + (node.op_type if node else "?")] += 1
        text = message.replace(path, "MODEL").strip()
        case.left_out.append(((node.op_type if node else "?"), status, text[:400]))
        if stage != "load" or node is None or not case.leave_out(node.output[0] or node.output[-1]):
            if stage != "load" or node is None:
                return "refused", f"{stage} {status}: {text}", case
            return None
    tally["models"] += 1
    tally["nodes"] += len(case.nodes)
    for node, _, _ in case.nodes:
        tally["op " + node.op_type] += 1
    if answer.fallbacks:
        tally["fallback steps"] += answer.fallbacks
    wrong = judge.judge(case.nodes, case.outputs, g.opset, [case.given(t) for t in range(len(g.sizes))], answer)
    if wrong is None:
        return case.left_out and ("left", case.left_out, case) or None
    case.wrong = wrong
    return "wrong", f"trial {wrong.trial}, output {wrong.output}: {wrong.text}", case


def work(arguments):
    """The process that draws and compares. One line of JSON for each finding; a line for each seed that begins."""
    import client
    import triage
    runner = client.Runner(arguments.runner)
    tally = collections.Counter()
    path = f"/tmp/onnx-random-{os.getpid()}.onnx"
    progress = open(arguments.progress, "w")
    try:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            progress.seek(0)
            progress.write(f"{seed}\n")
            progress.flush()
            try:
                found = try_seed(runner, seed, arguments, path, tally)
            except Exception as error: # a mistake of this program, or of what it asks
                import traceback
                print(json.dumps({"kind": "harness", "seed": seed, "text": traceback.format_exc()[-1500:]}), flush=True)
                runner.stop()
                continue
            if found and found[0] == "left":
                for op, status, text in found[1]:
                    print(json.dumps({"kind": "left", "seed": seed, "op": op, "status": status, "text": text}),
                          flush=True)
            elif found:
                kind, text, case = found
                report = triage.explain(runner, kind, text, case, path)
                if "known" in report:
                    tally["known: " + report["known"]] += 1
                    continue
                print(json.dumps({"kind": kind, "seed": seed, "text": text, **report}), flush=True)
                if arguments.keep:
                    triage.keep(arguments.keep, case, kind, text, report)
            # Told for each seed, since what onnxruntime does at the next one may end this process.
            print(json.dumps({"kind": "tally", "tally": tally}), flush=True)
            tally.clear()
    finally:
        print(json.dumps({"kind": "tally", "tally": tally}), flush=True)
        runner.stop()
        os.unlink(path) if os.path.exists(path) else None


def show(arguments):
    """Shrinks what one seed finds and leaves it in a folder."""
    import client
    import shrink
    import onnx
    import triage
    import collections
    runner = client.Runner(arguments.runner)
    path = f"/tmp/onnx-random-{os.getpid()}.onnx"
    found = try_seed(runner, arguments.shrink, arguments, path, collections.Counter())
    if not found or found[0] == "left":
        print(f"seed {arguments.shrink}: nothing is wrong")
        return 0
    case, kind = shrink.shrink(runner, found[2], path)
    print(onnx.printer.to_text(case.model))
    print(f"sizes {case.g.sizes}, hints {case.hints}, {case.variant}")
    text = triage.verdict(runner, case, path)
    report = triage.explain(runner, "wrong", text, case, path)
    print(f"{kind}: {text}\n{report.get('where')}\n" + "\n".join(report.get("stages", [])))
    folder = arguments.keep or os.path.join("out", "onnx-random")
    print("left in", triage.keep(folder, case, kind, text, report))
    runner.stop()
    return 1


def supervise(arguments):
    """Starts workers, and another after one that died of what onnxruntime did to it."""
    seed, end = arguments.seed, arguments.seed + arguments.count
    tally, findings, left = collections.Counter(), [], collections.OrderedDict()
    progress = f"/tmp/onnx-random-progress-{os.getpid()}"
    start = time.monotonic()
    while seed < end:
        command = [sys.executable, os.path.abspath(__file__), "--runner", arguments.runner, str(end - seed), str(seed),
                   "--worker",
                   "--progress", progress]
        command += ["--symbolic"] if arguments.symbolic else []
        command += ["--choices"] if arguments.choices else []
        command += ["--ops", arguments.ops] if arguments.ops else []
        command += ["--keep", arguments.keep] if arguments.keep else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            try:
                report = json.loads(line)
            except ValueError:
                continue
            if report["kind"] == "tally":
                tally.update(report["tally"])
            elif report["kind"] == "left":
                key = (report["op"], " ".join(w for w in report["text"].split() if not any(c.isdigit()
                                                                                           for c in w))[:160])
                if key not in left:
                    left[key] = [0, report["seed"], report["text"]]
                left[key][0] += 1
            else:
                findings.append(report)
                print(f"seed {report['seed']}: {report['kind']}: {report.get('where', '')} {report['text'][:600]}",
                      flush=True)
        code = process.wait()
        if code == 0:
            break
        with open(progress) as file:
            at = int(file.readline())
        print(f"seed {at}: the worker died ({code}); going on behind it", flush=True)
        tally["workers that died"] += 1
        seed = at + 1
    os.path.exists(progress) and os.unlink(progress)
    if arguments.verbose:
        for (op, _), (count, first, text) in left.items():
            print(f"left out {count} x {op}, first in seed {first}: {text[:300]}")
        for name, count in sorted(tally.items()):
            print(f"  {count:7d} {name}")
    bad = [f for f in findings]
    print(f"{tally['models']} models, {tally['nodes']} nodes, {len(bad)} findings, {time.monotonic() - start:.0f} s")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", default="build/tests/onnx_random/onnx-runner")
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--symbolic", action="store_true")
    parser.add_argument("--choices", action="store_true",
                        help="every unit takes another choice than the first: the second to the ninth, by seed")
    parser.add_argument("--keep", metavar="FOLDER", help="leave findings there")
    parser.add_argument("--ops", metavar="NAME,…", help="draw by these functions of ops_*.py only")
    parser.add_argument("--shrink", type=int, metavar="SEED")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return 0
    try:
        import ml_dtypes, numpy, onnx, onnxruntime # noqa: E401,F401
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    return supervise(arguments) if arguments.shrink is None else show(arguments)


if __name__ == "__main__":
    sys.exit(main())

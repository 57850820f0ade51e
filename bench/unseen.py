#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that no kernel was written for, beside torch, onnxruntime and OpenVINO.

    python3 bench/unseen.py [--weft build/weft] [--folder out/unseen] [--threads 2] [--rounds 3]
                            [--peers onnxruntime,openvino,torch] [NAME…]

Models are those of unseen_*.py beside this file: each has MODELS, names of functions that give a module in eval mode
and its inputs. A model is exported once (torch.onnx) to FOLDER/NAME with inputs and PyTorch's outputs, which weft's are
compared with. Every peer has a process of its own, and all take short turns, so that noise falls on all alike. A row
has medians in ms, how many times as long the fastest peer takes as weft, and for weft the error and the share of the
time in plain kernels, in the reference evaluator and in changes of layout. Needs torch, onnx, onnxscript, onnxruntime,
openvino.
"""
import argparse
import functools
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import cores

HERE = Path(__file__).resolve().parent
SECONDS = 0.25  # of a turn
MOST_TRIES = 6
OPSET = 20


def registry():
    sys.path.insert(0, str(HERE))
    found = {}
    for path in sorted(HERE.glob("unseen_*.py")):
        models = importlib.import_module(path.stem).MODELS
        if twice := found.keys() & models.keys():
            raise SystemExit(f"{path.name}: {', '.join(twice)} is in another file too")
        found.update(models)
    return found


def export(name, folder):
    """Writes the model, its inputs and PyTorch's outputs."""
    import numpy
    import onnx
    import torch
    warnings.filterwarnings("ignore")
    model, inputs = registry()[name]()
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        wanted = model(*inputs)
        program = torch.onnx.export(model, inputs, dynamo=True, opset_version=OPSET, optimize=True, verbose=False,
                                    input_names=[f"input_{i}" for i in range(len(inputs))])
    wanted = (wanted,) if isinstance(wanted, torch.Tensor) else tuple(wanted)
    for kind, tensors in (("input", inputs), ("output", wanted)):
        for i, tensor in enumerate(tensors):
            numpy.save(folder / f"{kind}_{i}.npy", tensor.numpy())
    onnx.save(program.model_proto, folder / "model.onnx")


# --- peers: a process each, which runs as often as it is told ---------------------------------------------------------

def prepare(peer, name, folder, threads):
    """A function that runs the model once."""
    import numpy
    inputs = [numpy.load(folder / f"input_{i}.npy") for i in range(len(list(folder.glob("input_*.npy"))))]
    path = str(folder / "model.onnx")
    if peer == "torch":
        import torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        model, tensors = registry()[name]()
        return lambda: model(*tensors)
    if peer == "onnxruntime":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        feeds = {slot.name: x for slot, x in zip(session.get_inputs(), inputs)}
        return lambda: session.run(None, feeds)
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32"})
    request, feeds = compiled.create_infer_request(), dict(enumerate(inputs))
    return lambda: request.infer(feeds, share_inputs=True, share_outputs=True)


def work(peer, name, folder, threads):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        call = prepare(peer, name, folder, threads)
        call()
        answers.write("ready\n")
    except Exception as problem:  # whatever a peer cannot do is a cell of the table
        answers.write(f"{type(problem).__name__}: {problem}".splitlines()[0][:60] + "\n")
    answers.flush()
    for _ in sys.stdin:
        times, start = [], time.perf_counter()
        while not times or time.perf_counter() - start < SECONDS:
            before = time.perf_counter()
            call()
            times.append((time.perf_counter() - before) * 1e3)
        answers.write(json.dumps(times) + "\n")
        answers.flush()


class Peer:
    def __init__(self, peer, name, arguments):
        command = [sys.executable, os.path.abspath(__file__), "--work", peer, "--folder", arguments.folder,
                   "--threads", str(arguments.threads), name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.state = self.process.stdout.readline().strip() or "died"
        self.times = []

    def turn(self):
        """Times of runs, none where the peer cannot do it."""
        if self.state != "ready":
            return []
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        return statistics.median(self.times) if self.times else float("inf")


# --- the table --------------------------------------------------------------------------------------------------------

def run_weft(arguments, folder, check):
    command = [arguments.weft, "bench", str(folder / "model.onnx"), "--json", "--threads", str(arguments.threads),
               "--seconds", str(SECONDS)] + (["--check", str(folder)] if check else ["--no-verify"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise SystemExit(f"{folder.name}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def apart(are_apart, turn):
    """What a turn gives that began and ended while the CPUs were two cores (cores.py); of MOST_TRIES the last one."""
    for _ in range(MOST_TRIES):
        good = are_apart()
        result = turn()
        if are_apart() and good:
            break
    return result


def measure(name, arguments):
    folder = Path(arguments.folder) / name
    if not (folder / "model.onnx").exists():
        command = [sys.executable, os.path.abspath(__file__), "--export", "--folder", arguments.folder, name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peers = {peer: Peer(peer, name, arguments) for peer in arguments.peers.split(",")}
    are_apart = cores.watch() if arguments.threads > 1 else lambda: True
    runs = []
    for turn in range(arguments.rounds):
        for peer in peers.values():
            peer.times += apart(are_apart, peer.turn)
        runs.append(apart(are_apart, functools.partial(run_weft, arguments, folder, turn == 0)))
    times = {peer: process.close() for peer, process in peers.items()}
    own, best = statistics.median(r["median_ms"] for r in runs), min(times.values())
    cells = [f"{own:.2f}"] + [f"{t:.2f}" if t < float("inf") else peers[p].state for p, t in times.items()]
    shares = [f"{runs[-1][key]:.1f}" for key in ("plain_pct", "fallback_pct", "relayout_pct")]
    print(f"| {name} | " + " | ".join(cells) + f" | {best / own:.2f} | {runs[0]['max_rel_err']:.0e} | "
          + ", ".join(shares) + " |", flush=True)
    return best / own


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/weft")
    parser.add_argument("--folder", default="out/unseen")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="onnxruntime,openvino,torch")
    parser.add_argument("--export", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.export:
        return export(arguments.names[0], Path(arguments.folder) / arguments.names[0])
    if arguments.work:
        return work(arguments.work, arguments.names[0], Path(arguments.folder) / arguments.names[0], arguments.threads)
    peers = arguments.peers.split(",")
    print("| model | weft ms | " + " | ".join(peers) + " | best / weft | error | plain, evaluator, relayout % |\n|"
          + "---|" * (5 + len(peers)), flush=True)
    ratios = [measure(name, arguments) for name in arguments.names or registry()]
    print(f"\ngeometric mean of best / weft: {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first call of a compiled model, with nothing on disk and in a later process: weft, eager and TorchInductor.

usage: torch_first_call.py [--threads N] [--repeats N] [--peers eager,weft,inductor,frozen] [--precompile]
                           [--yardstick FOLDER] [MODEL...]

A line a model and peer: seconds of the first call (a step, forward and backward, for training models) `cold`, with
empty caches, and `warm`, in a new process that finds them full, wall clock and then processor time: the least of the
repeats, each with caches of its own. For weft, what the time went to, warm after the slash: dynamo (tracing and
guards), weft itself (translating, compiling), and the rest (AOTAutograd, torch's cache, the first run). `inductor` is
torch's default, `frozen` the same with freezing. Times begin before torch.compile. With `--precompile` torch keeps
what dynamo made, too (`caching_precompile`). Every process is a new one, and all caches are folders that are removed
in the end.

The package must be found (pip install ., or PYTHONPATH=python with WEFT_LIBRARY=build/libweft.so). Models come from
`models.py` in the folder of the yardstick."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = "resnet50 bert_base_b1 bert_small_train".split()


def compiled(model, peer):
    import torch
    if peer == "eager":
        return model
    if peer == "weft":
        from weft.torch.backend import weft
        return torch.compile(model, backend=weft)
    if peer == "frozen":
        from torch._inductor import config
        config.freezing = True
    return torch.compile(model)


def worker(name, peer, threads, yardstick, precompile):
    """In a process of its own: one first call, as JSON."""
    import contextlib
    import logging
    import warnings

    import torch
    sys.path.insert(0, yardstick)
    import models
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    training = name in models.TRAIN
    model, inputs = (models.TRAIN if training else models.MODELS)[name]()
    torch._dynamo.config.caching_precompile = precompile
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)  # it names each guard that it cannot keep
    wall, cpu = time.perf_counter(), time.process_time()
    function = compiled(model, peer)
    with torch.set_grad_enabled(training):
        result = function(*inputs)
        if training:
            result.backward()
    facts = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    if peer != "eager":
        from torch._dynamo.utils import compilation_time_metrics as spent
        facts["dynamo"] = sum(map(sum, (spent.get("bytecode_tracing", []), spent.get("build_guards", []))))
    if peer == "weft":
        from weft.torch import reports
        facts["own"] = sum(p.translate_s + p.compile_s for r in reports for p in r.pieces)
        facts["found"] = " ".join(sorted({w.split(":")[0].split(",")[0] for r in reports
                                          for w in (r.aot, *(p.cache for p in r.pieces))}))
    if precompile:
        with contextlib.redirect_stdout(sys.stderr):
            torch.compiler.save_cache_artifacts()
    print(json.dumps(facts))


def measure(name, peer, options, folder):
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "torch"),
                   "WEFT_CACHE_DIR": os.path.join(folder, "weft"), "WEFT_PLANS": os.path.join(folder, "plans")}
    flags = ["--precompile"] if options.precompile else []
    out = subprocess.run([sys.executable, __file__, "--worker", peer, "--threads", str(options.threads), "--yardstick",
                          options.yardstick, *flags, name], env=environment, stdout=subprocess.PIPE, text=True,
                         check=True)
    return json.loads(out.stdout.splitlines()[-1])


def row(name, peer, options):
    runs = []
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory(prefix="first-call-") as folder:
            runs.append([measure(name, peer, options, folder) for _ in range(2)])
    cold, warm = (min((r[i] for r in runs), key=lambda facts: facts["wall"]) for i in (0, 1))
    cells = [name, peer, *(f"{facts['wall']:.2f}, {facts['cpu']:.2f}" for facts in (cold, warm))]
    cells.append(" / ".join(f"{facts['dynamo']:.2f}" for facts in (cold, warm)) if peer != "eager" else "")
    if peer == "weft":
        rest = [facts["wall"] - facts["dynamo"] - facts["own"] for facts in (cold, warm)]
        cells += [f"{cold['own']:.2f} / {warm['own']:.2f}", f"{rest[0]:.2f} / {rest[1]:.2f}", warm["found"]]
    else:
        cells += ["", "", ""]
    return "| " + " | ".join(cells) + " |"


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--threads", type=int, default=2)
    usage.add_argument("--repeats", type=int, default=1)
    usage.add_argument("--peers", default="eager,weft,inductor,frozen")
    usage.add_argument("--precompile", action="store_true")
    usage.add_argument("--yardstick", default=os.path.join(HERE, "../../shared/yardstick"))
    usage.add_argument("--worker", help=argparse.SUPPRESS)
    usage.add_argument("models", nargs="*", default=MODELS)
    options = usage.parse_args()
    if options.worker:
        worker(options.models[0], options.worker, options.threads, options.yardstick, options.precompile)
        return
    print("| model | peer | cold s, of processors | warm s, of processors | dynamo | weft itself | rest | warm found |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.models:
        for peer in options.peers.split(","):
            print(row(name, peer, options), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Resident memory of models through torch.compile: a process for each model and peer.

usage: torch_memory.py [--threads N] [--peers eager,dynamo,weft,offload,inductor] [--training] [--yardstick FOLDER]
                       [MODEL...]

A line a model: megabytes resident after ten calls of each peer, and the largest ever in brackets. `dynamo` is
torch.compile(backend="eager"): what torch's own tracing keeps. `offload` is weft with that option. `inductor` is
max-autotune with freezing. With --training a call is a step, forward and backward."""
import argparse
import gc
import os
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))


def resident():
    """MB now, and at most so far."""
    lines = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    return [int(lines[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM")]


def measure(peer, name, options):
    import torch
    from torch_compile import compiled
    sys.path.insert(0, options.yardstick)
    import models
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    model, inputs = (models.TRAIN if options.training else models.MODELS)[name]()
    if peer == "dynamo":
        function = torch.compile(model, backend="eager")
    elif peer == "offload":
        from weft.torch.backend import weft
        function = torch.compile(model, backend=weft, options={"offload": True})
    else:
        function = compiled(model, peer)
    for _ in range(10):
        if options.training:
            model.zero_grad()
            function(*inputs).backward()
        else:
            with torch.no_grad():
                function(*inputs)
    gc.collect()
    print(*resident())


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--threads", type=int, default=2)
    usage.add_argument("--peers", default="eager,dynamo,weft,offload,inductor")
    usage.add_argument("--training", action="store_true")
    usage.add_argument("--yardstick", default=os.path.join(HERE, "../../shared/yardstick"))
    usage.add_argument("--one", help=argparse.SUPPRESS)
    usage.add_argument("models", nargs="*")
    options = usage.parse_args()
    if options.one:
        return measure(options.one, options.models[0], options)
    peers = options.peers.split(",")
    print("| model | " + " | ".join(f"{p} MB (most)" for p in peers) + " | " +
          " | ".join(f"{p} / {peers[0]}" for p in peers[1:]) + " |\n|---|" + "---|" * (2 * len(peers) - 1))
    for name in options.models or ["resnet50", "bert_base_b1", "gpt2", "mobilenet_v2"]:
        now = {}
        cells = []
        for peer in peers:
            command = [sys.executable, os.path.abspath(__file__), "--one", peer, "--threads", str(options.threads),
                       "--yardstick", options.yardstick, name] + (["--training"] if options.training else [])
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{name} {peer}: {done.stderr[-2000:]}")
            now[peer], most = map(float, done.stdout.split()[-2:])
            cells.append(f"{now[peer]:.0f} ({most:.0f})")
        print(f"| {name} | " + " | ".join(cells) + " | " +
              " | ".join(f"{now[p] / now[peers[0]]:.2f}" for p in peers[1:]) + " |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of the yardstick through torch.compile: weft, eager and TorchInductor in turns, in one process.

usage: torch_compile.py [--threads N] [--rounds N] [--peers eager,inductor] [--training] [--yardstick FOLDER] [MODEL...]

A line a model: the median and the least time of a call in milliseconds, the time of the first call in seconds (dynamo,
AOTAutograd and the backend, without weft's caches; TorchInductor has its own), the largest error beside eager over the
largest result, and each peer's median over weft's: above 1 weft is faster. `inductor` is max-autotune with freezing.
With --training a call is a step, forward and backward, of the training models; the error is that of the gradients, in
the norm of all together.

The package must be found (pip install ., or PYTHONPATH=python with WEFT_LIBRARY=build/libweft.so, where weft._fast is
missing and calls are made from Python). Models come from `models.py` in the folder of the yardstick."""
import argparse
import os
import statistics
import sys
import time
import warnings

import torch

import cores

MOST_TRIES = 4
HERE = os.path.dirname(os.path.abspath(__file__))


def first_tensor(result):
    """The tensor of a result that is compared: the first, or the logits."""
    while not torch.is_tensor(result):
        if hasattr(result, "logits"):
            result = result.logits
        else:
            result = result[0] if isinstance(result, (list, tuple)) else next(iter(result.values()))
    return result


def compiled(model, peer):
    torch._dynamo.reset()
    if peer == "eager":
        return model
    if peer == "weft":
        from weft.torch.backend import weft
        return torch.compile(model, backend=weft, options={"cache": False})
    from torch._inductor import config
    config.freezing = True
    return torch.compile(model, mode="max-autotune")


class Contest:
    """One model, with a callable for each peer."""

    def __init__(self, model, inputs, peers, training):
        self.model, self.inputs, self.training = model, inputs, training
        self.weights = [p for p in model.parameters() if p.requires_grad]
        self.call, self.first, self.times, self.result = {}, {}, {}, {}
        for peer in peers:
            function = compiled(model, peer)
            start = time.perf_counter()
            result = self.step(function)
            self.first[peer] = time.perf_counter() - start
            self.result[peer] = (self.gradients() if training else result).detach().clone()
            self.call[peer], self.times[peer] = function, []
            # beyond the runs in which weft's groups are interpreted
            for _ in range(2 if training and peer != "weft" else 10):
                self.step(function)

    def step(self, function):
        if not self.training:
            with torch.no_grad():
                return first_tensor(function(*self.inputs))
        for weight in self.weights:
            weight.grad = None
        function(*self.inputs).backward()
        return None

    def gradients(self):
        return torch.cat([w.grad.flatten() for w in self.weights if w.grad is not None])

    def round(self, are_apart):
        """A call of each. False, and nothing is kept, where two CPUs were one core meanwhile (cores.py)."""
        good, taken = are_apart(), {}
        for peer, function in self.call.items():
            start = time.perf_counter()
            self.step(function)
            taken[peer] = (time.perf_counter() - start) * 1e3
        good = are_apart() and good
        for peer in taken if good else ():
            self.times[peer].append(taken[peer])
        return good

    def error(self, peer):
        want, got = self.result["eager"].double(), self.result[peer].double()
        distance = (want - got).norm() / want.norm() if self.training else (want - got).abs().max() / want.abs().max()
        return distance.item()


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--threads", type=int, default=2)
    usage.add_argument("--rounds", type=int, default=15)
    usage.add_argument("--peers", default="eager,inductor")
    usage.add_argument("--training", action="store_true")
    usage.add_argument("--yardstick", default=os.path.join(HERE, "../../shared/yardstick"))
    usage.add_argument("models", nargs="*")
    options = usage.parse_args()
    sys.path.insert(0, options.yardstick)
    import models
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    are_apart = cores.watch() if options.threads > 1 else lambda: True
    known = models.TRAIN if options.training else models.MODELS
    unknown = [name for name in options.models if name not in known]
    if unknown:
        usage.error(f"no model is called {unknown[0]}; there are {', '.join(known)}")
    peers = ["eager", "weft"] + [peer for peer in options.peers.split(",") if peer not in ("", "eager", "weft")]
    print("| model | " + " | ".join(f"{p} ms, least, first s" for p in peers) + " | error | "
          + " | ".join(f"{p} / weft" for p in peers if p != "weft") + " |")
    print("|---|" + "---|" * (2 * len(peers)))
    ratios = {peer: [] for peer in peers}
    for name in options.models or known:
        contest = Contest(*known[name](), peers, options.training)
        left_out = 0
        while len(contest.times["weft"]) < options.rounds and left_out < MOST_TRIES * options.rounds:
            left_out += not contest.round(are_apart)
        if left_out:
            print(f"{name}: {left_out} rounds left out, in which both CPUs were one core", file=sys.stderr)
        median = {peer: statistics.median(times) for peer, times in contest.times.items()}
        for peer in peers:
            ratios[peer].append(median[peer] / median["weft"])
        cells = [f"{median[p]:.2f}, {min(contest.times[p]):.2f}, {contest.first[p]:.1f}" for p in peers]
        cells += [f"{contest.error('weft'):.1e}"] + [f"{ratios[p][-1]:.2f}" for p in peers if p != "weft"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print("geometric means: " + ", ".join(f"{p} / weft {statistics.geometric_mean(ratios[p]):.2f}"
                                          for p in peers if p != "weft"))


if __name__ == "__main__":
    main()

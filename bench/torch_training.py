#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training through torch.compile(backend="weft") beside eager: loss curves, and the error of the first gradients.

usage: torch_training.py [--steps N] [--threads N] [--rate R] [--yardstick FOLDER] [MODEL...]

A line a model: the largest relative difference of the losses of N steps of SGD between weft and eager, and of eager to
itself without oneDNN's kernels, which says how far rounding alone takes a model; how far the gradients of the first
step are from those in f64, in the norm of all together, for weft and for eager; first and last loss. The models have no
dropout, for which weft draws other numbers than eager."""
import argparse
import copy
import os
import sys
import warnings

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def gradients(model):
    return torch.cat([p.grad.double().flatten() for p in model.parameters() if p.grad is not None])


def curve(model, call, inputs, steps, rate):
    """Losses, and the gradients of the first step."""
    optimizer, losses, first = torch.optim.SGD(model.parameters(), lr=rate), [], None
    for step in range(steps):
        optimizer.zero_grad()
        loss = call(*inputs)
        loss.backward()
        first = gradients(model) if step == 0 else first
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64), first


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--steps", type=int, default=50)
    usage.add_argument("--threads", type=int, default=2)
    usage.add_argument("--rate", type=float, default=1e-3)
    usage.add_argument("--yardstick", default=os.path.join(HERE, "../../shared/yardstick"))
    usage.add_argument("models", nargs="*")
    options = usage.parse_args()
    sys.path.insert(0, options.yardstick)
    import models
    from weft.torch.backend import weft
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    print("| model | losses differ by | eager without oneDNN by | gradients, weft to f64 | eager to f64 "
          "| first and last loss |")
    print("|---|---|---|---|---|---|")
    for name in options.models or models.TRAIN:
        model, inputs = models.TRAIN[name]()
        twins = [copy.deepcopy(model) for _ in range(3)]
        exact = model.double()
        exact(*[i.double() if i.is_floating_point() else i for i in inputs]).backward()
        want = gradients(exact)
        del model, exact
        torch._dynamo.reset()
        mine, first = curve(twins[0], torch.compile(twins[0], backend=weft), inputs, options.steps, options.rate)
        other, eager = curve(twins[1], twins[1], inputs, options.steps, options.rate)
        with torch.backends.mkldnn.flags(enabled=False):
            native, _ = curve(twins[2], twins[2], inputs, options.steps, options.rate)
        apart = [((losses - other).abs() / other.abs()).max() for losses in (mine, native)]
        far = [((g - want).norm() / want.norm()).item() for g in (first, eager)]
        print(f"| {name} | {apart[0]:.1e} | {apart[1]:.1e} | {far[0]:.2e} | {far[1]:.2e} "
              f"| {other[0]:.4f}, {other[-1]:.4f} |", flush=True)


if __name__ == "__main__":
    main()

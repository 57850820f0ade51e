# SPDX-License-Identifier: Apache-2.0
"""A process of test_cache.py: compiles a small model, compares it with eager, and prints what the reports say.

usage: cache_worker.py inference|live|training|dynamic|constants|random|views|whole|eager|autocast JSON, of the
object {"seed", "threads", "options", "gelu", "update", "updates", "assign", "precompile", "version"}, all optional"""

from __future__ import annotations

import json
import sys
import warnings

import torch
from torch import nn

from weft.torch import aot_cache, reports
from weft.torch.backend import weft


class Model(nn.Module):
    def __init__(self, what: str, gelu: bool):
        super().__init__()
        self.what = what
        self.first, self.second = nn.Linear(256, 320), nn.Linear(320, 128)
        self.norm, self.activation = nn.LayerNorm(128), nn.GELU() if gelu else nn.ReLU()
        if what == "whole":
            self.cells = nn.ModuleList([nn.LSTM(256, 16), nn.GRU(16, 8)])

    def forward(self, x):
        y = self.norm(self.second(self.activation(self.first(x))))
        if self.what == "constants":
            y = y + torch.tensor([float(i % 7) for i in range(128)])
        if self.what == "random":
            y = y + 0 * torch.rand_like(y)
        if self.what == "views":
            return y, y.t(), x, y.view(-1, 64)
        if self.what == "whole":
            y = nn.functional.interpolate(y[:, None], scale_factor=2.0)[:, 0]
            y = self.cells[1](self.cells[0](y)[0])[0]
        if self.what == "autocast":
            with torch.autocast("cpu", torch.bfloat16):
                y = 0 * self.first(x).float().sum() + y
        if self.what == "eager":
            y = torch.fft.fft(y).real.relu() + y
        return y


def equal(got, want) -> bool:
    got, want = (v if isinstance(v, tuple) else (v,) for v in (got, want))
    return all(g.shape == w.shape and torch.allclose(g, w, atol=1e-4, rtol=1e-4) for g, w in zip(got, want))


def train(function, model: Model, x: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    function(x).square().sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def compare(what: str, model: Model, function, given: dict) -> bool:
    """Calls both for some inputs."""
    right = True
    for rows in (8, 12, 16) if what == "dynamic" else (8,):
        x = torch.randn(rows, 256)
        if what == "training":
            right &= equal(train(function, model, x), train(model, model, x))
            continue
        with torch.no_grad():
            right &= equal(function(x), model(x))
            for _ in range(given.get("updates", int(given.get("update", False)))):
                if given.get("assign"):
                    model.second.weight.data = model.second.weight * -1.25
                else:
                    model.second.weight.mul_(-1.25)
                right &= equal(function(x), model(x))
    return right


def one(words) -> str:
    return " / ".join(sorted(set(words)))


def main() -> None:
    what, given = sys.argv[1], json.loads(sys.argv[2])
    warnings.simplefilter("ignore")
    torch.manual_seed(given.get("seed", 0))
    torch.set_num_threads(given.get("threads", 2))
    torch._dynamo.config.allow_rnn = True
    if "version" in given:  # stands for files of another weft
        aot_cache.sources = lambda: given["version"]
    torch._dynamo.config.caching_precompile = given.get("precompile", False)
    model = Model(what, given.get("gelu", False)).train(what == "training")
    options = {**given.get("options", {}), **({"freeze": False} if what == "live" else {})}
    function = torch.compile(model, backend=weft, options=options)
    right = compare(what, model, function, given)
    kept = list(reports)
    for r in kept:  # told also where nothing was traced
        assert r.origin.name.endswith("forward") and r.origin.place.startswith(__file__), r.origin
        assert r.origin.inputs and all("float32[" in given for given in r.origin.inputs), r.origin
    found = {"aot": one(r.aot for r in kept), "cache": one(p.cache for r in kept for p in r.pieces),
             "right": bool(right)}
    if given.get("precompile"):
        found["traced"] = len(torch._dynamo.utils.compilation_time_metrics.get("bytecode_tracing", ()))
        torch.compiler.save_cache_artifacts()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

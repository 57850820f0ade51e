#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call of a compiled function costs by its number of arguments: relu(x + cat(n parameters)).

usage: torch_call.py [--rounds N] [--peers NAME,...] [COUNT...]

Parameters have 4 elements each, so that little is computed. Microseconds a call: the least of rounds in which the
peers take turns, 200 calls a turn. `weft frozen` holds the parameters as constants and compares their versions in each
call, `weft live` takes them as arguments (freeze=False); `dynamo` is backend="eager", what torch itself takes, and
`inductor cpp` has torch._inductor.config.cpp_wrapper."""
import argparse
import os
import time
import types
import warnings

import torch
from torch import nn

PEERS = "eager,dynamo,weft frozen,weft live,inductor,inductor cpp"


def forward(self, x):
    return torch.relu(x + torch.cat([*self.parts]))


def network(count, peer):
    """A class for each peer, with code of its own: dynamo looks for what it compiled by code."""
    code = forward.__code__.replace(co_name="forward_" + peer.replace(" ", "_"))
    net = type("Net", (nn.Module,), {"forward": types.FunctionType(code, globals())})()
    net.parts = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(count)])
    return net


def compiled(net, peer):
    from torch._inductor import config
    from weft.torch.backend import weft
    if peer == "eager":
        return net
    if peer == "dynamo":
        return torch.compile(net, backend="eager")
    if peer.startswith("weft"):
        return torch.compile(net, backend=weft, options={"freeze": peer == "weft frozen"})
    config.freezing = False
    config.cpp_wrapper = peer == "inductor cpp"
    config.force_disable_caches = True  # the wrapper is no part of a cached kernel's name
    return torch.compile(net)


def main():
    usage = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usage.add_argument("--rounds", type=int, default=15)
    usage.add_argument("--peers", default=PEERS)
    usage.add_argument("counts", nargs="*", type=int, default=[1, 100, 400])
    options = usage.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", "/tmp/torchinductor_call")
    torch.set_num_threads(1)
    peers = options.peers.split(",")
    print("| n | " + " | ".join(peers) + " |\n|---|" + "---|" * len(peers))
    for count in options.counts:
        least, calls, x = {p: float("inf") for p in peers}, {}, torch.randn(4 * count)
        with torch.no_grad():
            for peer in peers:
                calls[peer] = compiled(network(count, peer), peer)
                for _ in range(30):  # beyond the runs in which weft's groups are interpreted
                    calls[peer](x)
            for _ in range(options.rounds):
                for peer, call in calls.items():
                    start = time.perf_counter()
                    for _ in range(200):
                        call(x)
                    least[peer] = min(least[peer], (time.perf_counter() - start) / 200 * 1e6)
        print(f"| {count} | " + " | ".join(f"{least[p]:.1f}" for p in peers) + " |", flush=True)


if __name__ == "__main__":
    main()

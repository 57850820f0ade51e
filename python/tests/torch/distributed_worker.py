# SPDX-License-Identifier: Apache-2.0
"""One of two processes that train a model together: distributed_worker.py KIND RANK PORT

KIND is ddp (DistributedDataParallel), fsdp (fully_shard) or collective (a collective inside the compiled function).
Prints one line of JSON: losses in eager, losses compiled, how many plans there were, and what ran in eager pieces."""

from __future__ import annotations

import json
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn

from weft.torch import reports
from weft.torch.backend import weft as backend
from weft.torch.partition import WeftGraphWarning

STEPS = 5


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(inputs), nn.Linear(inputs, outputs)

    def forward(self, x):
        return nn.functional.gelu(self.linear(self.norm(x)))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(16, 32), Block(32, 32), Block(32, 4)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def network() -> nn.Module:
    torch.manual_seed(1)
    return Network()


class Gathered(nn.Module):
    """The mean of a batch over all processes, in the middle of a model."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        import torch.distributed._functional_collectives as collectives

        x = self.first(x).relu()
        mean = collectives.all_reduce(x.detach().mean(0), "avg", list(range(dist.get_world_size())))
        return self.last((x - mean).sigmoid())


def model_of(kind: str, compiled: bool) -> nn.Module:
    def compile_if(model):
        return torch.compile(model, backend=backend) if compiled else model

    if kind == "ddp":
        return compile_if(nn.parallel.DistributedDataParallel(network()))
    if kind == "fsdp":
        from torch.distributed.fsdp import fully_shard
        model = network()
        mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        return compile_if(fully_shard(model, mesh=mesh))
    torch.manual_seed(1)
    return compile_if(Gathered())


def losses(kind: str, compiled: bool, rank: int) -> list[float]:
    torch._dynamo.reset()
    model = model_of(kind, compiled)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    draw = torch.Generator().manual_seed(100 + rank)
    out = []
    for _ in range(STEPS):
        x, y = torch.randn(8, 16, generator=draw), torch.randint(0, 4, (8,), generator=draw)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def main() -> None:
    kind, rank, port = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    warnings.simplefilter("ignore", WeftGraphWarning)
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    eager = losses(kind, False, rank)
    compiled = losses(kind, True, rank)
    pieces = sorted({name for report in reports for name in report.eager})
    print(json.dumps({"eager": eager, "compiled": compiled, "plans": sum(len(r.pieces) for r in reports),
                      "pieces": pieces}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of graphs, tables and time series that no kernel was written for: bench/unseen.py measures them.

MODELS is as in unseen_sequence.py."""
import torch
from model_parts import Attention, Block, finish, numbers, whole
from torch import nn
from torch.nn import functional


NODES, EDGES = 2708, 10556


def edges():
    got = whole(NODES, 2, EDGES)
    return torch.cat([got, torch.arange(NODES).repeat(2, 1)], 1)


def gcn():
    """Two graph convolutions over Cora's sizes: degrees and messages are summed by index."""
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(1433, 64), nn.Linear(64, 7)

        def forward(self, x, ends):
            source, target = ends[0], ends[1]
            degree = torch.zeros(NODES).scatter_add(0, target, torch.ones(target.shape))
            scale = degree.clamp(min=1).rsqrt()
            weight = (scale[source] * scale[target])[:, None]

            def spread(y):
                return torch.zeros(y.shape).index_add(0, target, y[source] * weight)
            return spread(self.second(torch.relu(spread(self.first(x))))).log_softmax(-1)
    return finish(Network(), numbers(NODES, 1433), edges())


def gat():
    """Two layers of graph attention, 8 heads of 16: softmax over the edges of each node."""
    class Layer(nn.Module):
        def __init__(self, source, heads, width):
            super().__init__()
            self.heads, self.project = heads, nn.Linear(source, heads * width, bias=False)
            self.a, self.b = nn.Parameter(torch.zeros(1, heads, width)), nn.Parameter(torch.zeros(1, heads, width))

        def forward(self, x, source, target):
            h = self.project(x).unflatten(-1, (self.heads, -1))
            score = (h * self.a).sum(-1)[source] + (h * self.b).sum(-1)[target]
            score = functional.leaky_relu(score, 0.2)
            at = target[:, None].expand(-1, self.heads)
            most = torch.full((NODES, self.heads), -1e9).scatter_reduce(0, at, score, "amax")
            score = (score - most[target]).exp()
            total = torch.zeros(NODES, self.heads).scatter_add(0, at, score)
            message = h[source] * (score / total[target])[..., None]
            return torch.zeros(h.shape).index_add(0, target, message).flatten(1)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Layer(256, 8, 16), Layer(128, 8, 16)

        def forward(self, x, ends):
            x = functional.elu(self.first(x, ends[0], ends[1]))
            return self.second(x, ends[0], ends[1])
    return finish(Network(), numbers(NODES, 256), edges())


def dlrm():
    """A recommender: 26 tables of which 4 rows each are summed, products of all pairs, batch 128."""
    tables, rows, width, batch, words = 26, 5000, 64, 128, 4

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
            deep = lambda *s: nn.Sequential(*(m for a, b in zip(s, s[1:]) for m in (nn.Linear(a, b), nn.ReLU())))
            self.bottom = deep(13, 512, 256, width)
            self.top = nn.Sequential(deep(width + (tables + 1) * tables // 2, 512, 256), nn.Linear(256, 1))
            at = torch.tril_indices(tables + 1, tables + 1, -1)
            self.register_buffer("pairs", at[0] * (tables + 1) + at[1])

        def forward(self, x, ids):
            x = self.bottom(x)
            bags = [table(ids[:, i]).sum(1) * 0.1 for i, table in enumerate(self.tables)]
            all_of = torch.stack([x] + bags, 1)
            products = (all_of @ all_of.transpose(1, 2)).flatten(1)[:, self.pairs]
            return torch.sigmoid(self.top(torch.cat([x, products], 1)))
    return finish(Recommender(), numbers(batch, 13), whole(rows, batch, tables, words))


def patchtst():
    """Patches of 7 series of 512 values to 96 values ahead: 3 layers of 128 with batch norms, 8 samples."""
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention(128, 16)
            self.a, self.b = nn.BatchNorm1d(128), nn.BatchNorm1d(128)
            self.mlp = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128))

        def forward(self, x):
            x = self.a((x + self.attention(x)).transpose(1, 2)).transpose(1, 2)
            return self.b((x + self.mlp(x)).transpose(1, 2)).transpose(1, 2)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(16, 128)
            self.places = nn.Parameter(torch.zeros(64, 128))
            self.layers = nn.Sequential(*(Layer() for _ in range(3)))
            self.out = nn.Linear(64 * 128, 96)

        def forward(self, x):
            mean = x.mean(1, keepdim=True)
            spread = (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
            y = ((x - mean) / spread).transpose(1, 2)
            y = functional.pad(y, (0, 8), mode="replicate").unfold(-1, 16, 8)
            y = self.layers((self.project(y) + self.places).flatten(0, 1))
            y = self.out(y.flatten(1)).unflatten(0, (x.shape[0], -1)).transpose(1, 2)
            return y * spread + mean
    return finish(Network(), numbers(8, 512, 7))


def nbeats():
    """N-BEATS: 12 blocks of four layers of 512, each takes its part off what is left; 64 series."""
    class Part(nn.Module):
        def __init__(self, past, ahead):
            super().__init__()
            sizes = [past] + [512] * 4
            self.body = nn.Sequential(*(m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())))
            self.back, self.on = nn.Linear(512, past), nn.Linear(512, ahead)

        def forward(self, x):
            y = self.body(x)
            return self.back(y), self.on(y)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(Part(120, 24) for _ in range(12))

        def forward(self, x):
            ahead = 0
            for part in self.parts:
                back, on = part(x)
                x, ahead = x - back, ahead + on
            return ahead
    return finish(Network(), numbers(64, 120))


def tab_transformer():
    """Columns as tokens: 32 of words, 10 of numbers, batch 64, 4 layers of 32 with 8 heads."""
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(32 * 100, 32)
            self.register_buffer("first", torch.arange(32) * 100)
            self.layers = nn.Sequential(*(Block(32, 8, 128) for _ in range(4)))
            self.norm = nn.LayerNorm(10)
            self.out = nn.Sequential(nn.Linear(32 * 32 + 10, 512), nn.SELU(), nn.Linear(512, 128), nn.SELU(),
                                     nn.Linear(128, 2))

        def forward(self, words, values):
            x = self.layers(self.table(words + self.first))
            return self.out(torch.cat([x.flatten(1), self.norm(values)], -1))
    return finish(Network(), whole(100, 64, 32), numbers(64, 10))


MODELS = {f.__name__: f for f in (gcn, gat, dlrm, patchtst, nbeats, tab_transformer)}

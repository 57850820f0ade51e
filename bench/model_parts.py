#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What models of bench/unseen_*.py are made of: inputs, weights, attention and transformer blocks."""
import math

import torch
from torch import nn

SEED = 11


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED))


def whole(limit, *shape):
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(SEED))


def finish(model, *inputs):
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.ndim >= 2 and "table" not in name:
                transposed = name.endswith("up_weight")
                p.copy_(noise / math.sqrt(max(p[:, 0].numel() if transposed else p[0].numel(), 1)))
            elif p.ndim >= 2:
                p.copy_(noise)
            elif name.endswith("bias"):
                p.copy_(noise * 0.1)
            else:
                p.copy_(1 + 0.1 * noise)
        for name, b in model.named_buffers():
            if name.endswith("running_var"):
                b.copy_(0.5 + torch.rand(b.shape, generator=generator))
            elif name.endswith("running_mean"):
                b.copy_(0.1 * torch.randn(b.shape, generator=generator))
    return model.eval(), inputs


class Attention(nn.Module):
    def __init__(self, width, heads, source=None):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(source or width, width)
        self.v = nn.Linear(source or width, width)
        self.o = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, source=None, bias=None):
        source = x if source is None else source
        q, k, v = self.split(self.q(x)), self.split(self.k(source)), self.split(self.v(source))
        scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]))
        scores = scores if bias is None else scores + bias
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A pre-norm transformer block, with what is attended to from outside if there is any."""

    def __init__(self, width, heads, hidden, source=None):
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, source)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x, source=None, bias=None):
        x = x + self.attention(self.before(x), source, bias)
        return x + self.mlp(self.after(x))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of sequences that no kernel was written for: bench/unseen.py measures them.

MODELS names functions that give a module in eval mode and a tuple of inputs. Sizes are those that such models have in
use, layers are fewer; weights are random and keep activations of the order of 1."""
import math

import torch
from model_parts import Attention, Block, finish, numbers, whole
from torch import nn
from torch.nn import functional


# --- speech -----------------------------------------------------------------------------------------------------------

def whisper_encoder():
    """The encoder of whisper-tiny, whole: 30 s of 80 bands, 1,500 steps."""
    import transformers
    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    config._attn_implementation = "eager"
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = WhisperEncoder(config)

        def forward(self, x):
            return self.encoder(x).last_hidden_state
    return finish(Encoder(), numbers(1, 80, 3000))


def wav2vec2():
    """wav2vec2-base with 4 of its 12 layers, one second of sound."""
    import transformers
    config = transformers.Wav2Vec2Config(num_hidden_layers=4)

    class Recogniser(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.Wav2Vec2Model(config)

        def forward(self, x):
            return self.model(x).last_hidden_state
    return finish(Recogniser(), numbers(1, 16000))


class ConformerLayer(nn.Module):
    def __init__(self, width, heads, taps):
        super().__init__()
        half = lambda: nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                                     nn.Linear(4 * width, width))
        self.first, self.second = half(), half()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.into = nn.LayerNorm(width)
        self.open = nn.Conv1d(width, 2 * width, 1)
        self.slide = nn.Conv1d(width, width, taps, padding=taps // 2, groups=width)
        self.batch = nn.BatchNorm1d(width)
        self.close = nn.Conv1d(width, width, 1)
        self.last = nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.first(x)
        x = x + self.attention(self.norm(x))
        y = functional.glu(self.open(self.into(x).transpose(1, 2)), dim=1)
        y = self.close(functional.silu(self.batch(self.slide(y)))).transpose(1, 2)
        x = x + y
        return self.last(x + 0.5 * self.second(x))


def conformer():
    """A conformer over 10 s of sound: 80 bands, convolutions that leave a fourth, 6 layers of 256."""
    class Conformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(1, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 2), nn.ReLU())
            self.project = nn.Linear(64 * 19, 256)
            self.layers = nn.ModuleList(ConformerLayer(256, 4, 31) for _ in range(6))
            self.out = nn.Linear(256, 1024)

        def forward(self, x):
            x = self.stem(x[:, None])
            x = self.project(x.transpose(1, 2).flatten(2))
            for layer in self.layers:
                x = layer(x)
            return self.out(x).log_softmax(-1)
    return finish(Conformer(), numbers(1, 1000, 80))


class Wave(nn.Module):
    """WaveNet: three cycles of ten dilations, gates, residuals and skips."""

    def __init__(self, width=64, skip=128):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.dilations = [1 << i for i in range(10)] * 3
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=d) for d in self.dilations)
        self.on = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in self.dilations)
        self.skip = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in self.dilations)
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, 256, 1), nn.ReLU(), nn.Conv1d(256, 256, 1))

    def forward(self, x):
        x, skips = self.first(x), 0
        for d, gate, on, skip in zip(self.dilations, self.gates, self.on, self.skip):
            a, b = gate(functional.pad(x, (d, 0))).chunk(2, 1)
            y = torch.tanh(a) * torch.sigmoid(b)
            skips = skips + skip(y)
            x = x + on(y)
        return self.last(skips)


def wavenet():
    return finish(Wave(), numbers(1, 1, 4000))


def tcn():
    """A temporal convolution network: 8 levels, 3 taps, weights of 4 sequences of 1,000 steps."""
    class Level(nn.Module):
        def __init__(self, source, width, step):
            super().__init__()
            self.step = step
            self.a, self.b = nn.Conv1d(source, width, 3, dilation=step), nn.Conv1d(width, width, 3, dilation=step)
            self.norm_a, self.norm_b = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
            self.side = nn.Conv1d(source, width, 1) if source != width else nn.Identity()

        def forward(self, x):
            left = (2 * self.step, 0)
            y = torch.relu(self.norm_a(self.a(functional.pad(x, left))))
            y = torch.relu(self.norm_b(self.b(functional.pad(y, left))))
            return torch.relu(y + self.side(x))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.levels = nn.Sequential(*(Level(24 if i == 0 else 96, 96, 1 << i) for i in range(8)))
            self.out = nn.Linear(96, 10)

        def forward(self, x):
            return self.out(self.levels(x)[:, :, -1])
    return finish(Network(), numbers(4, 24, 1000))


def hifigan():
    """The second HiFi-GAN generator (128 channels): 64 frames of 80 bands become 16,384 samples."""
    class Residual(nn.Module):
        def __init__(self, width, taps):
            super().__init__()
            self.first = nn.ModuleList(nn.Conv1d(width, width, taps, dilation=d, padding=d * (taps // 2))
                                       for d in (1, 3, 5))
            self.second = nn.ModuleList(nn.Conv1d(width, width, taps, padding=taps // 2) for _ in range(3))

        def forward(self, x):
            for a, b in zip(self.first, self.second):
                x = x + b(functional.leaky_relu(a(functional.leaky_relu(x, 0.1)), 0.1))
            return x

    class Generator(nn.Module):
        def __init__(self, width=128, rates=(8, 8, 2, 2), taps=(16, 16, 4, 4)):
            super().__init__()
            self.first = nn.Conv1d(80, width, 7, padding=3)
            self.up = nn.ModuleList(nn.ConvTranspose1d(width >> i, width >> (i + 1), t, r, padding=(t - r) // 2)
                                    for i, (r, t) in enumerate(zip(rates, taps)))
            self.fields = nn.ModuleList(nn.ModuleList(Residual(width >> (i + 1), k) for k in (3, 7, 11))
                                        for i in range(len(rates)))
            self.last = nn.Conv1d(width >> len(rates), 1, 7, padding=3)

        def forward(self, x):
            x = self.first(x)
            for up, fields in zip(self.up, self.fields):
                x = up(functional.leaky_relu(x, 0.1))
                x = sum(field(x) for field in fields) / len(fields)
            return torch.tanh(self.last(functional.leaky_relu(x)))
    return finish(Generator(), numbers(1, 80, 64))


# --- long memory ------------------------------------------------------------------------------------------------------

def mamba2():
    """State-space duality in chunks (the short form of Mamba-2): 4 layers of 512, 512 steps."""
    width, heads, depth, state, chunk, taps = 512, 16, 64, 64, 64, 4

    def segments(a):
        """Sums of a over every stretch, minus infinity above the diagonal."""
        length = a.shape[-1]
        total = a.cumsum(-1)
        spans = total[..., :, None] - total[..., None, :]
        return spans.masked_fill(~torch.ones(length, length, dtype=torch.bool).tril(), -math.inf)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.gated = nn.RMSNorm(width), nn.RMSNorm(heads * depth)
            self.into = nn.Linear(width, 2 * heads * depth + 2 * state + heads, bias=False)
            self.slide = nn.Conv1d(heads * depth + 2 * state, heads * depth + 2 * state, taps, padding=taps - 1,
                                   groups=heads * depth + 2 * state)
            self.rate = nn.Parameter(torch.zeros(heads))
            self.through = nn.Parameter(torch.ones(heads))
            self.back = nn.Linear(heads * depth, width, bias=False)

        def scan(self, x, a, b, c):
            cut = lambda t: t.unflatten(1, (-1, chunk))
            x, a, b, c = cut(x), cut(a).permute(0, 3, 1, 2), cut(b), cut(c)
            total = a.cumsum(-1)
            within = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b, segments(a).exp(), x)
            left = (total[..., -1:] - total).exp()
            states = torch.einsum("bcln,bhcl,bclhp->bchpn", b, left, x)
            states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
            decay = segments(functional.pad(total[..., -1], (1, 0))).exp()
            states = torch.einsum("bhzc,bchpn->bzhpn", decay, states)[:, :-1]
            across = torch.einsum("bcln,bchpn,bhcl->bclhp", c, states, total.exp())
            return (within + across).flatten(1, 2)

        def forward(self, x):
            gate, y, step = self.into(self.norm(x)).split([heads * depth, heads * depth + 2 * state, heads], -1)
            y = functional.silu(self.slide(y.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
            y, b, c = y.split([heads * depth, state, state], -1)
            step = functional.softplus(step)
            y = y.unflatten(-1, (heads, depth))
            z = self.scan(y * step[..., None], -self.rate.exp() * step, b, c) + y * self.through[:, None]
            return x + self.back(self.gated(z.flatten(2) * functional.silu(gate)))

    return finish(nn.Sequential(*(Layer() for _ in range(4)), nn.RMSNorm(width)), numbers(1, 512, width))


def retnet():
    """Retention in its parallel form, with rotations, decays and group norms: 4 layers of 512, 256 steps."""
    width, heads, length = 512, 8, 256

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.q, self.k = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.v, self.gate = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
            self.o = nn.Linear(2 * width, width, bias=False)
            self.groups = nn.GroupNorm(heads, 2 * width)
            self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

        def forward(self, x, sin, cos, decay):
            def turn(t):
                t = t.unflatten(-1, (heads, -1)).transpose(1, 2)
                odd = torch.stack([-t[..., 1::2], t[..., ::2]], -1).flatten(-2)
                return t * cos + odd * sin
            y = self.before(x)
            scores = turn(self.q(y)) @ turn(self.k(y) * 0.125).transpose(-1, -2) * decay
            scores = scores / scores.detach().abs().sum(-1, keepdim=True).clamp(min=1)
            y2 = (scores @ self.v(y).unflatten(-1, (heads, -1)).transpose(1, 2)).transpose(1, 2).flatten(2)
            y2 = self.groups(y2.flatten(0, 1)).unflatten(0, (1, -1))
            x = x + self.o(y2 * functional.silu(self.gate(y)))
            return x + self.mlp(self.after(x))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(4))
            angle = torch.arange(length)[:, None] * (10000 ** -torch.linspace(0, 1, 32)).repeat_interleave(2)
            rate = torch.log(1 - 2.0 ** (-5 - torch.arange(heads)))
            gap = torch.arange(length)[:, None] - torch.arange(length)
            decay = torch.where(gap >= 0, torch.exp(gap * rate[:, None, None]), 0.0)
            for name, value in (("sin", angle.sin()), ("cos", angle.cos()), ("decay", decay)):
                self.register_buffer(name, value)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x, self.sin, self.cos, self.decay)
            return x
    return finish(Network(), numbers(1, length, width))


def linear_attention():
    """Causal linear attention by running sums of outer products, beside a depthwise convolution."""
    width, heads, length = 256, 8, 256

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
            q, k = functional.elu(q) + 1, functional.elu(k) + 1
            state = (k[..., :, None] * v[..., None, :]).cumsum(2)
            below = (q * k.cumsum(2)).sum(-1, keepdim=True)
            y = (q[..., None, :] @ state)[..., 0, :] / (below + 1e-6)
            x = x + self.o(y.transpose(1, 2).flatten(2))
            return x + self.mlp(self.after(x))
    return finish(nn.Sequential(*(Layer() for _ in range(3))), numbers(1, length, width))


def tagger():
    """Words and their letters to labels: letters by a convolution, two layers of LSTM both ways, 8 sentences."""
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.letters = nn.Embedding(10000, 200), nn.Embedding(100, 32)
            self.slide = nn.Conv1d(32, 56, 3, padding=1)
            self.lstm = nn.LSTM(256, 256, 2, bidirectional=True, batch_first=True)
            self.out = nn.Linear(512, 20)

        def forward(self, words, letters):
            x = self.slide(self.letters(letters).flatten(0, 1).transpose(1, 2)).amax(-1)
            x = torch.cat([self.table(words), x.unflatten(0, words.shape)], -1)
            return self.out(self.lstm(x)[0]).log_softmax(-1)
    return finish(Tagger(), whole(10000, 8, 48), whole(100, 8, 48, 12))


def gru_enhancer():
    """Noise suppression: two GRU layers of 384 over 200 frames of one voice."""
    class Enhancer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(257, 384)
            self.gru = nn.GRU(384, 384, 2, batch_first=True)
            self.last = nn.Sequential(nn.Linear(384, 600), nn.ReLU(), nn.Linear(600, 257), nn.Sigmoid())

        def forward(self, x):
            return x * self.last(self.gru(torch.relu(self.first(x.abs().log1p())))[0])
    return finish(Enhancer(), numbers(1, 200, 257))


# --- transformers of other kinds --------------------------------------------------------------------------------------

def experts_dense():
    """Two of eight experts, all of them computed and weighed: 128 tokens, 3 layers of 256."""
    width, hidden, count = 256, 512, 8

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.after, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, 8)
            self.route = nn.Linear(width, count, bias=False)
            self.up = nn.Parameter(torch.zeros(count, width, 2 * hidden))
            self.down = nn.Parameter(torch.zeros(count, hidden, width))

        def forward(self, x):
            x = x + self.attention(self.norm(x))
            y = self.after(x)[0]
            weights, chosen = self.route(y).softmax(-1).topk(2, -1)
            weights = weights / weights.sum(-1, keepdim=True)
            shares = torch.zeros(y.shape[0], count).scatter(1, chosen, weights)
            a, b = (y[None] @ (self.up * 1.4)).chunk(2, -1)
            y = (functional.silu(a) * b) @ (self.down * 0.7)
            return x + (y * shares.t()[..., None]).sum(0)[None]
    return finish(nn.Sequential(*(Layer() for _ in range(3))), numbers(1, 128, width))


def experts_gathered():
    """One token a sequence, 4 sequences: the weights of two of eight experts are gathered, then multiplied."""
    width, hidden, count = 512, 1024, 8

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.route = nn.Linear(width, count, bias=False)
            self.up = nn.Parameter(torch.zeros(count, 2 * hidden, width))
            self.down = nn.Parameter(torch.zeros(count, width, hidden))

        def forward(self, x):
            y = self.norm(x)
            best, chosen = self.route(y).topk(2, -1)
            a, b = torch.einsum("teod,td->teo", self.up[chosen], y).chunk(2, -1)
            y = torch.einsum("tedo,teo->ted", self.down[chosen], functional.silu(a) * b)
            return x + (y * best.softmax(-1)[..., None]).sum(1)
    return finish(nn.Sequential(*(Layer() for _ in range(4))), numbers(4, width))


def perceiver():
    """128 latents look at 2,048 inputs twice, with 4 blocks each time."""
    class Perceiver(nn.Module):
        def __init__(self):
            super().__init__()
            self.latents = nn.Parameter(torch.zeros(1, 128, 512))
            self.inputs = nn.Linear(96, 256)
            self.looks = nn.ModuleList(Block(512, 8, 1024, 256) for _ in range(2))
            self.blocks = nn.ModuleList(Block(512, 8, 1024) for _ in range(4))
            self.norm, self.out = nn.LayerNorm(256), nn.Linear(512, 100)

        def forward(self, x):
            source, x = self.norm(self.inputs(x)), self.latents * 20
            for look in self.looks:
                x = look(x, source)
                for block in self.blocks:
                    x = block(x)
            return self.out(x.mean(1))
    return finish(Perceiver(), numbers(1, 2048, 96))


def alibi_window():
    """A decoder of 512 tokens with slopes and a window of 128 (masks computed by the model), 4 layers of 512."""
    class Decoder(nn.Module):
        def __init__(self, heads=8):
            super().__init__()
            self.table = nn.Embedding(8000, 512)
            self.layers = nn.ModuleList(Block(512, heads, 2048) for _ in range(4))
            self.out = nn.Linear(512, 8000, bias=False)
            self.register_buffer("slopes", 2.0 ** -(1 + torch.arange(heads).float()))

        def forward(self, ids):
            at = torch.arange(ids.shape[1])
            gap = at[:, None] - at
            bias = -self.slopes[:, None, None] * gap
            bias = bias.masked_fill((gap < 0) | (gap >= 128), -1e9)
            x = self.table(ids)
            for layer in self.layers:
                x = layer(x, bias=bias)
            return self.out(x[:, -1:])
    return finish(Decoder(), whole(8000, 1, 512))


def bart_step():
    """One step of a BART decoder: 127 tokens before it, 256 of the source, 6 layers of 768."""
    layers, heads, width, past, source = 6, 12, 768, 127, 256

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.other = Attention(width, heads), Attention(width, heads)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def attend(self, part, x, k, v):
            q = part.split(part.q(x)) * 0.125
            return part.o(((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).flatten(2))

        def forward(self, x, k, v, source_k, source_v):
            k = torch.cat([k, self.own.split(self.own.k(x))], 2)
            v = torch.cat([v, self.own.split(self.own.v(x))], 2)
            x = self.norms[0](x + self.attend(self.own, x, k, v))
            x = self.norms[1](x + self.attend(self.other, x, source_k, source_v))
            return self.norms[2](x + self.mlp(x)), k, v

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(16000, width)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))

        def forward(self, ids, *cache):
            x, kept = self.table(ids), []
            for i, layer in enumerate(self.layers):
                x, k, v = layer(x, *cache[4 * i:4 * i + 4])
                kept += [k, v]
            return functional.linear(x, self.table.weight), *kept
    caches = [numbers(1, heads, past if i % 4 < 2 else source, 64) for i in range(4 * layers)]
    return finish(Step(), whole(16000, 1, 1), *caches)


MODELS = {f.__name__: f for f in (
    whisper_encoder, wav2vec2, conformer, wavenet, tcn, hifigan, mamba2, retnet, linear_attention, tagger, gru_enhancer,
    experts_dense, experts_gathered, perceiver, alibi_window, bart_step)}

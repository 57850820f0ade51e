#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of images that no kernel was written for: bench/unseen.py measures them.

MODELS is as in unseen_sequence.py."""
import torch
from model_parts import Attention, Block, finish, numbers
from torch import nn
from torch.nn import functional


def conv(inside, outside, size=3, stride=1, groups=1, dilation=1, act=nn.ReLU):
    """A convolution that keeps its picture, a batch norm and a function."""
    pad = (size - 1) // 2 * dilation
    layers = [nn.Conv2d(inside, outside, size, stride, pad, dilation, groups, bias=False), nn.BatchNorm2d(outside)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, after=nn.ReLU):
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()
        self.after = after() if after else nn.Identity()

    def forward(self, x):
        return self.after(self.body(x) + self.shortcut(x))


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, width, inner, gate=nn.Hardsigmoid):
        super().__init__()
        self.layers = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, inner, 1), nn.ReLU(),
                                    nn.Conv2d(inner, width, 1), gate())

    def forward(self, x):
        return x * self.layers(x)


def classifier(width, classes=1000):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


# --- classification ---------------------------------------------------------------------------------------------------

def densenet():
    """Layers that read all before them: a growing concat."""

    class Dense(nn.Module):
        def __init__(self, inside, count, growth=32):
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Sequential(nn.BatchNorm2d(inside + i * growth), nn.ReLU(),
                              nn.Conv2d(inside + i * growth, 4 * growth, 1, bias=False), nn.BatchNorm2d(4 * growth),
                              nn.ReLU(), nn.Conv2d(4 * growth, growth, 3, 1, 1, bias=False)) for i in range(count))

        def forward(self, x):
            for layer in self.layers:
                x = torch.cat([x, layer(x)], 1)
            return x

    layers, width = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for count in (6, 8, 6):
        layers.append(Dense(width, count))
        width += 32 * count
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
        width //= 2
    return finish(nn.Sequential(*layers, classifier(width)), numbers(1, 3, 224, 224))


def resnext():
    """Grouped convolutions: 32 groups of 4 to 16 channels."""

    def block(inside, width, outside, stride):
        return Residual(nn.Sequential(conv(inside, width, 1), conv(width, width, 3, stride, 32),
                                      conv(width, outside, 1, act=None)),
                        conv(inside, outside, 1, stride, act=None) if inside != outside else None)

    layers, inside = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((128, 2, 1), (256, 2, 2), (512, 2, 2)):
        for i in range(count):
            layers.append(block(inside, width, 2 * width, stride if i == 0 else 1))
            inside = 2 * width
    return finish(nn.Sequential(*layers, classifier(inside)), numbers(1, 3, 224, 224))


def shufflenet():
    """Halves of the channels, which are interleaved after each block."""

    class Shuffle(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            half = outside // 2
            self.stride = stride
            own = inside if stride == 2 else half
            self.right = nn.Sequential(conv(own, half, 1), conv(half, half, 3, stride, half, act=None),
                                       conv(half, half, 1))
            self.left = nn.Sequential(conv(inside, inside, 3, 2, inside, act=None), conv(inside, half, 1))

        def forward(self, x):
            left, right = (self.left(x), x) if self.stride == 2 else x.chunk(2, 1)
            y = torch.cat([left, self.right(right)], 1)
            return y.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)

    layers, inside = [conv(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)], 24
    for outside, count in ((116, 4), (232, 8), (464, 4)):
        for i in range(count):
            layers.append(Shuffle(inside, outside, 2 if i == 0 else 1))
            inside = outside
    return finish(nn.Sequential(*layers, conv(inside, 1024, 1), classifier(1024)), numbers(1, 3, 224, 224))


def mobilenet_v3():
    """Hard swish, windows of 5x5, gates."""

    def block(inside, inner, outside, size, stride, gated, act):
        body = [conv(inside, inner, 1, act=act), conv(inner, inner, size, stride, inner, act=act)]
        body += [Gate(inner, inner // 4)] if gated else []
        body = nn.Sequential(*body, conv(inner, outside, 1, act=None))
        return Residual(body, after=None) if stride == 1 and inside == outside else body

    rows = ((16, 16, 16, 3, 1, 0, nn.ReLU), (16, 64, 24, 3, 2, 0, nn.ReLU), (24, 72, 24, 3, 1, 0, nn.ReLU),
            (24, 72, 40, 5, 2, 1, nn.ReLU), (40, 120, 40, 5, 1, 1, nn.ReLU), (40, 240, 80, 3, 2, 0, nn.Hardswish),
            (80, 200, 80, 3, 1, 0, nn.Hardswish), (80, 480, 112, 3, 1, 1, nn.Hardswish),
            (112, 672, 160, 5, 2, 1, nn.Hardswish), (160, 960, 160, 5, 1, 1, nn.Hardswish))
    layers = [conv(3, 16, 3, 2, act=nn.Hardswish)] + [block(*row) for row in rows]
    return finish(nn.Sequential(*layers, conv(160, 960, 1, act=nn.Hardswish), classifier(960)),
                  numbers(1, 3, 224, 224))


def swin():
    """Windows of 7x7 of a picture that is rolled between blocks, with a bias for each place in a window."""

    class Windows(nn.Module):
        def __init__(self, width, heads, shift):
            super().__init__()
            self.shift = shift
            self.block = Block(width, heads, 4 * width)
            self.table = nn.Parameter(torch.zeros(heads, 49, 49))

        def forward(self, x):
            b, h, w, c = x.shape
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x
            x = x.view(b, h // 7, 7, w // 7, 7, c).transpose(2, 3).reshape(-1, 49, c)
            x = self.block(x, bias=self.table)
            x = x.view(b, h // 7, w // 7, 7, 7, c).transpose(2, 3).reshape(b, h, w, c)
            return torch.roll(x, (self.shift, self.shift), (1, 2)) if self.shift else x

    class Merge(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.reduce = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

        def forward(self, x):
            pieces = [x[:, i::2, j::2] for j in range(2) for i in range(2)]
            return self.reduce(self.norm(torch.cat(pieces, -1)))

    class Swin(nn.Module):
        def __init__(self):
            super().__init__()
            self.cut = nn.Conv2d(3, 96, 4, 4)
            self.layers = nn.Sequential(Windows(96, 3, 0), Windows(96, 3, 3), Merge(96), Windows(192, 6, 0),
                                        Windows(192, 6, 3), Merge(192), Windows(384, 12, 0), Windows(384, 12, 3))
            self.head = nn.Linear(384, 1000)

        def forward(self, x):
            return self.head(self.layers(self.cut(x).permute(0, 2, 3, 1)).mean((1, 2)))

    return finish(Swin(), numbers(1, 3, 224, 224))


def efficient_vit():
    """Attention without a softmax, of ReLUs, over 28 x 28 places."""

    class Linear(nn.Module):
        def __init__(self, width, head=16):
            super().__init__()
            self.head = head
            self.qkv, self.o = nn.Conv2d(width, 3 * width, 1, bias=False), conv(width, width, 1, act=None)
            self.near = nn.Conv2d(3 * width, 3 * width, 5, 1, 2, groups=3 * width, bias=False)

        def forward(self, x):
            qkv = self.near(self.qkv(x))
            q, k, v = qkv.flatten(2).unflatten(1, (-1, 3 * self.head)).transpose(2, 3).chunk(3, -1)
            q, k = functional.relu(q), functional.relu(k)
            v = functional.pad(v, (0, 1), value=1.0)
            y = q @ (k.transpose(-1, -2) @ v)
            y = y[..., :-1] / (y[..., -1:] + 1e-6)
            return x + self.o(y.transpose(2, 3).flatten(1, 2).view(x.shape))

    def mixed(width):
        return Residual(nn.Sequential(conv(width, 4 * width, 1, act=nn.Hardswish),
                                      conv(4 * width, 4 * width, 3, 1, 4 * width, act=nn.Hardswish),
                                      conv(4 * width, width, 1, act=None)), after=None)

    layers = [conv(3, 32, 3, 2, act=nn.Hardswish), conv(32, 64, 3, 2, act=nn.Hardswish),
              conv(64, 128, 3, 2, act=nn.Hardswish)]
    for _ in range(3):
        layers += [Linear(128), mixed(128)]
    return finish(nn.Sequential(*layers, classifier(128)), numbers(1, 3, 224, 224))


# --- dense predictions ------------------------------------------------------------------------------------------------

def deeplab():
    """A segmentation head with dilated branches, a pooled one, and two bilinear resizes."""

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.early = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2))
            self.late = nn.Sequential(conv(64, 128, 3, 2), conv(128, 256, 3, 2), conv(256, 256, dilation=2))
            self.branches = nn.ModuleList([conv(256, 128, 1)] + [conv(256, 128, dilation=d) for d in (6, 12, 18)])
            self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(256, 128, 1), nn.ReLU())
            self.join, self.skip = conv(5 * 128, 128, 1), conv(64, 48, 1)
            self.last = nn.Sequential(conv(176, 128), nn.Conv2d(128, 21, 1))

        def forward(self, x):
            early = self.early(x)
            y = self.late(early)
            pooled = self.pooled(y).expand(-1, -1, y.shape[2], y.shape[3])
            y = self.join(torch.cat([b(y) for b in self.branches] + [pooled], 1))
            y = functional.interpolate(y, size=early.shape[2:], mode="bilinear", align_corners=False)
            y = self.last(torch.cat([y, self.skip(early)], 1))
            return functional.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)

    return finish(Head(), numbers(1, 3, 320, 320))


def segformer():
    """Attention whose keys are pooled by a strided convolution, a depthwise convolution in the MLP, an all-MLP head."""

    class Stage(nn.Module):
        def __init__(self, inside, width, heads, stride, pooled):
            super().__init__()
            self.cut = nn.Conv2d(inside, width, 2 * stride - 1, stride, stride - 1)
            self.before, self.after, self.norm = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = Attention(width, heads)
            self.pool = nn.Conv2d(width, width, pooled, pooled) if pooled > 1 else nn.Identity()
            self.one, self.two = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.near = nn.Conv2d(4 * width, 4 * width, 3, 1, 1, groups=4 * width)

        def forward(self, x):
            x = self.cut(x)
            shape = x.shape[2:]
            x = x.flatten(2).transpose(1, 2)
            y = self.before(x)
            keys = self.norm(self.pool(y.transpose(1, 2).unflatten(2, shape)).flatten(2).transpose(1, 2))
            x = x + self.attention(y, keys)
            y = self.one(self.after(x)).transpose(1, 2).unflatten(2, shape)
            x = x + self.two(functional.gelu(self.near(y).flatten(2).transpose(1, 2)))
            return x.transpose(1, 2).unflatten(2, shape)

    class Segformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.stages = nn.ModuleList([Stage(3, 32, 1, 4, 8), Stage(32, 64, 2, 2, 4), Stage(64, 160, 5, 2, 2)])
            self.heads = nn.ModuleList(nn.Conv2d(w, 128, 1) for w in (32, 64, 160))
            self.last = nn.Sequential(conv(384, 128, 1), nn.Conv2d(128, 19, 1))

        def forward(self, x):
            found = []
            for stage, head in zip(self.stages, self.heads):
                x = stage(x)
                y = head(x)
                found.append(functional.interpolate(y, size=found[0].shape[2:], mode="bilinear") if found else y)
            return self.last(torch.cat(found, 1))

    return finish(Segformer(), numbers(1, 3, 256, 256))


def diffusion_unet():
    """A step of latent diffusion: group norms, SiLU, time embedding, self and cross attention, nearest resizes."""

    class Resnet(nn.Module):
        def __init__(self, inside, outside):
            super().__init__()
            self.one = nn.Sequential(nn.GroupNorm(32, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, 1, 1))
            self.time = nn.Sequential(nn.SiLU(), nn.Linear(512, outside))
            self.two = nn.Sequential(nn.GroupNorm(32, outside), nn.SiLU(), nn.Conv2d(outside, outside, 3, 1, 1))
            self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

        def forward(self, x, time):
            return self.skip(x) + self.two(self.one(x) + self.time(time)[:, :, None, None])

    class Attend(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.GroupNorm(32, width)
            self.block, self.cross = Block(width, 8, 4 * width), Block(width, 8, 4 * width, 512)

        def forward(self, x, text):
            y = self.norm(x).flatten(2).transpose(1, 2)
            y = self.cross(self.block(y), text)
            return x + y.transpose(1, 2).view(x.shape)

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(128, 512), nn.SiLU(), nn.Linear(512, 512))
            self.first = nn.Conv2d(4, 128, 3, 1, 1)
            self.a, self.b, self.c = Resnet(128, 128), Resnet(128, 256), Resnet(256, 256)
            self.attend, self.middle = Attend(256), Attend(256)
            self.down = nn.ModuleList([nn.Conv2d(128, 128, 3, 2, 1), nn.Conv2d(256, 256, 3, 2, 1)])
            self.up = nn.ModuleList([nn.Conv2d(256, 256, 3, 1, 1), nn.Conv2d(256, 256, 3, 1, 1)])
            self.d, self.e = Resnet(512, 256), Resnet(384, 128)
            self.last = nn.Sequential(nn.GroupNorm(32, 128), nn.SiLU(), nn.Conv2d(128, 4, 3, 1, 1))

        def forward(self, x, time, text):
            time = self.time(time)
            a = self.a(self.first(x), time)
            b = self.attend(self.b(self.down[0](a), time), text)
            c = self.middle(self.c(self.down[1](b), time), text)
            y = self.up[0](functional.interpolate(c, scale_factor=2.0, mode="nearest"))
            y = self.d(torch.cat([y, b], 1), time)
            y = self.up[1](functional.interpolate(y, scale_factor=2.0, mode="nearest"))
            return self.last(self.e(torch.cat([y, a], 1), time))

    return finish(Unet(), numbers(1, 4, 32, 32), numbers(1, 128), numbers(1, 77, 512))


def super_resolution():
    """A sub-pixel network: convolutions of 64 channels, channels to pixels at the end."""
    blocks = [Residual(nn.Sequential(nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1)), after=None)
              for _ in range(4)]
    model = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1), *blocks, nn.Conv2d(64, 256, 3, 1, 1), nn.PixelShuffle(2),
                          nn.Conv2d(64, 3, 3, 1, 1))
    return finish(model, numbers(1, 3, 128, 128))


def style_transfer():
    """Instance norms, reflected borders, a transposed convolution."""
    layers = [nn.ReflectionPad2d(4), nn.Conv2d(3, 32, 9), nn.InstanceNorm2d(32, affine=True), nn.ReLU(),
              nn.Conv2d(32, 64, 3, 2, 1), nn.InstanceNorm2d(64, affine=True), nn.ReLU()]
    for _ in range(3):
        layers.append(Residual(nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(64, 64, 3),
                                             nn.InstanceNorm2d(64, affine=True), nn.ReLU(), nn.ReflectionPad2d(1),
                                             nn.Conv2d(64, 64, 3), nn.InstanceNorm2d(64, affine=True)), after=None))
    layers += [nn.ConvTranspose2d(64, 32, 3, 2, 1, 1), nn.InstanceNorm2d(32, affine=True), nn.ReLU(),
               nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9), nn.Tanh()]
    return finish(nn.Sequential(*layers), numbers(1, 3, 192, 192))


# --- detection and places ---------------------------------------------------------------------------------------------

def detector():
    """A feature pyramid, heads on three levels, boxes from offsets, and the best 300."""

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2))
            self.down = nn.ModuleList([conv(64, 128, 3, 2), conv(128, 256, 3, 2), conv(256, 512, 3, 2)])
            self.side = nn.ModuleList([nn.Conv2d(w, 96, 1) for w in (128, 256, 512)])
            self.out = nn.ModuleList([conv(96, 96) for _ in range(3)])
            self.kinds, self.boxes = nn.Conv2d(96, 3 * 20, 3, 1, 1), nn.Conv2d(96, 3 * 4, 3, 1, 1)

        def forward(self, x):
            x, found = self.stem(x), []
            for layer in self.down:
                x = layer(x)
                found.append(x)
            levels, above = [], None
            for x, side, out in reversed(list(zip(found, self.side, self.out))):
                y = side(x)
                y = y if above is None else y + functional.interpolate(above, scale_factor=2.0, mode="nearest")
                above = y
                levels.append(out(y))
            kinds = [self.kinds(y).unflatten(1, (3, 20)).permute(0, 3, 4, 1, 2).flatten(1, 3) for y in levels]
            boxes = [self.boxes(y).unflatten(1, (3, 4)).permute(0, 3, 4, 1, 2).flatten(1, 3) for y in levels]
            kinds, boxes = torch.cat(kinds, 1).sigmoid(), torch.cat(boxes, 1)
            centre, size = boxes[..., :2], torch.exp(boxes[..., 2:].clamp(max=4))
            boxes = torch.cat([centre - size / 2, centre + size / 2], -1)
            best, place = kinds.amax(-1).topk(300, 1)
            return best, torch.gather(boxes, 1, place[..., None].expand(-1, -1, 4))

    return finish(Detector(), numbers(1, 3, 320, 320))


def deformable():
    """Attention at four points of a feature map that each of 300 queries computes: sampling between pixels."""

    class Sampling(nn.Module):
        def __init__(self, width=256, heads=8, points=4):
            super().__init__()
            self.heads, self.points = heads, points
            self.value, self.o = nn.Linear(width, width), nn.Linear(width, width)
            self.offsets, self.weights = nn.Linear(width, heads * points * 2), nn.Linear(width, heads * points)
            self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, width))

        def forward(self, x, source, reference):
            value = self.value(source.flatten(2).transpose(1, 2))
            value = value.transpose(1, 2).reshape(self.heads, -1, *source.shape[2:])
            y = self.norm(x)
            offsets = self.offsets(y).view(-1, self.heads, self.points, 2).transpose(0, 1)
            weights = self.weights(y).view(-1, self.heads, self.points).transpose(0, 1).softmax(-1)
            grid = reference[None, :, None] + 0.1 * torch.tanh(offsets)
            found = functional.grid_sample(value, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
            y = (found * weights[:, None]).sum(-1)
            x = x + self.o(y.flatten(0, 1).t()[None])
            return x + self.mlp(self.after(x))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Sampling() for _ in range(3)])
            self.head = nn.Linear(256, 91)

        def forward(self, x, source, reference):
            for layer in self.layers:
                x = layer(x, source, reference)
            return self.head(x)

    return finish(Decoder(), numbers(1, 300, 256), numbers(1, 256, 40, 40), numbers(300, 2).tanh())


def video():
    """3-D convolutions, one of them in two parts, over 8 pictures."""

    def conv3(inside, outside, size, stride=1):
        size = (size,) * 3 if isinstance(size, int) else size
        return nn.Sequential(nn.Conv3d(inside, outside, size, stride, tuple(s // 2 for s in size), bias=False),
                             nn.BatchNorm3d(outside), nn.ReLU())

    layers = [conv3(3, 32, (3, 7, 7), (1, 2, 2)), nn.MaxPool3d((1, 3, 3), (1, 2, 2), (0, 1, 1)), conv3(32, 64, 3),
              conv3(64, 64, (1, 3, 3)), conv3(64, 64, (3, 1, 1)), conv3(64, 128, 3, 2), conv3(128, 128, 3),
              nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(128, 400)]
    return finish(nn.Sequential(*layers), numbers(1, 3, 8, 112, 112))


def optical_flow():
    """All pairs of two pictures' features, and a recurrent update that looks pairs up."""

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(conv(3, 64, 7, 2), conv(64, 96, 3, 2), conv(96, 128, 3, 2))
            self.pairs = conv(49, 96, 1)
            self.z, self.r, self.q = (nn.Conv2d(96 + 98, 96, 3, 1, 1) for _ in range(3))
            self.flow = nn.Conv2d(96, 2, 3, 1, 1)

        def forward(self, one, two, places, window):
            a, b = self.features(one), self.features(two)
            h, w = a.shape[2:]
            volume = (a.flatten(2).transpose(1, 2) @ b.flatten(2) / 11.3).view(h * w, 1, h, w)
            state, flow = torch.tanh(a[:, :96]), torch.zeros(1, 2, h, w)
            for _ in range(3):
                centre = flow.flatten(2).transpose(1, 2).view(h * w, 1, 1, 2) + places
                found = functional.grid_sample(volume, centre + window, align_corners=True)
                x = torch.cat([self.pairs(found.view(1, h, w, 49).permute(0, 3, 1, 2)), flow], 1)
                both = torch.cat([state, x], 1)
                z, r = torch.sigmoid(self.z(both)), torch.sigmoid(self.r(both))
                new = torch.tanh(self.q(torch.cat([r * state, x], 1)))
                state = (1 - z) * state + z * new
                flow = flow + 0.1 * torch.tanh(self.flow(state))
            return flow

    line = torch.linspace(-1, 1, 24)
    places = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).view(576, 1, 1, 2)
    near = torch.arange(-3, 4) / 12.0
    window = torch.stack(torch.meshgrid(near, near, indexing="xy"), -1).view(1, 7, 7, 2)
    return finish(Flow(), numbers(1, 3, 192, 192), numbers(1, 3, 192, 192).flip(3), places, window)


MODELS = {f.__name__: f for f in (densenet, resnext, shufflenet, mobilenet_v3, swin, efficient_vit, deeplab, segformer,
                                  diffusion_unet, super_resolution, style_transfer, detector, deformable, video,
                                  optical_flow)}

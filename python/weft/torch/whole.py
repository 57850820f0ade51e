# SPDX-License-Identifier: Apache-2.0
"""Ops that torch opens before a backend sees them, kept whole.

AOTAutograd opens resizes into some twenty gathers and sums, and recurrent networks into a copy of the cell for each
time step, whatever a table of decompositions says. So calls of these functions are replaced in dynamo's graph by calls
of functions here, which call ops of weft's own, ``weft::resize``, ``weft::lstm`` and ``weft::gru``. Each is an op of
torch's like others: it runs in eager by ATen's own code, knows the shape and strides of its results, and has a
gradient. What a call has that these ops do not take (other devices, autocast, integers, subclasses of tensors) goes to
torch's function as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

aten = torch.ops.aten
#: what stands for a tensor while AOTAutograd traces; other subclasses are the caller's
PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor, FunctionalTensor)


def is_plain(*tensors: torch.Tensor) -> bool:
    """Are these floats in memory of the CPU, and is no autocast on, which would cast them?"""
    return not torch.is_autocast_enabled("cpu") and all(
        type(t) in PLAIN and t.device.type == "cpu" and t.dtype.is_floating_point for t in tensors)


# --- resizes

#: ops of ATen; True: they take align_corners
RESIZES = {"upsample_nearest1d": False, "upsample_nearest2d": False, "upsample_nearest3d": False,
           "_upsample_nearest_exact1d": False, "_upsample_nearest_exact2d": False, "_upsample_nearest_exact3d": False,
           "upsample_linear1d": True, "upsample_bilinear2d": True, "upsample_trilinear3d": True,
           "upsample_bicubic2d": True, "_upsample_bilinear2d_aa": True, "_upsample_bicubic2d_aa": True}


def resize_name(axes: int, mode: str, antialias: bool) -> str:
    """Which of them F.interpolate takes, if there is one."""
    mode = mode.replace("nearest-exact", "nearest_exact")
    first = "_" if antialias or mode == "nearest_exact" else ""
    return f"{first}upsample_{mode}{axes}d{'_aa' if antialias else ''}"


def call_resize(name: str, x: torch.Tensor, sizes: Sequence[int], corners: bool,
                factors: Sequence[float]) -> torch.Tensor:
    smooth = [corners] if RESIZES[name] else []
    return getattr(aten, name).default(x, sizes, *smooth, *factors)


@torch.library.custom_op("weft::resize", mutates_args=())
def resize(x: torch.Tensor, sizes: Sequence[int], name: str, corners: bool,
           factors: Sequence[float]) -> torch.Tensor:
    """x [batch, channels, ...] at other ``sizes`` of the axes behind these; ``factors``: of each axis, or none."""
    return call_resize(name, x, sizes, corners, factors)


@resize.register_fake
def _(x, sizes, name, corners, factors):
    return call_resize(name, x, sizes, corners, factors)


def keep_sizes(ctx, inputs, output):
    x, ctx.sizes, ctx.name, ctx.corners, ctx.factors = inputs
    ctx.shape = x.shape


def resize_gradient(ctx, dy):
    backward = getattr(aten, ctx.name.replace("_aa", "") + ("_backward" if "_aa" not in ctx.name else "_aa_backward"))
    smooth = [ctx.corners] if RESIZES[ctx.name] else []
    return backward.default(dy, ctx.sizes, list(ctx.shape), *smooth, *ctx.factors), None, None, None, None


resize.register_autograd(resize_gradient, setup_context=keep_sizes)


def as_ratio(f: float) -> tuple[int, int] | None:
    """p and q for which size * p // q is int(size * f) of every size below 2**31, so that a size that changes stays an
    integer formula; None where there are none.

    If size * p / q is no integer, it is 1/q or more away from one, and no rounding crosses that. If it is one, size * f
    has to come out no smaller: f is at least p / q, or below it by less than the product is rounded up again."""
    if not 0 < f < 1024:
        return None
    exact = Fraction(f)
    ratio = exact.limit_denominator(256)
    near = abs(exact - ratio) <= ratio / 2**52 and (exact >= ratio or ratio - exact <= ratio / 2**54)
    return (ratio.numerator, ratio.denominator) if near else None


def scaled(size, f: float):
    ratio = as_ratio(f)
    return size * ratio[0] // ratio[1] if ratio else torch.sym_int(size * f)


def resized(x: torch.Tensor, factors: Sequence[float]) -> list:
    """Sizes from factors, as ATen rounds them: towards 0."""
    return [scaled(size, f) for size, f in zip(x.shape[2:], factors)]


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None,  # noqa: A002 - torch's names
                recompute_scale_factor=None, antialias=False):
    """torch.nn.functional.interpolate, which also says what is wrong with a call."""
    axes = input.dim() - 2
    name = resize_name(axes, mode, antialias)
    sizes = list(size) if isinstance(size, (list, tuple)) else [size] * axes
    factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * axes
    numbers = size is not None or all(isinstance(f, (int, float)) for f in factors)
    if (name not in RESIZES or not is_plain(input) or (size is None) == (scale_factor is None) or not numbers or
            len(sizes) != axes or len(factors) != axes or (recompute_scale_factor and size is not None) or
            (align_corners is not None and not RESIZES[name])):
        return torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor,
                                               antialias)
    if size is None:
        sizes = resized(input, factors)
    steps = [float(f) for f in factors] if size is None and not recompute_scale_factor else []
    return resize(input, sizes, name, bool(align_corners), steps)


# --- recurrent networks

@torch.library.custom_op("weft::lstm", mutates_args=())
def whole_lstm(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, weights: Sequence[torch.Tensor], biases: bool,
               layers: int, bidirectional: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x [times, batch, inputs]; otherwise torch.lstm without dropout."""
    results = torch.lstm(x, (h, c), list(weights), biases, layers, 0.0, False, bidirectional, False)
    return tuple(r.contiguous() for r in results)


@torch.library.custom_op("weft::gru", mutates_args=())
def whole_gru(x: torch.Tensor, h: torch.Tensor, weights: Sequence[torch.Tensor], biases: bool, layers: int,
              bidirectional: bool) -> tuple[torch.Tensor, torch.Tensor]:
    results = torch.gru(x, h, list(weights), biases, layers, 0.0, False, bidirectional, False)
    return tuple(r.contiguous() for r in results)


def outputs_of(x, h, layers, bidirectional):
    return x.new_empty(x.shape[0], x.shape[1], h.shape[2] * (2 if bidirectional else 1))


@whole_lstm.register_fake
def _(x, h, c, weights, biases, layers, bidirectional):
    return outputs_of(x, h, layers, bidirectional), h.new_empty(h.shape), c.new_empty(c.shape)


@whole_gru.register_fake
def _(x, h, weights, biases, layers, bidirectional):
    return outputs_of(x, h, layers, bidirectional), h.new_empty(h.shape)


def gradients_of(cell: Callable, gradients: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor],
                 options: Sequence) -> list[torch.Tensor]:
    """By ATen's own gradient of the network, which runs forward again; in a thread of its own, since in this one
    autograd is switched off while an op runs."""

    def compute() -> list[torch.Tensor]:
        leaves = [t.detach().requires_grad_() for t in tensors]
        states = 3 if cell is torch.lstm else 2
        state = tuple(leaves[1:3]) if cell is torch.lstm else leaves[1]
        biases, layers, bidirectional = options
        results = cell(leaves[0], state, leaves[states:], biases, layers, 0.0, True, bidirectional, False)
        return [g.contiguous() for g in torch.autograd.grad(results, leaves, gradients)]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(compute).result()


@torch.library.custom_op("weft::lstm_backward", mutates_args=())
def lstm_backward(gradients: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor], biases: bool, layers: int,
                  bidirectional: bool) -> list[torch.Tensor]:
    """``tensors``: x, the first states, the weights; returns their gradients in this order."""
    return gradients_of(torch.lstm, gradients, tensors, (biases, layers, bidirectional))


@torch.library.custom_op("weft::gru_backward", mutates_args=())
def gru_backward(gradients: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor], biases: bool, layers: int,
                 bidirectional: bool) -> list[torch.Tensor]:
    return gradients_of(torch.gru, gradients, tensors, (biases, layers, bidirectional))


def like_tensors(gradients, tensors, biases, layers, bidirectional):
    return [t.new_empty(t.shape) for t in tensors]


lstm_backward.register_fake(like_tensors)
gru_backward.register_fake(like_tensors)


def add_gradient(op, backward, states: int) -> None:
    """``states``: how many tensors stand in front of the weights."""

    def setup(ctx, inputs, output):
        tensors, weights, *options = *[inputs[:states]], inputs[states], *inputs[states + 1:]
        ctx.save_for_backward(*tensors, *weights)
        ctx.options = options

    def gradient(ctx, *gradients):
        made = backward(list(gradients), list(ctx.saved_tensors), *ctx.options)
        return (*made[:states], made[states:], *[None] * len(ctx.options))

    op.register_autograd(gradient, setup_context=setup)


add_gradient(whole_lstm, lstm_backward, 3)
add_gradient(whole_gru, gru_backward, 2)


def can_keep(tensors: Sequence[torch.Tensor], state: torch.Tensor, weights: Sequence[torch.Tensor], biases: bool,
             layers: int, dropout: float, train: bool, bidirectional: bool) -> bool:
    """No dropout between layers, no projection of the state."""
    directions = 2 if bidirectional else 1
    return (is_plain(*tensors, *weights) and not (train and dropout > 0) and
            len(weights) == layers * directions * (4 if biases else 2) and
            weights[1].shape[1] == state.shape[2])


def swap(x: torch.Tensor, batch_first: bool) -> torch.Tensor:
    return x.transpose(0, 1) if batch_first else x


def lstm(x, state, weights, *options):
    if isinstance(state, (tuple, list)) and isinstance(weights, (tuple, list)) and len(options) == 6:
        biases, layers, dropout, train, bidirectional, batch_first = options
        if can_keep((x, *state), state[0], weights, biases, layers, dropout, train, bidirectional):
            y, h, c = whole_lstm(swap(x, batch_first), *state, list(weights), biases, layers, bidirectional)
            return swap(y, batch_first), h, c
    return torch.lstm(x, state, weights, *options)


def gru(x, state, weights, *options):
    if isinstance(weights, (tuple, list)) and len(options) == 6:
        biases, layers, dropout, train, bidirectional, batch_first = options
        if can_keep((x, state), state, weights, biases, layers, dropout, train, bidirectional):
            y, h = whole_gru(swap(x, batch_first), state, list(weights), biases, layers, bidirectional)
            return swap(y, batch_first), h
    return torch.gru(x, state, weights, *options)


# --- the pass

WHOLE: dict[Callable, Callable] = {torch.nn.functional.interpolate: interpolate, torch.lstm: lstm, torch.gru: gru}
#: their names, as torch's cache of AOTAutograd asks for those of functions that make the same of the same arguments
NAMES = tuple(f"{f.__module__}.{f.__name__}" for f in WHOLE.values())


def keep_whole(model: torch.fx.GraphModule) -> None:
    """Replaces these calls in dynamo's graph and in the graphs that it calls."""
    for module in model.modules():
        if isinstance(module, torch.fx.GraphModule):
            calls = [n for n in module.graph.nodes if n.op == "call_function" and n.target in WHOLE]
            for n in calls:
                n.target = WHOLE[n.target]
            if calls:
                module.recompile()

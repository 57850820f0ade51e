# SPDX-License-Identifier: Apache-2.0
"""Resizes and recurrent networks reach weft whole: a few ops, right values, strides and gradients."""

from __future__ import annotations

import warnings

import pytest
import torch
from conftest import check, compiled, same
from torch import nn
from torch.nn import functional as F

from weft.torch import reports
from weft.torch.partition import WeftGraphWarning
from weft.torch.whole import as_ratio

MODES = [("nearest", None), ("nearest-exact", None), ("bilinear", False), ("bilinear", True), ("bicubic", False),
         ("bicubic", True)]
SIZES = [{"scale_factor": 2}, {"size": (13, 17)}, {"scale_factor": 1.7}, {"scale_factor": (2, 0.5)},
         {"scale_factor": 1.7, "recompute_scale_factor": True}, {"size": 5}]


def few_ops(most: int) -> None:
    assert reports[-1].whole and reports[-1].nodes <= most, str(reports[-1])


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("mode,corners", MODES)
def test_resize_is_one_op(mode, corners, size):
    check(lambda x: F.interpolate(x, mode=mode, align_corners=corners, **size) + 1, (torch.randn(2, 3, 8, 10),),
          rtol=1e-4, atol=1e-5)
    few_ops(2)


@pytest.mark.parametrize("mode,shape", [("linear", (2, 3, 9)), ("trilinear", (1, 2, 4, 5, 6)), ("nearest", (2, 3, 9)),
                                        ("nearest", (1, 2, 4, 5, 6))])
def test_resize_of_one_and_three_axes(mode, shape):
    check(lambda x: F.interpolate(x, scale_factor=2, mode=mode), (torch.randn(shape),), rtol=1e-4, atol=1e-5)
    few_ops(1)


def test_upsample_module_antialias_and_channels_last():
    check(nn.Upsample(scale_factor=2, mode="bilinear").eval(), (torch.randn(1, 3, 8, 8),))
    few_ops(1)
    check(lambda x: F.interpolate(x, size=(5, 6), mode="bilinear", antialias=True), (torch.randn(1, 3, 12, 16),))
    few_ops(1)
    check(lambda x: F.interpolate(x, scale_factor=2), (torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last),))
    few_ops(1)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_resize_of_changing_sizes(mode):
    run = check(lambda x: F.interpolate(x, scale_factor=2, mode=mode).relu(), (torch.randn(2, 3, 8, 10),),
                (torch.randn(3, 3, 5, 7),), (torch.randn(4, 3, 3, 2),), dynamic=True)
    assert len(reports) == 1 and reports[0].whole
    same(run(torch.zeros(1, 3, 1, 2)), torch.zeros(1, 3, 2, 4))  # torch compiles anew for a size of 1


@pytest.mark.parametrize("mode,factor", [("nearest", 0.5), ("nearest-exact", 0.5),
                                         ("bilinear", 0.5), ("bilinear", 1.5), ("bicubic", 0.3)])
def test_resize_of_changing_sizes_by_a_fraction(mode, factor):
    check(lambda x: F.interpolate(x, scale_factor=factor, mode=mode).relu(), (torch.randn(2, 3, 12, 20),),
          (torch.randn(3, 3, 15, 31),), (torch.randn(4, 3, 40, 7),), dynamic=True, rtol=1e-4, atol=1e-5)
    assert len(reports) == 1 and reports[0].whole


def test_resize_to_one_element_of_changing_sizes():
    """Rows and elements then have the same stride."""
    check(lambda x: F.interpolate(x, scale_factor=0.25).relu(), (torch.randn(4, 3, 40, 7),), dynamic=True)
    assert reports[-1].whole


def test_factors_as_ratios():
    for factor in (0.5, 1.5, 0.3, 1.7, 0.6, 0.8, 1 / 3, 2 / 3, 0.1, 1.1, 2, 3.0):
        p, q = as_ratio(factor)
        assert all(int(size * factor) == size * p // q for size in [*range(5000), *range(2**31 - 5000, 2**31)])
    assert int(100 * 0.57) == 56 and as_ratio(0.57) is None  # 57 of 100 would be 57
    assert as_ratio(0.7001234) is None and as_ratio(2000) is None


@pytest.mark.parametrize("mode,corners", MODES)
def test_gradient_of_resize(mode, corners):
    def f(x):
        return F.interpolate(x, scale_factor=2, mode=mode, align_corners=corners).square().sum()

    mine, other = (torch.arange(160.0).reshape(1, 2, 8, 10).sin().requires_grad_() for _ in range(2))
    compiled(f)(mine).backward()
    f(other).backward()
    same(mine.grad, other.grad, 1e-4, 1e-5)
    assert all(r.whole for r in reports)


def test_what_goes_to_torch_as_before():
    """Pooling by area, integers, and autocast, which computes a resize in f32."""
    check(lambda x: F.interpolate(x, size=(4, 5), mode="area"), (torch.randn(1, 2, 8, 10),))
    with torch.autocast("cpu", torch.bfloat16):
        check(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (torch.randn(1, 2, 4, 4).bfloat16(),))
    with pytest.raises(Exception, match="only one of size or scale_factor"):
        compiled(lambda x: F.interpolate(x, size=4, scale_factor=2))(torch.randn(1, 2, 4, 4))


NETWORKS = {"lstm": lambda: nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True),
            "lstm_plain": lambda: nn.LSTM(8, 16, bias=False), "gru": lambda: nn.GRU(8, 16),
            "gru_deep": lambda: nn.GRU(8, 16, 3, bidirectional=True, batch_first=True)}


class Recurrent(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.cell, self.out = NETWORKS[kind](), nn.LazyLinear(3)

    def forward(self, x):
        y, state = self.cell(x)
        return self.out(y.relu()), *(state if isinstance(state, tuple) else (state,))


@pytest.fixture
def recurrent():
    """torch cuts graphs at recurrent modules unless it is told not to."""
    with torch._dynamo.config.patch(allow_rnn=True):
        yield


@pytest.mark.parametrize("kind", NETWORKS)
def test_recurrent_network_is_one_op(recurrent, kind):
    net = Recurrent(kind)
    net(torch.randn(6, 5, 8))
    check(net, (torch.randn(6, 5, 8),), fullgraph=True, rtol=1e-4, atol=1e-5)
    few_ops(16)


def test_recurrent_network_of_changing_length(recurrent):
    net = Recurrent("lstm")
    net(torch.randn(6, 5, 8))
    check(net, (torch.randn(6, 5, 8),), (torch.randn(3, 50, 8),), fullgraph=True, dynamic=True, rtol=1e-4, atol=1e-5)
    assert len(reports) == 1 and reports[0].whole


def test_gradient_of_recurrent_network(recurrent):
    """The gradient is an op of its own, which runs in eager."""
    x, net = torch.randn(6, 5, 8), NETWORKS["lstm"]()
    net(x)[0].square().sum().backward()
    want = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeftGraphWarning)
        compiled(lambda x: net(x)[0].square().sum(), fullgraph=True)(x).backward()
    same([p.grad for p in net.parameters()], want, 1e-4, 1e-5)
    assert "weft.lstm_backward.default" in reports[-1].eager and reports[0].whole


def test_projection_and_dropout_stay_with_torch(recurrent):
    net = nn.LSTM(8, 16, proj_size=4)
    check(lambda x: net(x)[0], (torch.randn(3, 5, 8),), rtol=1e-4, atol=1e-5)
    assert reports[-1].whole


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layers_in_eval(call, norm_first, activation):
    """torch takes its fast path there, one op for a layer."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation=activation, norm_first=norm_first, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x, run = torch.randn(3, 10, 32), compiled(model, call)
    padding = torch.arange(10) >= torch.tensor([[10], [7], [0]])  # the last image has nothing else
    future = torch.ones(10, 10, dtype=torch.bool).triu(1)
    with torch.no_grad():
        for masks in ({}, {"src_key_padding_mask": padding}, {"mask": future},
                      {"mask": future, "src_key_padding_mask": padding}):
            same(run(x, **masks).nan_to_num(7), model(x, **masks).nan_to_num(7), rtol=1e-4, atol=1e-5)
            assert reports[-1].whole and not reports[-1].eager

# SPDX-License-Identifier: Apache-2.0
"""Sizes, strides, mutation, aliases and graph breaks, each as the call in C and in Python has it."""

from __future__ import annotations

import pytest
import torch
from conftest import check, compiled, copied, same
from torch import nn
from torch.nn import functional as F

from weft.torch import reports


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)).eval()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(32, 96)

    def forward(self, x):
        n, length, d = x.shape
        q, k, v = self.q(x).view(n, length, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, d)


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(8, 4)).eval()


# --- sizes

def test_dynamic_batch(call):
    check(net(), *[(torch.randn(n, 16),) for n in (4, 7, 32, 5)], dynamic=True, call=call)
    assert len(reports) == 1


def test_automatic_batch(call):
    check(net(), *[(torch.randn(n, 16),) for n in (4, 7, 32, 5, 9)], call=call)
    assert len(reports) == 2


@pytest.mark.parametrize("n", [0, 1])
def test_few(n, call):
    check(net(), (torch.randn(4, 16),), (torch.randn(n, 16),), dynamic=True, call=call)


def test_dynamic_length():
    check(Attention().eval(), *[(torch.randn(n, length, 32),) for n, length in ((2, 5), (3, 9), (4, 17))], dynamic=True)
    assert len(reports) == 1


def test_dynamic_image():
    check(convolutions(), *[(torch.randn(2, 3, s, s),) for s in (16, 20, 33)], dynamic=True)
    assert len(reports) == 1


def test_size_as_result():
    check(lambda x: (x.sum(0), x.shape[0] * 2), *[(torch.randn(n, 4),) for n in (3, 5)], dynamic=True)


def test_size_as_number():
    check(lambda x: x * x.shape[0] + torch.arange(x.shape[1]), *[(torch.randn(n, 4 * n),) for n in (3, 5)],
          dynamic=True)


@pytest.mark.parametrize("grad", [False, True])
def test_floats_that_change(grad, call, tmp_path, monkeypatch):
    """torch passes a float as a tensor where it can. For other uses it guards the value, and its cache forgets that."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def f(x, k):
        return (x * k).sin() / k, F.leaky_relu(x, k) + torch.full_like(x, k)

    run = compiled(f, call, options={"cache": str(tmp_path)})
    x = torch.randn(3, 4, requires_grad=grad)
    for k in (2.5, 3.25, 0.5, 7.0):
        same(run(x, k), f(x, k))
    assert all(r.whole for r in reports)


def test_sliced_concat():
    check(lambda x: torch.cat([x, x[1:], x[:-2]], 0).relu(), *[(torch.randn(n, 4),) for n in (3, 6)], dynamic=True)


def test_reshaped():
    def f(x):
        n, c, h, w = x.shape
        return x.view(n, c, h * w).transpose(1, 2).reshape(n * h, w * c)

    check(f, *[(torch.randn(n, 3, n + 2, 5),) for n in (3, 6)], dynamic=True)


def test_symbolic_strides():
    check(lambda x: (x @ x.t()).relu(), *[(torch.randn(n, n + 3)[:, 1:],) for n in (4, 6, 9)], dynamic=True)


# --- strides

@pytest.mark.parametrize("make", [
    lambda: torch.randn(4, 3).t(), lambda: torch.randn(9, 9)[1:5, 2:7], lambda: torch.randn(1, 5).expand(4, 5),
    lambda: torch.randn(8, 6)[::2, ::3], lambda: torch.randn(1, 1), lambda: torch.randn(3, 1).t(),
    lambda: torch.randn(2, 3).as_strided((2, 2), (3, 1), 1),
], ids=["transposed", "sliced", "expanded", "steps", "one", "line", "offset"])
def test_strides_of_arguments(make, call):
    check(lambda x: (x @ x.t()).relu(), (make(),), call=call)


def test_channels_last(call):
    image = torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last)
    check(convolutions(), (image,), call=call)
    check(nn.Conv2d(3, 8, 3).eval(), (image,), call=call)


def test_repeated_result(call):
    check(lambda x: (x.sum(0, keepdim=True) + 1).expand(4, 5), (torch.randn(4, 5),), call=call)


def test_result_with_gaps(call):
    check(lambda x: (x + 1)[:, 1:], (torch.randn(4, 5),), call=call)


def test_other_strides_than_traced(call):
    """What dynamo does not guard: a gradient that comes in other strides than backward was traced with."""
    x = torch.randn(4, 6, requires_grad=True)
    y = torch.randn(4, 6, requires_grad=True)
    got = compiled(lambda t: t.sin() * 2, call)(x)
    want = y_sin = (y.data.copy_(x.data), y.sin() * 2)[1]
    for way in (lambda t: t.backward(torch.ones(6, 4).t(), retain_graph=True), lambda t: t.sum().backward()):
        x.grad = y.grad = None
        way(got), way(want)
        same(x.grad, y.grad)
    assert y_sin is want


# --- mutation and aliases

def test_index_put(call):
    def f(k, new, at):
        k[:, :, at] = new
        return (k * 2).sum(-1)

    check(f, (torch.randn(1, 2, 8, 4), torch.randn(1, 2, 1, 4), torch.tensor([3])), call=call)
    assert reports[0].whole


def test_slice_copy(call):
    def f(k, new):
        k[:, :, 2:3].copy_(new)
        return k.sum(-1)

    check(f, (torch.randn(1, 2, 8, 4), torch.randn(1, 2, 1, 4)), call=call)
    assert reports[0].whole


def test_add_in_place(call):
    check(lambda x, y: (x.add_(y), x * 2), (torch.randn(3, 4), torch.randn(3, 4)),
          (torch.randn(3, 4), torch.randn(3, 4)), call=call)


def test_two_mutations(call):
    def swap(x, y):
        z = x.clone()
        x.copy_(y)
        y.copy_(z)

    check(swap, (torch.randn(3, 4), torch.randn(3, 4)), call=call)


def test_mutation_of_a_view(call):
    check(lambda x: x[1:].mul_(3).sum(), (torch.randn(5, 4),), call=call)


def test_mutation_with_overlap():
    """An argument that is written and another that reads the same memory."""
    whole = torch.randn(6, 4)
    run = compiled(lambda x, y: (x.add_(1), y * 2)[1])
    with torch.no_grad():
        got = run(whole[:3], whole[3:])
        same(got, whole[3:] * 2)
        before = whole.clone()
        run(whole[:3], whole[1:4])
        want = before.clone()
        want[:3] += 1
        same(whole, want)


def test_views_of_arguments(call):
    check(lambda x: (x.t(), x[1:], x + 1, (x + 1).t()), (torch.randn(3, 4),), call=call)


def test_aliased_results(call):
    def f(x):
        y = x * 2
        return y, y.view(-1), y

    check(f, (torch.randn(3, 4),), call=call)


def test_argument_as_result(call):
    run = check(lambda x: (x, x + 1), (torch.randn(3, 4),), call=call)
    x = torch.randn(3, 4)
    with torch.no_grad():
        assert run(x)[0] is x or run(x)[0].data_ptr() == x.data_ptr()


def test_constant_results(call):
    check(lambda x: (x * 2, torch.tensor([1, 2, 3]), 4, None), (torch.randn(3),), call=call)


def test_nothing_to_run(call):
    check(lambda x: (x.view(-1), x), (torch.randn(3, 4),), call=call)


def test_no_elements(call):
    check(lambda x: (x @ x.t(), x.sum(), x.sum(1), torch.cat([x, x])), (torch.randn(0, 4),), call=call)


# --- dynamo

def test_graph_break(call):
    def f(x):
        y = torch.relu(x)
        torch._dynamo.graph_break()
        return y * 2

    check(f, (torch.randn(3, 4),), call=call)
    assert len(reports) == 2


def test_types(call):
    check(lambda a, b: (a / 2, a + b, a * b, a // 2, a > 2, a % 3, b.int(), a.bool(), (b > 0) & (a > 1)),
          (torch.arange(6), torch.randn(6)), call=call)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_float_types(dtype, call):
    tolerance = {torch.float64: 1e-9, torch.float16: 5e-3, torch.bfloat16: 4e-2}[dtype]
    check(net().to(dtype), (torch.randn(4, 16, dtype=dtype),), call=call, rtol=tolerance, atol=tolerance)


def test_inference_mode(call):
    model = net()
    run = compiled(model, call)
    with torch.inference_mode():
        x = torch.randn(4, 16)
        got = run(x)
        same(got, model(x))
        assert got.is_inference()


def test_modes_one_after_the_other():
    model, x = net(), torch.randn(4, 16)
    run = compiled(model)
    with torch.no_grad():
        assert not run(x).requires_grad
    with torch.inference_mode():
        run(x)
    got = run(x)
    assert got.requires_grad
    got.sum().backward()
    same(got.detach(), model(x).detach())


def test_autocast(call):
    model, x = net(), torch.randn(4, 16)
    run = compiled(model, call)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        got, want = run(x), model(x)
    assert got.dtype == torch.bfloat16
    same(got, want, rtol=2e-2, atol=2e-2)


def test_results_outlive_the_call(call):
    run = compiled(lambda x: x * 2, call)
    with torch.no_grad():
        results = [run(torch.full((1000,), float(i))) for i in range(8)]
    del run
    torch._dynamo.reset()
    for i, result in enumerate(results):
        assert bool((result == 2 * i).all())
    resized = results[0].clone().resize_(2000)
    assert resized.numel() == 2000


def test_results_of_torch():
    run = compiled(lambda x: (x * 2, x.t() + 1), options={"outputs": "torch"})
    with torch.no_grad():
        first, second = run(torch.ones(3, 4))
    first.resize_(100)
    same(second, torch.full((3, 4), 2.0).t())


def test_copied_helpers():
    x = torch.randn(5, 6)[1:, ::2]
    (y,) = copied([x])
    same(x, y)
    assert y.storage_offset() == x.storage_offset()


def test_pooled_channels_last_with_changing_batch(call):
    """torch restrides the mean, which has the same elements: one plan."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).eval()
    run = compiled(model, call, dynamic=True)
    with torch.no_grad():
        for batch in (2, 3, 5):
            x = torch.randn(batch, 3, 16, 16).to(memory_format=torch.channels_last)
            same(run(x), model(x), rtol=1e-4, atol=1e-5)
    assert reports[-1].whole


@pytest.mark.parametrize(("length", "dilation", "padding"), [(1, 5, 3), (2, 3, 2), (3, 5, 4), (1, 3, 1)])
def test_phases_of_few_elements(length, dilation, padding):
    """Pads that take more elements off one side than there are."""
    layer = nn.ConvTranspose1d(1, 1, 2, stride=2, dilation=dilation, padding=padding, output_padding=1).double()
    x = torch.randn(1, 1, length, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(compiled(layer)(x), layer(x))

# SPDX-License-Identifier: Apache-2.0
"""Training: losses and gradients beside eager's."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from conftest import compiled, same
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from weft.torch import reports
from weft.torch.partition import WeftGraphWarning


class WithLoss(nn.Module):
    def __init__(self, *layers: nn.Module, pooled: bool = False):
        super().__init__()
        self.net, self.pooled = nn.Sequential(*layers), pooled

    def forward(self, x, y):
        out = self.net(x)
        return F.cross_entropy(out.mean((2, 3)) if self.pooled else out, y)


class Layer(nn.Module):
    """One layer of a transformer."""

    def __init__(self, causal: bool):
        super().__init__()
        self.embed, self.qkv, self.out = nn.Embedding(50, 32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.norm, self.mlp = nn.LayerNorm(32), nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 50))
        self.causal = causal

    def forward(self, ids, y):
        x = self.embed(ids)
        n, length, d = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, 4, d // 4).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(n, length, d)
        return F.cross_entropy(self.mlp(self.norm(x + self.out(a))).flatten(0, 1), y.flatten())


def mlp():
    return WithLoss(nn.Linear(64, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 10)), (
        torch.randn(32, 64), torch.randint(0, 10, (32,)))


def convolutions(groups: int):
    layers = (nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
              nn.Conv2d(16, 16, 3, padding=1, groups=groups), nn.SiLU(),
              nn.ConvTranspose2d(16, 16, 3, 2, 1, groups=groups), nn.GroupNorm(4, 16), nn.AvgPool2d(3, 2, 1),
              nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(16, 10, 1))
    return WithLoss(*layers, pooled=True), (torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,)))


def transformer(causal: bool):
    return Layer(causal), (torch.randint(0, 50, (2, 8)), torch.randint(0, 50, (2, 8)))


MODELS = {"mlp": mlp, "convolutions": lambda: convolutions(1), "groups": lambda: convolutions(4),
          "depthwise": lambda: convolutions(16), "transformer": lambda: transformer(False),
          "causal": lambda: transformer(True)}


@pytest.mark.parametrize("name", MODELS)
def test_gradients(name, call):
    model, arguments = MODELS[name]()
    twin = copy.deepcopy(model)
    double = copy.deepcopy(model).double()
    got = compiled(model, call)(*arguments)
    got.backward()
    want = twin(*arguments)
    want.backward()
    double(*[a.double() if a.is_floating_point() else a for a in arguments]).backward()
    same(got.detach(), want.detach())
    assert all(r.whole for r in reports) and {r.kind for r in reports} == {"forward", "backward"}
    for (key, ours), theirs, truth in zip(model.named_parameters(), twin.parameters(), double.parameters()):
        error = float((ours.grad - truth.grad).norm())
        assert error <= 3 * float((theirs.grad - truth.grad).norm()) + 1e-6 * float(truth.grad.norm()) + 1e-8, key
    for ours, theirs in zip(model.buffers(), twin.buffers()):
        same(ours, theirs)


@pytest.mark.parametrize("mask", ["none", "causal", "numbers", "truth"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_gradients_of_attention(mask, dtype):
    """Beside eager, by the error against doubles; a row that sees no key gives and gets nothing."""
    def attend(q, k, v):
        given = hidden if mask in ("numbers", "truth") else None
        given = given.to(q.dtype) if mask == "numbers" else given
        return F.scaled_dot_product_attention(q, k, v, attn_mask=given, is_causal=mask == "causal")

    hidden = torch.randn(2, 1, 70, 300) if mask == "numbers" else torch.rand(2, 1, 70, 300) > 0.3
    hidden[:, :, 3] = -torch.inf if mask == "numbers" else False
    sizes = ((2, 3, 70, 32), (2, 3, 300, 32), (2, 3, 300, 32))
    given, dy = [torch.randn(s).to(dtype) for s in sizes], torch.randn(2, 3, 70, 32).to(dtype)
    made = []
    for function, wide in ((compiled(attend), dtype), (attend, dtype), (attend, torch.float64)):
        operands = [t.detach().to(wide).requires_grad_() for t in given]
        y = function(*operands)
        y.backward(dy.to(wide))
        made.append([y.detach(), *(t.grad for t in operands)])
    assert all(r.whole for r in reports) and {r.kind for r in reports} == {"forward", "backward"}
    for ours, theirs, truth in zip(*made):
        assert ours.dtype == dtype
        error, bound = float((ours - truth).norm()), float((theirs - truth).norm())
        assert error <= 3 * bound + 1e-6 * float(truth.norm()) + 1e-12


@pytest.mark.parametrize("name", ["mlp", "convolutions", "causal"])
def test_loss_curves(name):
    """Twenty steps of an optimizer: the same losses."""
    model, arguments = MODELS[name]()
    twin = copy.deepcopy(model)
    losses = []
    for m, run in ((model, compiled(model)), (twin, twin)):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.05)
        losses.append([])
        for _ in range(20):
            optimizer.zero_grad()
            loss = run(*arguments)
            loss.backward()
            optimizer.step()
            losses[-1].append(float(loss.detach()))
    torch.testing.assert_close(torch.tensor(losses[0]), torch.tensor(losses[1]), rtol=1e-4, atol=1e-5)
    assert losses[0][-1] < losses[0][0]


def test_dropout():
    model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5))
    run, x = compiled(model), torch.randn(128, 64)
    torch.manual_seed(3)
    first = run(x)
    kept = float((first != 0).float().mean())
    assert abs(kept - 0.5) < 0.05
    torch.testing.assert_close(first[first != 0], (2 * model[0](x))[first != 0], rtol=1e-5, atol=1e-5)
    first.sum().backward()
    want = 2 * (first != 0).float().sum(0)
    torch.testing.assert_close(model[0].bias.grad, want)
    assert not torch.equal(run(x), first)
    torch.manual_seed(3)
    assert torch.equal(run(x), first)


def test_accumulated_gradients(call):
    model, arguments = mlp()
    twin = copy.deepcopy(model)
    run = compiled(model, call)
    for _ in range(3):
        run(*arguments).backward()
        twin(*arguments).backward()
    for ours, theirs in zip(model.parameters(), twin.parameters()):
        same(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("cached", [True, False])
def test_retained_graph(cached, tmp_path, monkeypatch):
    """Gradients of two losses with a common part: the graph runs backward twice."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2))
    twin = copy.deepcopy(model)
    run = compiled(model, options={"cache": str(tmp_path) if cached else False})
    x = torch.randn(4, 8)
    for net in (run, twin):
        net(x).sum().backward()
        made = net(x)
        for losses, again in ((made[:, 0], True), (made[:, 1], True), (made.square(), False)):
            losses.sum().backward(retain_graph=again)
    for p, q in zip(model.parameters(), twin.parameters()):
        same(p.grad, q.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_largest_elements_of_16_bits(dtype):
    """Backward computes anew what the maximum was found among, and has to find it there."""
    def f(x):
        y = (x * 1.25 + 0.75) / (x.abs() + 1)
        return y.amax(1), y.min(), torch.linalg.vector_norm(y, float("inf"), dim=0)

    x = torch.randn(7, 33).to(dtype).requires_grad_()
    z = x.detach().clone().requires_grad_()
    sum(t.sum() for t in compiled(f)(x)).backward()
    sum(t.sum() for t in f(z)).backward()
    same(x.grad, z.grad, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.RMSprop])
def test_compiled_optimizer(kind):
    """dynamo makes a fused multiplication and addition of what its step does in place."""
    model = nn.Linear(8, 4)
    twin = copy.deepcopy(model)
    mine, other = kind(model.parameters(), lr=0.01), kind(twin.parameters(), lr=0.01)
    step = compiled(lambda: mine.step())
    for _ in range(3):
        x = torch.randn(5, 8)
        for net, update in ((model, step), (twin, other.step)):
            net.zero_grad()
            net(x).square().mean().backward()
            update()
    assert all(r.whole for r in reports)
    for p, q in zip(model.parameters(), twin.parameters()):
        same(p.detach(), q.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:weft runs a part")
def test_dropout_in_a_checkpoint():
    """It runs in eager, again in backward, from the state that torch keeps of its generator."""
    def drop(x):
        return F.dropout((x.sin() * 2).cos() + 3, 0.5, True).exp() * 2 - 1

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", WeftGraphWarning)
        x = torch.randn(1000, requires_grad=True)
        made = compiled(lambda t: checkpoint(drop, t, use_reentrant=False))(x)
        made.sum().backward()
    assert {str(w.message).rpartition(": ")[2] for w in told} == {"run_and_save_rng_state", "run_with_rng_state"}
    kept = (made != 1).float() * 2
    y = x.detach().requires_grad_()
    want = (kept * ((y.sin() * 2).cos() + 3)).exp() * 2 - 1
    want.sum().backward()
    same(made.detach(), want.detach(), rtol=1e-4, atol=1e-4)
    same(x.grad, y.grad, rtol=1e-4, atol=1e-3)


def test_dynamic_batch():
    model, _ = mlp()
    twin = copy.deepcopy(model)
    run = compiled(model, dynamic=True)
    for n in (4, 9, 2):
        arguments = torch.randn(n, 64), torch.randint(0, 10, (n,))
        got, want = run(*arguments), twin(*arguments)
        same(got.detach(), want.detach())
        got.backward(), want.backward()
    for ours, theirs in zip(model.parameters(), twin.parameters()):
        same(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)
    assert len(reports) == 2


def test_dynamic_images():
    """Gradients of convolutions and means with respect to their data, for images of any size: a step of two leaves rows
    over or not, and the plans are compiled once."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, stride=2, padding=1),
                          nn.SiLU(), nn.Conv2d(12, 12, 5, stride=3, groups=4), nn.SiLU(),
                          nn.Conv2d(12, 6, 2, dilation=2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    twin = copy.deepcopy(model)
    run = compiled(model, dynamic=True)
    for n, height, width in ((2, 68, 71), (3, 69, 75), (2, 84, 76), (5, 90, 73)):
        x = torch.randn(n, 3, height, width, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        got, want = run(x), twin(y)
        same(got.detach(), want.detach())
        got.square().sum().backward(), want.square().sum().backward()
        same(x.grad, y.grad, rtol=1e-4, atol=1e-6)
    for ours, theirs in zip(model.parameters(), twin.parameters()):
        same(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)
    assert len(reports) == 2 and all(report.whole for report in reports)


def test_autocast():
    model, arguments = mlp()
    twin = copy.deepcopy(model)
    with torch.autocast("cpu", torch.bfloat16):
        got, want = compiled(model)(*arguments), twin(*arguments)
    got.backward(), want.backward()
    same(got.detach(), want.detach(), rtol=2e-2, atol=2e-2)
    for ours, theirs in zip(model.parameters(), twin.parameters()):
        assert float((ours.grad - theirs.grad).norm()) <= 0.05 * float(theirs.grad.norm()) + 1e-4


def test_long_sums_of_gradients():
    """The gradient of a product with a vocabulary: its error must not grow with the number of words."""
    x, w = torch.randn(256, 256, requires_grad=True), torch.randn(20000, 256)
    dy = torch.randn(256, 20000)
    compiled(lambda x: x @ w.t())(x).backward(dy)
    want = dy.double() @ w.double()
    error = ((x.grad.double() - want).norm() / want.norm()).item()
    assert error < 2.5 * ((dy @ w).double() - want).norm() / want.norm()


@pytest.mark.parametrize("norm, shape", [(nn.BatchNorm1d(24), (3000, 24)), (nn.BatchNorm2d(16), (4, 16, 64, 64)),
                                         (nn.BatchNorm3d(35), (2, 35, 5, 9, 7)),
                                         (nn.InstanceNorm2d(16, affine=True), (4, 16, 64, 64)),
                                         (nn.LayerNorm(256), (512, 256)), (nn.GroupNorm(4, 16), (4, 16, 64, 64))],
                         ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else "")
@pytest.mark.parametrize("mean", [0, 100])
def test_norms_are_as_exact_as_in_eager(norm, shape, mean):
    """By the error against doubles over several draws. Beside a deviation of 1, each rounding of a mean of 100 is a
    large error of all that is computed from it."""
    run, errors = compiled(ours := copy.deepcopy(norm)), []
    for _ in range(6):
        x, dy, made = torch.randn(shape) + mean, torch.randn(shape), []
        for model, call in ((ours, run), *[(m, m) for m in (copy.deepcopy(norm), copy.deepcopy(norm).double())]):
            model.zero_grad()
            given = x.to(model.weight.dtype).requires_grad_()
            call(given).backward(dy.to(given.dtype))
            made.append([model.weight.grad, model.bias.grad])
        errors.append([[float((a - b).norm() / b.norm()) for a, b in zip(m, made[2])] for m in made[:2]])
    got, want = torch.tensor(errors).square().mean(0).sqrt()
    assert (got <= 1.5 * want + 6e-8).all(), (got, want)


def test_statistics_of_infinities():
    """Channels of them have the statistics that eager finds, and no other has NaN."""
    theirs, x = nn.BatchNorm2d(5), torch.randn(4, 5, 3, 3)
    ours = copy.deepcopy(theirs)
    x[1, 0, 1, 1], x[2, 1, 0, 2], x[0, 2, 0, 0] = [torch.inf] * 3
    x[0, 2, 1, 0], x[3, 3, 2, 2] = -torch.inf, torch.nan
    for found, want in zip((compiled(ours)(x), *ours.buffers()), (theirs(x), *theirs.buffers())):
        torch.testing.assert_close(found, want, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("bad", [torch.inf, torch.nan])
def test_a_weight_that_is_no_number(groups, bad, dtype):
    """In a transposed convolution, and in the gradient of a strided one, it meets none of the zeros between elements.
    Away from borders, where padding counts as zeros, results are NaN where eager's are."""
    x, y = torch.randn(2, 8, 7, 7, dtype=dtype), torch.randn(2, 8, 14, 14, dtype=dtype)
    w = torch.randn(8, 8 // groups, 3, 3, dtype=dtype)
    w[3, 0, 1, 2] = bad

    def gradient(f):
        given = y.clone().requires_grad_()
        f(given, w).backward(x)
        return given.grad

    run = compiled(lambda y, w: F.conv2d(y, w, None, 2, 1, 1, groups))
    pairs = [(compiled(lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1, groups))(x, w),
              F.conv_transpose2d(x, w, None, 2, 1, 1, groups)),
             (gradient(run), gradient(lambda y, w: F.conv2d(y, w, None, 2, 1, 1, groups)))]
    for got, want in pairs:
        got, want = (v[:, :, 2:-2, 2:-2] for v in (got, want))
        assert not want.isfinite().all() and want.isfinite().any()
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_without_winograd():
    """An infinite weight makes infinite results, as in eager, and no NaN but at borders, whose padding counts as 0."""
    x, w = torch.randn(2, 32, 28, 28), torch.randn(32, 32, 3, 3, requires_grad=True)
    w.data[5, 3, 0, 1] = torch.inf
    run = compiled(lambda x, w: F.conv2d(x, w, None, 1, 1), options={"winograd": False})
    got, want = (f(x, w)[:, :, 1:-1, 1:-1] for f in (run, lambda x, w: F.conv2d(x, w, None, 1, 1)))
    assert want[:, 5].isinf().all()
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_batch_norm_with_statistics_of_16_bits(dtype, call):
    """torch traces the new running statistics as f32; its op gives the module's type."""
    theirs = nn.BatchNorm2d(8).to(dtype)
    ours = copy.deepcopy(theirs)
    x = torch.randn(2, 8, 5, 5, generator=torch.Generator().manual_seed(3)).to(dtype)
    run = compiled(ours, call)
    close = dict(rtol=2 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)  # eager rounds on the way
    torch.testing.assert_close(run(x), theirs(x), **close)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean, **close)
    torch.testing.assert_close(ours.running_var, theirs.running_var, **close)


def test_a_parameter_sliced_to_changing_lengths(call):
    """As learned positions are."""
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(1, 64, 8))

        def forward(self, x):
            return torch.tanh(x + self.table[:, 1:1 + x.shape[1]]) * 2

    torch.manual_seed(3)
    model = Positions()
    run = compiled(model, call)
    for length in (32, 16, 20):
        x, found = torch.randn(2, length, 8), []
        for function in (run, model):
            model.zero_grad()
            function(x).square().sum().backward()
            found.append(model.table.grad.clone())
        same(*found, rtol=1e-5, atol=1e-5)

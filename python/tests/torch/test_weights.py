# SPDX-License-Identifier: Apache-2.0
"""Frozen weights are watched: whoever changes one finds the change in the next call."""

from __future__ import annotations

import copy
import ctypes
import gc
import threading
import warnings
import weakref

import pytest
import torch
from conftest import compiled, same
from torch import nn

from weft import _c
from weft.torch import reports
from weft.torch.call import PlanCall
from weft.torch.freeze import MOST_CHANGES
from weft.torch.partition import WeftGraphWarning


@pytest.fixture
def linear() -> nn.Linear:
    return nn.Linear(4, 4).eval()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(2, 4)


@torch.no_grad()
def test_changes_are_seen(linear, x, call):
    run = compiled(linear, call)
    same(run(x), linear(x))
    assert reports[0].pieces[0].frozen == 2
    linear.weight.add_(1)
    same(run(x), linear(x))
    linear.weight = nn.Parameter(torch.randn(4, 4))
    same(run(x), linear(x))
    linear.load_state_dict({name: value * 2 for name, value in linear.state_dict().items()})
    same(run(x), linear(x))
    assert len(reports) >= 3


@torch.no_grad()
def test_weights_that_keep_changing_become_arguments(linear, x, call):
    run = compiled(linear, call)
    for _ in range(MOST_CHANGES + 5):
        same(run(x), linear(x))
        linear.bias.add_(1)
    assert len(reports) == MOST_CHANGES + 2
    assert (reports[-1].pieces[0].frozen, reports[-1].pieces[0].static) == (0, 0)  # matrices and vectors


def close(got: torch.Tensor, want: torch.Tensor) -> None:
    """Convolutions by Winograd's form round more."""
    same(got, want, rtol=1e-4, atol=1e-4)


def keep_changing(model: nn.Module, x: torch.Tensor, call: str):
    """Compiled, and called with other weights until those of convolutions are static inputs."""
    run = compiled(model, call)
    for _ in range(MOST_CHANGES + 2):
        close(run(x), model(x))
        next(model.parameters()).mul_(-1)
    close(run(x), model(x))
    assert (reports[-1].pieces[0].frozen, reports[-1].pieces[0].static) == (0, 2)
    assert "weights=static" in reports[-1].pieces[0].text
    return run


@pytest.fixture
def layers() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 1)).eval()


@torch.no_grad()
def test_changes_of_static_weights_are_seen(layers, call):
    x = torch.randn(1, 8, 6, 6)
    run = keep_changing(layers, x, call)
    plans = len(reports)
    layers[0].weight.add_(1)
    close(run(x), layers(x))
    layers[2].weight = nn.Parameter(torch.randn(8, 16, 1, 1))
    close(run(x), layers(x))
    layers.load_state_dict({name: value * 2 for name, value in layers.state_dict().items()})
    close(run(x), layers(x))
    layers[0].weight.data = torch.randn(16, 8, 3, 3)  # moves no counter, but the elements lie elsewhere
    close(run(x), layers(x))
    for _ in range(3):  # memory that was let go is taken again
        for layer in layers[0], layers[2]:
            shape, layer.weight = layer.weight.shape, None
            layer.weight = nn.Parameter(torch.randn(shape))
        close(run(x), layers(x))
    assert len(reports) == plans


@torch.no_grad()
def test_static_weights_are_packed_when_they_change(layers):
    x = torch.randn(1, 8, 6, 6)
    run = keep_changing(layers, x, "python")
    plan = reports[-1].pieces[0].plan
    (inner,) = [o for o in gc.get_objects() if type(o) is PlanCall and o.plan is plan]

    def packs() -> int:
        raw = _c.sized(_c.Statistics)
        _c.check(_c.lib.weft_execution_statistics(inner.free[0], ctypes.byref(raw)))
        return raw.static_packs

    before = packs()
    for _ in range(3):
        run(x)
    assert packs() == before
    layers[2].weight.add_(1)
    close(run(x), layers(x))
    assert packs() == before + 1


@torch.no_grad()
def test_static_weights_are_let_go(layers):
    x = torch.randn(1, 8, 6, 6)
    run = keep_changing(layers, x, "auto")
    old = weakref.ref(layers[0].weight)
    layers[0].weight = nn.Parameter(torch.randn(16, 8, 3, 3))
    reports.clear()  # and with them plans that hold weights as constants
    gc.collect()
    assert old() is None
    close(run(x), layers(x))


@torch.no_grad()
def test_static_weights_without_versions(layers, call):
    x = torch.randn(1, 8, 6, 6)
    run = keep_changing(layers, x, call)
    with torch.inference_mode():
        for name, p in list(layers[0].named_parameters()):
            setattr(layers[0], name, nn.Parameter(p * 2, requires_grad=False))
        for _ in range(3):
            close(run(x), layers(x))
            layers[0].weight.add_(1)


@torch.no_grad()
def test_not_frozen(linear, x, call):
    run = compiled(linear, call, options={"freeze": False})
    same(run(x), linear(x))
    linear.weight.data.add_(1)  # moves no counter
    same(run(x), linear(x))
    assert len(reports) == 1 and reports[0].pieces[0].frozen == 0


@torch.no_grad()
def test_buffers(x, call):
    norm = nn.BatchNorm1d(4).eval()
    run = compiled(norm, call)
    same(run(x), norm(x))
    norm.running_mean.add_(1)
    same(run(x), norm(x))


def test_buffers_in_training(call):
    ours, theirs = nn.BatchNorm1d(4).train(), nn.BatchNorm1d(4).train()
    run, x = compiled(ours, call), torch.randn(8, 4)
    for _ in range(3):
        run(x).sum().backward()
        theirs(x).sum().backward()
    same([ours.running_mean, ours.running_var, ours.num_batches_tracked],
         [theirs.running_mean, theirs.running_var, theirs.num_batches_tracked])


@torch.no_grad()
def test_transposed_and_sliced_weights(x, call):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.randn(6, 9)
            self.register_buffer("turned", torch.randn(5, 4).t())
            self.register_buffer("part", whole[1:5, 2:7])

        def forward(self, x):
            return x @ self.turned, x @ self.part

    model = Odd()
    same(compiled(model, call)(x), model(x))


@torch.no_grad()
@pytest.mark.parametrize("assign", [False, True])
def test_shared_by_threads(linear, x, assign):
    """Threads call while the weights change; each result is that of some weights that there were."""
    run = compiled(linear)
    run(x)
    wrong = []

    def work():
        for _ in range(200):
            got = run(x)
            base = got - before
            if not torch.allclose(base, base[0, 0].round().expand_as(base), atol=1e-4):
                wrong.append(base)

    before = linear(x)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(2):
        if assign:
            linear.bias.data = linear.bias + 1
        else:
            linear.bias.add_(1)
    for t in threads:
        t.join()
    assert not wrong
    same(run(x), linear(x))


def test_weights_made_in_inference_mode(x, call):
    with torch.inference_mode():
        linear = nn.Linear(4, 4).eval()
        run = compiled(linear, call)
        same(run(x), linear(x))
        linear.weight.add_(1)
        same(run(x), linear(x))


@torch.no_grad()
def test_let_go(linear, x):
    """A plan of old weights does not keep them."""
    run = compiled(linear)
    run(x)
    old = weakref.ref(linear.weight)
    linear.weight = nn.Parameter(torch.randn(4, 4))
    run(x)
    reports.clear()
    gc.collect()
    assert old() is None


# --- assignments to .data, which move no counter


def vector(linear: nn.Linear) -> None:
    nn.utils.vector_to_parameters(torch.randn(20), linear.parameters())


def matrix(linear: nn.Linear) -> None:
    linear.weight.data = torch.randn(4, 4)


def turn(linear: nn.Linear) -> None:
    linear.weight.data = linear.weight.data.t()  # of the same memory


def round_to_half(linear: nn.Linear) -> None:
    linear.half()
    linear.float()


def round_in_inference_mode(linear: nn.Linear) -> None:
    with torch.inference_mode():
        linear.half()
        linear.float()


@torch.no_grad()
@pytest.mark.parametrize("change", [vector, matrix, turn, round_to_half, round_in_inference_mode])
def test_assigned_data_is_seen(linear, x, call, change):
    run = compiled(linear, call)
    same(run(x), linear(x))
    for _ in range(MOST_CHANGES + 3):
        change(linear)
        same(run(x), linear(x))
        same(run(x), linear(x))
    assert 2 <= len(reports) <= MOST_CHANGES + 2


@torch.no_grad()
@pytest.mark.parametrize("change", [matrix, turn])
def test_assigned_data_is_seen_without_guards(linear, x, call, change):
    run = compiled(linear, call)
    run(x)
    with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
        change(linear)
        same(run(x), linear(x))


@torch.no_grad()
def test_assigned_data_in_a_graph_that_is_cut(linear, x, call):
    run = compiled(nn.Sequential(linear, Fourier(), linear), call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeftGraphWarning)
        for change in vector, matrix, round_to_half:
            same(run(x), linear(Fourier()(linear(x))))
            change(linear)
        same(run(x), linear(Fourier()(linear(x))))
    assert not reports[0].whole


class Fourier(nn.Module):
    def forward(self, x):
        return torch.fft.fft(x).real


@torch.no_grad()
def test_assigned_data_of_tied_weights(x, call):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))
            self.b.weight = self.a.weight
            self.c.weight = nn.Parameter(self.a.weight.data)  # another tensor of the same memory

        def forward(self, x):
            return self.c(self.b(self.a(x)))

    model = Tied()
    run = compiled(model, call)
    for layer in model.a, model.b, model.c:
        same(run(x), model(x))
        matrix(layer)
    same(run(x), model(x))
    assert len(reports) == 4


@torch.no_grad()
def test_memory_is_not_taken_again(linear, x, call):
    """The old memory stays until the change was seen, also where the plan has copied it, and is let go then."""
    run = compiled(linear, call)
    linear.weight.data = torch.randn(6, 9)[1:5, 2:6]
    run(x)
    for change in range(MOST_CHANGES + 2):
        old = weakref.ref(linear.weight.untyped_storage())
        linear.weight.data = torch.randn(6, 9)[1:5, 2:6]
        assert (old() is not None) == (change <= MOST_CHANGES)
        same(run(x), linear(x))
        reports.clear()
        gc.collect()
        assert old() is None


@torch.no_grad()
def test_memory_of_static_weights_that_is_taken_again(layers, call):
    x, memory = torch.randn(1, 8, 6, 6), bytearray(4 * 16 * 8 * 3 * 3)
    run = keep_changing(layers, x, call)
    for _ in range(3):
        layers[0].weight.data = torch.frombuffer(memory, dtype=torch.float32).view(16, 8, 3, 3)
        close(run(x), layers(x))
        layers[0].weight.data = torch.empty(0)
        torch.frombuffer(memory, dtype=torch.float32).copy_(torch.randn(16 * 8 * 3 * 3))


@torch.no_grad()
def test_unchanged_weights_keep_their_plan(linear, x, call):
    run = compiled(linear, call)
    for _ in range(3):
        run(x)
        linear.weight.data.t_()  # of another tensor
        linear.weight.data = linear.weight.data
        gc.collect()
    assert len(reports) == 1


# --- weights in a file


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_PLANS", str(tmp_path))
    return tmp_path


def large() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).eval()


def offloaded(model: nn.Module):
    run = compiled(model, "auto", options={"offload": True})
    x = torch.randn(8, 256)
    same(run(x), model(x))
    return run, x


@torch.no_grad()
def test_offloaded_weights_are_what_they_were(folder):
    model, twin = large(), large()
    run, x = offloaded(model)
    assert reports[0].offload == "1 MiB"
    assert not model[0].weight.untyped_storage().resizable()
    for name, value in twin.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)
    same(run(x), twin(x))
    assert torch.equal(copy.deepcopy(model)[0].weight, twin[0].weight)
    assert not [f for f in folder.iterdir() if f.suffix not in (".plan", ".pack")]  # the file has no name


@torch.no_grad()
def test_offloaded_weights_can_be_written_to(folder):
    model = large()
    run, x = offloaded(model)
    before = model(x)
    for _ in range(MOST_CHANGES + 2):
        model[0].weight.neg_()
        same(run(x), model(x))
    assert not torch.allclose(model(x), before)
    model.load_state_dict(large().state_dict())
    same(run(x), before)


@torch.no_grad()
def test_data_of_offloaded_weights(folder):
    """They are watched where they are now; the memory where they were is let go."""
    model = large()
    old = weakref.ref(model[0].weight.untyped_storage())
    run, x = offloaded(model)
    assert old() is None
    run(x)
    assert len(reports) == 1
    model[0].weight.data = -model[0].weight.data
    same(run(x), model(x))
    assert [r.offload for r in reports] == ["1 MiB", "0 MiB"]
    run(x)
    assert len(reports) == 2


@torch.no_grad()
def test_weights_that_others_hold_are_not_moved(folder):
    model = large()
    held = model[0].weight.detach()
    run, x = offloaded(model)
    held.mul_(2)  # moves the version that both share
    same(run(x), model(x))
    assert model[0].weight.data_ptr() == held.data_ptr()
    assert model[0].weight.untyped_storage().resizable() and not model[2].weight.untyped_storage().resizable()


@torch.no_grad()
def test_offload_of_tied_weights(folder):
    model = large()
    model[2].weight = nn.Parameter(model[0].weight.t().contiguous())
    model.append(nn.Linear(256, 512))
    model[3].weight = model[0].weight
    run, x = offloaded(model)
    assert model[3].weight is model[0].weight and not model[0].weight.untyped_storage().resizable()
    model[0].weight.add_(0.01)
    same(run(x), model(x))


@torch.no_grad()
def test_offload_without_a_folder(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WEFT_PLANS", str(tmp_path / "file" / "plans"))
    model = large()
    offloaded(model)
    assert reports[0].offload.startswith("off: ") and model[0].weight.untyped_storage().resizable()
    torch._dynamo.reset()
    reports.clear()
    monkeypatch.setenv("WEFT_PLANS", "")
    offloaded(large())
    assert reports[0].offload == "off: no folder is known"


def test_attributes_that_grow_are_no_weights(call):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.kept = nn.Parameter(torch.randn(4)), None

        def forward(self, x):
            self.kept = x if self.kept is None else torch.cat([self.kept, x])
            return (self.kept * self.scale).sum(0)

    model = Model().eval()
    twin, run = copy.deepcopy(model), compiled(model, call)
    with torch.no_grad():
        for _ in range(6):
            x = torch.randn(2, 4)
            same(run(x), twin(x))
            same(model.kept, twin.kept)
    assert len(reports) == 3 and all(r.whole for r in reports)

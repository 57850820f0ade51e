# SPDX-License-Identifier: Apache-2.0
"""What tests of the torch backend share. There is no __init__.py here: this folder must not be taken for torch."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", minversion="2.6")
sys.path.insert(0, str(Path(__file__).parent))
os.environ["WEFT_PLANS"] = ""  # nothing on disk; test_cache.py has folders of its own

from weft.torch import reports  # noqa: E402
from weft.torch.backend import weft as backend  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--architectures", action="store_true", help="also the slow tests: 40 Hugging Face architectures")


@pytest.fixture(autouse=True)
def clean():
    """Each test compiles anew, with seeded numbers, in two threads; a graph in eager is a failure unless expected."""
    torch._dynamo.reset()
    reports.clear()
    torch.manual_seed(0)
    torch.set_num_threads(2)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=sys.modules["weft.torch.partition"].WeftGraphWarning)
        yield
    torch._dynamo.reset()


@pytest.fixture(params=["auto", "python"])
def call(request) -> str:
    """The call in C where it serves, and the one in Python."""
    return request.param


def compiled(model, call: str = "auto", **keywords):
    options = {"call": call, **keywords.pop("options", {})}
    return torch.compile(model, backend=backend, options=options, **keywords)


def tensors(made) -> list:
    return [t for t in (made if isinstance(made, (tuple, list)) else [made])]


def copied(values) -> list:
    """Copies that lie as the originals do."""
    out = []
    for t in values:
        if isinstance(t, torch.Tensor):
            base = t.detach().as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0).clone()
            t = base.as_strided(t.shape, t.stride(), t.storage_offset()).requires_grad_(t.requires_grad)
        out.append(t)
    return out


def same(got, want, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Equal in value, type, shape and strides."""
    got, want = tensors(got), tensors(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if not isinstance(w, torch.Tensor):
            assert g == w and type(g) is type(w)
            continue
        assert g.dtype == w.dtype and g.shape == w.shape
        assert all(a == b for n, a, b in zip(w.shape, g.stride(), w.stride()) if n > 1 and w.numel())
        torch.testing.assert_close(g, w, rtol=rtol, atol=atol)


def check(f, *calls, call: str = "auto", grad: bool = False, rtol: float = 1e-5, atol: float = 1e-6, **keywords):
    """f compiled beside f in eager, for each tuple of arguments; the arguments too, which may have been written to."""
    twin = copy.deepcopy(f) if isinstance(f, torch.nn.Module) else f
    run = compiled(f, call, **keywords)
    with torch.set_grad_enabled(grad):
        for arguments in calls:
            mine, other = copied(arguments), copied(arguments)
            got, want = run(*mine), twin(*other)
            same(got, want, rtol, atol)
            same(mine, other, rtol, atol)
    return run

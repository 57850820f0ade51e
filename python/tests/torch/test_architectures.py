# SPDX-License-Identifier: Apache-2.0
"""Architectures of Hugging Face at tiny size: one graph, no eager pieces but those named here, right."""

from __future__ import annotations

import warnings

import pytest
import torch
from architectures import ALL, FEW, build
from conftest import compiled, same

from weft.torch import reports
from weft.torch.partition import WeftGraphWarning

pytest.importorskip("transformers")

#: what runs in eager, by architecture
EAGER = {"fnet": {"_to_copy.default", "_fft_c2c.default", "view_as_real.default"}}  # complex numbers


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", ALL if metafunc.config.getoption("--architectures", False) else FEW)


def test_inference(name):
    model, inputs = build(name)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", WeftGraphWarning)
        want = model(*inputs)
        run = compiled(model)
        same(run(*inputs), want, rtol=1e-4, atol=1e-4 * float(want.abs().max()))
        same(run(*inputs), want, rtol=1e-4, atol=1e-4 * float(want.abs().max()))
    assert len(reports) == 1
    assert set(reports[0].reasons) == EAGER.get(name, set())

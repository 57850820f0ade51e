# SPDX-License-Identifier: Apache-2.0
"""What python/README.md shows runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np

import weft

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.S | re.M)


def test_first_screen(mnist, tmp_path, monkeypatch):
    shutil.copy(mnist / "model.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"x": np.load(mnist / "input_0.npy")}
    exec(blocks()[0], names)
    np.testing.assert_allclose(names["y"], np.load(mnist / "output_0.npy"), rtol=1e-5, atol=1e-3)


def test_plans(mnist):
    names = {"weft": weft, "model": weft.load(mnist / "model.onnx"), "x": np.load(mnist / "input_0.npy")}
    exec(blocks()[2], names)
    assert names["plan"].threads == 1


def test_graphs(random):
    weights, bias = random.random((64, 32), np.float32), random.random(32, np.float32)
    names = {"weft": weft, "weights": weights, "bias": bias}
    exec(blocks()[3], names)
    h, s, i = names["plan"](random.random((5, 64), np.float32))
    np.testing.assert_array_equal(np.take_along_axis(h, i, 1), s)


def test_static_inputs(random):
    x, weights = random.random((5, 64), np.float32), random.random((64, 32), np.float32)
    names = {"weft": weft, "weights": weights, "x": x, "gradient": random.random((64, 32), np.float32)}
    before = weights.copy()
    exec(blocks()[4], names)
    assert not np.array_equal(before, weights)
    np.testing.assert_allclose(names["y"], x @ weights, rtol=1e-4)

# SPDX-License-Identifier: Apache-2.0
"""Reading models: files, bytes, texts; fixed inputs; other threads and CPU levels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import weft

REPOSITORY = Path(__file__).parents[2]

TEXT = """weft 1
graph @affine<N>(%x: f32[N,3]) {
  %w: f32[3,2] = const value=[1 2 3 4 5 6]
  %y: f32[N,2] = matmul %x, %w
  return %y
}
"""


def test_onnx_file(mnist):
    x, expected = np.load(mnist / "input_0.npy"), np.load(mnist / "output_0.npy")
    model = weft.load(mnist / "model.onnx")
    assert [str(port) for port in model.inputs] == ["Input3: f32[1,1,28,28]"]
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(model(Input3=x), expected, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(model({"Input3": x}), expected, rtol=1e-5, atol=1e-3)


def test_detector():
    folder = REPOSITORY / "examples" / "models" / "ultraface-rfb-320"
    results = weft.load(str(folder / "model.onnx"))(np.load(folder / "input_0.npy"))
    assert len(results) == 2
    for i, result in enumerate(results):
        np.testing.assert_allclose(result, np.load(folder / f"output_{i}.npy"), rtol=1e-4, atol=1e-5)
        assert results[results.names[i]] is result


def test_bytes(mnist):
    data = (mnist / "model.onnx").read_bytes()
    x, expected = np.load(mnist / "input_0.npy"), np.load(mnist / "output_0.npy")
    for source in (data, bytearray(data), memoryview(data)):
        np.testing.assert_allclose(weft.load(source)(x), expected, rtol=1e-5, atol=1e-3)


def test_text(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    w = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    (tmp_path / "affine.weft").write_text(TEXT)
    for model in (weft.parse(TEXT), weft.load(TEXT.encode()), weft.load(tmp_path / "affine.weft")):
        np.testing.assert_array_equal(model(x), x @ w)
        assert str(model) == TEXT


def test_saved(tmp_path, random):
    g = weft.Graph()
    w = random.random((64, 64), np.float32)
    g.returns(g.matmul(g.input("x", "f32", ["n", 64]), g.constant(w)))
    g.save(tmp_path / "saved.weft")
    assert (tmp_path / "saved.weft.bin").stat().st_size >= w.nbytes
    x = random.random((3, 64), np.float32)
    np.testing.assert_allclose(weft.load(tmp_path / "saved.weft")(x), x @ w, rtol=1e-5)


def test_plans_with_other_options(mnist):
    model = weft.load(mnist / "model.onnx")
    x, expected = np.load(mnist / "input_0.npy"), np.load(mnist / "output_0.npy")
    for plan in (model.compile(threads=1), model.compile(cpu="baseline"), model.compile(flags=weft.Flags.NO_FUSE),
                 model.compile(flags=weft.Flags.NO_PASSES | weft.Flags.NO_WINOGRAD), model.compile(skip="fuse")):
        np.testing.assert_allclose(plan(x), expected, rtol=1e-5, atol=1e-3)
    assert model.compile(threads=1).threads == 1
    assert weft.load(mnist / "model.onnx", threads=1).plan.threads == 1
    assert "avx" not in model.compile(cpu="baseline", flags=weft.Flags.NO_COMPILER).text()


def test_moving_what_was_changed(random):
    g = weft.Graph()
    w = random.random((32, 32), np.float32)
    g.returns(g.matmul(g.input("x", "f32", ["n", 32]), g.constant(w, copy=False)))
    plan = g.compile(threads=1)  # another context than the graph's
    assert plan.context is not g.context and plan.threads == 1
    x = random.random((2, 32), np.float32)
    np.testing.assert_allclose(plan(x), x @ w, rtol=1e-5)


def test_fixed_inputs(mnist):
    x = np.load(mnist / "input_0.npy")
    model = weft.load(mnist / "model.onnx", fixed={"Input3": x})
    assert model.inputs == ()
    np.testing.assert_allclose(model(), np.load(mnist / "output_0.npy"), rtol=1e-5, atol=1e-3)


def test_a_file_that_is_not_there():
    with pytest.raises(weft.FileError, match="no-such-model.onnx"):
        weft.load("no-such-model.onnx")
    with pytest.raises(OSError):
        weft.load("no-such-model.onnx")


def test_broken_text():
    with pytest.raises(weft.FormatError, match=r"^poem:2:") as caught:
        weft.parse("weft 1\ngraph nonsense\n", name="poem")
    assert caught.value.diagnostics[0].line == 2 and caught.value.status == -3


def test_invalid_text():
    with pytest.raises(weft.InvalidGraphError, match="%y"):
        weft.parse(TEXT.replace("%y: f32[N,2] = matmul", "%y: f32[N,5] = matmul"))


def test_version():
    assert weft.__version__.split(".")[0] == "0"
    assert os.path.basename(weft._c.lib._name).startswith("libweft.so")

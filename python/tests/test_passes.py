# SPDX-License-Identifier: Apache-2.0
"""Passes on graphs and texts, and what a plan says of itself."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import weft

DEAD = """weft 1
graph @dead(%x: f32[4]) {
  %unused: f32[4] = exp %x
  %a: f32[4] = neg %x
  %b: f32[4] = neg %x
  %y: f32[4] = add %a, %b
  return %y
}
"""


def test_run_pass():
    graph = weft.parse(DEAD).graph
    assert weft.run_pass(graph, "dce") and "%unused" not in graph.text()
    assert not graph.run_pass("dce")
    assert graph.run_pass("cse") and "%b" not in graph.text()
    with pytest.raises(weft.ArgumentError, match="no-such-pass"):
        graph.run_pass("no-such-pass")


def test_model_is_planned_anew():
    model = weft.parse(DEAD)
    first = model.plan
    assert model.plan is first
    assert model.run_pass("dce") and model.plan is not first
    np.testing.assert_array_equal(model(np.ones(4, np.float32)), -2 * np.ones(4))


def test_opt():
    assert weft.opt(DEAD, "dce,cse") == weft.opt(DEAD, ["dce", "cse"]) == """weft 1
graph @dead(%x: f32[4]) {
  %a: f32[4] = neg %x
  %y: f32[4] = add %a, %a
  return %y
}
"""
    assert "%unused" not in weft.opt(DEAD)
    with pytest.raises(weft.FormatError, match="here.weft"):
        weft.opt("graph", "dce", name="here.weft")


def test_run_pipeline():
    graph = weft.parse(DEAD).graph
    assert graph.run_pipeline(only="dce")
    assert "%unused" not in graph.text() and "%b" in graph.text()
    with pytest.raises(weft.ArgumentError, match="nonsense"):
        graph.run_pipeline(skip="nonsense")


def test_explain(mnist):
    model = weft.load(mnist / "model.onnx")
    text = model.explain()
    assert "results: Plus214_Output_0: f32[1,10]" in text and "by weft_conv_" in text and "fuse formed" in text
    one = model.explain("ReLU32_Output_0")
    assert "%ReLU32_Output_0 = @conv_add_relu" in one and "Times212" not in one
    with pytest.raises(weft.ArgumentError, match="'nothing'"):
        model.explain("nothing")
    assert [step.op for step in model.plan.steps if step.group is None][:1] == ["max_pool"]
    assert model.plan.remarks[0].verdict


def test_counts_of_relayouts():
    """One number wherever it is said; changes of order are another one."""
    plan = weft.parse("graph @g(%x: f32[6,10], %z: f32[10,6]{1 0}) {\n %t: f32[10,6] = transpose %x perm=[1 0]\n"
                      " %r: f32[15,4] = reshape %t\n %y: f32[10,6] = add %t, %z\n return %r, %y, %x\n}").plan
    assert plan.relayouts == plan.statistics.relayouts > 0
    assert f": {plan.relayouts} relayout" in plan.explain() and plan.order_changes > 0


def test_wait(random):
    g = weft.Graph()
    x = g.input("x", "f32", ["n", 33])
    g.returns(g.tanh(x * x + 1) * g.exp(x))
    plan = g.compile().wait()
    if shutil.which("cc"):
        assert plan.compiled == (1, 1, None)
    else:
        assert plan.compiled.reason
    x = random.random((4, 33), np.float32)
    np.testing.assert_allclose(plan(x), np.tanh(x * x + 1) * np.exp(x), rtol=1e-5)


def test_dot(mnist):
    model = weft.load(mnist / "model.onnx")
    try:
        picture = model.dot()
    except weft.Error as reason:
        pytest.skip(str(reason))
    assert picture.startswith("digraph") and "conv" in picture
    assert "relayout" not in model.dot(planned=False)
    x = np.load(mnist / "input_0.npy")
    assert " ms  max_pool" in model.dot(timings=model.plan.timings(x), note="once")
    with pytest.raises(weft.Error, match="nowhere"):
        model.dot(focus="nowhere")


def test_notebook(mnist, monkeypatch):
    model = weft.load(mnist / "model.onnx")
    if shutil.which("dot") and model._repr_svg_() is not None:
        assert all("<svg" in picture for picture in (model.plan._repr_svg_(), model.graph._repr_svg_(),
                                                     weft.svg(model.plan)))
    monkeypatch.setenv("PATH", "")
    assert model._repr_svg_() is None and repr(model).startswith("<weft.Model")
    with pytest.raises(weft.Error, match="Graphviz"):
        weft.svg(model.plan)

# SPDX-License-Identifier: Apache-2.0
"""What keeps what, and that nothing stays behind."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import weft
from weft import graph, model

TEXT = """weft 1
graph @small<N>(%x: f32[N,64]) {
  %w: f32[64,64] = const random=1 scale=0.1
  %h: f32[N,64] = matmul %x, %w
  %y: f32[N,64] = tanh %h
  return %y
}
"""


class Owned(np.ndarray):
    """An array that weak references may point to."""


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def test_a_thousand_loads(mnist):
    data = (mnist / "model.onnx").read_bytes()
    x = np.load(mnist / "input_0.npy")

    def load(times: int) -> int:
        for _ in range(times):
            weft.load(data)(x)
        gc.collect()
        return resident_bytes()

    before = load(100)
    assert load(1000) - before < 8 << 20
    assert not model._bytes_in_use


def test_a_thousand_calls():
    plan = weft.parse(TEXT).plan

    def call(times: int) -> int:
        for i in range(times):
            plan(np.ones((i % 50, 64), np.float32))
        gc.collect()
        return resident_bytes()

    before = call(200)
    assert call(5000) - before < 4 << 20


def test_arrays_are_let_go():
    plan = weft.parse(TEXT).plan
    x = np.ones((3, 64), np.float32).view(Owned)
    y = np.ones((3, 64), np.float32).view(Owned)
    watched = [weakref.ref(x), weakref.ref(y)]
    plan(x, out=y)
    del x, y
    gc.collect()
    assert [there() for there in watched] == [None, None]


def test_plans_outlive_their_graphs():
    text = weft.parse(TEXT)
    graph, context = text.graph, weakref.ref(text.context)
    plan, e = text.plan, text.plan.execution()
    watched = weakref.ref(graph)
    del text, graph
    gc.collect()
    assert watched() is None and context() is plan.context
    watched = weakref.ref(plan)
    del plan
    e.bind("x", np.zeros((2, 64), np.float32))
    e.run()
    assert watched() is e.plan and e.output(0).shape == (2, 64)
    del e
    gc.collect()
    assert watched() is None


def test_contexts_are_closed():
    context = weft.Context(threads=1)
    watched = weakref.ref(context)
    plan = weft.parse(TEXT, context=context).plan
    del context
    gc.collect()
    assert watched() is plan.context
    del plan
    gc.collect()
    assert watched() is None


def test_borrowed_constants():
    array = np.ones((64, 64), np.float32).view(Owned)
    watched = weakref.ref(array)
    g = weft.Graph()
    g.returns(g.add(g.input("x", "f32", [64, 64]), g.constant(array, copy=False)))
    plan = g.compile()
    del array, g
    gc.collect()
    assert watched() is not None
    np.testing.assert_array_equal(plan(np.ones((64, 64), np.float32)), np.full((64, 64), 2))
    del plan
    gc.collect()
    assert watched() is None and not graph._borrowed


def test_refused_borrowing_keeps_nothing():
    g = weft.Graph()
    try:
        g.constant_at(99, (2,), 0, object())
    except weft.Error:
        pass
    assert not graph._borrowed

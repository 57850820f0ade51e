# SPDX-License-Identifier: Apache-2.0
"""The builder: ops by name, sizes, constants, bodies, operators, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import weft


def run(graph: weft.Graph, *arrays: np.ndarray):
    return graph.compile()(*arrays)


def test_text_of_what_was_built():
    g = weft.Graph(name="block")
    x = g.input("x", "f32", [2, "n"])
    y = g.op("clamp", x, low=0, high=6, value_name="y")
    g.returns(y)
    assert str(g) == """weft 1
graph @block<n>(%x: f32[2,n]) {
  %y: f32[2,n] = clamp %x low=0 high=6
  return %y
}
"""
    assert weft.parse(str(g)).text() == str(g)
    assert (y.dtype, y.rank, y.sizes, y.type, y.name) == (weft.DType.F32, 2, (2, "n"), "f32[2,n]", "y")
    assert [v.name for v in g.inputs] == ["x"] and [v.name for v in g.outputs] == ["y"]


def test_sizes():
    g = weft.Graph()
    n = g.symbol("n", 1, 64, hint=8)
    assert g.size_text(g.combine("*", n, 4)) == "4*n"
    assert g.size_text(g.dim("max(n, 3) // 2 + (n % 4) - 1")) == g.size_text(
        g.combine("-", g.combine("+", g.combine("/", g.combine("M", n, 3), 2), g.combine("%", n, 4)), 1))
    assert g.size_text(g.product([2, 3, 7])) == 42
    x = g.input("x", "f32", ["n", 3])
    assert x.shape == (8, 3)
    y = g.reshape(x, dtype="f32", sizes=["3*n"])
    assert y.sizes == ("3*n",) and y.shape == (24,)
    for wrong in ("n + ", "n ** 2", "f(n)", "1.5"):
        with pytest.raises(ValueError, match="size"):
            g.dim(wrong)
    g.returns(y)
    plan = g.compile()
    assert plan(np.zeros((2, 3), np.float32)).shape == (6,)
    with pytest.raises(weft.BindingError, match="n"):
        plan(np.zeros((65, 3), np.float32))


def test_derived_sizes_of_results(random):
    g = weft.Graph()
    x = g.input("x", "f32", ["2*n", "m"])
    g.returns([g.reshape(x, dtype="f32", sizes=["n", "2*m"]), g.concat(x, x, axis=1)])
    plan = g.compile()
    for n, m in ((1, 1), (3, 5), (0, 2), (4, 0)):
        x = random.random((2 * n, m), np.float32)
        y, z = plan(x)
        np.testing.assert_array_equal(y, x.reshape(n, 2 * m))
        np.testing.assert_array_equal(z, np.concatenate([x, x], 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, bool])
@pytest.mark.parametrize("copy", [True, False])
def test_constants(dtype, copy, random):
    g = weft.Graph()
    array = (random.random((40, 3)) * 100).astype(dtype)
    g.returns([g.constant(array, copy=copy), g.constant(array[::2, 1], copy=copy), g.constant(array[0, 0])])
    one, two, three = run(g)
    np.testing.assert_array_equal(one, array)
    np.testing.assert_array_equal(two, array[::2, 1])
    np.testing.assert_array_equal(three, array[0, 0])
    assert one.dtype == array.dtype


def test_borrowed_constants_are_read_where_they_lie(random):
    g = weft.Graph()
    array = random.random((100, 3), np.float32)
    c = g.constant_at(weft.DType.F32, array.shape, array.ctypes.data, array)
    g.returns(g.add(c, g.input("x", "f32", [100, 3])))
    before = g.evaluate(np.zeros((100, 3), np.float32))
    np.testing.assert_array_equal(before, array)


def test_splats():
    g = weft.Graph()
    g.returns([g.splat("f32", [2], 1.5), g.splat("u64", [1], 2**64 - 1), g.splat("i64", [1], -(2**63)),
               g.splat("bool", [1], True), g.splat("bf16", [1], 2)])
    a, b, c, d, e = run(g)
    assert (a.tolist(), b.tolist(), c.tolist(), d.tolist()) == ([1.5, 1.5], [2**64 - 1], [-(2**63)], [True])
    assert weft.from_bf16(e).tolist() == [2]


def test_ops_with_several_results(random):
    g = weft.Graph()
    x = g.input("x", "f32", ["n", 8])
    values, places = g.top_k(x, axis=1, k=3)
    only = g.op("top_k", x, results=1, axis=1, k=2)
    g.returns([values, places, only])
    x = random.random((4, 8), np.float32)
    values, places, only = run(g, x)
    expected = np.argsort(-x, axis=1, kind="stable")
    np.testing.assert_array_equal(places, expected[:, :3])
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, 1)[:, :3])
    np.testing.assert_array_equal(only, values[:, :2])


def test_kinds_of_attributes(random):
    g = weft.Graph()
    x = g.input("x", "f32", [1, 4, 6, 6])
    y = g.max_pool(x, kernel=[2, 2], stride=(2, 2))             # lists of integers
    z = g.gelu(g.batch_norm(y, *(g.constant(np.ones(4, np.float32)) for _ in range(4)), epsilon=1), form="tanh")
    s = g.resize(z, dtype="f32", sizes=[1, 4, 6, 6], scale=[1, 1, 2, 2], form="nearest")  # reals
    m = g.sum(s, axes=np.array([2, 3]), acc=weft.DType.F32)     # a dtype
    g.returns(m)
    x = random.random((1, 4, 6, 6), np.float32)
    np.testing.assert_allclose(run(g, x), g.evaluate(x), rtol=1e-5)
    assert g.triangle(g.input("t", "f32", [2, 2]), diagonal=np.int64(1)).sizes == (2, 2)
    assert g.and_(g.splat("bool", [2], 1), g.splat("bool", [2], 0)).dtype == weft.DType.BOOL


def test_operators(random):
    g = weft.Graph()
    x, b, s = g.input("x", "f32", ["n", 4]), g.input("b", "f32", [4]), g.input("s", "f32", ["n", 1])
    w = random.random((4, 4), np.float32)
    ours = (2 - x @ g.constant(w) / (s + 1)) * b - (-abs(x)) ** 2 % 0.3 + w[0]
    also = w[1] * x
    mask = ~((x > 0.5) & (x <= 0.9) | (b < 0.1))
    g.returns([ours, also, mask])
    x, b, s = random.random((3, 4), np.float32), random.random(4, np.float32), random.random((3, 1), np.float32)
    one, two, three = run(g, x, b, s)
    np.testing.assert_allclose(one, (2 - x @ w / (s + 1)) * b - np.float32(x**2) % np.float32(0.3) + w[0], rtol=1e-4)
    np.testing.assert_array_equal(two, w[1] * x)
    np.testing.assert_array_equal(three, ~((x > 0.5) & (x <= 0.9) | (b < 0.1)))
    with pytest.raises(ValueError, match=r"f32\[3\] and f32\[4\] cannot be repeated"):
        g.input("p", "f32", [3]) + g.input("q", "f32", [4])


def test_bodies():
    g = weft.Graph()
    condition, x = g.input("c", "bool", []), g.input("x", "f32", [3])
    bodies = {}
    for name, op in (("then", "neg"), ("else", "exp")):
        body = g.body(name)
        body.returns(body.op(op, body.input("v", "f32", [3])))
        bodies[name] = body
    g.returns(g.op("if", condition, x, **bodies))
    plan = g.compile()
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(plan(True, x), -x)
    np.testing.assert_allclose(plan(False, x), np.exp(x), rtol=1e-6)


def test_clone():
    g = weft.Graph()
    g.returns(g.exp(g.input("x", "f32", [2])))
    copy = g.clone()
    x = g.input("later", "f32", [2])
    assert len(copy.inputs) == 1 and len(g.inputs) == 2 and x.name == "later"
    copy.validate()


def test_evaluate(random):
    g = weft.Graph()
    x = g.input("x", "f32", ["n", 3])
    g.returns([g.softmax(x, axis=1), g.arg_max(x, axis=1)])
    x = random.random((5, 3), np.float32)
    y, i = g.evaluate(x.T.copy().T)
    np.testing.assert_allclose(y, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(i, x.argmax(1))
    with pytest.raises(TypeError, match="0 inputs given, but the graph has 1"):
        g.evaluate()


@pytest.mark.parametrize("build, kind, message", [
    (lambda g, x: g.multiply(x, x), weft.ArgumentError, "there is no op 'multiply'"),
    (lambda g, x: g.sum(x, axis=1), weft.ArgumentError, "sum has no attribute 'axis'.*axes"),
    (lambda g, x: g.matmul(x, x), weft.InvalidGraphError, "matmul: operand 0 is"),
    (lambda g, x: g.sum(x, axes=1), weft.ArgumentError, "attribute axes of sum is a list of integers"),
    (lambda g, x: g.cast(x), weft.ArgumentError, "cast does not infer its type"),
    (lambda g, x: g.input("x", "f32", [1]), weft.ArgumentError, "x"),
    (lambda g, x: g.add(x, weft.Graph().input("y", "f32", [2, 3])), weft.ArgumentError, "operand 1 of add"),
    (lambda g, x: g.constant(np.array(["a"])), TypeError, "no element type"),
    (lambda g, x: g.input("z", "f33", [1]), TypeError, "no element type 'f33'; it has f64 f32"),
    (lambda g, x: g.input("z", "f32", [1] * 9), weft.ArgumentError, "rank"),
    (lambda g, x: g.returns([x], [x, x]), ValueError, "1 results, but `updated` has 2"),
    (lambda g, x: g.layout(x, "{1 0 7}"), weft.Error, "x"),
])
def test_refused(build, kind, message):
    g = weft.Graph()
    x = g.input("x", "f32", [2, 3])
    with pytest.raises(kind, match=message):
        build(g, x)

# SPDX-License-Identifier: Apache-2.0
"""Calls: sizes that change, names, strides, the caller's arrays, inputs that are updated, element types."""

from __future__ import annotations

import numpy as np
import pytest

import weft


@pytest.mark.parametrize("n, m", [(3, 5), (1, 1), (0, 2), (2, 0), (0, 0), (65, 7)])
def test_sizes(product, random, n, m):
    a, b = random.random((n, 4), np.float32), random.random((4, m), np.float32)
    for _ in range(2):
        y, t = product(a, b)
        np.testing.assert_allclose(y, a @ b, rtol=1e-6)
        np.testing.assert_array_equal(t, a.T)
        assert y.shape == (n, m) and y.flags.c_contiguous and t.flags.c_contiguous


def test_results_outlive_calls(product, random):
    a, b = random.random((3, 4), np.float32), random.random((4, 2), np.float32)
    first = product(a, b)
    product(a + 1, b)
    np.testing.assert_allclose(first[0], a @ b, rtol=1e-6)
    del product
    np.testing.assert_allclose(first["y"], a @ b, rtol=1e-6)


def test_names(product, random):
    a, b = random.random((3, 4), np.float32), random.random((4, 2), np.float32)
    for results in (product(a, b=b), product(b=b, a=a), product({"b": b}, a=a), product({"a": a, "b": b})):
        assert results.names == ("y", "t") and set(results.asdict()) == {"y", "t"}
        np.testing.assert_allclose(results["y"], a @ b, rtol=1e-6)
    y, t = results
    assert y is results["y"] and t is results[1]
    with pytest.raises(KeyError, match="'z'.* y t"):
        results["z"]


def test_results_without_names_print_without():
    assert repr(weft.plan.Results((1, 2), ("y", ""))) == "Results(y=1, 2)"


def test_wrong_calls(product):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    with pytest.raises(TypeError, match=r"missing: b: f32\[4,m\]"):
        product(a)
    with pytest.raises(TypeError, match="3 inputs given, but the plan has 2"):
        product(a, b, b)
    with pytest.raises(TypeError, match="'a' is given twice"):
        product(a, b, a=a)
    with pytest.raises(weft.ArgumentError, match=r"no input 'c': the plan has a: f32\[n,4\], b: f32\[4,m\]"):
        product(a, c=b)
    with pytest.raises(weft.BindingError, match="input 0 'a': the plan has f32, the tensor f64"):
        product(a.astype(np.float64), b)
    with pytest.raises(weft.BindingError, match="input 1 'b': the plan has rank 2, the tensor 1"):
        product(a, b[0])
    with pytest.raises(weft.BindingError, match="%b: axis 0 has extent 4, but 3 is given"):
        product(a, b[:3])
    with pytest.raises(weft.BindingError, match="input 0 'a': weft has no element type dtype.'complex64'"):
        product(a.astype(np.complex64), b)
    with pytest.raises(weft.BindingError, match="input 1 'b'"):
        product(a, "text")
    np.testing.assert_array_equal(product(a, b)[0], np.full((3, 2), 4))  # what failed left nothing behind


def test_strides(product, random):
    a, b = random.random((6, 8), np.float32), random.random((4, 3), np.float32)
    swapped = np.asfortranarray(random.random((4, 3), np.float32))
    reverse = a[::-1, ::-2]
    repeated = np.broadcast_to(np.float32(2), (3, 4))
    for first, second in ((a[:, ::2], b), (a[::2, :4], swapped), (reverse, b), (repeated, swapped), (a[:1, 4:], b)):
        np.testing.assert_allclose(product(first, second)[0], first @ second, rtol=1e-5)
    bytes_of = np.zeros(4 * 3 * 4 + 1, np.uint8)
    crooked = bytes_of[1:].view(np.float32).reshape(4, 3)
    crooked[...] = b
    np.testing.assert_allclose(product(a[:, :4], crooked)[0], a[:, :4] @ b, rtol=1e-5)
    np.testing.assert_allclose(product(a[:, :4].astype(">f4"), b)[0], a[:, :4] @ b, rtol=1e-5)


def test_memory_is_read_where_it_lies(random):
    g = weft.Graph()
    x = g.input("x", "f32", ["n", 4])
    g.returns(g.neg(x))
    e = g.compile().execution()
    array = random.random((3, 4), np.float32)
    e.bind("x", array)
    array[...] = 5
    e.run()
    np.testing.assert_array_equal(e.output(0), np.full((3, 4), -5))
    e.bind("x", array.T.copy().T)  # strides that are not the plan's: a copy
    e.run()
    np.testing.assert_array_equal(e.output(0), np.full((3, 4), -5))


def test_layouts_of_inputs(random):
    g = weft.Graph()
    x = g.input("x", "f32", [1, 3, 5, "w"], layout="{0 2 3 1}")
    rows = g.input("r", "f32", [4, 6], layout="{0 1 | 16 1}")
    g.returns([g.relu(x), g.neg(rows)])
    plan = g.compile()
    array, wide = random.random((1, 3, 5, 7), np.float32) - 0.5, random.random((4, 16), np.float32)
    channels_last = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for image in (array, channels_last):
        for part in (wide[:, :6], wide[:, :6].copy()):
            y, z = plan(image, part)
            np.testing.assert_array_equal(y, np.maximum(array, 0))
            np.testing.assert_array_equal(z, -wide[:, :6])


def test_numbers_and_lists():
    g = weft.Graph()
    g.returns(g.input("x", "f32", [2, 2]) * g.reshape(g.input("s", "f32", []), dtype="f32", sizes=[1, 1]))
    plan = g.compile()
    np.testing.assert_array_equal(plan([[1, 2], [3, 4]], 2), [[2, 4], [6, 8]])
    np.testing.assert_array_equal(plan(np.ones((2, 2), np.float32), np.float32(3)), [[3, 3], [3, 3]])


def test_out(product, random):
    a, b = random.random((3, 4), np.float32), random.random((4, 2), np.float32)
    y, t = np.empty((3, 2), np.float32), np.empty((4, 3), np.float32)
    results = product(a, b, out=[y, t])
    assert results[0] is y and results[1] is t
    np.testing.assert_allclose(y, a @ b, rtol=1e-6)
    np.testing.assert_array_equal(t, a.T)
    wide = np.zeros((3, 4), np.float32)
    results = product(a, b, out={"y": wide[:, ::2]})  # other strides: copied into place
    np.testing.assert_allclose(wide[:, ::2], a @ b, rtol=1e-6)
    np.testing.assert_array_equal(wide[:, 1::2], 0)
    np.testing.assert_array_equal(results["t"], a.T)


def test_wrong_out(product):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    with pytest.raises(TypeError, match="the plan has 2 results"):
        product(a, b, out=np.empty((3, 2), np.float32))
    with pytest.raises(weft.BindingError, match=r"output 0 'y': the result has extents \[3, 2\], the array \[2, 2\]"):
        product(a, b, out=[np.empty((2, 2), np.float32), None])
    with pytest.raises(weft.BindingError, match="output 0 'y': the plan has f32, the array f64"):
        product(a, b, out=[np.empty((3, 2)), None])
    fixed = np.empty((3, 2), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(weft.BindingError, match="output 0 'y'.*read-only"):
        product(a, b, out=[fixed, None])
    with pytest.raises(weft.BindingError, match="output 0 'y'.*not list"):
        product(a, b, out=[[1, 2], None])
    with pytest.raises(weft.BindingError, match="overlap"):
        product(a, b, out=[None, a.reshape(4, 3)])


@pytest.mark.parametrize("n", [3, 1, 0])
def test_inputs_that_are_updated(step, n):
    assert [port.mutable for port in step.inputs] == [True, False]
    assert [port.updates for port in step.outputs] == [None, 0]
    w, g = np.full((4, n), 2, np.float32), np.full((4, n), 0.5, np.float32)
    for i in range(3):
        total, new = step(w, g)
        assert new is w
        np.testing.assert_array_equal(w, np.full((4, n), 1.5 - i / 2))
        assert total == 4 * n * (1.5 - i / 2)


def test_inputs_that_cannot_be_updated(step):
    g = np.zeros((4, 3), np.float32)
    with pytest.raises(weft.BindingError, match="input 0 'w': the run updates it where it lies"):
        step(np.ones((3, 4), np.float32).T, g)
    with pytest.raises(weft.BindingError, match="input 0 'w'.*read-only"):
        step(np.broadcast_to(np.float32(1), (4, 3)), g)
    with pytest.raises(weft.BindingError, match="input 0 'w'.*not list"):
        step([[1.0] * 3] * 4, g)
    with pytest.raises(weft.BindingError, match="input 0 'w'.*>f4"):
        step(np.ones((4, 3), ">f4"), g)


@pytest.mark.parametrize("name", "f64 f32 f16 i64 i32 i16 i8 u64 u32 u16 u8".split())
def test_element_types(name):
    g = weft.Graph()
    x = g.input("x", name, ["n"])
    g.returns(g.add(x, x))
    dtype = weft.DType[name.upper()]
    array = np.arange(5).astype(dtype.numpy)
    y = g.compile()(array)
    assert y.dtype == array.dtype
    np.testing.assert_array_equal(y, array + array)


def test_bool():
    g = weft.Graph()
    x = g.input("x", "bool", [3])
    g.returns([~x, g.cast(x, dtype="i64")])
    not_x, number = g.compile()(np.array([True, False, True]))
    assert not_x.tolist() == [False, True, False] and number.tolist() == [1, 0, 1]


def test_bf16(random):
    g = weft.Graph()
    x = g.input("x", "bf16", ["n"])
    g.returns(g.mul(x, x))
    plan = g.compile()
    values = random.standard_normal(100).astype(np.float32)
    bits = weft.to_bf16(values)
    y = plan(bits)
    assert y.dtype == weft.DType.BF16.numpy
    rounded = weft.from_bf16(bits)
    assert np.all(np.abs(rounded - values) <= np.abs(values) / 256)
    np.testing.assert_array_equal(weft.from_bf16(y), weft.from_bf16(weft.to_bf16(rounded * rounded)))
    out = np.empty(100, np.uint16)
    assert plan(bits, out=out) is out
    np.testing.assert_array_equal(out, y.view(np.uint16))


def test_bf16_of_ml_dtypes(random):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.concatenate([random.standard_normal(1000), [np.inf, -np.inf, 0.0, -0.0, 3.3e38]]).astype(np.float32)
    expected = values.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(weft.to_bf16(values), expected.view(np.uint16))
    np.testing.assert_array_equal(weft.from_bf16(expected), expected.astype(np.float32))
    assert np.isnan(weft.from_bf16(weft.to_bf16(np.float32([np.nan]))))[0]


@pytest.mark.parametrize("name, low, high", [("i4", -8, 7), ("u4", 0, 15)])
def test_four_bits(name, low, high):
    g = weft.Graph()
    x = g.input("x", name, [3, 5])
    g.returns([g.cast(x, dtype="f32"), g.cast(g.cast(x, dtype="f32"), dtype=name)])
    array = (np.arange(15).reshape(3, 5) % (high - low + 1) + low).astype(weft.DType[name.upper()].numpy)
    wide, back = g.compile()(array)
    np.testing.assert_array_equal(wide, array)
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype
    with pytest.raises(weft.BindingError, match=f"input 0 'x': elements of {name} lie between {low} and {high}"):
        g.compile()(np.full_like(array, 16))


def test_sizes_that_depend_on_data():
    model = weft.parse("""weft 1
graph @places<K = data(6)>(%x: bool[2,3]) {
  %y: i64[2,K] = nonzero %x extent=[K]
  return %y
}
""")
    for x in ([[1, 0, 1], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]], [[1, 1, 1], [1, 1, 1]]):
        x = np.array(x, bool)
        np.testing.assert_array_equal(model(x), np.stack(np.nonzero(x)))


def test_executions(product, random):
    a, b = random.random((3, 4), np.float32), random.random((4, 2), np.float32)
    y = np.empty((3, 2), np.float32)
    e = product.execution()
    e.bind(0, a)
    e.bind("b", b)
    e.bind_output("y", y)
    for i in range(3):
        a += 1
        e.run()
        np.testing.assert_allclose(y, a @ b, rtol=1e-6)
    e.cancel()
    with pytest.raises(weft.CancelledError):
        e.run()
    e.run()
    np.testing.assert_array_equal(e.output("t"), a.T)
    assert e.statistics().workers >= 1
    with pytest.raises(weft.BindingError, match="is not bound"):
        product.execution().run()
    with pytest.raises(weft.ArgumentError, match="nothing has run yet"):
        product.execution().output(0)


def test_timings(product):
    timings = product.timings(np.ones((3, 4), np.float32), np.ones((4, 2), np.float32))
    assert {"y", "t"} == {timing.value for timing in timings} and all(timing.ns >= 0 for timing in timings)
    assert all(timing.kernel.startswith("weft_") for timing in timings)

# SPDX-License-Identifier: Apache-2.0
"""Arrays of others: DLPack and the buffer protocol, both ways."""

from __future__ import annotations

import array

import numpy as np
import pytest

import weft


class Foreign:
    """What exports DLPack and nothing else; an old one knows no version."""

    def __init__(self, source: np.ndarray, old: bool = False):
        self.source, self.old = source, old

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.old and options:
            raise TypeError("no such argument")
        return self.source.__dlpack__(**options)


@pytest.fixture
def negative() -> weft.Plan:
    g = weft.Graph()
    g.returns(g.neg(g.input("x", "f32", ["n", 3])))
    return g.compile()


@pytest.mark.parametrize("old", [False, True])
def test_in(negative, random, old):
    x = random.random((4, 3), np.float32)
    np.testing.assert_array_equal(negative(Foreign(x, old)), -x)
    np.testing.assert_array_equal(negative(Foreign(x[::2], old)), -x[::2])
    np.testing.assert_array_equal(negative(Foreign(x[:0], old)), x[:0])
    swapped = random.random((3, 4), np.float32).T
    np.testing.assert_array_equal(negative(Foreign(swapped, old)), -swapped)


def test_read_where_it_lies(negative, random):
    x = random.random((4, 3), np.float32)
    e = negative.execution()
    e.bind("x", Foreign(x))
    x[...] = 3
    e.run()
    np.testing.assert_array_equal(e.output(0), np.full((4, 3), -3))


def test_out(negative, random):
    x, y = random.random((4, 3), np.float32), np.zeros((4, 3), np.float32)
    target = Foreign(y)
    assert negative(x, out=target) is target
    np.testing.assert_array_equal(y, -x)
    wide = np.zeros((4, 6), np.float32)
    negative(x, out=Foreign(wide[:, ::2]))
    np.testing.assert_array_equal(wide[:, ::2], -x)


def test_results_export(negative, random):
    x = random.random((4, 3), np.float32)
    y = np.from_dlpack(negative(x))
    np.testing.assert_array_equal(y, -x)


def test_buffers(negative):
    numbers = array.array("f", range(6))
    x = memoryview(numbers).cast("B").cast("f", (2, 3))
    np.testing.assert_array_equal(negative(x), -np.arange(6, dtype=np.float32).reshape(2, 3))


def test_refused(negative):
    with pytest.raises(weft.BindingError, match="input 0 'x': Foreign has elements of DLPack type code 5, 64 bits"):
        negative(Foreign(np.zeros((2, 3), np.complex64)))
    with pytest.raises(weft.BindingError, match="input 0 'x': the plan has f32, the tensor i32"):
        negative(Foreign(np.zeros((2, 3), np.int32)))


def test_updated(step):
    w, g = np.full((4, 3), 2, np.float32), np.ones((4, 3), np.float32)
    given = Foreign(w)
    _, new = step(given, Foreign(g))
    assert new is given
    np.testing.assert_array_equal(w, np.ones((4, 3)))


def test_torch(negative):
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 3)
    assert torch.equal(torch.from_dlpack(negative(x)), -x)
    assert torch.equal(torch.from_dlpack(negative(x[::2])), -x[::2])
    y = torch.empty(4, 3)
    assert negative(x, out=y) is y and torch.equal(y, -x)
    with pytest.raises(weft.BindingError, match="input 0 'x'.*requires_grad|require"):
        negative(x.requires_grad_())


def test_torch_bf16():
    torch = pytest.importorskip("torch")
    g = weft.Graph()
    x = g.input("x", "bf16", ["n", 3])
    g.returns(g.neg(x))
    plan = g.compile()
    x = torch.randn(4, 3).bfloat16()
    y = torch.empty_like(x)
    plan(x, out=y)
    assert torch.equal(y, -x)
    plan(torch.randn(3, 4).bfloat16().t(), out=y)
    result = plan(x)
    np.testing.assert_array_equal(weft.from_bf16(result), (-x).float().numpy())

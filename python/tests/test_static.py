# SPDX-License-Identifier: Apache-2.0
"""Static inputs: weights that change seldom, packed by an execution once."""

from __future__ import annotations

import numpy as np
import pytest

import weft


def product(layout: str | None = None) -> weft.Plan:
    g = weft.Graph(name="product")
    x = g.input("x", "f32", ["n", 64])
    w = g.input("w", "f32", [64, 48], static=True, layout=layout)
    g.returns([g.matmul(x, w)])
    return g.compile()


@pytest.mark.parametrize("which", [None, "w", 1])
def test_refresh(random, which):
    plan = product()
    assert [port.static for port in plan.inputs] == [False, True]
    assert str(plan.inputs[1]) == "w: static f32[64,48]"
    x, w = random.random((8, 64), np.float32), random.random((64, 48), np.float32)
    e = plan.execution()
    e.bind("x", x)
    e.bind("w", w)
    for runs in range(1, 4):
        e.run()
        e.run()
        np.testing.assert_allclose(e.output(0), x @ w, rtol=1e-5)
        assert e.statistics().static_packs == runs
        w += 1
        e.refresh(which)
    assert e.statistics().static_bytes >= w.nbytes and e.statistics().constant_bytes == 0


@pytest.mark.parametrize("which", [None, "w"])
def test_refresh_of_what_is_copied(random, which):
    """Weights that do not lie as the plan has them are copied when they are bound, and when they are refreshed."""
    plan = product(layout="{1 0}")
    x, w = random.random((8, 64), np.float32), random.random((64, 48), np.float32)
    e = plan.execution()
    e.bind("x", x)
    e.bind("w", w)
    for _ in range(3):
        e.run()
        np.testing.assert_allclose(e.output(0), x @ w, rtol=1e-5)
        w *= -2
        e.refresh(which)


def test_calls(random):
    """A call binds, so it packs what it was given."""
    plan = product()
    x, w = random.random((8, 64), np.float32), random.random((64, 48), np.float32)
    for _ in range(3):
        np.testing.assert_allclose(plan(x, w), x @ w, rtol=1e-5)
        w += 1


def test_what_is_no_static_input():
    g = weft.Graph(name="both")
    with pytest.raises(ValueError, match="mutable or static, not both"):
        g.input("w", "f32", [2], mutable=True, static=True)
    e = product().execution()
    with pytest.raises(weft.ArgumentError, match="input 0 'x' is not static"):
        e.refresh("x")

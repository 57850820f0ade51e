# SPDX-License-Identifier: Apache-2.0
"""Contexts: what they refuse, their warnings, and those that are made unasked."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import weft


def test_refused(monkeypatch):
    with pytest.raises(weft.ArgumentError, match="avx9"):
        weft.Context(cpu="avx9")
    with pytest.raises(weft.ArgumentError, match="thread"):
        weft.Context(threads=-1)
    with pytest.raises(TypeError, match="threads is a number, not '2'"):
        weft.Context(threads="2")
    with pytest.raises(weft.Error, match="no-such-file"):
        weft.Context(prices="no-such-file")
    monkeypatch.setenv("WEFT_CACHES", "many")
    with pytest.raises(weft.ArgumentError, match="WEFT_CACHES"):
        weft.Context()


def test_warnings(monkeypatch):
    """A pass in WEFT_SKIP that there is not is a warning, and the plan is made."""
    monkeypatch.setenv("WEFT_SKIP", "cze")
    model = weft.parse("graph @g(%x: f32[2]) {\n  %y: f32[2] = neg %x\n  return %y\n}\n", context=weft.Context(1))
    with pytest.warns(weft.WeftWarning, match="WEFT_SKIP: nothing is called 'cze'") as caught:
        plan, line = model.compile(), sys._getframe().f_lineno
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)  # the program's own line
    np.testing.assert_array_equal(plan(np.ones(2, np.float32)), [-1, -1])


def test_default_contexts():
    assert weft.default_context() is weft.default_context()
    assert weft.default_context(threads=1) is not weft.default_context()
    assert weft.default_context().like(threads=1) is weft.default_context(threads=1)
    own = weft.Context(threads=1, prices="")
    assert own.like(1) is own and own.like(2).prices == ""


def test_packs(tmp_path, random):
    """Packed weights are files that processes share."""
    context = weft.Context(packs=str(tmp_path / "packs"))
    g = weft.Graph(context)
    w = random.random((512, 512), np.float32)
    g.returns(g.matmul(g.input("x", "f32", [64, 512]), g.constant(w)))
    plan = g.compile()
    x = random.random((64, 512), np.float32)
    np.testing.assert_allclose(plan(x), x @ w, rtol=1e-4)
    assert list((tmp_path / "packs").iterdir()) and plan.statistics.mapped_bytes >= w.nbytes

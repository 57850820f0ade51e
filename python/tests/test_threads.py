# SPDX-License-Identifier: Apache-2.0
"""One plan called by several threads, contexts shared by them, and a process that forks."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import weft


def test_one_plan(product):
    def work(seed: int) -> int:
        random = np.random.default_rng(seed)
        for _ in range(60):
            n, m = random.integers(0, 9, 2)
            a, b = random.random((n, 4), np.float32), random.random((4, m), np.float32)
            y, t = product(a, b)
            np.testing.assert_allclose(y, a @ b, rtol=1e-5)
            np.testing.assert_array_equal(t, a.T)
        return seed

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == list(range(16))
    assert 1 <= len(product._idle) <= 8


def test_compiling_in_one_context():
    def work(k: int) -> np.ndarray:
        g = weft.Graph(name=f"g{k}")
        x = g.input("x", "f32", ["n"])
        for _ in range(k):
            x = x + 1
        g.returns(x)
        with pytest.raises(weft.ArgumentError, match=f"there is no op 'wrong{k}'"):
            g.op(f"wrong{k}", x)
        return g.compile()(np.zeros(3, np.float32))

    with ThreadPoolExecutor(8) as pool:
        for k, y in enumerate(pool.map(work, range(24))):
            np.testing.assert_array_equal(y, np.full(3, k))


def test_python_runs_meanwhile():
    """The lock of the interpreter is not held while kernels run: another thread cancels the run."""
    g = weft.Graph()
    x = g.input("x", "f32", [512, 512])
    for _ in range(400):
        x = g.matmul(x, x)
    g.returns(x)
    e = g.compile(flags=weft.Flags.NO_PASSES).execution()
    e.bind("x", np.zeros((512, 512), np.float32))
    timer = threading.Timer(0.02, e.cancel)
    timer.start()
    with pytest.raises(weft.CancelledError):
        e.run()
    timer.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork(product):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    product(a, b)
    child = os.fork()
    if child == 0:
        os._exit(0 if (product(a, b)[0] == 4).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

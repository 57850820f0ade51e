# SPDX-License-Identifier: Apache-2.0
"""What tests share. They run on the package that is installed, or on the one in PYTHONPATH with WEFT_LIBRARY."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("WEFT_PRICES", "")  # the shipped prices: plans are the same on all machines

import numpy as np
import pytest

import weft

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def mnist() -> Path:
    return REPOSITORY / "tests" / "models" / "mnist"


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def product() -> weft.Plan:
    """a [n,4] by b [4,m], and a with its axes swapped: sizes that are symbols."""
    g = weft.Graph(name="product")
    a, b = g.input("a", "f32", ["n", 4]), g.input("b", "f32", [4, "m"])
    g.returns([g.op("matmul", a, b, value_name="y"), g.op("transpose", a, perm=[1, 0], value_name="t")])
    return g.compile()


@pytest.fixture
def step() -> weft.Plan:
    """w - g, which w becomes, and its sum."""
    g = weft.Graph(name="step")
    w, d = g.input("w", "f32", [4, "n"], mutable=True), g.input("g", "f32", [4, "n"])
    y = w - d
    g.returns([g.op("sum", y, axes=[0, 1], value_name="total"), y], [None, w])
    return g.compile()

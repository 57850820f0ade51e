# SPDX-License-Identifier: Apache-2.0
"""A part of torch's op database in the normal run: what is lowered stays right, and stays lowered.

opinfo.py runs all of it; missing.json says what is not lowered."""

from __future__ import annotations

import json

import pytest
import torch

pytest.importorskip("expecttest")
import opinfo  # noqa: E402
import opinfo_check  # noqa: E402

EVERY = 12  # so many ops make one of the normal run
LISTED = torch.__version__.startswith("2.13.")  # missing.json is of this version; others lack other ops
KNOWN = json.loads(opinfo.MISSING.read_text())
NAMES = sorted(opinfo_check.ops())[::EVERY]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype, mode", [("f32", "forward"), ("bf16", "forward"), ("i64", "forward"),
                                         ("bool", "forward"), ("f32", "backward"), ("f32", "dynamic")])
def test_op(name, dtype, mode):
    if opinfo_check.ops()[name].name.startswith(("linalg", "fft", "sparse")) and f"{name} {dtype} {mode}" in KNOWN:
        pytest.skip("named as missing")
    answer = opinfo_check.check(name, opinfo.DTYPES[dtype], mode, most=2)
    assert answer["status"] in ("right", "random", "unsupported", "eager-fails") or (
        answer["status"] in ("missing", "untraceable") and
        (not LISTED or f"{name} {dtype} {mode}" in KNOWN)), answer

# SPDX-License-Identifier: Apache-2.0
"""Lowerings: a function for each ATen op that weft takes, by family. Importing this package fills TABLE."""

from __future__ import annotations

from . import (  # noqa: F401 - each registers its ops
    attention, backward, creation, elementwise, indices, normalisation, pairs, pooling, products,
    random, recurrent, reductions, shapes, windows)
from .registry import TABLE, Refuse, lowering

__all__ = ["TABLE", "Refuse", "lowering"]

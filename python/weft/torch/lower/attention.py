# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention: one op forward, one backward; scores are never in memory as a whole."""

from __future__ import annotations

import math

from ..dtypes import BOOL, F32, HALVES
from .build import used_results
from .normalisation import statistics_dtype
from .registry import Refuse, lower


def added_mask(b, mask, q, k):
    """The mask as numbers to be added to the scores: a bool hides where it is false."""
    if mask is None:
        return None
    if mask.dtype == BOOL:
        mask = b.select(mask, b.scalar(0, q.dtype, mask.dims), b.scalar(-math.inf, q.dtype, mask.dims))
    return b.bcast(b.cast(mask, q.dtype), [*q.dims[:3], k.dims[2]])


def factor_of(b, q, scale) -> float:
    if scale is not None:
        if not isinstance(scale, (int, float)):
            raise Refuse("a factor that is a symbol")
        return float(scale)
    return 1 / math.sqrt(b.static(q.dims[-1], "the size of a head"))


@lower("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(b, n, q, k, v, dropout=0.0, causal=False, *, attn_mask=None, scale=None):
    if dropout:
        raise Refuse("dropout within attention")
    factor, mask = factor_of(b, q, scale), added_mask(b, attn_mask, q, k)
    operands = (q, k, v) if mask is None else (q, k, v, mask)
    if used_results(n) <= {0}:
        return [b.op("attention", *operands, factor=factor, causal=int(causal)), None]
    y, sums = b.op("attention_sums", *operands, factor=factor, causal=int(causal))
    if mask is not None:  # torch has 0 for a row that sees no key
        sums = b.select(b.op("eq", sums, b.like(sums, -math.inf)), b.like(sums, 0), sums)
    return [y, b.cast(sums, statistics_dtype(n, 1))]  # in torch 2.10 the trace says f32 where q is f64


@lower("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_backward(b, n, dy, q, k, v, y, lse, dropout, causal, *, attn_mask=None, scale=None):
    if dropout:
        raise Refuse("dropout within attention")
    factor, mask = factor_of(b, q, scale), added_mask(b, attn_mask, q, k)
    dy, y, lse = b.cast(dy, q.dtype), b.cast(y, q.dtype), b.cast(lse, F32 if q.dtype in HALVES else q.dtype)
    operands = (dy, q, k, v, y, lse) if mask is None else (dy, q, k, v, y, lse, mask)
    return b.op("attention_grad", *operands, factor=factor, causal=int(causal))

# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention: one op forward; backward opened into products, with the scores in memory."""

from __future__ import annotations

import math

from ..dtypes import BOOL, I64
from .build import used_results
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
    y = b.op("attention", q, k, v, *([] if mask is None else [mask]), factor=factor, causal=int(causal))
    if used_results(n) <= {0}:
        return [y, None]
    s = scores(b, q, k, mask, factor, causal)
    return [y, b.op("log_sum_exp", s, axes=[3])]  # once more: weft's attention does not return it


def scores(b, q, k, mask, factor, causal):
    """What softmax is taken of, in full, in f32 of 16-bit floats."""
    s = b.op("matmul", b.wide(q), b.wide(k), trans_b=1)
    s = b.op("mul", s, b.like(s, factor))
    if mask is not None:
        s = b.op("add", s, b.cast(mask, s.dtype))
    if causal:
        i, j = (b.iota(I64, s.dims, a) for a in (2, 3))
        s = b.select(b.op("ge", i, j), s, b.like(s, -math.inf))
    return s


@lower("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_backward(b, n, dy, q, k, v, y, lse, dropout, causal, *, attn_mask=None, scale=None):
    if dropout:
        raise Refuse("dropout within attention")
    factor, dtype = factor_of(b, q, scale), q.dtype
    s = scores(b, q, k, added_mask(b, attn_mask, q, k), factor, causal)
    dy, q, k, v, y, lse = (b.cast(t, s.dtype) for t in (dy, q, k, v, y, lse))
    last = lambda x: b.along(x, s.dims, [0, 1, 2])  # noqa: E731
    p = b.op("exp", b.op("sub", s, last(lse)))
    # a row that sees no key has weights 0 and lse -inf
    p = b.select(b.op("eq", last(lse), b.like(s, -math.inf)), b.like(s, 0), p)
    dv = b.op("matmul", p, dy, trans_a=1)
    dp = b.op("matmul", dy, v, trans_b=1)
    rows = b.op("sum", b.op("mul", dy, y), axes=[3])
    ds = b.op("mul", p, b.op("sub", dp, last(rows)))
    ds = b.op("mul", ds, b.like(ds, factor))
    return [b.cast(g, dtype) for g in (b.op("matmul", ds, k), b.op("matmul", ds, q, trans_a=1), dv)]

# SPDX-License-Identifier: Apache-2.0
"""Which ATen ops torch opens into simpler ones before weft sees a graph.

The start is torch's core_aten_decompositions(), which open gradients too. What has a lowering of its own stays whole.
torch opens some ops whatever a table says (those with a Python implementation for autograd, like upsample_bilinear2d
and lstm): whole.py keeps these.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch._decomp import core_aten_decompositions, get_decompositions

from .lower import TABLE

#: opened besides torch's core ones
OPENED = "batch_norm_backward dist _euclidean_dist".split()


def encoder_layer(src, width, heads, qkv_weight, qkv_bias, out_weight, out_bias, gelu, norm_first, eps, norm_weight_1,
                  norm_bias_1, norm_weight_2, norm_bias_2, weight_1, bias_1, weight_2, bias_2, mask=None,
                  mask_type=None):
    """torch's "fast path" of nn.TransformerEncoderLayer, which it takes in eval() without gradients, as it computes the
    layer otherwise. Masks are true, or not 0, where nothing is looked at: of queries and keys (type 0), of the keys of
    each image (1), of all (2). A row that is masked throughout is NaN there, and so it is here."""
    ranks = {0: 2, 1: 2, 2: 4}
    if src.dim() != 3 or (mask is not None and mask.dim() != ranks.get(mask_type)):
        return NotImplemented

    def mix(q, k, v):
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v)
        hidden = mask.to(torch.bool)
        hidden = hidden[:, None, None, :] if mask_type == 1 else hidden
        scores = q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)
        return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v

    def attend(x):
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2)
                   for part in F.linear(x, qkv_weight, qkv_bias).chunk(3, -1))
        return F.linear(mix(q, k, v).transpose(1, 2).flatten(2), out_weight, out_bias)

    def feed(x):
        inner = F.linear(x, weight_1, bias_1)
        return F.linear(F.gelu(inner) if gelu else F.relu(inner), weight_2, bias_2)

    def norm_1(x):
        return F.layer_norm(x, (width,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x):
        return F.layer_norm(x, (width,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + attend(norm_1(src))
        return src + feed(norm_2(src))
    src = norm_1(src + attend(src))
    return norm_2(src + feed(src))


@functools.cache
def decompositions() -> dict:
    """The table for AOTAutograd."""
    chosen = dict(core_aten_decompositions())
    packets = [getattr(torch.ops.aten, name, None) for name in OPENED]
    chosen.update(get_decompositions([p for p in packets if p is not None]))
    for target in TABLE:
        chosen.pop(target, None)
    fast = getattr(torch.ops.aten, "_transformer_encoder_layer_fwd", None)
    if fast is not None:
        chosen[fast.default] = encoder_layer
    return chosen

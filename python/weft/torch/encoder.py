# SPDX-License-Identifier: Apache-2.0
"""torch's fast path of nn.TransformerEncoderLayer, one op that has no lowering, in simpler ones."""

from __future__ import annotations

import torch
import torch.nn.functional as F


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

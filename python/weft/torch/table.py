# SPDX-License-Identifier: Apache-2.0
"""Which ATen ops torch opens into simpler ones before weft sees a graph.

The start is torch's core_aten_decompositions(), which open gradients too. What has a lowering of its own stays whole.
torch opens some ops whatever a table says (those with a Python implementation for autograd, like upsample_bilinear2d
and lstm): whole.py keeps these.
"""

from __future__ import annotations

import functools

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from .encoder import encoder_layer
from .lower import TABLE

#: opened besides torch's core ones
OPENED = "batch_norm_backward dist _euclidean_dist".split()


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

# SPDX-License-Identifier: Apache-2.0
"""Element types of torch and their numbers in weft."""

from __future__ import annotations

import torch

from .. import _c

WEFT_DTYPES: dict[torch.dtype, int] = {
    torch.float64: _c.F64, torch.float32: _c.F32, torch.bfloat16: _c.BF16, torch.float16: _c.F16,
    torch.int64: _c.I64, torch.int32: _c.I32, torch.int16: _c.I16, torch.int8: _c.I8,
    torch.uint64: _c.U64, torch.uint32: _c.U32, torch.uint16: _c.U16, torch.uint8: _c.U8, torch.bool: _c.BOOL,
}
TORCH_DTYPES: dict[int, torch.dtype] = {number: dtype for dtype, number in WEFT_DTYPES.items()}

F64, F32, BF16, F16, I64, I32, U8, BOOL = (
    _c.F64, _c.F32, _c.BF16, _c.F16, _c.I64, _c.I32, _c.U8, _c.BOOL)
FLOATS = frozenset({_c.F64, _c.F32, _c.BF16, _c.F16})
HALVES = frozenset({_c.BF16, _c.F16})  # computed in f32 by torch and by weft
SIGNED = frozenset({_c.I64, _c.I32, _c.I16, _c.I8})
UNSIGNED = frozenset({_c.U64, _c.U32, _c.U16, _c.U8})
INTEGERS = SIGNED | UNSIGNED
MAX_RANK = _c.MAX_RANK


def fits(tensor: torch.Tensor) -> str | None:
    """Why weft cannot read or write such a tensor (real or fake), or None."""
    if tensor.layout is not torch.strided:
        return f"layout {tensor.layout}"
    if tensor.device.type != "cpu":
        return f"device {tensor.device.type}"
    if tensor.dtype not in WEFT_DTYPES:
        return f"dtype {str(tensor.dtype).removeprefix('torch.')}"
    if tensor.dim() > MAX_RANK:
        return f"{tensor.dim()} axes"
    if tensor.is_quantized or tensor.is_neg():
        return "a tensor with a lazy negation or quantization"
    return None

# SPDX-License-Identifier: Apache-2.0
"""Element types, and what numpy has for them.

numpy has no bf16 and no 8-bit floats. With the package ml_dtypes they are its ``bfloat16``, ``float8_e4m3fn`` and
``float8_e5m2``; without it weft takes and returns their bits, as ``uint16`` and ``uint8`` (``to_bf16``, ``from_bf16``).
i4 and u4, two elements a byte in weft, are ``int8`` and ``uint8`` with an element a byte.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from . import _c

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


class DType(enum.IntEnum):
    """An element type, by the number that the C library has for it; ``str()`` gives its name, "f32"."""

    F64 = _c.F64
    F32 = _c.F32
    BF16 = _c.BF16
    F16 = _c.F16
    I64 = _c.I64
    I32 = _c.I32
    I16 = _c.I16
    I8 = _c.I8
    U64 = _c.U64
    U32 = _c.U32
    U16 = _c.U16
    U8 = _c.U8
    BOOL = _c.BOOL
    I4 = _c.I4
    U4 = _c.U4
    F8E4M3 = _c.F8E4M3
    F8E5M2 = _c.F8E5M2

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def is_float(self) -> bool:
        return self <= DType.F16 or self >= DType.F8E4M3

    @property
    def packed(self) -> bool:
        """Two elements a byte."""
        return self in (DType.I4, DType.U4)

    @property
    def numpy(self) -> np.dtype:
        """The type of numpy arrays that hold it."""
        return _NUMPY[self]


_NUMPY: dict[DType, np.dtype] = {
    DType.F64: np.dtype("f8"), DType.F32: np.dtype("f4"), DType.F16: np.dtype("f2"), DType.I64: np.dtype("i8"),
    DType.I32: np.dtype("i4"), DType.I16: np.dtype("i2"), DType.I8: np.dtype("i1"), DType.U64: np.dtype("u8"),
    DType.U32: np.dtype("u4"), DType.U16: np.dtype("u2"), DType.U8: np.dtype("u1"), DType.BOOL: np.dtype("?"),
    DType.I4: np.dtype("i1"), DType.U4: np.dtype("u1"), DType.BF16: np.dtype("u2"), DType.F8E4M3: np.dtype("u1"),
    DType.F8E5M2: np.dtype("u1"),
}
_WEFT: dict[np.dtype, DType] = {kind: dtype for dtype, kind in reversed(_NUMPY.items()) if not dtype.packed}
_WEFT.update({np.dtype("u2"): DType.U16, np.dtype("u1"): DType.U8, np.dtype("i1"): DType.I8})
_MORE = {DType.BF16: "bfloat16", DType.F8E4M3: "float8_e4m3fn", DType.F8E5M2: "float8_e5m2"}
if ml_dtypes is not None:
    for _dtype, _name in _MORE.items():
        _NUMPY[_dtype] = np.dtype(getattr(ml_dtypes, _name))
        _WEFT[_NUMPY[_dtype]] = _dtype


def dtype_of(what: object) -> DType:
    """The element type of a name ("f32", "float32"), a number of the C library, or anything numpy takes for one."""
    if isinstance(what, DType):
        return what
    if isinstance(what, int) and not isinstance(what, bool):
        return DType(what)
    if isinstance(what, str):
        if what.upper() in DType.__members__:
            return DType[what.upper()]
        for dtype, name in _MORE.items():
            if what == name:
                return dtype
    try:
        kind: Any = np.dtype(what)  # type: ignore[call-overload]
        return _WEFT[kind.newbyteorder("=") if kind.byteorder in "<>" else kind]
    except (TypeError, KeyError):
        names = " ".join(str(dtype) for dtype in DType)
        raise TypeError(f"weft has no element type {what!r}; it has {names}") from None


def holds(dtype: DType, kind: np.dtype) -> bool:
    """Do numpy arrays of this kind hold such elements? Bits in an unsigned type do, for what numpy lacks."""
    return kind == _NUMPY[dtype] or (dtype in _MORE and kind == np.dtype(f"u{2 if dtype is DType.BF16 else 1}"))


def to_bf16(array: np.ndarray) -> np.ndarray:
    """The bits of float32 numbers rounded to bf16, to the nearest and ties to even, as uint16."""
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = ((bits + half) >> np.uint32(16)).astype(np.uint16)
    return np.where((bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000), np.uint16(0x7FC0), rounded)


def from_bf16(array: np.ndarray) -> np.ndarray:
    """float32 numbers of bf16, given as uint16 bits or as ml_dtypes.bfloat16."""
    bits = np.asarray(array)
    bits = bits if bits.dtype == np.uint16 else bits.view(np.uint16)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)

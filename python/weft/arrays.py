# SPDX-License-Identifier: Apache-2.0
"""Arrays of others, read where they lie: numpy, DLPack (torch, jax, cupy on the CPU …), the buffer protocol.

DLPack is read here rather than by numpy, which has no bf16. What numpy can hold is no matter then: a view is an
address, an element type, extents and strides, and whoever owns the memory.
"""

from __future__ import annotations

import ctypes as C
from typing import Any, NamedTuple

import numpy as np

from . import _c
from .dtypes import DType, dtype_of, holds, to_bf16


class View(NamedTuple):
    """An array in someone's memory; strides count elements."""

    address: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writable: bool
    owner: object

    def numpy(self) -> np.ndarray:
        """The same memory as an array of numpy; of bits, where numpy lacks the type."""
        kind = self.dtype.numpy
        if isinstance(self.owner, np.ndarray) and self.owner.dtype == kind:
            return self.owner
        if not self.address or 0 in self.shape:
            return np.empty(self.shape, kind)
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        memory: Any = (C.c_char * ((last + 1) * kind.itemsize)).from_address(self.address)
        array = np.ndarray(self.shape, kind, memory, strides=[s * kind.itemsize for s in self.strides])
        return array

    def tensor(self) -> Any:
        """The struct weft_tensor of it."""
        rank = len(self.shape)
        return _c.Tensor(self.address, self.dtype, rank, self.shape, self.strides)


def dense_strides(shape: tuple[int, ...], order: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Strides of packed storage with the axes in this order, from the outermost on; None: row-major."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order if order is not None else range(len(shape))):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def empty(dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """New memory for an array of these strides."""
    kind = dtype.numpy
    if 0 in shape:
        return np.empty(shape, kind)
    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    return np.ndarray(shape, kind, np.empty(count, kind), strides=[s * kind.itemsize for s in strides])


# --- DLPack

class _DlTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


class _DlVersioned(C.Structure):
    _fields_ = [("major", C.c_uint32), ("minor", C.c_uint32), ("context", C.c_void_p), ("deleter", C.c_void_p),
                ("flags", C.c_uint64), ("tensor", _DlTensor)]


_DL_READ_ONLY, _DL_HOSTS = 1, (1, 3, 11)  # CPU, and memory of the host that a CUDA or ROCm device sees too
_DL_DTYPES = {(2, 64): DType.F64, (2, 32): DType.F32, (4, 16): DType.BF16, (2, 16): DType.F16, (0, 64): DType.I64,
              (0, 32): DType.I32, (0, 16): DType.I16, (0, 8): DType.I8, (1, 64): DType.U64, (1, 32): DType.U32,
              (1, 16): DType.U16, (1, 8): DType.U8, (6, 8): DType.BOOL, (10, 8): DType.F8E4M3, (12, 8): DType.F8E5M2}
_is_capsule, _pointer = C.pythonapi.PyCapsule_IsValid, C.pythonapi.PyCapsule_GetPointer
_is_capsule.argtypes, _is_capsule.restype = [C.py_object, C.c_char_p], C.c_int
_pointer.argtypes, _pointer.restype = [C.py_object, C.c_char_p], C.c_void_p


def _dlpack_view(source: Any) -> View:
    """The capsule stays unused: it owns the memory, and gives it back when it is collected."""
    try:
        capsule = source.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        capsule = source.__dlpack__()
    writable = True
    if _is_capsule(capsule, b"dltensor_versioned"):
        managed = _DlVersioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise TypeError(f"DLPack {managed.major}.{managed.minor} of {type(source).__name__}: weft reads 1")
        tensor, writable = managed.tensor, not managed.flags & _DL_READ_ONLY
    else:
        tensor = _DlTensor.from_address(_pointer(capsule, b"dltensor"))
    if tensor.device not in _DL_HOSTS:
        raise TypeError(f"{type(source).__name__} lies on a device (DLPack type {tensor.device}); weft runs on the CPU")
    dtype = _DL_DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise TypeError(f"{type(source).__name__} has elements of DLPack type code {tensor.code}, {tensor.bits} bits, "
                        f"{tensor.lanes} lanes, which weft lacks")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else dense_strides(shape)
    return View((tensor.data or 0) + tensor.byte_offset, dtype, shape, strides, writable, capsule)


# --- anything

def _numpy_view(array: np.ndarray, want: DType | None) -> View:
    size = array.itemsize
    if not array.dtype.isnative or any(step % size for step in array.strides):
        array = array.astype(array.dtype.newbyteorder("="))
    dtype = want if want is not None and holds(want, array.dtype) else dtype_of(array.dtype)
    return View(array.ctypes.data, dtype, array.shape, tuple(step // size for step in array.strides),
                array.flags.writeable, array)


def pack(array: np.ndarray, dtype: DType) -> View:
    """An array of i4 or u4, an element a byte, as weft has it: two a byte, the first in the lower half."""
    low, high = (-8, 7) if dtype is DType.I4 else (0, 15)
    if array.size and not (low <= array.min() and array.max() <= high):
        raise ValueError(f"elements of {dtype} lie between {low} and {high}")
    halves = np.zeros(array.size + array.size % 2, np.uint8)
    halves[: array.size] = np.ascontiguousarray(array).ravel().astype(np.uint8) & 15
    packed = halves[0::2] | halves[1::2] << 4
    return View(packed.ctypes.data, dtype, array.shape, dense_strides(array.shape), False, packed)


def unpack(packed: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """The other way: one element a byte."""
    halves = np.stack([packed & 15, packed >> 4], axis=-1).ravel()[: int(np.prod(shape, dtype=np.int64))]
    if dtype is DType.I4:
        halves = ((halves ^ 8).astype(np.int8) - 8).astype(np.int8)
    return halves.reshape(shape)


def view(source: Any, want: DType | None = None) -> View:
    """An array where it lies. numbers and lists become arrays of the wanted type; an array keeps its own, but that
    bits, and bytes of 4-bit numbers, count as what is wanted."""
    if isinstance(source, View):
        return source
    if not isinstance(source, (np.ndarray, np.generic)):
        if hasattr(source, "__dlpack__"):
            return _dlpack_view(source)
        if isinstance(source, (bool, int, float, list, tuple)) and want is not None:
            if want is DType.BF16 and want.numpy == np.uint16:
                source = to_bf16(np.asarray(source, np.float32))
            else:
                source = np.asarray(source, want.numpy)
    array = source if isinstance(source, np.ndarray) else np.asarray(source)
    if want is not None and want.packed and array.dtype in (np.int8, np.uint8):
        return pack(array, want)
    return _numpy_view(array, want)


def dense_view(source: Any, want: DType | None = None) -> View:
    """The same, dense and row-major: a copy if it has to be."""
    found = view(source, want)
    size = found.dtype.numpy.itemsize
    aligned = not found.address % size
    if aligned and all(n <= 1 or s == d for n, s, d in zip(found.shape, found.strides, dense_strides(found.shape))):
        return found._replace(strides=dense_strides(found.shape))
    if 0 in found.shape:
        return found
    return _numpy_view(np.ascontiguousarray(found.numpy().copy() if not aligned else found.numpy()), found.dtype)

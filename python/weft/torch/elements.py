# SPDX-License-Identifier: Apache-2.0
"""Whether a tensor still has the elements that it had.

torch counts what is written to a tensor (``_version``), but an assignment to ``tensor.data`` moves no counter: it gives
the tensor another storage, or the same one in another order. So the address is compared too, and how the elements lie.
Memory that was freed may come back at the same address; who does not keep the storage sees by a weak reference that it
is gone. (torch keeps the Python object of a storage as long as the storage lives, whoever holds that.)
"""

from __future__ import annotations

import weakref
from typing import NamedTuple

import torch


class Elements(NamedTuple):
    """Of a tensor that has a version: none that was made in inference mode."""

    version: int
    address: int
    dtype: torch.dtype
    shape: torch.Size
    stride: tuple[int, ...]
    storage: weakref.ref[torch.UntypedStorage]

    @classmethod
    def of(cls, t: torch.Tensor) -> Elements:
        return cls(t._version, t.data_ptr(), t.dtype, t.shape, t.stride(), weakref.ref(t.untyped_storage()))

    def are_of(self, t: torch.Tensor) -> bool:
        return (t.data_ptr() == self.address and self.storage() is not None and not t.is_inference() and
                t._version == self.version and t.dtype == self.dtype and t.shape == self.shape and
                t.stride() == self.stride)

# SPDX-License-Identifier: Apache-2.0
"""Frozen weights in a file behind their tensors, so that memory holds them once: packed, in the plan.

Tensors of a module stay what they are for whoever holds them: they can be read, saved and written to. Their elements
are written to a file without a name, and the tensors get a private mapping of it in the place of their memory. Pages of
it that nobody reads take no memory, and what is written to a tensor is its own and not the file's.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref
from collections import defaultdict
from collections.abc import Iterable

import torch

LEAST_BYTES = 64 << 10  #: of a storage that is worth a mapping
PAGEOUT = 21  # MADV_PAGEOUT of Linux 5.4, which Python has no name for

_mappings: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()  # each lives as long as a tensor in it


def offload(tensors: Iterable[torch.Tensor], folder: str | None) -> str:
    """Moves the elements of tensors to a file in the folder; what came of it. A storage that other tensors have too
    stays: what is written to one would not be seen in the other."""
    storages: dict[int, list[torch.Tensor]] = defaultdict(list)
    for t in tensors:
        storages[t.untyped_storage()._cdata].append(t)
    moved = [(group, group[0].untyped_storage()) for group in storages.values()]
    moved = [(group, storage) for group, storage in moved if is_alone(storage, len({id(t) for t in group}))]
    if not moved:
        return "nothing to move"
    if folder is None:
        return "off: no folder is known"
    offsets, total = [], 0
    for _, storage in moved:
        offsets.append(total)
        total += -(-storage.nbytes() // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        mapping = written([storage for _, storage in moved], offsets, total, folder)
    except OSError as problem:
        return f"off: {problem}"
    for (group, storage), offset in zip(moved, offsets):
        twin = torch.frombuffer(mapping, dtype=torch.uint8, count=storage.nbytes(), offset=offset).untyped_storage()
        for t in group:
            t.data = torch.empty(0, dtype=t.dtype).set_(twin, t.storage_offset(), t.size(), t.stride())
    _mappings.add(mapping)
    return f"{total >> 20} MiB"


def is_alone(storage: torch.UntypedStorage, tensors: int) -> bool:
    """Is it memory of this process that so many tensors have, and nobody else?"""
    known = tensors + 1  # and who asks
    return (storage.nbytes() >= LEAST_BYTES and storage.resizable() and not storage.is_shared() and
            not storage.is_pinned() and torch._C._storage_Use_Count(storage._cdata) <= known)


def written(storages: list[torch.UntypedStorage], offsets: list[int], total: int, folder: str) -> mmap.mmap:
    """A private mapping of a file without a name with these bytes."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for storage, offset in zip(storages, offsets):
            file.seek(offset)
            left = memoryview(torch.empty(0, dtype=torch.uint8).set_(storage).numpy())
            while left:
                left = left[file.write(left):]
            # starts writing to the disk: pages that wait for it cannot leave memory when forget() asks for that
            os.posix_fadvise(file.fileno(), offset, storage.nbytes(), os.POSIX_FADV_DONTNEED)
        file.truncate(total)
        return mmap.mmap(file.fileno(), total, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)


def forget() -> None:
    """Gives pages back that hold what the files hold, and what the allocator kept of memory that tracing and compiling
    are done with. Pages that were written to stay."""
    if not _mappings:
        return
    for mapping in list(_mappings):
        try:
            mapping.madvise(PAGEOUT)
        except OSError:  # of an older kernel: they leave memory when others want it
            pass
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim:
        trim(0)

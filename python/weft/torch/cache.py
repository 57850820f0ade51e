# SPDX-License-Identifier: Apache-2.0
"""Plans on disk: a later process with an equal graph, weights and machine neither plans nor packs weights again.

weft keeps them itself (WEFT_COMPILE_STORE, include/weft/plan.h); here is decided in which folder. What is wrong with
the folder is no error: plans are then made anew in each process, and the report says why; of a folder that the user
named, so does a warning.
"""

from __future__ import annotations

import os
import threading

import torch

from ..context import Context, default_context
from ..errors import Error
from ..graph import Graph
from ..plan import Flags, Plan
from ..warn import warn

#: most bytes of plans and packed weights in the folder; those that were used longest ago go first
MOST_BYTES = 10 << 30

_contexts: dict[tuple[int, str], tuple[Context, str]] = {}
_lock = threading.Lock()


def default_folder() -> str | None:
    """Of plans: WEFT_PLANS, else beside weft's compiled code; None: the user wants none, or has no home."""
    named = os.environ.get("WEFT_PLANS")
    if named is not None:
        return named or None
    ours, cache, home = (os.environ.get(name, "") for name in ("WEFT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"))
    if ours:
        return os.path.join(ours, "plans")
    if cache.startswith("/"):
        return os.path.join(cache, "weft", "plans")
    return os.path.join(home, ".cache", "weft", "plans") if home.startswith("/") else None


class Cache:
    """A context whose plans are kept in a folder, or one whose plans are not, and why."""

    def __init__(self, context: Context, folder: str | None, why: str):
        self.context, self.folder, self.why = context, folder, why

    @classmethod
    def of(cls, wanted: bool | str, threads: int) -> Cache:
        threads = threads or torch.get_num_threads()
        folder = wanted if isinstance(wanted, str) else default_folder() if wanted else None
        if not folder:
            return cls(default_context(threads), None, "no folder is known" if wanted is True and
                       os.environ.get("WEFT_PLANS") is None else "not wanted")
        folder = os.path.abspath(folder)
        with _lock:
            if new := (threads, folder) not in _contexts:
                _contexts[threads, folder] = _open(threads, folder)
            context, why = _contexts[threads, folder]
        if new and why and isinstance(wanted, str):
            warn(f"backend weft: plans are not kept in {folder}: {why}")
        return cls(context, None if why else folder, why)

    def compile(self, graph: Graph, flags: Flags) -> tuple[Plan, str]:
        """A plan, and what the cache has to do with it."""
        if not self.folder:
            return graph.compile(flags), f"off: {self.why}"
        plan = graph.compile(flags | Flags.STORE)
        found, reason = plan.stored()
        return plan, "hit" if found else f"miss: {reason}"


def _open(threads: int, folder: str) -> tuple[Context, str]:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return Context(threads, packs=folder, packs_bytes=_limit()), ""
    except (OSError, Error) as problem:
        return default_context(threads), str(problem)


def _limit() -> int:
    """WEFT_PACKS_BYTES has its say where it is set."""
    return 0 if os.environ.get("WEFT_PACKS_BYTES") else MOST_BYTES

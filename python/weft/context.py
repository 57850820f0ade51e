# SPDX-License-Identifier: Apache-2.0
"""Contexts: the number of threads, the CPU level and the messages that graphs and plans share."""

from __future__ import annotations

import ctypes as C
import itertools
import operator
import threading
import weakref
from typing import Callable

from . import _c
from .errors import Diagnostic, error_of
from .warn import warn

_numbers = itertools.count(1)
_contexts: weakref.WeakValueDictionary[int, Context] = weakref.WeakValueDictionary()


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")


def _diagnose(user: int, raw) -> None:
    """Keeps a message for the call that is being made. A context that outlives its Python object has no listener."""
    context = _contexts.get(user)
    if context is not None:
        m = raw.contents
        context._messages.append(Diagnostic(m.severity, m.status, _text(m.file), m.line, m.column, _text(m.where),
                                            _text(m.message) or ""))


_DIAGNOSE = _c.DIAGNOSE(_diagnose)  # of the module: contexts call it for as long as graphs and plans of theirs live


class Context:
    """What graphs and plans are made in: at most ``threads`` threads (0: all that the process may use), CPU levels up
    to ``cpu`` ("baseline", "avx2", "avx512"; None: all that it has). ``prices`` and ``packs`` are those of
    weft_context_options: a file of measured costs, a folder for packed weights that processes share and for plans
    (``Flags.STORE``); ``packs_bytes``: most bytes of files there (0: WEFT_PACKS_BYTES).

    A context and its graphs are used by one thread at a time; a lock sees to it."""

    def __init__(self, threads: int = 0, cpu: str | None = None, prices: str | None = None, packs: str | None = None,
                 packs_bytes: int = 0):
        try:
            threads = operator.index(threads)
        except TypeError:
            raise TypeError(f"threads is a number, not {threads!r}") from None
        self.threads, self.cpu, self.prices, self.packs, self.packs_bytes = threads, cpu, prices, packs, packs_bytes
        self.lock = threading.RLock()
        self._messages: list[Diagnostic] = []
        self._number = next(_numbers)
        _contexts[self._number] = self
        options = _c.sized(_c.ContextOptions, diagnose=C.cast(_DIAGNOSE, C.c_void_p), diagnose_user=self._number,
                           threads=threads, cpu=_encode(cpu), prices=_encode(prices), packs=_encode(packs),
                           packs_bytes=packs_bytes)
        self.handle = C.c_void_p()
        self.call(_c.lib.weft_open, C.byref(options), C.byref(self.handle))
        weakref.finalize(self, _c.lib.weft_close, self.handle).atexit = False

    def call(self, function: Callable[..., int], *arguments) -> int:
        """Calls a function that returns a status, by one thread at a time; raises for an error, warns for a warning."""
        with self.lock:
            self._messages.clear()
            status = function(*arguments)
            messages = tuple(self._messages)
            text = (_text(_c.lib.weft_last_error(self.handle)) or "").strip() if status < 0 and self.handle else ""
        for message in messages:
            if message.severity == _c.WARNING:
                warn(str(message))
        if status < 0:
            errors = tuple(m for m in messages if m.severity == _c.ERROR)
            raise error_of(status, text or "\n".join(map(str, errors)) or
                           _c.lib.weft_status_text(status).decode(), errors)
        return status

    def check(self, status: int) -> int:
        """Raises the exception of the last call on this context, if its status is negative; returns any other."""
        return _c.check(status, _c.lib.weft_last_error(self.handle))

    def text(self, function: Callable[..., int], *arguments) -> str:
        """The text that a function returns in its last parameter."""
        out = C.c_void_p()
        self.call(function, *arguments, C.byref(out))
        try:
            return C.string_at(out).decode(errors="replace")
        finally:
            _c.lib.weft_free_text(self.handle, out)

    def like(self, threads: int | None = None, cpu: str | None = None) -> Context:
        """This context, or one that differs from it in the number of threads or the CPU level."""
        threads, cpu = self.threads if threads is None else threads, self.cpu if cpu is None else cpu
        if (threads, cpu) == (self.threads, self.cpu):
            return self
        if self.prices is None and self.packs is None:
            return default_context(threads, cpu)
        return Context(threads, cpu, self.prices, self.packs, self.packs_bytes)

    def __repr__(self) -> str:
        return f"<weft.Context threads={self.threads or 'all'} cpu={self.cpu or 'all'}>"


def _encode(text: object) -> bytes | None:
    return None if text is None else str(text).encode()


_default: dict[tuple[int, str | None], Context] = {}
_default_lock = threading.Lock()


def default_context(threads: int = 0, cpu: str | None = None) -> Context:
    """The context of those who name none: one for each number of threads and CPU level, kept for the process."""
    with _default_lock:
        if (threads, cpu) not in _default:
            _default[threads, cpu] = Context(threads, cpu)
        return _default[threads, cpu]

# SPDX-License-Identifier: Apache-2.0
"""What weft refuses, as exceptions: one class for each status of the C library, with the library's own message."""

from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """One message of the library: a sentence, and what it is about."""

    severity: int  #: 0 a note, 1 a warning, 2 an error
    status: int  #: of the call; 0 for notes and warnings
    file: str | None
    line: int  #: from 1; 0 where there is none
    column: int
    where: str | None  #: the name of the node, value or graph at fault
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: " if self.file else ""
        return place + (f"{self.where}: " if self.where else "") + self.message


class Error(RuntimeError):
    """weft refused something. The text names the culprit; ``status`` is the number of the C library."""

    status: int = 0

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = (), status: int | None = None):
        super().__init__(message)
        self.diagnostics = diagnostics
        if status is not None:
            self.status = status


class OutOfMemoryError(Error, MemoryError):
    """The allocator had no memory left; nothing is lost."""

    status = -1


class ArgumentError(Error, ValueError):
    """Arguments of a call do not fit its contract."""

    status = -2


class FormatError(Error, ValueError):
    """A text or file is malformed."""

    status = -3


class InvalidGraphError(Error, ValueError):
    """Well-formed, but not a legal graph: types, shapes, attributes."""

    status = -4


class UnsupportedError(Error, NotImplementedError):
    """Legal, but with ops or features that weft lacks; the message lists all of them."""

    status = -5


class FileError(Error, OSError):
    """The operating system refused a file."""

    status = -6


class BindingError(Error, ValueError):
    """An array that was given to a plan does not fit it; the message names the input."""

    status = -7


class CustomError(Error):
    """A custom function reported an error."""

    status = -8


class CancelledError(Error):
    """``Execution.cancel`` ended a run."""

    status = -9


class WeftWarning(UserWarning):
    """The library did what it was asked for, and something about it deserves notice."""


_BY_STATUS = {kind.status: kind for kind in Error.__subclasses__()}


def error_of(status: int, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> Error:
    """The exception of a negative status."""
    return _BY_STATUS.get(status, Error)(message, diagnostics, status)

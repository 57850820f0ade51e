# SPDX-License-Identifier: Apache-2.0
"""Warnings that show the line of the program that called weft, not one within weft or torch."""

from __future__ import annotations

import os
import sys
import sysconfig
import types
import warnings

from .errors import WeftWarning

#: modules, by the first part of their names, that stand between a program and whoever warns; so do those of Python's
#: own library, in the folder STANDARD
BETWEEN = {"weft", "torch", "functorch"}
STANDARD = sysconfig.get_path("stdlib") + os.sep


def warn(message: str, category: type[Warning] = WeftWarning) -> None:
    """As ``warnings.warn``. Filters by module, and "once for each line", mean the calling program, too."""
    frame = caller()
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno or frame.f_code.co_firstlineno,
                           module=frame.f_globals.get("__name__"),
                           registry=frame.f_globals.setdefault("__warningregistry__", {}))


def caller() -> types.FrameType:
    """The innermost frame of the program, or the outermost of all: a thread may have no other. Code without a module,
    which torch makes, belongs to whoever calls it. (Python 3.12 has skip_file_prefixes for this.)"""
    frame = sys._getframe(2)
    while frame.f_back and is_between(frame):
        frame = frame.f_back
    return frame


def is_between(frame: types.FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", "torch")).partition(".")[0]
    if name in BETWEEN:
        return True
    file = frame.f_code.co_filename  # a program's own code.py is not Python's; what is built in has no file
    return name in sys.stdlib_module_names and name != "__main__" and file.startswith((STANDARD, "<"))

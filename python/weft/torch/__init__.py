# SPDX-License-Identifier: Apache-2.0
"""weft as a backend of ``torch.compile``: ``torch.compile(model, backend="weft")``.

torch finds the backend by its entry point (group ``torch_dynamo_backends``), so nothing has to be imported. Importing
this package changes no setting of torch, and does not load torch before the backend or a report is asked for.
README.md, beside this file, says what is compiled, what runs in eager, and how to see it.
"""

from __future__ import annotations

__all__ = ["reports", "weft"]


def __getattr__(name: str):
    if name == "weft":
        from .backend import weft

        return weft
    if name == "reports":
        from .report import reports

        return reports
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

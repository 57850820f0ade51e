# SPDX-License-Identifier: Apache-2.0
"""weft compiles graphs of tensors for this CPU and runs them.

    import weft
    model = weft.load("model.onnx")
    y = model(x)

``load`` and ``parse`` read models, ``Graph`` builds them; ``Model`` and ``Plan`` are called with arrays and return
numpy arrays. Everything that is refused is an exception under ``Error`` whose message names the culprit."""

from ._c import lib as _lib
from .context import Context, default_context
from .dtypes import DType, from_bf16, to_bf16
from .errors import (ArgumentError, BindingError, CancelledError, CustomError, Diagnostic, Error, FileError,
                     FormatError, InvalidGraphError, OutOfMemoryError, UnsupportedError, WeftWarning)
from .execution import Execution, Statistics, Timing
from .graph import Graph, Value
from .model import Model, compile, load, parse
from .passes import opt, run_pass
from .plan import Align, Flags, Plan, Results
from .ports import Port
from .viz import dot, svg

__version__: str = _lib.weft_version().decode()

__all__ = [
    "Align", "ArgumentError", "BindingError", "CancelledError", "Context", "CustomError", "DType", "Diagnostic",
    "Error", "Execution", "FileError", "Flags", "FormatError", "Graph", "InvalidGraphError", "Model",
    "OutOfMemoryError", "Plan", "Port", "Results", "Statistics", "Timing", "UnsupportedError", "Value", "WeftWarning",
    "__version__", "compile", "default_context", "dot", "from_bf16", "load", "opt", "parse", "run_pass", "svg",
    "to_bf16",
]

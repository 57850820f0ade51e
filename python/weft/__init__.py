# SPDX-License-Identifier: Apache-2.0
"""weft: graphs of tensors, compiled for this CPU."""

from .context import Context
from .graph import Graph, Value

__all__ = ["Context", "Graph", "Value"]

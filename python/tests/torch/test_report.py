# SPDX-License-Identifier: Apache-2.0
"""Which graph a report is of: the function that dynamo compiled, and the sizes of what it is given."""

from __future__ import annotations

import re

import pytest
import torch
from conftest import compiled
from torch import nn

from weft.torch import reports
from weft.torch.partition import WeftGraphWarning


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x, **more):
        y = self.inner(x) * self.scale + more["given"]["bias"]
        torch._dynamo.graph_break()
        return y.relu() * x


def place(function, lines: int = 0) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + lines}"


def name(function) -> str:
    """Python 3.10 does not know which class a function is of."""
    return getattr(function.__code__, "co_qualname", function.__code__.co_name).replace("<locals>.", "")


def test_parts_of_a_module():
    with torch.no_grad():
        compiled(Model())(torch.randn(3, 4), given={"bias": torch.randn(4)})
    first, second = (r.origin for r in reports)
    assert (first.name, first.place) == (name(Model.forward), place(Model.forward))
    assert first.inputs == ("x float32[3,4]", "more['given']['bias'] float32[4]")  # no weights, no buffers
    assert second.name.endswith("forward, resumed") and second.place == place(Model.forward, 2)
    assert sorted(second.inputs) == ["x float32[3,4]", "y float32[3,4]"]
    lines = str(reports[0]).splitlines()
    assert lines[0].startswith(f"{first.name} ({first.place}): inference graph of ")
    assert lines[1] == "  inputs: x float32[3,4], more['given']['bias'] float32[4]"


def test_sizes_that_change():
    def scaled(x, y, n):
        return x * n + y.sum()

    with torch.no_grad():
        compiled(scaled, dynamic=True)(torch.randn(5, 4), torch.randn(7, 4).double(), 3)
    (report,) = reports
    n, x, y = sorted(report.origin.inputs)  # torch's order is that of their use
    found = [re.fullmatch(*pair) for pair in ((r"n (s\d+)=3", n), (r"x float32\[(s\d+)=5,s\d+=4]", x),
                                              (r"y float64\[(s\d+)=7,s\d+=4]", y))]
    assert report.origin.name == name(scaled) and all(found), report.origin
    assert len({match[1] for match in found}) == 3, report.origin


def test_backward():
    compiled(lambda t: (t @ t).sin())(torch.randn(4, 4, requires_grad=True)).sum().backward()
    forward, backward = reports
    assert (forward.kind, backward.kind) == ("forward", "backward")
    assert (forward.origin.name, forward.origin.place) == (backward.origin.name, backward.origin.place)
    assert forward.origin.inputs == ("t float32[4,4]",) and backward.origin.inputs == ("tangents_1 float32[4,4]",)


def test_modules_of_torchs_own():
    with torch.no_grad():
        compiled(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))(torch.randn(3, 4))
    assert str(reports[0]).startswith("Sequential: inference graph of ")
    assert reports[0].origin.inputs == ("args[0] float32[3,4]",)


def test_many_inputs():
    with torch.no_grad():
        compiled(lambda given: sum(given) * 2)([torch.randn(i, 2)[:1] for i in range(1, 12)])
    assert "  inputs: given[0] float32[1,2], " in str(reports[0]) and " and 3 more\n" in str(reports[0])


def test_a_graph_without_a_function():
    """As torch's own tools make them."""
    from torch._functorch.aot_autograd import aot_function

    from weft.torch.backend import Graphs, Options
    from weft.torch.cache import Cache
    from weft.torch.origin import Origin

    def compiler(gm, _):
        return Graphs(None, gm, "inference", Options(), Cache.of(False, 0), Origin.of(gm)).compile()

    with torch.no_grad():
        aot_function(lambda x: x.sin() + 1, compiler)(torch.randn(3))
    assert str(reports[0]).startswith("inference graph of 2 ops: 1 plan")


def test_the_warning_names_the_function():
    def lacks(x):
        return torch.special.airy_ai(x) * 2

    with torch.no_grad(), pytest.warns(WeftGraphWarning, match=r"a part of the inference graph of .*lacks in eager: "):
        compiled(lacks)(torch.randn(4))
    assert name(lacks) in str(reports[0])

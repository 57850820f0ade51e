# SPDX-License-Identifier: Apache-2.0
"""The same plan whether a model comes by torch.compile, as a program of torch.export or as an ONNX file."""

from __future__ import annotations

import re

import pytest
import torch
from conftest import compiled, same
from torch import nn

import weft
from weft.torch import reports


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16)
        self.out, self.last = nn.Linear(16, 8), nn.LayerNorm(8)

    def forward(self, x):
        x = self.norm(self.conv(x)).relu()
        return self.last(self.out(x.mean((2, 3)))).softmax(-1)


def unnamed(text: str) -> str:
    """A plan with its weights numbered as they come: where they stand among the arguments is torch's choice."""
    names: dict[str, str] = {}
    return re.sub(r"%w\d+", lambda m: names.setdefault(m[0], f"%w_{len(names)}"), text)


def kernels(text: str) -> list[str]:
    return re.findall(r"! (\w+)", text)


@pytest.fixture
def net():
    made = Net().train()
    for _ in range(3):
        made(torch.randn(4, 3, 32, 32))  # statistics that are not 0 and 1
    return made.eval().requires_grad_(False)


def test_exported_program(net):
    x = torch.randn(2, 3, 32, 32)
    same(compiled(net)(x), net(x))
    program = torch.export.export(net, (x,))
    torch._dynamo.reset()
    same(compiled(program.module())(x), net(x))
    assert unnamed(reports[0].pieces[0].text) == unnamed(reports[1].pieces[0].text)


def test_exported_program_of_changing_sizes(net):
    program = torch.export.export(net, (torch.randn(4, 3, 32, 32),),
                                  dynamic_shapes=({0: torch.export.Dim("n", min=2, max=64)},))
    run = compiled(program.module(), dynamic=True)
    for n in (4, 3, 50):
        x = torch.randn(n, 3, 32, 32)
        same(run(x), net(x))
    assert len(reports) == 1 and reports[0].whole


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_onnx_file(net, tmp_path):
    pytest.importorskip("onnx.checker")  # a folder called onnx is no such module
    x, path = torch.randn(2, 3, 32, 32), tmp_path / "net.onnx"
    torch.onnx.export(net, (x,), str(path), dynamo=False)
    same(compiled(net)(x), net(x))
    model = weft.load(str(path))
    same(torch.from_numpy(model(x.numpy())), net(x))
    assert kernels(model.plan.text()) == kernels(reports[0].pieces[0].text)

# SPDX-License-Identifier: Apache-2.0
"""Ops that weft lacks: plans around them, one warning that names them, and the same results."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from pathlib import Path

import pytest
import torch
from conftest import check, compiled, same
from torch import nn

from weft.errors import BindingError, WeftWarning
from weft.torch import reports
from weft.torch.partition import WeftGraphWarning

pytestmark = pytest.mark.filterwarnings("ignore:weft runs a part")


@pytest.fixture(autouse=True)
def allowed(clean):
    with warnings.catch_warnings():
        warnings.simplefilter("default", WeftGraphWarning)
        yield


def mixed(x, y):
    a = (x @ y).relu() * 2 + 1
    b = torch.linalg.inv_ex(a + 10 * torch.eye(a.shape[0]))[0]
    c = torch.special.airy_ai(b)
    return (c @ y.t()).sigmoid().sum(0) - 3, a


def test_one_warning_names_all(call):
    with pytest.warns(WeftGraphWarning) as caught:
        check(mixed, (torch.randn(4, 5), torch.randn(5, 4)), call=call, rtol=1e-3, atol=1e-4)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "linalg_inv_ex" in text and "special_airy_ai" in text
    report = reports[0]
    assert len(report.pieces) == 2 and not report.whole
    assert set(report.eager) == {"linalg_inv_ex.default", "special_airy_ai.default"}
    assert "airy" in str(report)


def line_of(function, text: str) -> int:
    """The only line of it that has this text."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [i for i, line in enumerate(lines, first) if text in line]
    return found


@pytest.mark.parametrize("inside", [True, False])
def test_the_warning_says_where_ops_are(inside, call, monkeypatch):
    """By the innermost line that is not torch's, from the current directory; in reports too."""
    def many(x):
        for _ in range(2):
            x = torch.special.airy_ai(x * 2 + 1)
        x = torch.special.airy_ai(x.sin() * 3)
        return torch.special.airy_ai(x.sin() * 5) * nn.functional.soft_margin_loss(torch.logcumsumexp(x, 0), x)

    folder = Path(__file__).parent
    monkeypatch.chdir(folder if inside else folder.parent / "torch" / "..")
    with pytest.warns(WeftGraphWarning) as caught, torch.no_grad():
        compiled(many, call)(torch.rand(4))
    place = Path(__file__).name if inside else os.path.join("torch", Path(__file__).name)
    first, last = (line_of(many, text) for text in ("* 2 + 1", "* 5)"))
    airy = f"special_airy_ai.default at {place}:{first} and 2 more"
    assert str(caught[0].message).endswith(f" in eager: logcumsumexp.default at {place}:{last}, {airy}")
    assert f"  eager: {airy} (4): no lowering" in str(reports[0])


def test_the_warning_of_a_backward_graph_says_where_its_ops_are():
    def f(t):
        return torch.logcumsumexp((t * 2).sin() + 1, 0).relu().sum()

    run = compiled(f)
    with pytest.warns(WeftGraphWarning) as caught:
        run(torch.randn(4, 4, requires_grad=True)).backward()
    line = line_of(f, "logcumsumexp")
    assert [f"{Path(__file__).name}:{line}" in str(w.message) for w in caught] == [True, True]


def test_ops_of_torchs_own_modules_are_at_their_call():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = nn.FractionalMaxPool2d(2, output_size=2)

        def forward(self, x):
            return self.pool(x.relu() * 2) + 1

    with pytest.warns(WeftGraphWarning, match=rf"at \S*{Path(__file__).name}:{line_of(Model.forward, 'self.pool')}"):
        compiled(Model())(torch.randn(1, 1, 6, 6))


def here() -> tuple[str, int]:
    """The line that calls it."""
    return __file__, sys._getframe(1).f_lineno


def test_warnings_show_the_line_of_the_program(call):
    x, y = torch.randn(4, 5), torch.randn(5, 4)
    run, cast, meta = (compiled(f, call) for f in (mixed, casts, lambda x: x * 2 + 1))
    with torch.no_grad(), pytest.warns(WeftWarning) as caught:
        run(x, y), (first := here())
        meta(torch.empty(3, device="meta")), (second := here())
        cast(x), (third := here())
    found = [(w.filename, w.lineno, str(w.message)[:12]) for w in caught]
    assert found[:2] == [(*first, "weft runs a "), (*second, "weft runs al")]
    # torch gives the lines of compiled code to what it makes of it: the second one is within casts
    assert found[2] == (*third, "weft runs a ") and found[3][::2] == (__file__, "weft: argume")


def test_warnings_of_backward_graphs_show_the_line_of_the_program():
    loss = compiled(lambda t: torch.logcumsumexp((t * 2).sin() + 1, 0).relu().sum())
    with pytest.warns(WeftGraphWarning) as caught:
        made, first = loss(torch.randn(4, 4, requires_grad=True)), here()
        made.backward(), (second := here())
    assert {(w.filename, w.lineno) for w in caught} == {first, second}


def test_small_pieces_stay_in_eager():
    with pytest.warns(WeftGraphWarning):
        check(lambda x: torch.special.airy_ai(x + 1) * 2, (torch.randn(4),))
    assert not reports[0].pieces and reports[0].eager["add.Tensor"] == 1


def test_dynamic_pieces():
    with pytest.warns(WeftGraphWarning):
        check(mixed, *[(torch.randn(n, 5), torch.randn(5, n)) for n in (4, 3, 6)], dynamic=True, rtol=1e-3, atol=1e-4)


def test_frozen_weights_beside_effects():
    """torch puts a token for the order of effects (here a check) in front of all arguments."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls.add_(1)
            return self.b(torch.linalg.inv(self.a(x).sigmoid() + 4 * torch.eye(4))).relu() * 3

    model, x = Model().eval(), torch.randn(4, 4)
    run = compiled(model)
    with torch.no_grad(), pytest.warns(WeftGraphWarning) as told:
        same(run(x), model(x))
        assert sum(p.frozen for p in reports[0].pieces) == 4
        assert model.calls == 2 and "with_effects" not in str(told[0].message)
        model.b.weight.mul_(2)
        same(run(x), model(x))


def test_jagged_tensors_run_in_eager():
    ragged = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(5, 4)], layout=torch.jagged)
    run = compiled(lambda t: (t * 2 + 1).relu())
    with pytest.warns(WeftGraphWarning, match="a length of a jagged tensor"):
        same(run(ragged).values(), (ragged * 2 + 1).relu().values())


def test_frozen_weights_of_pieces():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 4)

        def forward(self, x):
            return self.b(torch.special.airy_ai(self.a(x).relu() * 2)).relu() * 3

    model, x = Model().eval(), torch.randn(2, 4)
    run = compiled(model)
    with torch.no_grad(), pytest.warns(WeftGraphWarning):
        same(run(x), model(x))
        assert [p.frozen for p in reports[0].pieces] == [2, 2]
        model.b.weight.mul_(2)
        same(run(x), model(x))


def test_mutation_beside_eager_ops(call):
    def f(x, y):
        y.add_(x.relu() * 2 + 1)
        return torch.special.airy_ai(x) + y * 2 - 1

    with pytest.warns(WeftGraphWarning):
        check(f, (torch.randn(3, 4), torch.randn(3, 4)), call=call)


def test_backward():
    x = torch.randn(4, 4, requires_grad=True)
    y = x.detach().clone().requires_grad_()

    def f(t):
        return torch.logcumsumexp((t * 2).sin() + 1, 0).relu().sum()

    with pytest.warns(WeftGraphWarning):
        compiled(f)(x).backward()
    f(y).backward()
    same(x.grad, y.grad)


def test_data_dependent_sizes():
    def f(x):
        found = torch.nonzero(x > 0)
        return found.float() * 2 + 1, x.relu() * 3 - 1

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True), pytest.warns(WeftGraphWarning):
        check(f, (torch.randn(4, 5),), (torch.randn(4, 5),))


def test_complex_numbers():
    def f(x):
        return torch.fft.rfft(x * 2 + 1).abs().relu() * 3 - 1

    with pytest.warns(WeftGraphWarning):
        check(f, (torch.randn(4, 8),), rtol=1e-4, atol=1e-4)


def test_meta_tensors_run_in_eager():
    run = compiled(lambda x: x * 2 + 1)
    with torch.no_grad(), pytest.warns(WeftGraphWarning, match="device meta"):
        assert run(torch.empty(3, device="meta")).shape == (3,)


def test_unknown_options_are_named():
    with pytest.raises(Exception, match="no option freez"):
        compiled(lambda x: x + 1, options={"freez": True})(torch.ones(2))
    for given, message in (({"outputs": "numpy"}, """outputs is "pool" or "torch", not 'numpy'"""),
                           ({"call": "c"}, """call is "auto" or "python", not 'c'"""),
                           ({"freeze": "no"}, "freeze is True or False, not 'no'"),
                           ({"threads": "2"}, "threads is a number of at least 0, not '2'"),
                           ({"threads": -1}, "threads is a number of at least 0, not -1")):
        with pytest.raises(Exception, match=message):
            compiled(lambda x: x + 1, options=given)(torch.ones(2))


@torch.library.custom_op("weft_tests::becomes", mutates_args=())
def becomes(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x.to(dtype, copy=True)


@becomes.register_fake
def _(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_like(x)  # of x's type, which is wrong


def casts(x):
    return (torch.ops.weft_tests.becomes(x.relu() + 1, torch.bfloat16) * 3).exp().sum(1)


def test_eager_op_of_another_float_type_than_traced(call):
    """A plan behind it takes what is traced, converted, and says so."""
    x = torch.randn(4, 8)
    with torch.no_grad(), pytest.warns(WeftWarning, match="traced with .* and torch.float32: it is converted"):
        got = compiled(casts, call)(x)
    assert got.dtype == torch.float32
    same(got, ((x.relu() + 1).bfloat16().float() * 3).exp().sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_eager_op_of_no_float_type_where_one_was_traced(call, dtype):
    """Numbers would be lost, or made up."""
    def f(x):
        return (torch.ops.weft_tests.becomes(x.relu() + 1, dtype) * 3).exp().sum(1)

    with torch.no_grad(), pytest.raises(BindingError, match="traced with .* and torch.float32"):
        compiled(f, call)(torch.randn(4, 8))

# SPDX-License-Identifier: Apache-2.0
"""The call in C and the one in Python, beside each other and under stress."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest
import torch
import weft
from conftest import compiled, same
from torch import nn

from weft.torch import fast, reports

needs_c = pytest.mark.skipif(fast.module() is None, reason="weft._fast is not built, or torch has no DLPack table")


@needs_c
def test_which_call():
    with torch.no_grad():
        compiled(lambda x: x * 2 + 1)(torch.ones(3))
        compiled(lambda x: x * 2 - 1, "python")(torch.ones(3))
        compiled(lambda x: x * 3 - 1, dynamic=True)(torch.ones(3))
        compiled(lambda x: x * 4 - 1, options={"outputs": "torch"})(torch.ones(3))
    assert [r.pieces[0].call for r in reports] == ["C", "Python", "C", "Python"]
    assert [r.pieces[0].why_python for r in reports] == ["", "option call", "", "option outputs"]
    assert "called from Python (option call), cache" in str(reports[1])


def test_sizes_that_follow_from_arguments(call):
    """Results of many sizes, some of which are held while others are made."""
    def f(x, y):
        return torch.cat([x, y], 1).relu(), (x * 2).t(), x.sum(0), x @ y.t()

    torch.manual_seed(0)
    held, run = [], compiled(f, call, dynamic=True)
    with torch.no_grad():
        for i in range(120):
            n, m = (int(k) for k in torch.randint(2, 90, (2,)))
            x, y = torch.randn(n, m), torch.randn(n, m)
            want = [t.clone() for t in f(x, y)]
            got = run(x, y)
            for a, b in zip(got, want):
                same(a, b, rtol=1e-4, atol=1e-4)
            if i % 3 == 0:
                held.append((got, want))
    for got, want in held:
        for a, b in zip(got, want):
            same(a, b, rtol=1e-4, atol=1e-4)


def test_sizes_that_do_not_fit(call):
    run = compiled(lambda x, y: (x + y).relu(), call, dynamic=True)
    with torch.no_grad():
        same(run(torch.ones(3, 4), torch.ones(3, 4)), torch.full((3, 4), 2.0))
        with pytest.raises(Exception, match="size|shape|broadcast|must match"):
            run(torch.ones(5, 4), torch.ones(6, 4))
        same(run(torch.ones(7, 4), torch.ones(7, 4)), torch.full((7, 4), 2.0))


@needs_c
def test_forwarded_while_a_plan_runs():
    """The call lets go of all that it holds, and what runs then fails: a mutable argument is another one too."""
    count, x = 800, torch.ones(64)
    arguments = ", ".join(f"%x{i}: f32[64]" for i in range(count))
    plan = weft.compile(weft.parse(f"graph @m({arguments}, %m: mut f32[64]) {{\n  %s: f32[64] = add %x0, %m\n"
                                   "  return mut %m = %s\n}\n"))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(100):
            inputs = tuple((i, 2, False) for i in range(count + 1))
            call = fast.module().make(plan, plan.handle.value, inputs, (), (), (),
                                      lambda args: ["other"], lambda args: ["stale"])
            go = threading.Event()
            thread = threading.Thread(target=lambda: go.wait() and call.forward_to(lambda args: ["forwarded"]))
            thread.start()
            go.set()
            results = [call([x] * (count + 1)) for _ in range(5)]
            thread.join()
            assert all(r in (["other"], ["forwarded"]) for r in results)
            assert call([x] * (count + 1)) == ["forwarded"]
    finally:
        sys.setswitchinterval(interval)


def test_many_arguments(call):
    def f(xs):
        return torch.cat(xs).relu() + 1

    xs = [torch.randn(3, 4) for _ in range(200)]
    with torch.no_grad():
        run = compiled(f, call)
        same(run(xs), f(xs))
        xs[77] = torch.randn(3, 4)
        same(run(xs), f(xs))


def test_new_memory_each_time(call):
    run = compiled(lambda x, y: x @ y, call)
    with torch.no_grad():
        for i in range(50):
            x, y = torch.randn(17, 9), torch.randn(9, 5)
            same(run(x, y), x @ y)


def test_threads_call_one_plan(call):
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)).eval()
    run, wrong = compiled(model, call), []
    with torch.no_grad():
        run(torch.randn(4, 32))

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for _ in range(100):
                x = torch.randn(4, 32, generator=generator)
                if not torch.allclose(run(x), model(x), atol=1e-5):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(reports) == 1


def test_results_die_on_other_threads(call):
    run = compiled(lambda x: x + 1, call)
    with torch.no_grad():
        results = [run(torch.ones(1000)) for _ in range(50)]
    t = threading.Thread(target=results.clear)
    t.start()
    t.join()
    with torch.no_grad():
        assert float(run(torch.ones(1000)).sum()) == 2000


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_memory_does_not_grow(call):
    run, x = compiled(lambda x: (x * 2).cumsum(0), call), torch.ones(100_000)
    with torch.no_grad():
        for _ in range(20):
            run(x)
        gc.collect()
        before = resident()
        for _ in range(500):
            run(x)
    assert resident() - before < 20e6


def test_types_at_the_border(call):
    """Each type as argument and result."""
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                  torch.int8, torch.uint8, torch.bool):
        x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
        run = compiled(lambda v: torch.cat([v, v.flip(1)]), call)
        with torch.no_grad():
            same(run(x), torch.cat([x, x.flip(1)]))


def test_arguments_that_are_results_stay_themselves(call):
    def f(x, y):
        return y, x + y, x

    x, y = torch.ones(3), torch.ones(3)
    with torch.no_grad():
        a, _, c = compiled(f, call)(x, y)
    assert a.data_ptr() == y.data_ptr() and c.data_ptr() == x.data_ptr()


def test_views_of_results_share_memory(call):
    def f(x):
        y = x * 2
        return y, y[1:]

    with torch.no_grad():
        y, part = compiled(f, call)(torch.ones(4, 3))
        y.add_(1)
    same(part, y[1:])
    assert part.data_ptr() == y.data_ptr() + 12


def test_split_with_symbols_shares_memory(call):
    x = torch.randn(5, 4)
    with torch.no_grad():
        for part, want in zip(compiled(lambda v: torch.chunk(v, 2), call, dynamic=True)(x), torch.chunk(x, 2)):
            same(part, want)
            assert part.data_ptr() == want.data_ptr()


def test_importing_changes_nothing():
    import subprocess
    import sys

    code = ("import sys; import weft.torch; assert 'torch' not in sys.modules, 'torch is loaded'; import torch; "
            "n = torch.get_num_threads(); import torch._dynamo.config as c; before = c.inline_inbuilt_nn_modules; "
            "import weft.torch.backend; assert torch.get_num_threads() == n and c.inline_inbuilt_nn_modules == before")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_entry_point():
    from importlib.metadata import entry_points

    found = [e for e in entry_points(group="torch_dynamo_backends") if e.name == "weft"]
    if not found:
        pytest.skip("the package is not installed, it is in PYTHONPATH")
    assert found[0].value == "weft.torch.backend:weft"
    with torch.no_grad():
        same(torch.compile(lambda x: x * 2 + 1, backend="weft")(torch.ones(3)), torch.full((3,), 3.0))

def test_call_in_a_forked_process(call):
    """A loader's workers fork: a child calls what its parent compiled, and compiles anew."""
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval()
    x = torch.randn(512, 64)
    with torch.no_grad():
        run = compiled(net, call)
        want = run(x)
        child = os.fork()
        if child == 0:  # no exception may leave: pytest would go on twice
            code = 1
            try:
                torch.set_num_threads(1)  # torch's own pool does not survive a fork
                again = compiled(nn.Sequential(net, nn.Sigmoid()), call)(x)
                code = 0 if torch.equal(run(x), want) and torch.allclose(again, want.sigmoid()) else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        same(run(x), want)

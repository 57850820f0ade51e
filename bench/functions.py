#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vector mathematics beside torch eager: time and error of exp, log, tanh, sigmoid, erf-gelu, silu·up and others.

usage: functions.py [--library build/libweft.so] [--floats 65536] [--turns N] [--types f32,bf16] [--errors N]
                    [--cpu LEVEL] [--ops gelu.tanh,softplus,mish,elu,expm1]

One thread, all in one process, in turns: weft interpreted, weft compiled, torch. A turn is as many calls as take 2 ms;
the least of all turns counts, of which the table has nanoseconds per 1000 elements and torch / weft (above 1 weft is
faster), and below it the geometric means. torch writes into a given result (its .out forms), so that it allocates
nothing; silu·up is two calls there and one graph here. --ops: others than the six that are named first.

--errors N: also the greatest error of N bit patterns spread evenly over all floats, in ULP of f32, against float64
(numpy's functions, and of torch in float64 for erf): where the result is normal and x at least -1, where it is
normal, and all. Subnormal results count in the smallest unit. Where both sides are infinite, NaN or equal, it is 0.
Bounds that weft is held to are in check/strip_definition.c. Needs numpy, torch."""
import argparse
import ctypes
import math
import os
import sys
import tempfile
import time

import numpy
import torch

from pairs import Compile, Options, Tensor

INTERPRETED = 128  # WEFT_COMPILE_NO_COMPILER
TURN_S = 0.002
OPS = {
    "exp": ["%y: {t} = exp %x"],
    "log": ["%y: {t} = log %x"],
    "tanh": ["%y: {t} = tanh %x"],
    "sigmoid": ["%y: {t} = sigmoid %x"],
    "gelu": ["%y: {t} = gelu %x"],
    "silu·up": ["%s: {t} = silu %x", "%y: {t} = mul %s, %up"],
    "gelu.tanh": ["%y: {t} = gelu %x form=tanh"],
    "softplus": ["%y: {t} = softplus %x"],
    "mish": ["%y: {t} = mish %x"],
    "elu": ["%y: {t} = elu %x"],
    "expm1": ["%y: {t} = expm1 %x"],
}
SIX = "exp,log,tanh,sigmoid,gelu,silu·up"


class Weft:
    """Graphs of a few nodes on one array (and a second, of silu·up), compiled and bound."""

    def __init__(self, path, cpu):
        self.lib = ctypes.CDLL(os.path.abspath(path))
        self.lib.weft_last_error.restype = ctypes.c_char_p
        self.lib.weft_dtype_from_name.argtypes = [ctypes.c_char_p]
        self.context = ctypes.c_void_p()
        options = Options(size=ctypes.sizeof(Options), threads=1, prices=b"", cpu=cpu.encode() if cpu else None)
        self.check(self.lib.weft_open(ctypes.byref(options), ctypes.byref(self.context)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.weft_last_error(self.context).decode())

    def call(self, op, dtype, flags, inputs, result):
        """A function that computes `result`, a torch tensor, of `inputs`."""
        whole = f"{dtype}[{result.numel()}]"
        params = ", ".join(f"%{name}: {whole}" for name, _ in zip(("x", "up"), inputs))
        body = "".join(f"  {line.format(t=whole)}\n" for line in OPS[op])
        graph, plan, execution = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "op.weft")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"weft 1\ngraph @op({params}) {{\n{body}  return %y\n}}\n")
            self.check(self.lib.weft_load(self.context, path.encode(), ctypes.byref(graph)))
        how = Compile(size=ctypes.sizeof(Compile), flags=flags)
        self.check(self.lib.weft_compile(graph, ctypes.byref(how), ctypes.byref(plan)))
        self.check(self.lib.weft_plan_wait(plan))
        self.check(self.lib.weft_execution_create(plan, ctypes.byref(execution)))
        tensors = [Tensor(data=t.data_ptr(), dtype=self.lib.weft_dtype_from_name(dtype.encode()), rank=1)
                   for t in [*inputs, result]]
        for tensor in tensors:
            tensor.extent[0], tensor.stride[0] = result.numel(), 1
        for i in range(len(inputs)):
            self.check(self.lib.weft_bind_input(execution, i, ctypes.byref(tensors[i])))
        self.check(self.lib.weft_bind_output(execution, 0, ctypes.byref(tensors[-1])))
        run = self.lib.weft_run

        def call():
            if run(execution):
                raise RuntimeError("weft_run failed")

        return call


def torch_call(op, inputs, result):
    x, up = inputs[0], inputs[-1]
    if op in ("gelu", "gelu.tanh"):
        form = "tanh" if "tanh" in op else "none"
        return lambda: torch.ops.aten.gelu.out(x, approximate=form, out=result)
    if op in ("softplus", "mish", "elu"):
        out = getattr(torch.ops.aten, op).out
        return lambda: out(x, out=result)
    if op == "silu·up":
        half = torch.empty_like(x)
        return lambda: (torch.ops.aten.silu.out(x, out=half), torch.mul(half, up, out=result))
    function = getattr(torch, op)
    return lambda: function(x, out=result)


def inputs_of(op, dtype, count):
    """Activations as models have them; positive ones for the logarithm."""
    generator = torch.Generator().manual_seed(1)
    x = 2 * torch.randn(count, generator=generator)
    arrays = [x.abs() + 1e-3 if op == "log" else x] + ([torch.randn(count, generator=generator)] if "up" in op else [])
    return [array.to(dtype) for array in arrays]


def least_in_turns(calls, turns):
    repeats = []
    for call in calls:
        begin = time.perf_counter()
        for _ in range(20):
            call()
        repeats.append(max(1, int(TURN_S * 20 / (time.perf_counter() - begin))))
    least = [math.inf] * len(calls)
    for turn in range(turns):
        for i in range(len(calls))[::1 if turn % 2 else -1]:
            call, begin = calls[i], time.perf_counter()
            for _ in range(repeats[i]):
                call()
            least[i] = min(least[i], (time.perf_counter() - begin) / repeats[i])
    return least


def measure(weft, ops, types, count, turns):
    print("| type | op | interpreted | compiled | torch | torch / interpreted | torch / compiled |")
    print("|---|---|---|---|---|---|---|")
    for name in types:
        dtype, ratios = {"f32": torch.float32, "bf16": torch.bfloat16}[name], []
        for op in ops:
            inputs = inputs_of(op, dtype, count)
            results = [torch.empty(count, dtype=dtype) for _ in range(3)]
            calls = [weft.call(op, name, INTERPRETED, inputs, results[0]), weft.call(op, name, 0, inputs, results[1]),
                     torch_call(op, inputs, results[2])]
            least = least_in_turns(calls, turns)
            if not torch.equal(results[0], results[1]):
                raise RuntimeError(f"{op} of {name}: compiled and interpreted differ")
            if not torch.allclose(results[0].float(), results[2].float(), rtol=2e-2, atol=1e-4):
                raise RuntimeError(f"{op} of {name}: far from torch")
            ratios.append([least[2] / least[0], least[2] / least[1]])
            print(f"| {name} | {op} | " + " | ".join(f"{1e12 * t / count:.0f}" for t in least)
                  + f" | {ratios[-1][0]:.2f} | {ratios[-1][1]:.2f} |", flush=True)
        means = [math.exp(sum(map(math.log, side)) / len(side)) for side in zip(*ratios)]
        print(f"{name}, geometric means: interpreted {means[0]:.2f}, compiled {means[1]:.2f}; "
              f"least {min(r[0] for r in ratios):.2f}, {min(r[1] for r in ratios):.2f}")


def exact(op, x):
    """In float64, with no step that loses what f32 shows."""
    with numpy.errstate(all="ignore"):
        if op in ("exp", "log", "tanh", "expm1"):
            return getattr(numpy, op)(x)
        if op == "gelu":
            return 0.5 * x * torch.special.erfc(torch.from_numpy(-x * math.sqrt(0.5))).numpy()
        if op == "elu":
            return numpy.where(x < 0, numpy.expm1(x), x)
        softplus = numpy.maximum(x, 0.0) + numpy.log1p(numpy.exp(-numpy.abs(x)))
        if op in ("softplus", "mish"):
            return softplus if op == "softplus" else x * numpy.tanh(softplus)
        y = 2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3) if op == "gelu.tanh" else x
        return (x if op in ("silu", "gelu.tanh") else 1.0) / (1.0 + numpy.exp(-y))


def ulps(got, want):
    with numpy.errstate(all="ignore"):
        size = numpy.maximum(numpy.abs(want), 2.0 ** -126)
        unit = numpy.exp2(numpy.minimum(numpy.frexp(size)[1], 128) - 24.0)
        top = 2.0 ** 128  # stands for infinity, as the next power of two
        got, want = (numpy.clip(a, -top, top) for a in (got.astype(numpy.float64), want))
        error = numpy.abs(got - want) / unit
        return numpy.where(numpy.isnan(got) & numpy.isnan(want), 0.0, numpy.where(numpy.isnan(error), numpy.inf, error))


def worst_errors(weft, ops, count):
    """silu stands for silu·up, whose product is rounded once more by both."""
    print(f"\n| f32, {count} patterns | weft ULP, x >= -1 | normal | all | torch ULP, x >= -1 | normal | all |")
    print("|---|---|---|---|---|---|---|")
    OPS["silu"] = OPS["silu·up"]
    chunk = 1 << 20
    for op in ["silu" if op == "silu·up" else op for op in ops]:
        x, ones = torch.empty(chunk), torch.ones(chunk)
        inputs = [x, ones] if op == "silu" else [x]
        results = [torch.empty(chunk), torch.empty(chunk)]
        calls = [weft.call(op, "f32", INTERPRETED, inputs, results[0]),
                 torch_call("silu·up" if op == "silu" else op, inputs, results[1])]
        worst = [0.0] * 6
        for start in range(0, count, chunk):
            places = numpy.arange(start, start + chunk, dtype=numpy.uint64)
            bits = (places * numpy.uint64((1 << 32) // max(count, chunk))).astype(numpy.uint32)
            x.copy_(torch.from_numpy(bits.view(numpy.float32)))
            want = exact(op, x.numpy().astype(numpy.float64))
            normal = ~(numpy.abs(want) < 2.0 ** -126)
            for side in range(2):
                calls[side]()
                error = ulps(results[side].numpy(), want)
                for i, where in enumerate((normal & ~(x.numpy() < -1), normal, normal | True)):
                    worst[3 * side + i] = max(worst[3 * side + i], float(error[where].max(initial=0.0)))
        print(f"| {op} | " + " | ".join(f"{error:.3g}" for error in worst) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", default="build/libweft.so")
    parser.add_argument("--floats", type=int, default=1 << 16)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--types", default="f32,bf16")
    parser.add_argument("--errors", type=int, default=0)
    parser.add_argument("--cpu", default="")
    parser.add_argument("--ops", default=SIX)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    weft = Weft(options.library, options.cpu)
    if options.turns:
        measure(weft, options.ops.split(","), options.types.split(","), options.floats, options.turns)
    if options.errors:
        worst_errors(weft, options.ops.split(","), options.errors)
    return 0


if __name__ == "__main__":
    sys.exit(main())

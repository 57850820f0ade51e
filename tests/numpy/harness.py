# SPDX-License-Identifier: Apache-2.0
"""A case: one line of weft text, its operands, what numpy or torch makes of them; and how it is run.

    Case("add %a, %b", (a, b), a + b)
    Case("sort %a axis=1 descending=1", (a,), (values, places))           two results
    Case("nonzero %a extent=[K]", (a,), found, symbols="K=data(15)", types=("i64[2,K]",))

Operands and results of bf16, which numpy lacks, are arrays of float64 marked with `Bf16`; they go in and out as bits.
Results may be off by `rtol` of their size: by default one unit of the last place for floats of at most 32 bits, since
the evaluator computes in double and rounds once, and 1e-11 for f64; integers and bool are exact.
"""
import functools
import os
import pathlib
import subprocess

import numpy as np

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
          "i8": np.int8, "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_}
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
UNITS = {"f64": 1e-11, "f32": 2.0**-22, "f16": 2.0**-10, "bf16": 2.0**-7}
LEAST = {"f64": 1e-300, "f32": 2.0**-148, "f16": 2.0**-23, "bf16": 2.0**-132}


@functools.cache
def environment(weft):
    """Without passes: composites are to be computed by their definition, not opened."""
    listed = subprocess.run([weft, "opt", "--list-passes"], capture_output=True, text=True, check=True).stdout
    passes = [line.split()[0] for line in listed.splitlines() if line and not line.startswith(("#", "pipeline"))]
    return dict(os.environ, WEFT_SKIP=",".join(passes))


class Bf16(np.ndarray):
    """An array of float64 whose elements are numbers of bf16."""


def to_bf16(array):
    """Rounded to nearest, ties to even."""
    x = np.asarray(array, np.float64)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.abs(np.where(x == 0, 1, x)))), -126)
        step = np.exp2(np.where(np.isfinite(exponent), exponent, 0) - 7)
        rounded = np.where(np.isfinite(x), np.rint(x / step) * step, x)
        rounded = np.where(np.abs(rounded) > 3.3895313892515355e38, np.sign(rounded) * np.inf, rounded)
    return np.where(x == 0, x, rounded).view(Bf16)


def cast(array, dtype):
    """Rounded to a float dtype, or converted."""
    return to_bf16(array) if dtype == "bf16" else np.asarray(array).astype(DTYPES[dtype])


def dtype_of(array):
    return "bf16" if isinstance(array, Bf16) else next(n for n, d in DTYPES.items() if array.dtype == d)


def text_of(array):
    return dtype_of(array) + "[" + ",".join(map(str, array.shape)) + "]"


def wide(array):
    """To compute with: floats in double, which is exact."""
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def tame(rng, dtype, *shape, low=-3, high=3):
    """Numbers within bounds, without surprises; for integers the bounds are the type's if they are narrower."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype[0] in "iu":
        least = max(low, np.iinfo(DTYPES[dtype]).min)
        return rng.integers(least, high, shape, endpoint=True).astype(DTYPES[dtype])
    return cast(rng.uniform(low, high, shape), dtype)


def make(rng, dtype, *shape):
    """Hostile: NaN, infinities, zeros of both signs, ties; integers over their whole range with their ends."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype[0] in "iu":
        info = np.iinfo(DTYPES[dtype])
        array = rng.integers(info.min, info.max, shape, dtype=DTYPES[dtype], endpoint=True).reshape(shape)
        special = [0, 1, info.min, info.max]
    else:
        array = cast(rng.normal(0, 3, shape), dtype)
        special = [np.nan, np.inf, -np.inf, -0.0, 0.5, 2.5, 1.0]
    if array.size > 2 * len(special):
        array.flat[rng.choice(array.size, len(special), replace=False)] = special
    return array


class Case:
    def __init__(self, line, operands, wanted, symbols="", types=None, rtol=None, atol=0.0, bodies=""):
        self.line, self.operands, self.symbols, self.types, self.bodies = line, operands, symbols, types, bodies
        self.wanted = [np.asanyarray(w) for w in (wanted if isinstance(wanted, tuple) else (wanted,))]
        self.rtol, self.atol = rtol, atol

    @property
    def op(self):
        return self.line.split()[0]

    def name(self):
        return f"{self.line} of {', '.join(map(text_of, self.operands))}"

    def text(self):
        """The graph; bf16 goes in and out as u16."""
        head, before, after, results = [], [], [], []
        for i, operand in enumerate(self.operands):
            name = "abcdefgh"[i]
            text = text_of(operand)
            if dtype_of(operand) == "bf16":
                before.append(f"  %{name}: {text} = bitcast %{name}.bits")
                head.append(f"%{name}.bits: u16{text[4:]}")
            else:
                head.append(f"%{name}: {text}")
        kinds = self.types or [text_of(w) for w in self.wanted]
        for i, kind in enumerate(kinds):
            results.append(f"%r{i}")
            if kind.startswith("bf16"):
                after.append(f"  %r{i}.bits: u16{kind[4:]} = bitcast %r{i}")
                results[-1] += ".bits"
        made = ", ".join(f"%r{i}: {kind}" for i, kind in enumerate(kinds))
        symbols = f"<{self.symbols}>" if self.symbols else ""
        lines = [f"graph @g{symbols}({', '.join(head)}) {{", self.bodies, *before, f"  {made} = {self.line}", *after,
                 f"  return {', '.join(results)}", "}"]
        return "\n".join(line for line in lines if line) + "\n"

    def run(self, weft, folder):
        """What weft makes of it; raises with its message."""
        folder = pathlib.Path(folder)
        (folder / "case.weft").write_text(self.text())
        command = [weft, "run", folder / "case.weft", "--reference", "-o", folder]
        for i, operand in enumerate(self.operands):
            if dtype_of(operand) == "bf16":
                operand = (np.asarray(operand).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            np.save(folder / f"in{i}.npy", np.asarray(operand))
            command += ["-i", folder / f"in{i}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(weft))
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr + self.text())
        results = []
        for i, wanted in enumerate(self.wanted):
            result = np.load(folder / f"output_{i}.npy")
            if dtype_of(wanted) == "bf16":
                result = (result.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
            results.append(result)
        return results

    def check(self, weft, folder):
        """Raises AssertionError or RuntimeError where weft differs."""
        for given, wanted in zip(self.run(weft, folder), self.wanted):
            kind = dtype_of(wanted)
            if kind in FLOATS:
                rtol = UNITS[kind] if self.rtol is None else max(self.rtol, UNITS[kind])
                np.testing.assert_allclose(given.astype(np.float64), np.asarray(wanted).astype(np.float64), rtol=rtol,
                                           atol=max(self.atol, LEAST[kind]))
            else:
                np.testing.assert_array_equal(given, wanted)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of libweft.so beside each other in one process, in turns.

usage: pairs.py [--threads N] [--pairs N] [--compiles N] [--old-flags N] [--new-flags N] OLD.so NEW.so FOLDER...

Each FOLDER holds model.onnx and input_0.npy, input_1.npy, ... Both libraries load and compile it; then they run in
turns, as many runs at a time as take 100 ms, first one then the other, and in the next pair the other way round. A line
a model: the time of a run in the old and in the new one (medians), old / new as a geometric mean of all pairs with its
95 % interval (bootstrap), and the least time to compile. Above 1 the new one is faster. With --pairs 0 nothing runs,
and a line has the least time to compile alone. --old-flags 64 compiles the old one with WEFT_COMPILE_NO_FUSE, 128
with WEFT_COMPILE_NO_COMPILER; compiled code of groups is waited for before runs. Needs numpy; nothing else may run on
the machine. Exit status 1 where an
interval begins below 0.98, where a model fails and where f32 outputs differ by more than 0.1 %."""
import argparse
import ctypes
import glob
import os
import random
import statistics
import sys
import time

import numpy

MAX_RANK = 8
BATCH_S = 0.1


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("extent", ctypes.c_int64 * MAX_RANK), ("stride", ctypes.c_int64 * MAX_RANK)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("allocator", ctypes.c_void_p), ("executor", ctypes.c_void_p),
                ("diagnose", ctypes.c_void_p), ("diagnose_user", ctypes.c_void_p), ("cpu", ctypes.c_char_p),
                ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32), ("prices", ctypes.c_char_p)]


class Compile(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("target", ctypes.c_void_p), ("flags", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32), ("constant_bytes", ctypes.c_int64)]


def load_inputs(folder):
    paths = sorted(glob.glob(os.path.join(folder, "input_*.npy")), key=lambda path: int(path.split("_")[-1][:-4]))
    return [numpy.load(path).copy(order="C") for path in paths]


class Library:
    """One build, with a context of its own."""

    def __init__(self, path, threads, flags):
        self.flags = flags
        self.lib = ctypes.CDLL(os.path.abspath(path))
        self.lib.weft_last_error.restype = ctypes.c_char_p
        self.lib.weft_execution_error.restype = ctypes.c_char_p
        self.lib.weft_dtype_from_name.argtypes = [ctypes.c_char_p]
        options = Options(size=ctypes.sizeof(Options), threads=threads, prices=b"")
        self.context = ctypes.c_void_p()
        self.check(self.lib.weft_open(ctypes.byref(options), ctypes.byref(self.context)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.weft_last_error(self.context).decode())

    def load(self, path):
        graph = ctypes.c_void_p()
        self.check(self.lib.weft_load(self.context, path.encode(), ctypes.byref(graph)))
        return graph

    def compile(self, graph):
        plan = ctypes.c_void_p()
        begin = time.perf_counter()
        compile_options = Compile(size=ctypes.sizeof(Compile), flags=self.flags)
        self.check(self.lib.weft_compile(graph, ctypes.byref(compile_options), ctypes.byref(plan)))
        return plan, time.perf_counter() - begin

    def wait(self, plan):
        if hasattr(self.lib, "weft_plan_wait"):
            self.check(self.lib.weft_plan_wait(plan))

    def execution(self, plan, arrays):
        execution = ctypes.c_void_p()
        self.check(self.lib.weft_execution_create(plan, ctypes.byref(execution)))
        for i, array in enumerate(arrays):
            name = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool",
                    "uint8": "u8", "float16": "f16", "bfloat16": "bf16"}[array.dtype.name]
            tensor = Tensor(data=array.ctypes.data, dtype=self.lib.weft_dtype_from_name(name.encode()), rank=array.ndim)
            for axis in range(array.ndim):
                tensor.extent[axis] = array.shape[axis]
                tensor.stride[axis] = array.strides[axis] // array.itemsize
            if self.lib.weft_bind_input(execution, i, ctypes.byref(tensor)):
                raise RuntimeError(self.lib.weft_execution_error(execution).decode())
        return execution

    def outputs(self, plan, execution):
        result = []
        for i in range(self.lib.weft_plan_outputs(plan)):
            tensor = Tensor()
            if self.lib.weft_output(execution, ctypes.c_size_t(i), ctypes.byref(tensor)):
                raise RuntimeError(self.lib.weft_execution_error(execution).decode())
            count = 1
            for axis in range(tensor.rank):
                count *= tensor.extent[axis]
            dense = tensor.dtype == self.lib.weft_dtype_from_name(b"f32") and count > 0
            result.append(numpy.ctypeslib.as_array(ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_float)),
                                                   (count,)).copy() if dense else None)
        return result

    def output(self, plan, execution, index):
        """One as an array of f32, bf16 (in f32) or i64."""
        tensor = Tensor()
        if self.lib.weft_output(execution, ctypes.c_size_t(index), ctypes.byref(tensor)):
            raise RuntimeError(self.lib.weft_execution_error(execution).decode())
        shape = tuple(tensor.extent[:tensor.rank])
        if tensor.dtype == self.lib.weft_dtype_from_name(b"bf16"):
            bits = numpy.ctypeslib.as_array(ctypes.cast(tensor.data, ctypes.POINTER(ctypes.c_uint16)), shape)
            return (bits.astype(numpy.uint32) << 16).view(numpy.float32)
        kind = ctypes.c_float if tensor.dtype == self.lib.weft_dtype_from_name(b"f32") else ctypes.c_int64
        return numpy.ctypeslib.as_array(ctypes.cast(tensor.data, ctypes.POINTER(kind)), shape).copy()

    def time(self, execution, runs):
        run = self.lib.weft_run
        begin = time.perf_counter()
        for _ in range(runs):
            if run(execution):
                raise RuntimeError(self.lib.weft_execution_error(execution).decode())
        return (time.perf_counter() - begin) / runs


def interval(ratios):
    """The geometric mean, and where 95 % of those of 2,000 resamples lie."""
    logs = numpy.log(ratios)
    draw = random.Random(1)
    means = sorted(numpy.mean([draw.choice(logs) for _ in logs]) for _ in range(2000))
    return numpy.exp(numpy.mean(logs)), numpy.exp(means[50]), numpy.exp(means[1949])


def compile_in_turns(libraries, graphs, compiles):
    """The first plan of each, and how long all of them took."""
    compiled = [[], []]
    plans = []
    for turn in range(max(compiles, 1)):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            plan, seconds = libraries[side].compile(graphs[side])
            compiled[side].append(seconds)
            if turn == 0:
                plans.append((side, plan))
            else:
                libraries[side].lib.weft_plan_destroy(plan)
    return [plan for _, plan in sorted(plans, key=lambda p: p[0])], compiled


def compile_only(libraries, folder, compiles):
    graphs = [library.load(f"{folder}/model.onnx") for library in libraries]
    plans, compiled = compile_in_turns(libraries, graphs, compiles)
    for library, plan, graph in zip(libraries, plans, graphs):
        library.lib.weft_plan_destroy(plan)
        library.lib.weft_graph_destroy(graph)
    return compiled


def measure(libraries, folder, pairs, compiles):
    arrays = load_inputs(folder)
    graphs = [library.load(f"{folder}/model.onnx") for library in libraries]
    plans, compiled = compile_in_turns(libraries, graphs, compiles)
    executions = [library.execution(plan, arrays) for library, plan in zip(libraries, plans)]
    for library, plan, execution in zip(libraries, plans, executions):
        library.wait(plan)
        library.time(execution, 3)
    for one, other in zip(*(library.outputs(plan, execution)
                            for library, plan, execution in zip(libraries, plans, executions))):
        if one is not None and not numpy.allclose(one, other, rtol=1e-3, atol=1e-3 * max(1.0, numpy.abs(one).max())):
            raise RuntimeError(f"outputs differ by {numpy.abs(one - other).max():.3g}")
    runs = max(1, int(BATCH_S / max(libraries[1].time(executions[1], 3), 1e-6)))
    times = [[], []]
    for pair in range(pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            times[side].append(libraries[side].time(executions[side], runs))
    for library, execution, plan, graph in zip(libraries, executions, plans, graphs):
        library.lib.weft_execution_destroy(execution)
        library.lib.weft_plan_destroy(plan)
        library.lib.weft_graph_destroy(graph)
    return times, compiled


def print_compile_times(libraries, options):
    print("| model | compile old ms | new ms | old / new |\n|---|---|---|---|")
    for folder in options.folder:
        was, now = (1e3 * min(side) for side in compile_only(libraries, folder, options.compiles))
        print(f"| {os.path.basename(os.path.normpath(folder))} | {was:.2f} | {now:.2f} | {was / now:.2f} |", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--compiles", type=int, default=5)
    parser.add_argument("--old-flags", type=int, default=0)
    parser.add_argument("--new-flags", type=int, default=0)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("folder", nargs="+")
    options = parser.parse_args()
    libraries = [Library(options.old, options.threads, options.old_flags),
                 Library(options.new, options.threads, options.new_flags)]
    if options.pairs == 0:
        return print_compile_times(libraries, options)
    print("| model | old ms | new ms | old / new | 95 % | compile old ms | new ms | old / new |")
    print("|---|---|---|---|---|---|---|---|")
    means, slower = [], []
    for folder in options.folder:
        name = os.path.basename(os.path.normpath(folder))
        try:
            times, compiled = measure(libraries, folder, options.pairs, options.compiles)
        except (RuntimeError, OSError, KeyError) as error:
            print(f"| {name} | {str(error)[:90]} |", flush=True)
            slower.append(f"{name} (failed)")
            continue
        mean, low, high = interval([old / new for old, new in zip(*times)])
        means.append(mean)
        slower += [name] if low < 0.98 else []
        old, new = (1e3 * statistics.median(side) for side in times)
        was, now = (1e3 * min(side) for side in compiled)
        print(f"| {name} | {old:.3f} | {new:.3f} | {mean:.3f} | {low:.3f}-{high:.3f} | {was:.1f} | {now:.1f} | "
              f"{was / now:.2f} |", flush=True)
    print(f"geometric mean {numpy.exp(numpy.mean(numpy.log(means))):.3f} of {len(means)} models; "
          f"interval below 0.98: {', '.join(slower) or 'none'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows, chains, scans and folds that are larger than the caches: weft beside the machine's bandwidth, torch eager,
torch.compile and onnxruntime.

    python3 bench/figures.py [--threads 1,2] [--peers torch,inductor,onnxruntime] [--rounds N] [PATTERN]…
    python3 bench/figures.py --random 8 [--seed N]

A case is a small ONNX model (`softmax-768-bf16`, patterns match names), which weft and onnxruntime read; torch has the
same as a function. Each library has a process of its own, and only one works at a time: in each round every one takes a
turn of a few calls, after a pause in which the threads of the one before go to sleep. weft waits for compiled code.

`of limit` is the time of a probe over the time of weft. The probe (figures_limit.c, also in turns) reads and writes as
many bytes as the case has to at least, each once; of plain stores, streaming stores and reads at four places side by
side the fastest counts. A turn counts with its median; what is printed are medians of ratios made within a round, then
the ratio of the fastest turns, which is the better one where the machine has other work. More than 1 beside a peer is
good for us. Memory that torch frees it gets again (MALLOC_ settings below), or most of its time would be page faults.

Needs numpy, ml_dtypes, onnx, a C compiler, and torch and onnxruntime as far as they are named in --peers."""

import argparse
import ctypes
import fnmatch
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))
from beside_peers import PAUSE, Worker  # noqa: E402
from peer_workers import digest, seconds_of  # noqa: E402

BYTES = 64 << 20  # of the first operand
ROWS = 128, 768, 4096, 50257
NORMS = "softmax", "log_softmax", "layer_norm", "rms_norm", "cross_entropy"
BACKWARD = (576000, 384), (32768, 768), (32769, 768), (33791, 768), (16384, 2048), (1000000, 256)
WIDTH = {"f32": 4, "bf16": 2}
CHAIN = (("Mul", "b"), ("Add", "c"), ("Relu", ""), ("Mul", "a"), ("Sub", "b"), ("Abs", ""), ("Add", "c"), ("Min", "a"),
         ("Mul", "b"), ("Sub", "c"), ("Neg", ""), ("Add", "a"))
MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 40), "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
          "MALLOC_TOP_PAD_": str(1 << 28)}

# --- cases ----------------------------------------------------------------------------------------------------------


def case_of(op, dtype, rows, columns):
    return {"name": f"{op}-{columns}-{dtype}", "op": op, "dtype": dtype, "rows": rows, "columns": columns}


def all_cases():
    for dtype, width in WIDTH.items():
        for op in NORMS:
            yield from (case_of(op, dtype, BYTES // width // columns, columns) for columns in ROWS)
        yield case_of("chain", dtype, 4096, BYTES // width // 4096)
        yield case_of("cumsum", dtype, 4096, BYTES // width // 4096)
        yield case_of("cumsum", dtype, 1, BYTES // width)
        yield case_of("outer_sum", dtype, 4096, BYTES // width // 4096)
        yield case_of("argmax", dtype, BYTES // width // 1024, 1024)
    for op in "layer_norm_backward", "rms_norm_backward":
        for rows, columns in BACKWARD:
            yield case_of(op, "f32", rows, columns) | {"name": f"{op}-{rows}-{columns}"}


def random_cases(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        op, dtype = draw.choice([*NORMS, "chain", "cumsum", "outer_sum", "argmax"]), draw.choice(list(WIDTH))
        columns = int(128 * (50257 / 128) ** draw.random())
        yield case_of(op, dtype, BYTES // WIDTH[dtype] // columns, columns)


def shapes_of(case):
    """Of the operands: names, and extents; the result's extents."""
    rows, columns, op = case["rows"], case["columns"], case["op"]
    whole = [columns] if rows == 1 else [rows, columns]
    inputs = {"x": whole}
    if op == "chain":
        inputs = {"a": whole, "b": whole, "c": whole}
    elif op in ("layer_norm", "rms_norm"):
        inputs["g"] = [columns]
        if op == "layer_norm":
            inputs["b"] = [columns]
    elif op == "cross_entropy":
        inputs["t"] = [rows]
    elif op.endswith("backward"):
        inputs |= {"d": whole, "g": [columns], "r": [rows, 1]}
        if op == "layer_norm_backward":
            inputs["m"] = [rows, 1]
    result = {"cross_entropy": [], "outer_sum": [columns], "argmax": [rows]}.get(op, whole)
    return inputs, result


def operands(case):
    import ml_dtypes
    import numpy

    draw, arrays = numpy.random.default_rng(7), {}
    for name, shape in shapes_of(case)[0].items():
        if name == "t":
            arrays[name] = draw.integers(0, case["columns"], shape)
            continue
        some = draw.standard_normal(min(1000003, int(numpy.prod(shape)))).astype(numpy.float32)
        kind = numpy.float32 if case["dtype"] == "f32" else ml_dtypes.bfloat16
        arrays[name] = numpy.resize(some.astype(kind), shape)
    return arrays


def backward_nodes(case):
    """x; d: the gradient of the result; g: weights; r: 1 / deviation; m: mean. Results: gradients of x, g and the bias.
    """
    from onnx import helper

    has_mean, nodes = case["op"] == "layer_norm_backward", []

    def add(word, *operands, to=None, **more):
        to = to or f"v{len(nodes)}"
        nodes.append(helper.make_node(word, list(operands), [to], **more))
        return to

    h = add("Mul", add("Sub", "x", "m") if has_mean else "x", "r")
    scaled = add("Mul", "d", "g")
    along = add("Mul", h, add("ReduceMean", add("Mul", scaled, h), "last"))
    if has_mean:
        along = add("Add", along, add("ReduceMean", scaled, "last"))
    add("Mul", add("Sub", scaled, along), "r", to="y")
    add("ReduceSum", add("Mul", "d", h), "first", to="y1", keepdims=0)
    if has_mean:
        add("ReduceSum", "d", "first", to="y2", keepdims=0)
    return nodes


def onnx_model(case):
    from onnx import TensorProto, helper, numpy_helper
    import numpy

    kind = TensorProto.FLOAT if case["dtype"] == "f32" else TensorProto.BFLOAT16
    inputs, result = shapes_of(case)
    op, nodes, constants, node = case["op"], [], [], helper.make_node
    if op == "chain":
        value = "a"
        for i, (word, other) in enumerate(CHAIN):
            to = "y" if i == len(CHAIN) - 1 else f"v{i}"
            nodes.append(node(word, [value, other] if other else [value], [to]))
            value = to
    elif op in ("cumsum", "outer_sum"):
        axis = numpy.array([op == "cumsum" and case["rows"] > 1]).astype("int64")
        constants.append(numpy_helper.from_array(axis, "k"))
        nodes = [node("CumSum", ["x", "k"], ["y"]) if op == "cumsum"
                 else node("ReduceSum", ["x", "k"], ["y"], keepdims=0)]
    elif op.endswith("backward"):
        constants += [numpy_helper.from_array(numpy.array([axis]), name) for axis, name in ((-1, "last"), (0, "first"))]
        nodes = backward_nodes(case)
    else:
        word, more = {"softmax": ("Softmax", {"axis": -1}), "log_softmax": ("LogSoftmax", {"axis": -1}),
                      "layer_norm": ("LayerNormalization", {"axis": -1}),
                      "rms_norm": ("RMSNormalization", {"axis": -1}),
                      "cross_entropy": ("SoftmaxCrossEntropyLoss", {"reduction": "mean"}),
                      "argmax": ("ArgMax", {"axis": 1, "keepdims": 0})}[op]
        nodes = [node(word, list(inputs), ["y"], **more)]
    made = helper.make_graph(
        nodes, "case", [helper.make_tensor_value_info(name, TensorProto.INT64 if name == "t" else kind, shape)
                        for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.INT64 if op == "argmax" else kind, result)]
        + [helper.make_tensor_value_info(name, kind, [case["columns"]]) for name in ("y1", "y2")
           if any(name in n.output for n in nodes)], constants)
    opsets = [helper.make_opsetid("", 23)]
    return helper.make_model(made, opset_imports=opsets, ir_version=10).SerializeToString()


def torch_function(case):
    import torch

    functional, columns, op = torch.nn.functional, [case["columns"]], case["op"]

    def chain(a, b, c):
        operand, y = {"a": a, "b": b, "c": c}, a
        words = {"Mul": torch.mul, "Add": torch.add, "Sub": torch.sub, "Min": torch.minimum, "Relu": torch.relu,
                 "Abs": torch.abs, "Neg": torch.neg}
        for word, other in CHAIN:
            y = words[word](y, operand[other]) if other else words[word](y)
        return y

    def rms_norm_backward(x, d, g, r):
        h, scaled = x * r, d * g
        return (scaled - h * (scaled * h).mean(-1, keepdim=True)) * r, (d * h).sum(0)

    def layer_norm_backward(x, d, g, r, m):
        return torch.ops.aten.native_layer_norm_backward(d, x, columns, m, r, g, g, [True, True, True])

    return {"layer_norm_backward": layer_norm_backward, "rms_norm_backward": rms_norm_backward,
            "softmax": lambda x: functional.softmax(x, -1), "log_softmax": lambda x: functional.log_softmax(x, -1),
            "layer_norm": lambda x, g, b: functional.layer_norm(x, columns, g, b),
            "rms_norm": lambda x, g: functional.rms_norm(x, columns, g, 1e-5),
            "cross_entropy": functional.cross_entropy, "chain": chain,
            "cumsum": lambda x: torch.cumsum(x, -1), "outer_sum": lambda x: torch.sum(x, 0),
            "argmax": lambda x: torch.argmax(x, 1)}[op]


# --- libraries: each maker returns functions that do the case once, by name -----------------------------------------


def torch_ways(case, threads, compiled):
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    arrays = [torch.from_numpy(a.view("int16")).view(torch.bfloat16) if a.dtype.name == "bfloat16"
              else torch.from_numpy(a) for a in operands(case).values()]
    function = torch_function(case)
    if compiled:
        function = torch.compile(function, dynamic=False)
    return {"": lambda: function(*arrays)}


def weft_ways(case, threads, library):
    from pairs import Library

    lib = Library(library, threads, 0)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "case.onnx").write_bytes(onnx_model(case))
        graph = lib.load(f"{folder}/case.onnx")
    plan, _ = lib.compile(graph)
    arrays = list(operands(case).values())
    execution = lib.execution(plan, arrays)
    lib.wait(plan)

    def call(kept=(arrays, plan, graph)):
        lib.time(execution, 1)
        return lambda: lib.output(plan, execution, 0)

    return {"": call}


def onnxruntime_ways(case, threads):
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    session = onnxruntime.InferenceSession(onnx_model(case), options, providers=["CPUExecutionProvider"])
    if case["dtype"] == "bf16":
        raise NotImplementedError("bf16 is not bound")
    binding, arrays = session.io_binding(), operands(case)
    for name, array in arrays.items():
        binding.bind_cpu_input(name, array)
    kind = numpy.int64 if case["op"] == "argmax" else numpy.float32
    result = numpy.zeros(shapes_of(case)[1], kind)
    binding.bind_output("y", "cpu", 0, kind, list(result.shape), result.ctypes.data)

    def call(kept=arrays):
        session.run_with_iobinding(binding)
        return result

    return {"": call}


def limit_ways(case, threads, library):
    import numpy

    inputs, result = shapes_of(case)
    width, reads = WIDTH[case["dtype"]], 3 if case["op"] == "chain" else 2 if case["op"].endswith("backward") else 1
    total = {"read": case["rows"] * case["columns"] * width, "written": int(numpy.prod(result)) * width}
    floats = total["read"] // 64 * 16
    lib = ctypes.CDLL(library)
    lib.limit.restype = ctypes.c_float

    def aligned(floats, fill):
        whole = numpy.full(floats + 16, fill, numpy.float32)
        return whole[(-whole.ctypes.data % 64) // 4:][:floats]

    arrays = [aligned(floats, k + 1) for k in range(reads)]
    pointers = (ctypes.c_void_p * 3)(*[a.ctypes.data for a in arrays])
    out = aligned(floats, 0) if total["written"] * 16 > total["read"] else None
    ways = {"plain": 0} | ({"streaming": 1} if out is not None else {"aside": 2})

    def probe(way):
        lib.limit(pointers, reads, ctypes.c_void_p(out.ctypes.data if out is not None else None),
                  ctypes.c_size_t(floats), way, threads)
        return arrays

    return {name: lambda way=way: probe(way) for name, way in ways.items()}


def worker(peer, threads, library):
    """A line with a case prepares it, an empty line takes a turn."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not an answer
    makers = {"weft": lambda case: weft_ways(case, threads, library),
              "limit": lambda case: limit_ways(case, threads, library),
              "torch": lambda case: torch_ways(case, threads, False),
              "inductor": lambda case: torch_ways(case, threads, True),
              "onnxruntime": lambda case: onnxruntime_ways(case, threads)}
    ways, count = {}, 1
    for line in sys.stdin:
        try:
            if line.strip():
                ways = makers[peer](json.loads(line))
                got = {"sums": sums_of(peer, ways)}
                count = max(3, min(20, int(0.03 / max(seconds_of(next(iter(ways.values())), 1), 1e-9))))
            else:
                got = {"seconds": {way: statistics.median(seconds_of(call, 1) for _ in range(count))
                                   for way, call in ways.items()}}
        except Exception as error:  # whatever a library raises: the case is not for it
            got = {"failed": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"}
        answers.write(json.dumps(got) + "\n")
        answers.flush()


def sums_of(peer, ways):
    for call in ways.values():
        result = call()
        call()
    if peer == "limit":
        return []
    result = result() if callable(result) else result
    result = result[0] if isinstance(result, tuple) else result
    return digest(result.float() if type(result).__module__.startswith("torch") else result)


# --- the driver -----------------------------------------------------------------------------------------------------


def measure(case, processes, rounds):
    """By library and round the seconds of the faster way, and who failed or computed something else."""
    sums, troubles, times = {}, {}, {}
    for peer, process in processes.items():
        got = process.ask(json.dumps(case))
        if "failed" in got:
            troubles[peer] = got["failed"]
        else:
            sums[peer] = got["sums"]
    for _ in range(rounds):
        for peer in sums:
            time.sleep(PAUSE)
            seconds = processes[peer].ask().get("seconds")
            if seconds:
                for way, value in seconds.items():
                    times.setdefault(peer, {}).setdefault(way, []).append(value)
    fastest = {peer: min(ways.values(), key=statistics.median) for peer, ways in times.items()}
    for peer, own in sums.items():
        slack = (1e-2 if case["dtype"] == "bf16" else 1e-3) * max(abs(own[1]), 1e-6) if own else 0
        if own and "weft" in sums and any(abs(x - y) > slack for x, y in zip(own, sums["weft"])):
            troubles[peer] = f"another result ({own[1]:.6g}, weft's {sums['weft'][1]:.6g})"
    return fastest, troubles


def cells_of(times, peer):
    """The ratio within rounds, and that of the fastest turns."""
    if peer not in times or "weft" not in times:
        return "-"
    ratio = statistics.median(t / own for t, own in zip(times[peer], times["weft"]))
    return f"{ratio:.2f} ({min(times[peer]) / min(times['weft']):.2f})"


def build_limit(folder):
    path = f"{folder}/limit.so"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC",
                    str(FOLDER / "figures_limit.c"), "-o", path], check=True)
    return path


def run(options):
    cases = list(random_cases(options.random, options.seed) if options.random else all_cases())
    cases = [c for c in cases if not options.words or any(fnmatch.fnmatchcase(c["name"], w) for w in options.words)]
    if options.random:
        print(f"seed {options.seed}")
    print("| case | rows | threads | weft ms | of limit | " + " | ".join(options.peers) + " | |")
    print("|---|---|---|---|---|" + "---|" * len(options.peers) + "---|")
    with tempfile.TemporaryDirectory() as folder:
        probe = build_limit(folder)
        for threads in options.threads:
            libraries = {"limit": probe, **{p: "" for p in options.peers}, "weft": str(options.library)}
            for case in cases:
                processes = {peer: Worker(peer, threads, library, (__file__, "--worker"), **MEMORY)
                             for peer, library in libraries.items()}
                times, troubles = measure(case, processes, options.rounds)
                for process in processes.values():
                    process.close()
                own = f"{1e3 * statistics.median(times['weft']):.2f}" if "weft" in times else "-"
                print("| " + " | ".join([case["name"], str(case["rows"]), str(threads), own, cells_of(times, "limit"),
                                         *(cells_of(times, peer) for peer in options.peers),
                                         "; ".join(f"{p}: {t}" for p, t in troubles.items())]) + " |", flush=True)


def main():
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="names of cases; * and ? match")
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--peers", type=lambda text: [word for word in text.split(",") if word],
                        default=["torch", "inductor", "onnxruntime"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N cases with sizes drawn at random")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--library", type=Path, default=FOLDER.parent / "build" / "libweft.so")
    run(parser.parse_args())


if __name__ == "__main__":
    main()

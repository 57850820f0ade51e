# SPDX-License-Identifier: Apache-2.0
"""One library in one process: answers beside_peers.py. A line with a case prepares it, an empty line takes a turn.

Each maker returns a dictionary from the name of a way to do the case to a function that does it once and returns the
result as an array (or None where that costs something; then a second function looks at it)."""

import ctypes
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shape_files import Case, Window, first_axis_last, gemm_shapes, is_constant, operands  # noqa: E402

BATCH_SECONDS, SAMPLES, TRIES, LONG = 0.001, 3, 5, 0.02
TYPES = {1: ("i8", 8), 2: ("f16", 4), 4: ("f32", 2), 8: ("f64", 1)}  # names and numbers of weft's types

# --- weft -----------------------------------------------------------------------------------------------------------

MAX_RANK = 8


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("extent", ctypes.c_int64 * MAX_RANK), ("stride", ctypes.c_int64 * MAX_RANK)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("allocator", ctypes.c_void_p), ("executor", ctypes.c_void_p),
                ("diagnose", ctypes.c_void_p), ("user", ctypes.c_void_p), ("cpu", ctypes.c_char_p),
                ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32)]


def numbers(values):
    return "[" + " ".join(map(str, values)) + "]"


def extents(values):
    return "[" + ",".join(map(str, values)) + "]"


def weft_text(case):
    """The graph as text; constant operand 1 is in the file `constant` beside it."""
    dtype, last = TYPES[case.number("bytes", 4)][0], ""
    if case.family == "gemm":
        a, b, c = gemm_shapes(case)
        shapes, result = [a, b], c
        op = f"matmul %x, %w trans_a={int(case.flag('ta'))} trans_b={int(case.flag('tb'))}"
    elif case.family == "relayout":
        shapes, order = [case.keys["shape"]], case.keys["order"]
        result, op = [shapes[0][axis] for axis in order], f"transpose %x perm={numbers(order)}"
    else:
        w = Window(case)
        last = "{" + " ".join(map(str, first_axis_last(w.axes))) + "}" if w.last else ""
        shapes, result = [[w.n, w.c, *w.inside], w.weights], [w.n, w.o, *w.out]
        window = f"stride={numbers(w.stride)} pad={numbers(w.pad + w.pad)} dilation={numbers(w.dilation)}"
        if case.family == "conv":
            op = f"{'conv_transpose' if w.transposed else 'conv'} %x, %w {window} groups={w.groups}"
        else:
            kind = case.word("kind") + "_pool"
            count = " count_pad=1" if case.flag("count_pad") else ""
            shapes, op = shapes[:1], f"{kind} %x kernel={numbers(w.kernel)} {window}{count}"
    params, constant = f"%x: {dtype}{extents(shapes[0])}{last}", ""
    if len(shapes) == 2 and is_constant(case):
        constant = f'  %w: {dtype}{extents(shapes[1])} = const file="constant" offset=0\n'
    elif len(shapes) == 2:
        params += f", %w: {dtype}{extents(shapes[1])}"
    body = f"{constant}  %y: {dtype}{extents(result)}{last} = {op}\n  return %y\n"
    return f"weft 1\ngraph @case({params}) {{\n{body}}}\n", result


class Weft:
    def __init__(self, threads, library):
        self.lib = ctypes.CDLL(library)
        self.lib.weft_last_error.restype = ctypes.c_char_p
        self.lib.weft_execution_error.restype = ctypes.c_char_p
        self.context, self.plan, self.execution = ctypes.c_void_p(), None, None
        options = ContextOptions(size=ctypes.sizeof(ContextOptions), threads=threads)
        if self.lib.weft_open(ctypes.byref(options), ctypes.byref(self.context)):
            raise RuntimeError("weft_open")

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.weft_last_error(self.context).decode())

    def close(self):
        if self.execution:
            self.lib.weft_execution_destroy(self.execution)
            self.lib.weft_plan_destroy(self.plan)
        self.plan = self.execution = None

    def compile(self, text, constant):
        graph, self.plan = ctypes.c_void_p(), ctypes.c_void_p()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "case.weft")
            path.write_text(text, encoding="ascii")
            if constant is not None:
                Path(folder, "constant").write_bytes(constant.tobytes())
            self.check(self.lib.weft_load(self.context, str(path).encode(), ctypes.byref(graph)))
            self.check(self.lib.weft_compile(graph, None, ctypes.byref(self.plan)))
            self.lib.weft_graph_destroy(graph)

    def __call__(self, case):
        import numpy

        self.close()
        arrays = operands(case)
        text, result = weft_text(case)
        self.compile(text, arrays[1] if is_constant(case) else None)
        self.execution = ctypes.c_void_p()
        self.check(self.lib.weft_execution_create(self.plan, ctypes.byref(self.execution)))
        order = first_axis_last(Window(case).axes) if case.family in ("conv", "pool") and Window(case).last else None
        dtype = TYPES[case.number("bytes", 4)][1]

        def memory(array, shape):
            """Memory in the order of the parameter, and the same seen in logical order."""
            stored = numpy.empty([shape[i] for i in order] if order else shape, array.dtype)
            logical = stored.transpose([order.index(i) for i in range(len(order))]) if order else stored
            return logical

        def tensor(array):
            extent, stride = (ctypes.c_int64 * MAX_RANK)(*array.shape), (ctypes.c_int64 * MAX_RANK)()
            for i, step in enumerate(array.strides):
                stride[i] = step // array.itemsize
            return Tensor(array.ctypes.data, dtype, array.ndim, extent, stride)

        x, y = memory(arrays[0], arrays[0].shape), memory(arrays[0], result)
        x[...] = arrays[0]
        bound = [x] + ([] if is_constant(case) or len(arrays) == 1 else [arrays[1]])
        tensors = [tensor(array) for array in [*bound, y]]
        for i in range(len(bound)):
            self.check(self.lib.weft_bind_input(self.execution, i, ctypes.byref(tensors[i])))
        self.check(self.lib.weft_bind_output(self.execution, 0, ctypes.byref(tensors[-1])))
        self.kept = [bound, y, tensors]
        run, execution = self.lib.weft_run, self.execution

        def call():
            if run(execution):
                raise RuntimeError(self.lib.weft_execution_error(execution).decode())
            return y

        return {"weft": call}


# --- torch ----------------------------------------------------------------------------------------------------------


class Torch:
    """Eager (MKL for products, oneDNN for convolutions), and what its compiler uses on frozen weights: products with
    weights packed by MKL or oneDNN, convolutions with weights in oneDNN's own layout."""

    def __init__(self, threads, library):
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def __call__(self, case):
        import torch

        x, *more = [torch.from_numpy(array) for array in operands(case)]
        if case.family == "gemm":
            return self.gemm(case, x, more[0])
        if case.family == "relayout":
            order = case.keys["order"]
            out = torch.empty([x.shape[i] for i in order], dtype=x.dtype)
            return {"torch": lambda: out.copy_(x.permute(order))}
        w = Window(case)
        if w.last and w.axes > 1:
            form = torch.channels_last if w.axes == 2 else torch.channels_last_3d
            x = x.contiguous(memory_format=form)
        return self.conv(w, x, more[0]) if case.family == "conv" else self.pool(case, w, x)

    def gemm(self, case, x, w):
        import torch

        a = x.transpose(-1, -2) if case.flag("ta") else x
        b = w.transpose(-1, -2) if case.flag("tb") else w
        _, _, shape = gemm_shapes(case)
        out = torch.empty(shape)
        ways = {"torch": lambda: torch.matmul(a, b, out=out)}
        if is_constant(case):
            rows = b.t().contiguous()
            ways["torch-linear"] = lambda: torch.nn.functional.linear(a, rows)
            a = a.contiguous()
            packed = torch.ops.mkldnn._reorder_linear_weight(rows, a.shape[0])
            ways["torch-onednn"] = lambda: torch.ops.mkldnn._linear_pointwise(a, packed, None, "none", [], "")
            if hasattr(torch.ops.mkl, "_mkl_linear"):
                mine = torch.ops.mkl._mkl_reorder_linear_weight(rows, a.shape[0])
                ways["torch-mkl"] = lambda: torch.ops.mkl._mkl_linear(a, mine, rows, None, a.shape[0])
        return ways

    def conv(self, w, x, weight):
        import torch

        if w.transposed:
            fn = [torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d,
                  torch.nn.functional.conv_transpose3d][w.axes - 1]
            return {"torch": lambda: fn(x, weight, None, w.stride, w.pad, 0, w.groups, w.dilation)}
        fn = [torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d][w.axes - 1]
        ways = {"torch": lambda: fn(x, weight, None, w.stride, w.pad, w.dilation, w.groups)}
        if w.axes == 2:
            packed = torch._C._nn.mkldnn_reorder_conv2d_weight(
                weight.to_mkldnn(), w.pad, w.stride, w.dilation, w.groups, x.shape)
            ways["torch-onednn"] = lambda: torch.ops.mkldnn._convolution_pointwise(
                x, packed, None, w.pad, w.stride, w.dilation, w.groups, "none", [], "")
        return ways

    def pool(self, case, w, x):
        import torch

        functional = torch.nn.functional
        if case.word("kind") == "max":
            fn = [functional.max_pool1d, functional.max_pool2d, functional.max_pool3d][w.axes - 1]
            return {"torch": lambda: fn(x, w.kernel, w.stride, w.pad, w.dilation)}
        fn = [functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d][w.axes - 1]
        return {"torch": lambda: fn(x, w.kernel, w.stride, w.pad, False, case.flag("count_pad"))}


# --- onnxruntime, openvino ------------------------------------------------------------------------------------------


def onnx_model(case):
    """The case as a model, channels in front of the axes whatever the layout: these libraries have their own."""
    from onnx import TensorProto, helper, numpy_helper

    kind = {1: TensorProto.INT8, 2: TensorProto.FLOAT16, 4: TensorProto.FLOAT, 8: TensorProto.DOUBLE}[
        case.number("bytes", 4)]
    arrays, nodes, names, constants = operands(case), [], ["x"], []
    if len(arrays) == 2:
        names.append("w")
        if is_constant(case):
            constants.append(numpy_helper.from_array(arrays[1], "w"))
    if case.family == "gemm" and case.number("batch", 1) == 1:
        nodes.append(helper.make_node("Gemm", names, ["y"], transA=int(case.flag("ta")), transB=int(case.flag("tb"))))
    elif case.family == "gemm":
        for i, flag in enumerate(("ta", "tb")):
            if case.flag(flag):
                nodes.append(helper.make_node("Transpose", [names[i]], [f"t{i}"], perm=[0, 2, 1]))
                names[i] = f"t{i}"
        nodes.append(helper.make_node("MatMul", names, ["y"]))
    elif case.family == "relayout":
        nodes.append(helper.make_node("Transpose", names, ["y"], perm=case.keys["order"]))
    else:
        w = Window(case)
        window = {"strides": w.stride, "pads": w.pad + w.pad, "kernel_shape": w.kernel}
        if case.family == "conv":
            op = "ConvTranspose" if w.transposed else "Conv"
            nodes.append(helper.make_node(op, names, ["y"], group=w.groups, dilations=w.dilation, **window))
        elif case.word("kind") == "max":
            nodes.append(helper.make_node("MaxPool", names, ["y"], dilations=w.dilation, **window))
        else:
            nodes.append(helper.make_node("AveragePool", names, ["y"], count_include_pad=int(case.flag("count_pad")),
                                          **window))
    inputs = [helper.make_tensor_value_info(name, kind, array.shape)
              for name, array in zip(("x", "w"), arrays) if name == "x" or not constants]
    graph = helper.make_graph(nodes, "case", inputs, [helper.make_tensor_value_info("y", kind, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), arrays[:len(inputs)]


class Onnxruntime:
    def __init__(self, threads, library):
        self.threads = threads

    def __call__(self, case):
        import onnxruntime

        model, arrays = onnx_model(case)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for port, array in zip(session.get_inputs(), arrays):
            binding.bind_cpu_input(port.name, array)
        first = session.run(None, {port.name: array for port, array in zip(session.get_inputs(), arrays)})[0]
        out = onnxruntime.OrtValue.ortvalue_from_numpy(first)
        binding.bind_ortvalue_output("y", out)

        def call(operands=arrays):  # which must live as long as they are bound
            session.run_with_iobinding(binding)
            return first

        return {"onnxruntime": call}


class Openvino:
    def __init__(self, threads, library):
        import openvino

        self.core = openvino.Core()
        self.config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}

    def __call__(self, case):
        import openvino

        model, arrays = onnx_model(case)
        compiled = self.core.compile_model(self.core.read_model(model), "CPU", self.config)
        request = compiled.create_infer_request()
        for i, array in enumerate(arrays):
            request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))

        def call(operands=arrays):  # which must live as long as they are bound
            request.infer()
            return request.get_output_tensor(0)

        return {"openvino": call}


class Numpy:
    """OpenBLAS, as numpy brings it along."""

    def __init__(self, threads, library):
        pass

    def __call__(self, case):
        import numpy

        if case.family != "gemm":
            raise NotImplementedError("products only")
        x, w = operands(case)
        a = x.swapaxes(-1, -2) if case.flag("ta") else x
        b = w.swapaxes(-1, -2) if case.flag("tb") else w
        out = numpy.empty(gemm_shapes(case)[2], numpy.float32)
        return {"numpy": lambda: numpy.matmul(a, b, out=out)}


MAKERS = {"weft": Weft, "torch": Torch, "onnxruntime": Onnxruntime, "openvino": Openvino, "numpy": Numpy}

# --- the worker -----------------------------------------------------------------------------------------------------


def seconds_of(call, count, clock=time.perf_counter):
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count


def quiet_seconds_of(call, count, threads):
    """One thread in processor time, which stands still while others have the core; several by the wall's clock, again
    if one of them was driven off its core meanwhile."""
    if threads == 1:
        return seconds_of(call, count, time.process_time)
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        seconds = seconds_of(call, count)
        if resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw == before:
            break
    return seconds


def digest(result):
    """Two sums that say whether two results are the same, in any layout."""
    import numpy

    array = getattr(result, "data", result) if type(result).__module__.startswith("openvino") else result
    if type(array).__module__.startswith("torch"):
        array = array.detach().numpy()
    array = numpy.asarray(array, dtype=numpy.float64)
    return [float(array.sum()), float(numpy.abs(array).sum())]


def answer(maker, state, line, threads):
    if line.strip():
        state.clear()
        fields = json.loads(line)
        ways = maker(Case(**fields))
        sums = {}
        for name, call in ways.items():
            sums[name] = digest(call())
            call()
            once = seconds_of(call, 1) + 1e-9
            state[name] = call, max(1, min(2000, int(BATCH_SECONDS / once))), SAMPLES if once < LONG else 1
        return {"sums": sums}
    turns = {}
    for name, (call, count, samples) in state.items():
        if samples > 1:
            call()
        turns[name] = min(quiet_seconds_of(call, count, threads) for _ in range(samples))
    return {"seconds": turns}


def main():
    peer, threads, library = sys.argv[1:4]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not an answer
    maker, state = MAKERS[peer](int(threads), library), {}
    for line in sys.stdin:
        try:
            got = answer(maker, state, line, int(threads))
        except Exception as error:  # whatever a library raises: the case is not for it
            got = {"failed": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"}
        answers.write(json.dumps(got) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What a node computes, by others: onnxruntime, and ONNX's own reference evaluator where onnxruntime lacks the type.

    evaluate(node, {"x": array}, opset)  ->  the node's results, a list of arrays; or Refused

One node at a time, so that no optimiser comes between what ONNX says of a node and its result, and every value on the
way is known. What onnxruntime lacks for 16-bit floats or f64 is computed in f32: ONNX's evaluator has more types, but
leaves out attributes that onnxruntime honours.
"""
import os
import warnings

import ml_dtypes
import numpy as np
import onnx
import exact
import known
import texts
from onnx import helper
from onnx.reference import ReferenceEvaluator

try:
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
except ImportError:
    onnxruntime = None

warnings.filterwarnings("ignore")
F64, F16, BF16 = np.dtype(np.float64), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
HALVES = (F16, BF16)


class Refused(Exception):
    """Neither computes it: the node is no legal one, or nobody has it."""


def tensor_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def captured(graph):
    """Names that a body reads from outside, in order."""
    made = {v.name for v in graph.input} | {v.name for v in graph.initializer}
    names = []
    for node in graph.node:
        inner = [name for a in node.attribute if a.type == a.GRAPH for name in captured(a.g)]
        names += [name for name in [*node.input, *inner] if name and name not in made]
        made |= set(node.output)
    return list(dict.fromkeys(names + [v.name for v in graph.output if v.name not in made]))


def reads(node):
    """Names of the values that a node needs, those of its bodies included."""
    inner = [name for a in node.attribute if a.type == a.GRAPH for name in captured(a.g)]
    return list(dict.fromkeys([name for name in [*node.input, *inner] if name]))


def model_of(node, values, opset):
    inputs = [helper.make_tensor_value_info(name, tensor_type(array), [None] * array.ndim)
              for name, array in values.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    return helper.make_model(helper.make_graph([node], "g", inputs, outputs), ir_version=10,
                             opset_imports=[helper.make_opsetid("", opset)])


def by_onnxruntime(node, values, opset):
    if onnxruntime is None:
        raise Refused("no onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model_of(node, values, opset).SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        results = session.run(None, values)
    except Exception as error:
        raise Refused(str(error)) from None
    return [of_type(np.asarray(array), out.type) for array, out in zip(results, session.get_outputs())]


BYTES = {"tensor(float8e4m3fn)": ml_dtypes.float8_e4m3fn, "tensor(float8e5m2)": ml_dtypes.float8_e5m2}


def of_type(array, text):
    """onnxruntime hands out 8-bit floats as bytes."""
    return array.view(BYTES[text]) if text in BYTES and array.dtype == np.uint8 else array


def by_onnx(node, values, opset):
    if node.op_type == "Attention":
        return attention(node, values, opset)
    return by_evaluator(node, values, opset)


def attention(node, values, opset):
    """The evaluator takes the rows that a causal mask has from those of attn_mask, also where that is repeated for all
    queries, and gives the bounded scores where the unbounded ones are asked for."""
    name = node.input[3] if len(node.input) > 3 else ""
    facts = texts.attributes_of(node, is_causal=0, softcap=0.0, qk_matmul_output_mode=0)
    if name and facts["is_causal"] and values[name].ndim >= 2 and values[name].shape[-2] == 1:
        mask = values[name]
        rows = values[node.input[0]].shape[-2]
        values = {**values, name: np.ascontiguousarray(
            np.broadcast_to(mask, (*mask.shape[:-2], rows, mask.shape[-1])))}
    results = by_evaluator(node, values, opset)
    if facts["softcap"] and not facts["qk_matmul_output_mode"] and len(node.output) > 3 and node.output[3]:
        other = onnx.NodeProto()
        other.CopyFrom(node)
        del other.attribute[:]
        other.attribute.extend(a for a in node.attribute if a.name != "softcap")
        results[-1] = by_evaluator(other, values, opset)[-1]
    return results


def by_evaluator(node, values, opset):
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model_of(node, values, opset)).run(None, dict(values))
    except Exception as error:
        raise Refused(str(error)) from None
    if any(not isinstance(array, (np.ndarray, np.generic)) for array in results):
        raise Refused("a result that is no tensor")
    kinds = declared(node, values, opset)
    return [np.asarray(array).astype(kinds.get(name, np.asarray(array).dtype))
            for name, array in zip([n for n in node.output if n], results)]


def declared(node, values, opset):
    """The types of the results by ONNX's inference; the evaluator computes some in another."""
    try:
        graph = onnx.shape_inference.infer_shapes(model_of(node, values, opset)).graph
    except Exception:
        return {}
    known = {v.name: v.type.tensor_type.elem_type for v in graph.output}
    if node.op_type == "GroupNormalization": # a function, of which the inference says nothing
        known[node.output[0]] = tensor_type(values[node.input[0]])
    return {name: np.dtype(helper.tensor_dtype_to_np_dtype(kind)) for name, kind in known.items() if kind}


# Ops of which ONNX's evaluator leaves out attributes, or has mistakes: onnxruntime or nobody.
NOT_BY_ONNX = set("""If Loop Scan RNN GRU LSTM MaxPool AveragePool LpPool Resize ConvTranspose Conv GridSample
GlobalMaxPool Unique LRN""".split())
# Ops that onnxruntime computes less exactly, or wrongly: Col2Im with dilations, Mod of integers beyond 2^53,
# Attention that is causal behind a cache.
BY_ONNX_FIRST = {"DFT", "STFT", "Col2Im", "HannWindow", "HammingWindow", "BlackmanWindow", "Attention", "Mod"}
WINDOWS = {"Conv", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool"}


def fits(array, narrow):
    """Is no number of f64 infinite or 0 in f32?"""
    return array.dtype != F64 or bool(np.all((np.isfinite(array) == np.isfinite(narrow)) &
                                             ((array == 0) == (narrow == 0))))


def through_f32(node, values, opset):
    others = (*HALVES, F64)
    if not any(array.dtype in others for array in values.values()):
        raise Refused("nothing of another type")
    if any(a.name in ("to", "dtype", "output_dtype") or a.type == a.GRAPH for a in node.attribute):
        raise Refused("states a type")
    kinds = declared(node, values, opset)
    with np.errstate(all="ignore"):
        wide = {name: array.astype(np.float32) if array.dtype in others else array for name, array in values.items()}
    if not all(fits(values[name], wide[name]) for name in values):
        raise Refused("numbers that f32 does not hold")
    results = by_onnxruntime(node, wide, opset)
    with np.errstate(all="ignore"):
        return [array.astype(kinds[name]) if array.dtype == np.float32 and name in kinds else array
                for array, name in zip(results, [n for n in node.output if n])]


# Their definitions hold numbers in f32, whatever the type.
COARSE = {"Attention", "HardSwish", "LayerNormalization", "GroupNormalization", "Gelu"}
RECURRENT = {"LSTM", "GRU", "RNN"}
# Over nothing, onnxruntime leaves the memory of these results as it is, or leaves out beta.
PRODUCTS = {"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"}


def agrees(results, others, within):
    same = lambda a, b: a.shape == b.shape and a.dtype == b.dtype and (
        np.isclose(a.astype(np.float64), b.astype(np.float64), within, within / 100, equal_nan=True).all())
    return all(same(np.asarray(a), np.asarray(b)) for a, b in zip(results, others))


def overflows(compute, node, results):
    """Is a number on the way that f32 does not hold? onnxruntime cuts it off there, though nobody asked it to. A cut
    far below makes other numbers then, or the last cell of an LSTM tells, whose activation may hide it."""
    if not all(np.isfinite(a).all() for a in results):
        return True
    if any(a.name == "clip" for a in node.attribute):
        return False
    cut = onnx.NodeProto()
    cut.CopyFrom(node)
    cut.attribute.append(helper.make_attribute("clip", 1e18))
    if not agrees(compute(cut), results, 1e-4):
        return True
    if node.op_type != "LSTM":
        return False
    names = [*cut.output, "", ""][:3]
    del cut.attribute[-1], cut.output[:]
    cut.output.extend(names[:2] + [names[2] or "the cell"])
    return bool((np.abs(compute(cut)[-1].astype(np.float64)) > 1e18).any())


def evaluate(node, values, opset, inside=False):
    """The results of a node, from the first that computes it, and whether a result in f64 is as coarse as f32. inside:
    of a body, which onnxruntime computes as a whole, so that it has to be right about the node."""
    operands = [values.get(name) for name in node.input]
    if node.op_type in WINDOWS and not texts.has_room(node, operands):
        raise Refused("windows that fit nowhere")
    left_out = known.not_drawn(node, operands)
    if left_out:
        raise Refused(left_out)
    who = [by_onnxruntime, through_f32]
    if node.op_type not in NOT_BY_ONNX and not known.not_by_onnx(node, operands):
        empty = node.op_type.startswith("Reduce") and 0 in operands[0].shape # which onnxruntime leaves as it is
        empty = empty or (node.op_type in PRODUCTS and any(x is not None and 0 in x.shape for x in operands))
        who.insert(0 if empty or node.op_type in BY_ONNX_FIRST else 2, by_onnx)
        who = who[:1] if empty else who
    reason = ""
    for one in who:
        try:
            results = one(node, values, opset)
        except Refused as refused:
            reason = reason or str(refused)
            continue
        again = lambda other, arrays: one(other, dict(zip([n for n in other.input if n], arrays)), opset)
        results = exact.results(node, operands, results, again)
        coarse = one is through_f32 or node.op_type in COARSE
        if inside:
            its = by_onnxruntime(node, values, opset)
            if known.is_open(node, operands) or not agrees(its, results, 1e-2) or any(
                    m is not None and m.any() for m in texts.is_open(node, operands, results) or []):
                raise Refused("open, or wrong in onnxruntime, which computes the body")
            coarse = coarse or not agrees(its, results, 1e-10)
        if node.op_type in RECURRENT and overflows(lambda other: one(other, values, opset), node, results):
            raise Refused("overflows, in onnxruntime also where the formula does not, and not where it does")
        return results, coarse
    raise Refused(reason)

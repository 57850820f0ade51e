# SPDX-License-Identifier: Apache-2.0
"""Writes pairs of products, one behind the other, in three forms of the same weights: DIR/<form>_<rows>_<k>x<n>.onnx.

    python bench/quantised_products.py DIR

i8: DequantizeLinear of i8, a scale for each column; f32: the same numbers as f32; bf16: these rounded to bf16, in f32.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def weights_of(rng, k, n):
    return rng.integers(-127, 128, (k, n)).astype(np.int8), (rng.random(n, np.float32) * 0.01 + 0.001) / np.sqrt(
        np.float32(k))


def write(path, form, rows, k, n):
    rng = np.random.default_rng(1)
    nodes, constants = [], []
    for i, (terms, columns) in enumerate([(k, n), (n, k)]):
        whole, scale = weights_of(rng, terms, columns)
        real = whole.astype(np.float32) * scale
        if form == "i8":
            constants += [numpy_helper.from_array(whole, f"w{i}"), numpy_helper.from_array(scale, f"s{i}")]
            nodes.append(helper.make_node("DequantizeLinear", [f"w{i}", f"s{i}"], [f"d{i}"], axis=1))
        else:
            mask = 0xFFFFFFFF if form == "f32" else 0xFFFF0000
            bits = real.view(np.uint32) & np.uint32(mask)
            constants.append(numpy_helper.from_array(bits.view(np.float32), f"d{i}"))
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"d{i}"], [f"x{i + 1}"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, k]) for name in ("x0", "x2")]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


folder = pathlib.Path(sys.argv[1])
for rows in (1, 2, 4, 8):
    for k in (4096, 1024):
        for form in ("i8", "f32", "bf16"):
            write(folder / f"{form}_{rows}_{k}x4096.onnx", form, rows, k, 4096)

# SPDX-License-Identifier: Apache-2.0
"""Products, quantisation, recurrent networks, attention, transforms."""
import numpy as np
from onnx import helper

from graph import BF16, BOOL, E4M3, E5M2, F16, F32, F64, FLOATS, I16, I32, I4, I64, I8, U16, U4, U8, is_float
from ops_reduce import axis_of
from registry import op

WIDTHS = [1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24, 32, 33, 48, 64, 65]


def width(g):
    return g.one(g.sizes[0]) if g.sizes[0] and g.chance(0.3) else g.one(WIDTHS)


def second_factor(g, x, low=None, high=None, dtype=None):
    """A matrix, or many, that x can be multiplied by."""
    dims = g.known_dims(x)
    if dims[-1] is None:
        return None
    batch = [1 if d is None or g.chance(0.3) else d for d in dims[:-2]]
    if g.chance(0.5):
        batch = batch[g.whole(0, len(batch)):]
    elif x.rank == 2 and g.chance(0.2):
        batch = [g.one([2, 3])]
    shape = [dims[-1]] if g.chance(0.08) else [*batch, dims[-1], width(g)]
    return g.fresh(dtype or x.dtype, shape, low, high)


@op(weight=8)
def matmul(g):
    dtype = g.one([F32] * 10 + g.types("MatMul"))
    x = g.pick([dtype], low=1, high=4)
    y = second_factor(g, x, *((-1, 1) if is_float(dtype) else (None, None)))
    if y:
        made = g.node("MatMul", [x, y])
        if made and made[0].rank and g.chance(0.3):
            n = g.known_dims(made[0])[-1]
            if n is not None:
                g.node("Add", [made[0], g.fresh(dtype, [n])])


@op(weight=4)
def gemm(g):
    dtype = g.one([F32] * 8 + g.types("Gemm"))
    x = g.pick([dtype], low=2, high=2)
    dims = g.known_dims(x)
    trans_a, trans_b = g.whole(0, 1), g.whole(0, 1)
    m, k = dims[::-1] if trans_a else dims
    n = width(g)
    if m is None or k is None:
        return
    w = g.fresh(dtype, [n, k] if trans_b else [k, n], *((-1, 1) if is_float(dtype) else (None, None)))
    c = g.one([None, g.fresh(dtype, g.one([[m, n], [n], [1, n], [m, 1], [1], [], [1, 1]]))])
    if c is None and g.opset < 11:
        return
    whole = not is_float(dtype)
    scalar = lambda: g.one([None, 1.0, 2.0] if whole else [None, 1.0, 0.5, -2.0, 0.0])
    g.node("Gemm", [x, w, c], transA=trans_a or g.one([None, 0]), transB=trans_b or g.one([None, 0]), alpha=scalar(),
           beta=scalar())


EINSUMS = ["ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ii", "ij->i", "i,j->ij", "bhid,bhjd->bhij", "...ij->...ji",
           "ij,ij->", "bij,jk", "ijk,k->ij", "...i,...i->...", "abc,cd,de->abe", "bn,anm,bm->ba", "ij, jk -> ik", "i,i"]


@op(weight=3)
def einsum(g):
    if not g.since("Einsum"):
        return
    equation = g.one(EINSUMS)
    extent, more = {}, g.dims(0, 2)
    operands = []
    for term in equation.split("->")[0].replace(" ", "").split(","):
        dims = []
        for letter in term.replace("...", "."):
            dims += more if letter == "." else [extent.setdefault(letter, g.one([1, 2, 3, 5, 8, *g.sizes[0]]))]
        if any(g.elements(dims, s) > 4000 for s in g.sizes):
            return
        operands.append(g.fresh(g.one([F32, F32]), dims))
    if len(set(v.dtype for v in operands)) == 1:
        g.node("Einsum", operands, equation=equation)


@op(weight=1)
def determinant(g):
    n = g.whole(1, 5)
    g.node("Det", [g.fresh(g.one([F32, F32, F64]), [*g.dims(0, 2), n, n], -2, 2)])


# --- quantised --------------------------------------------------------------------------------------------------------

@op(weight=3)
def matmul_integer(g):
    if not g.since("MatMulInteger"):
        return
    xt, yt = g.one([U8, U8, I8]), g.one([U8, I8, I8])
    x = g.fresh(xt, [*g.dims(0, 2), g.dim(), width(g)], 0 if xt == U8 else -100, 120, constant=False)
    y = second_factor(g, x, 0 if yt == U8 else -100, 120, yt)
    if y is None:
        return
    xz, yz = g.constant(g.data(xt, (), 0, 20)), g.constant(g.data(yt, (), 0, 20))
    columns = g.known_dims(y)[-1]
    if g.chance(0.4):
        if y.rank == 2 and isinstance(columns, int) and g.chance(0.3):
            yz = g.constant(g.data(yt, (columns,), 0, 20))
        g.node("MatMulInteger", [x, y, g.one([None, xz]), g.one([None, yz])])
        return
    scale = lambda: g.constant(np.float32(g.random.uniform(0.01, 0.2)))
    ys = scale()
    if y.rank == 2 and isinstance(columns, int) and g.chance(0.4):
        ys, yz = g.constant(g.data(F32, (columns,), 0.01, 0.2)), g.constant(np.zeros(columns, yt))
    g.node("QLinearMatMul", [x, scale(), xz, y, ys, yz, scale(), g.constant(g.data(xt, (), 0, 20))])


def scales_for(g, x, kind):
    """Scales of a whole value, of an axis, or of blocks: the shape and the attributes."""
    form = g.one(["one", "one", "axis", "axis"] + (["block"] if g.opset >= 21 else []))
    if form != "one" and x.rank and g.opset >= 13:
        axis = g.whole(0, x.rank - 1)
        if x.fixed(axis) and x.shape[axis]:
            stated = axis - x.rank if g.chance(0.3) else axis
            if form == "axis":
                return [x.shape[axis]], {"axis": stated}
            dims = g.known_dims(x)
            if None not in dims:
                block = g.whole(1, x.shape[axis])
                dims[axis] = -(-x.shape[axis] // block)
                if all(-(-x.shape[axis] // b) != dims[axis] or b >= block for b in range(1, block)):
                    return dims, {"axis": stated, "block_size": block}
    return g.one([[], [], [1]]) if g.opset < 13 else [], {}


@op(weight=4)
def quantize(g):
    if g.opset < 10:
        return
    new = g.opset >= 21
    to = g.one([U8, I8] + ([I16, U16, I4, U4] if new else []) + ([E4M3, E5M2] if g.opset >= 19 else []))
    floats = [F32, F32] + ([F16, BF16] if g.opset >= 19 else [])
    x = g.pick([g.one(floats)])
    dims, attributes = scales_for(g, x, to)
    scale = g.fresh(x.dtype, dims, 0.02, 0.3, constant=True)
    zero = g.fresh(to, dims, constant=True) if to not in (E4M3, E5M2) else g.constant(np.zeros(
        [d if isinstance(d, int) else 1 for d in dims], to))
    if to == U8 and g.chance(0.3):
        zero = None
    if to not in (U8, I8, I4, U4, U16, I16) and g.chance(0.5):
        attributes["saturate"] = g.whole(0, 1)
    if new and zero is None and g.chance(0.5):
        attributes["output_dtype"] = helper.np_dtype_to_tensor_dtype(to)
    made = g.node("QuantizeLinear", [x, scale, zero], **attributes)
    attributes.pop("saturate", None)
    attributes.pop("output_dtype", None)
    if made:
        g.node("DequantizeLinear", [made[0], scale, zero if zero or g.chance(0.5) else None], **attributes)


@op(weight=2)
def dequantize(g):
    if g.opset < 10:
        return
    kinds = [U8, I8, I32] + ([I16, U16, I4, U4] if g.opset >= 21 else []) + ([E4M3, E5M2] if g.opset >= 19 else [])
    kind = g.one(kinds)
    x = g.fresh(kind, g.dims(0, 4), constant=True if kind in (I4, U4, E4M3, E5M2) else None)
    dims, attributes = scales_for(g, x, kind)
    scale = g.fresh(g.one([F32, F32] + ([F16, BF16] if g.opset >= 19 else [])), dims, 0.02, 0.3)
    zero = None if kind in (E4M3, E5M2, I32) or g.chance(0.4) else g.fresh(kind, dims, constant=True)
    g.node("DequantizeLinear", [x, scale, zero], **attributes)


@op(weight=2)
def quantised_weights(g):
    """Few rows by weights of 8 bits that are large enough to be packed so: a scale for each column, or one for all."""
    if g.opset < 13:
        return
    kind, dims = g.one([I8, U8]), g.one([(512,), (512,), ()])
    weights = g.constant(g.data(kind, (520, 512), 0 if kind == U8 else -127, 127))
    zero = g.one([None, g.constant(g.data(kind, dims, 0, 20))])
    made = g.node("DequantizeLinear", [weights, g.constant(g.data(F32, dims, 0.001, 0.01)), zero],
                  **({"axis": 1} if dims else {}))
    if made:
        g.node("MatMul", [g.fresh(F32, [g.whole(1, 5), 520], -1, 1), made[0]])


@op(weight=1)
def dynamic_quantize(g):
    if not g.since("DynamicQuantizeLinear"):
        return
    x = g.pick([F32], good=lambda v: not v.empty() and all(np.asarray(a).any() for a in v.arrays))
    g.node("DynamicQuantizeLinear", [x], outputs=3)


# --- sequences --------------------------------------------------------------------------------------------------------

@op(weight=4)
def recurrent(g):
    name = g.one(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    dtype = F32 if g.chance(0.9) else g.one([d for d in g.types(name)])
    direction = g.one([None, "forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    layout = g.whole(0, 1) if g.opset >= 14 and g.chance(0.15) else 0
    size, hidden = g.one([1, 2, 3, 5, 8]), g.one([1, 2, 3, 4, 8, 9])
    length, batch = g.one([1, 2, 3, 6, *g.sizes[0]]), g.one([1, 2, 3, *g.sizes[0]])
    x = g.fresh(dtype, [batch, length, size] if layout else [length, batch, size], -2, 2, constant=False)
    constant = g.chance(0.8)
    w = g.fresh(dtype, [ways, gates * hidden, size], -1, 1, constant=constant)
    r = g.fresh(dtype, [ways, gates * hidden, hidden], -1, 1, constant=constant)
    b = g.one([None, g.fresh(dtype, [ways, 2 * gates * hidden], -1, 1, constant=constant)])
    steps = x.least(1 if layout else 0)
    lengths = g.fresh(I32, [batch], 1, steps) if g.chance(0.3) and steps > 0 else None
    state = lambda: g.fresh(dtype, [batch, ways, hidden] if layout else [ways, batch, hidden], -1, 1)
    operands = [x, w, r, b, lengths, g.one([None, state()])]
    if name == "LSTM":
        operands += [g.one([None, state()]), g.fresh(dtype, [ways, 3 * hidden], -1, 1) if g.chance(0.3) else None]
    attributes = {"direction": direction, "layout": layout or None, "clip": g.one([None, None, 0.5, 1.0])}
    if name == "LSTM":
        attributes["input_forget"] = g.one([None, 0, 1]) if g.chance(0.3) else None
    if name == "GRU":
        attributes["linear_before_reset"] = g.one([None, 0, 1])
    if g.chance(0.35):
        known = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid",
                 "Elu",
                 "Softsign", "Softplus"]
        count = ways * {"LSTM": 3, "GRU": 2, "RNN": 1}[name]
        names = [g.one(known) for _ in range(count)]
        attributes["activations"] = names
        # With numbers for every function that takes them, since what is meant by fewer is not said.
        both = {"Affine": (0.5, 0.1), "ScaledTanh": (0.7, 0.9), "HardSigmoid": (0.3, 0.4), "LeakyRelu": (0.1, 0),
                "ThresholdedRelu": (0.2, 0), "Elu": (0.6, 0)}
        if any(n in both for n in names):
            attributes["activation_alpha"] = [both.get(n, (0, 0))[0] for n in names]
            attributes["activation_beta"] = [both.get(n, (0, 0))[1] for n in names]
            if any(n not in both for n in names) or any(n in ("LeakyRelu", "ThresholdedRelu", "Elu") for n in names):
                attributes["activations"] = [n if n in ("Affine", "ScaledTanh", "HardSigmoid") else "Affine"
                                             for n in names]
                attributes["activation_alpha"] = [both[n][0] for n in attributes["activations"]]
                attributes["activation_beta"] = [both[n][1] for n in attributes["activations"]]
    outputs = [g.chance(0.7), g.chance(0.6)] + ([g.chance(0.5)] if name == "LSTM" else [])
    if not any(outputs):
        outputs[0] = True
    g.node(name, operands, outputs=outputs, hidden_size=hidden, **attributes)


@op(weight=4)
def attention(g):
    if g.opset < 23:
        return
    heads, shared = g.one([(1, 1), (2, 2), (4, 2), (6, 2), (4, 1), (3, 3)])
    depth, wide = g.one([1, 2, 4, 8, 16]), g.one([1, 4, 8])
    batch, rows, columns = g.one([1, 2, *g.sizes[0]]), g.one([1, 3, 5, 8, *g.sizes[0]]), g.one([1, 3, 5, 8, 16,
                                                                                                *g.sizes[0]])
    dtype = g.one([F32, F32, F32, F16, BF16, F64])
    flat = g.chance(0.3)
    make = lambda n, h, d: g.fresh(dtype, [batch, n, h * d] if flat else [batch, h, n, d], -1, 1, constant=False)
    q, k, v = make(rows, heads, depth), make(columns, shared, depth), make(columns, shared, wide)
    attributes = {"is_causal": g.one([None, 0, 1]), "scale": g.one([None, 0.5]),
                  "softcap": g.one([None, None, 0.0, 2.0])}
    if flat:
        attributes.update(q_num_heads=heads, kv_num_heads=shared)
    past = None
    if g.chance(0.25):
        more = g.whole(1, 4)
        past = [g.fresh(dtype, [batch, shared, more, d], -1, 1) for d in (depth, wide)]
    mask = None
    if g.chance(0.5) and isinstance(columns, int) and not past:
        shape = g.one([[rows, columns], [1, columns], [batch, 1, rows, columns], [batch, heads, rows, columns],
                       [1, 1, rows, columns]])
        if g.chance(0.4):
            mask = g.fresh(BOOL, shape, constant=False)
            mask = g.value("Or", [mask, g.constant(np.eye(1, columns, dtype=bool))])
        else:
            mask = g.fresh(dtype, shape, -2, 2)
    outputs = [True, bool(past), bool(past), g.chance(0.15)]
    if outputs[3]:
        attributes["qk_matmul_output_mode"] = g.one([None, 0, 1, 2, 3])
        if not past:
            outputs = [True] if g.chance(0.5) else [True, False, False, True]
    g.node("Attention", [q, k, v, mask, *(past or [])], outputs=outputs, **attributes)


@op(weight=2)
def rotary(g):
    if g.opset < 23:
        return
    heads, depth = g.one([1, 2, 3]), g.one([2, 4, 8])
    batch, rows = g.whole(1, 3), g.whole(1, 5)
    flat = g.chance(0.3)
    dtype = g.one([F32, F32, F16, BF16])
    x = g.fresh(dtype, [batch, rows, heads * depth] if flat else [batch, heads, rows, depth], constant=False)
    part = g.one([0, 0, depth // 2 if depth >= 4 else 0])
    half = (part or depth) // 2
    if half == 0:
        return
    places = g.fresh(I64, [batch, rows], 0, 9) if g.chance(0.6) else None
    table = [10, half] if places else [batch, rows, half]
    cosines, sines = (g.fresh(dtype, table, -1, 1) for _ in range(2))
    g.node("RotaryEmbedding", [x, cosines, sines, places], interleaved=g.one([None, 0, 1]),
           num_heads=heads if flat else None, rotary_embedding_dim=part or g.one([None, 0]))


@op(weight=2)
def transforms(g):
    name = g.one(["DFT", "STFT", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"])
    if not g.since(name):
        return
    if name == "MelWeightMatrix":
        numbers = [g.whole(1, 8), g.one([16, 32]), 8000]
        g.node(name, [*[g.constant(np.int64(n)) for n in numbers], g.constant(np.float32(g.one([0, 100]))),
                      g.constant(np.float32(4000))])
        return
    if name.endswith("Window"):
        g.node(name, [g.constant(np.int64(g.whole(1, 20)))], periodic=g.one([None, 0, 1]))
        return
    if name == "STFT":
        length, frame = g.whole(8, 24), g.one([2, 4, 8])
        x = g.fresh(F32, [g.whole(1, 3), length, 1], constant=False)
        window = g.fresh(F32, [frame]) if g.chance(0.5) else None
        g.node(name, [x, g.constant(np.int64(g.one([1, 2, 3, 4]))), window, g.constant(np.int64(frame))],
               onesided=g.one([None, 0, 1]))
        return
    complex_in = g.chance(0.4)
    x = g.fresh(g.one([F32, F32, F64]), [*g.dims(1, 3), 2 if complex_in else 1], constant=False)
    if x.empty():
        return
    axis = g.whole(0, x.rank - 2)
    length = g.one([None, g.constant(np.int64(g.whole(1, 12)))])
    inverse = g.one([None, 0, 1]) if complex_in else None
    onesided = g.one([None, 0, 1]) if not complex_in else None
    if g.opset >= 20:
        g.node(name, [x, length, g.one([None, g.constant(np.int64(axis))]) if axis == x.rank - 2 else
                      g.constant(np.int64(axis))], inverse=inverse, onesided=onesided)
    else:
        g.node(name, [x, length], axis=axis, inverse=inverse, onesided=onesided)


@op(weight=1)
def boxes_kept(g):
    if not g.since("NonMaxSuppression"):
        return
    batch, count, classes = g.whole(1, 2), g.whole(1, 8), g.whole(1, 3)
    corners = g.numbers.random((batch, count, 2, 2)) * 4
    rows = np.concatenate([corners.min(2), corners.max(2)], -1).astype(np.float32)
    if g.chance(0.3):
        rows[:, :, [0, 2]] = rows[:, :, [2, 0]]
    scores = g.numbers.permutation(batch * classes * count).reshape(batch, classes, count).astype(np.float32) / 50
    name = g.name("x")
    g.inputs.append((name, F32, list(rows.shape)))
    boxes = g.add(name, [rows] * len(g.sizes))
    limits = [g.constant(np.int64(g.whole(1, 4))), g.constant(np.float32(g.one([0.3, 0.5, 0.0]))),
              g.one([None, g.constant(np.float32(0.1))])]
    g.node("NonMaxSuppression", [boxes, g.constant(scores), *limits], center_point_box=g.one([None, 0, 1]))

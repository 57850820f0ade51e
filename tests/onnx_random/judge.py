# SPDX-License-Identifier: Apache-2.0
"""Results beside what was expected, within bounds that noise shows.

What agrees to a few roundings is right. Where something does not, the model is computed again, node by node, with each
operand and each result of an inexact node moved by about a rounding: how far an element moves is how far it may be off,
and one that changes its kind (a number that becomes infinite, a comparison that flips) says nothing. So a cancellation
or an ill-conditioned determinant excuses as much as it must, and no op is excused by decree.
"""
import ml_dtypes
import numpy as np

import texts
from graph import BF16, F16, F32, F64, I4, U4, is_float
from reference import Refused, evaluate, reads

ROUNDING = {F64: 2.0 ** -52, F32: 2.0 ** -23, F16: 2.0 ** -10, BF16: 2.0 ** -7}
TINY = {F64: 1e-300, F32: 1e-36, F16: 2.0 ** -23, BF16: 1e-36}
# What is computed by other formulas, whose errors go with the largest element and not with each.
NORMWISE = {"Conv", "ConvTranspose", "DFT", "STFT", "Det", "MatMul", "Gemm", "Einsum", "DeformConv", "Resize", "LRN",
            "GridSample", "CumSum", "AveragePool", "Attention", "RoiAlign", "Loop", "Scan", "If"}
# Of which parts as large as 1 cancel.
ABSOLUTE = {"Sigmoid", "Gelu", "BlackmanWindow", "HannWindow", "HammingWindow", "Selu", "Elu", "Celu", "Mish",
            "Softplus",
            "HardSwish", "LogSoftmax", "ReduceLogSumExp", "RNN", "GRU", "LSTM", "HardSigmoid",
            "SoftmaxCrossEntropyLoss"}
CENTRED = {"LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization"}
SAMPLES, LAST_SAMPLES, MOVE, SAFETY = 4, 40, 4.0, 6.0


def kind(array):
    """NaN, the infinities, the rest."""
    return np.where(np.isnan(array), 3, np.where(np.isposinf(array), 2, np.where(np.isneginf(array), 1, 0)))


def wide(array):
    return np.asarray(array).astype(np.float64)


def rounding_of(dtype, coarse):
    return max(ROUNDING[dtype], ROUNDING[F32] if coarse else 0)


def is_near(got, want, coarse=False):
    """Elements that agree to a few roundings."""
    if not is_float(want.dtype):
        return got == want
    a, b = wide(got), wide(want)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= 4 * rounding_of(want.dtype, coarse) * np.abs(b) + TINY[F32 if coarse else want.dtype]
    return np.where((kind(a) == 0) & (kind(b) == 0), near, kind(a) == kind(b))


def moved(numbers, array, dtype_rounding, normwise, floor=0.0):
    with np.errstate(all="ignore"):
        x = wide(array)
        y = x * (1 + MOVE * dtype_rounding * numbers.uniform(-1, 1, x.shape))
        if normwise:
            floor = max(floor, np.abs(x[np.isfinite(x)]).max(initial=0))
        if floor:
            y = y + MOVE * dtype_rounding * floor * numbers.uniform(-1, 1, x.shape)
        return np.asarray(y.astype(array.dtype))


def inner_ops(node):
    return [op for a in node.attribute if a.type == a.GRAPH for inner in a.g.node
            for op in [inner.op_type, *inner_ops(inner)]]


# From this operand on, numbers say how long something is.
STEERING = {"Resize": 1, "Range": 0, "OneHot": 1, "NonMaxSuppression": 2, "MelWeightMatrix": 0}


class Noise:
    """How far each value may be off at one of the sizes."""

    def __init__(self, nodes, opset, given, trial, winograd=1):
        self.winograd = winograd # times the rounding of a convolution's formula
        self.nodes, self.opset, self.given, self.trial = nodes, opset, given, trial
        self.numbers = np.random.default_rng(1)
        self.spread, self.unstable, self.samples = {}, {}, 0

    def sample(self):
        values = dict(self.given)
        for node, operands, made in self.nodes:
            names = reads(node)
            noisy = not made[0].exact and node.op_type not in QUIET if made else False
            steering = set(node.input[STEERING.get(node.op_type, 99):])
            coarse = bool(made) and made[0].coarse
            inputs = {n: moved(self.numbers, values[n], rounding_of(values[n].dtype, coarse), False)
                      if noisy and is_float(values[n].dtype) and n in node.input and n not in steering else values[n]
                      for n in names}
            try:
                results, _ = evaluate(node, inputs, self.opset)
            except Refused: # of these operands: it keeps its numbers, and hands no noise on
                results = [value.arrays[self.trial] for value in made]
            for value, array in zip(made, results):
                base = value.arrays[self.trial]
                if noisy and is_float(array.dtype):
                    floor = self.floor(node, [inputs.get(n) for n in node.input])
                    rounding = rounding_of(array.dtype, coarse) * (self.winograd if node.op_type == "Conv" else 1)
                    array = moved(self.numbers, array, rounding, node.op_type in NORMWISE, floor)
                if node.op_type in ("Cast", "CastLike") and array.dtype == bool and is_float(operands[0].dtype):
                    zero = self.may_be_zero(operands[0])
                    array = np.where(zero, self.numbers.random(array.shape) < 0.5, array)
                if node.op_type in ("Reciprocal", "Div") and is_float(array.dtype) and node.input[-1] in self.spread:
                    pole = np.broadcast_to(inputs[node.input[-1]] == 0, array.shape) # a computed 0 has either sign
                    array = np.where(pole & (self.numbers.random(array.shape) < 0.5), -array, array)
                array = self.divided(node, {v.name: v for v in operands}, inputs, array)
                array = self.open(node, [inputs.get(n) for n in node.input], results, array, len(node.output))
                values[value.name] = array
                self.compare(value.name, base, array)
        self.samples += 1

    def may_be_zero(self, value):
        reach = SAFETY * self.spread.get(value.name, 0)
        return (reach > 0) & (reach >= np.abs(wide(value.arrays[self.trial])))

    def divided(self, node, operands, inputs, array):
        """What noise divides by may be rounded to 0, in 16 bits before it is infinitely small: half of the samples are
        infinite there."""
        place = {"Reciprocal": 0, "Div": 1, "Pow": 0}.get(node.op_type)
        if place is None or not is_float(array.dtype):
            return array
        zero = self.may_be_zero(operands[node.input[place]])
        if node.op_type == "Pow":
            zero = zero & (wide(inputs[node.input[1]]) < 0)
        pole = np.broadcast_to(zero, array.shape) & (self.numbers.random(array.shape) < 0.5)
        return np.where(pole, np.asarray(np.inf, array.dtype), array)

    @staticmethod
    def floor(node, operands):
        """The size of the numbers that cancel on the way: errors go with those."""
        if node.op_type in ABSOLUTE or any(inner in ABSOLUTE for inner in inner_ops(node)):
            return 1.0
        if node.op_type not in CENTRED or operands[0].size == 0:
            return 0.0
        x = np.abs(wide(operands[0])).max()
        scale = np.abs(wide(operands[1])).max(initial=0) if len(operands) > 1 and operands[1] is not None else 1.0
        rows, rank = wide(operands[0]), operands[0].ndim
        facts = texts.attributes_of(node, axis=-1, axes=[0, 2, 3], epsilon=1e-5)
        if node.op_type == "MeanVarianceNormalization":
            spread, facts["epsilon"] = rows.var(tuple({a % rank for a in facts["axes"]})).min(), 0
        else:
            first = facts["axis"] % rank if node.op_type == "LayerNormalization" else 2
            spread = rows.reshape([int(np.prod(rows.shape[:first])), -1]).var(1).min() if first else rows.var()
        return min(x * scale / np.sqrt(spread + facts["epsilon"] + 1e-12), 1e4)

    def open(self, node, operands, results, array, count):
        """Where ONNX leaves the number open it is another one in each sample."""
        masks = texts.is_open(node, operands, results)
        for result, mask in zip(results, masks or []):
            if mask is not None and mask.shape == array.shape and mask.any():
                limits = None if is_float(array.dtype) else (
                    ml_dtypes if array.dtype in (I4, U4) else np).iinfo(array.dtype)
                numbers = [0, limits.min, limits.max, 1] if limits else [0, 1, np.nan, np.inf]
                choices = np.array(numbers, array.dtype)
                return np.where(mask, self.numbers.choice(choices, array.shape), array)
        return array

    def compare(self, name, base, array):
        if array.shape != base.shape:
            self.unstable[name] = np.ones(base.shape, bool)
            return
        if not is_float(base.dtype):
            self.unstable[name] = self.unstable.get(name, False) | (wide(array) != wide(base))
            return
        a, b = wide(array), wide(base)
        with np.errstate(all="ignore"):
            distance = np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b), 0)
        self.spread[name] = np.maximum(self.spread.get(name, 0), distance)
        self.unstable[name] = self.unstable.get(name, False) | (kind(a) != kind(b))

    def wrong(self, value, got):
        """Elements beyond what noise explains."""
        want = value.arrays[self.trial]
        bad = ~is_near(got, want, value.coarse) & ~self.unstable.get(value.name, np.zeros(want.shape, bool))
        if not is_float(want.dtype):
            return bad
        a, b = wide(got), wide(want)
        with np.errstate(all="ignore"):
            allowed = SAFETY * self.spread.get(value.name, 0)
            allowed = allowed + 8 * rounding_of(want.dtype, value.coarse) * np.abs(b)
            allowed = allowed + SAFETY * TINY[F32 if value.coarse else want.dtype]
            inside = np.abs(a - b) <= allowed
        # Noise as large as the number itself: what it is divided into may be 0.
        pole = (kind(b) == 0) & (kind(a) != 0) & (allowed >= np.abs(b)) & (np.abs(b) > 1e6)
        return bad & ~((kind(a) == 0) & (kind(b) == 0) & inside) & ~pole


QUIET = {"Identity", "Reshape", "Transpose", "Cast"} | set("""Squeeze Unsqueeze Flatten Concat Split Slice Pad Tile
Expand
Gather GatherElements GatherND Shape Size Abs Neg Sign Ceil Floor Round Relu Max Min Where Greater Less Equal ArgMax
ArgMin
TopK ReduceMax ReduceMin MaxPool GlobalMaxPool Hardmax IsNaN IsInf Clip Dropout NonZero Trilu DepthToSpace SpaceToDepth
CastLike Compress CenterCropPad OneHot ReverseSequence Not And Or Xor GreaterOrEqual LessOrEqual""".split())


class Wrong:
    def __init__(self, output, trial, text):
        self.output, self.trial, self.text = output, trial, text


def describe(got, want, bad):
    places = np.argwhere(bad)
    first = [tuple(int(i) for i in place) for place in places[:4]]
    pairs = ", ".join(f"{list(p)}: {got[p]} for {want[p]}" for p in first)
    return f"{len(places)} of {want.size} elements wrong: {pairs}"


def judge(nodes, outputs, opset, given, answer):
    """The first output that is wrong, or None. given: for each trial the arrays that no node computes."""
    for trial, results in enumerate(answer.trials):
        if isinstance(results, tuple):
            return Wrong(None, trial, f"error in {results[0]}: {results[2]}")
        noise = None
        for i, (value, got) in enumerate(zip(outputs, results)):
            want = value.arrays[trial]
            if got.dtype != want.dtype:
                return Wrong(i, trial, f"elements are {got.dtype} instead of {want.dtype}")
            if got.shape != want.shape and got.shape[:1] == want.shape[:1] == (0,) and got.ndim == want.ndim and \
                    any(node.op_type == "Loop" for node, _, _ in nodes):
                continue # collected in no trips: nobody says what the other extents are
            if got.shape != want.shape:
                if noise is None:
                    noise = Noise(nodes, opset, given[trial], trial, answer.winograd)
                    while noise.samples < SAMPLES:
                        noise.sample()
                if not noise.unstable.get(value.name, np.zeros(1, bool)).any():
                    return Wrong(i, trial, f"shape {list(got.shape)} instead of {list(want.shape)}")
                continue
            if is_near(got, want, value.coarse).all():
                continue
            noise = noise or Noise(nodes, opset, given[trial], trial, answer.winograd)
            bad = None
            for count in (SAMPLES, LAST_SAMPLES):
                while noise.samples < count:
                    noise.sample()
                bad = noise.wrong(value, got)
                if not bad.any():
                    break
            if bad.any():
                return Wrong(i, trial, describe(got, want, bad))
    if answer.again:
        return Wrong(None, 0, answer.again[2])
    return None

# SPDX-License-Identifier: Apache-2.0
"""A model while it is drawn: values with what they hold at each size, and nodes that have been computed.

A node joins the model once others have computed it at every size (reference.py); what they refuse is left out. So every
drawn model is legal, and the arrays of each value are at hand for whoever draws the next attribute.
"""
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

from reference import BF16, F16, Refused, evaluate, reads

MOST_ELEMENTS = 30000
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
I64, I32, I16, I8 = (np.dtype(t) for t in (np.int64, np.int32, np.int16, np.int8))
U64, U32, U16, U8 = (np.dtype(t) for t in (np.uint64, np.uint32, np.uint16, np.uint8))
BOOL = np.dtype(np.bool_)
I4, U4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
FLOATS = (F32, F64, F16, BF16)
INTEGERS = (I64, I32, I16, I8, U64, U32, U16, U8)
TYPES = (*FLOATS, *INTEGERS, BOOL)
BY_TEXT = {"float": F32, "double": F64, "float16": F16, "bfloat16": BF16, "int64": I64, "int32": I32, "int16": I16,
           "int8": I8, "uint64": U64, "uint32": U32, "uint16": U16, "uint8": U8, "bool": BOOL}
EXTENTS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 15, 16, 17, 24, 31, 33)


def is_float(dtype):
    return dtype in FLOATS


class Value:
    """exact: one number, however it is computed. coarse: known to f32's rounding only, in f64 too. vague: of a shape
    that ONNX leaves open, so no operand."""

    def __init__(self, name, arrays, constant=False, exact=True, coarse=False):
        self.name, self.arrays, self.constant, self.exact, self.coarse = name, arrays, constant, exact, coarse
        self.uses, self.vague = 0, False

    dtype = property(lambda self: self.arrays[0].dtype)
    rank = property(lambda self: self.arrays[0].ndim)
    shape = property(lambda self: self.arrays[0].shape) # at the first size
    shapes = property(lambda self: [a.shape for a in self.arrays])

    def fixed(self, axis):
        return len({a.shape[axis] for a in self.arrays}) == 1

    def wild(self):
        """Numbers of which further ops make only infinities and NaN."""
        return is_float(self.dtype) and not all(
            np.all(np.abs(np.asarray(a, np.float64)) < 3e3) for a in self.arrays if a.size)

    def least(self, axis):
        return min(a.shape[axis] for a in self.arrays)

    def empty(self):
        return any(a.size == 0 for a in self.arrays)


class Graph:
    """seed decides everything. sizes: for each trial the number that each symbol stands for; [{}]: none."""

    def __init__(self, seed, opset, sizes, outer=None, prefix=""):
        self.random = random.Random(seed) if outer is None else outer.random
        self.numbers = np.random.default_rng(seed) if outer is None else outer.numbers
        self.opset, self.sizes, self.outer, self.prefix = opset, sizes, outer, prefix
        self.values, self.nodes, self.inputs, self.initializers = [], [], [], []
        self.count = 0
        self.refused = {} if outer is None else outer.refused

    # --- chance -------------------------------------------------------------------------------------------------------

    def chance(self, p):
        return self.random.random() < p

    def one(self, choices):
        choices = list(choices)
        if not choices:
            raise Refused("nothing to choose from")
        return self.random.choice(choices)

    def whole(self, low, high):
        if high < low:
            raise Refused("nothing to choose from")
        return self.random.randint(low, high)

    def some(self, choices, least=0, most=None):
        choices = list(choices)
        most = len(choices) if most is None else min(most, len(choices))
        count = self.whole(min(least, most), most)
        return self.random.sample(choices, count)

    def real(self):
        return self.one([0.0, 1.0, -1.0, 0.5, 2.0, 0.1, -0.25, 3.0, self.random.uniform(-2, 2)])

    # --- values -------------------------------------------------------------------------------------------------------

    def name(self, stem="v"):
        self.count += 1
        return f"{self.prefix}{stem}{self.count}"

    def add(self, name, arrays, **facts):
        value = Value(name, arrays, **facts)
        self.values.append(value)
        return value

    def data(self, dtype, shape, low=None, high=None, special=False):
        """Numbers of a kind that is drawn; between bounds if they are given. special: NaN, infinities and the like,
        too."""
        n = self.numbers
        if dtype == BOOL:
            return n.random(shape) < self.one([0.5, 0.5, 0.1, 0.9])
        if dtype in (*INTEGERS, I4, U4):
            signed = dtype.kind == "i" or dtype == I4
            low = (-6 if signed else 0) if low is None else low
            high = 6 if high is None else high
            wide = dtype in (I8, U8) and (low, high) in ((-6, 6), (0, 6)) and self.chance(0.4)
            if wide:
                low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            return np.asarray(n.integers(low, high + 1, shape)).astype(dtype)
        kind = self.one(["normal", "normal", "uniform", "whole", "half", "special"])
        if low is not None:
            array = n.uniform(low, high, shape)
        elif kind == "normal":
            array = n.normal(0, self.one([1, 1, 0.1, 5]), shape)
        elif kind == "uniform":
            array = n.uniform(-1, 1, shape)
        elif kind in ("whole", "half"):
            array = n.integers(-6, 7, shape) * (1.0 if kind == "whole" else 0.5)
        else:
            array = n.normal(0, 1, shape)
            if special:
                numbers = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40, 65504.0, 0.5, 2.5])
                array = np.where(n.random(shape) < 0.15, n.choice(numbers, shape), array)
        with np.errstate(all="ignore"):
            return np.asarray(array).astype(dtype)

    def dim(self):
        if self.sizes[0] and self.chance(0.5):
            return self.one(self.sizes[0])
        return 0 if self.chance(0.012) else self.one(EXTENTS)

    def dims(self, low, high):
        """A shape: numbers and symbols, of few elements."""
        for _ in range(100):
            dims = [self.dim() for _ in range(self.whole(low, high))]
            if all(self.elements(dims, sizes) <= 4000 for sizes in self.sizes):
                return dims
        return [1] * low

    @staticmethod
    def elements(dims, sizes):
        return int(np.prod([sizes.get(d, d) for d in dims], dtype=np.int64)) if dims else 1

    def shape_of(self, dims, sizes):
        return tuple(sizes[d] if isinstance(d, str) else d for d in dims)

    def known_dims(self, value):
        """Its extents as numbers and symbols; None for one that is neither."""
        dims = []
        for axis in range(value.rank):
            extents = [a.shape[axis] for a in value.arrays]
            names = [s for s in self.sizes[0] if [sizes[s] for sizes in self.sizes] == extents]
            dims.append(names[0] if names else extents[0] if len(set(extents)) == 1 else None)
        return dims

    def constant(self, array, exact=True):
        name = self.name("c")
        array = np.asarray(array)
        if self.outer is not None or self.chance(0.15):
            node = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array, name))
            value = self.add(name, [array] * len(self.sizes), constant=True, exact=exact)
            self.nodes.append((node, [], [value]))
            return value
        self.initializers.append(numpy_helper.from_array(array, name))
        return self.add(name, [array] * len(self.sizes), constant=True, exact=exact)

    def input(self, dtype, dims, low=None, high=None, special=False):
        if self.outer is not None: # a body has no inputs but its own
            value = self.outer.fresh(dtype, dims, low, high, special=special)
            self.values.append(value)
            return value
        name = self.name("x")
        arrays = [self.data(dtype, self.shape_of(dims, sizes), low, high, special) for sizes in self.sizes]
        self.inputs.append((name, dtype, dims))
        return self.add(name, arrays)

    def fresh(self, dtype, dims, low=None, high=None, constant=None, special=False):
        """A new input or constant."""
        fixed = all(isinstance(d, int) for d in dims)
        if fixed and (constant or (constant is None and self.chance(0.45))):
            return self.constant(self.data(dtype, tuple(dims), low, high, special))
        return self.input(dtype, dims, low, high, special)

    def pick(self, dtypes=TYPES, low=0, high=5, good=None, tame=True):
        """A value of such a type and rank, an earlier one if there is."""
        dtypes = [d for d in dtypes]
        fits = [v for v in self.values if v.dtype in dtypes and low <= v.rank <= high and (good is None or good(v))
                and not v.vague and (not tame or not v.constant or self.chance(0.2))]
        if tame:
            fits = [v for v in fits if not v.wild()]
        if fits and self.chance(0.8):
            weights = [3 if v.uses == 0 else 1 for v in fits]
            return self.random.choices(fits, weights)[0]
        for _ in range(10):
            dtype = self.one(dtypes) if F32 not in dtypes or self.chance(0.4) else F32
            value = self.fresh(dtype, self.dims(low, high), special=not tame)
            if good is None or good(value):
                return value
        raise Refused("no such value")

    def like(self, value, dtype=None, both=True, low=None, high=None):
        """A value that broadcasts with another one: of its shape, or with ones, fewer axes, or more if `both`."""
        dtype = dtype or value.dtype
        same = [v for v in self.values if v.dtype == dtype and v.shapes == value.shapes and not v.wild()
                and not v.vague]
        if low is None and same and self.chance(0.4):
            return self.one(same)
        dims = self.known_dims(value)
        dims = [1 if d is None or self.chance(0.25) else d for d in dims]
        if dims and self.chance(0.3):
            dims = dims[self.whole(0, len(dims)):]
        elif both and len(dims) < 5 and self.chance(0.1) and max(a.size for a in value.arrays) < 2000:
            dims = [self.one([1, 2, 3])] + dims
        return self.fresh(dtype, dims, low, high)

    def numbers_of(self, array, dtype=I64):
        """Integers that steer a node: a constant, or computed from constants."""
        array = np.asarray(array, dtype)
        value = self.constant(array)
        if self.chance(0.1):
            made = self.node("Identity", [value])
            return made[0] if made else value
        return value

    # --- nodes --------------------------------------------------------------------------------------------------------

    def node(self, op, inputs, outputs=1, exact=False, **attributes):
        """Computes a node and adds it; its results, or None where others refuse it. Inputs may be None; `outputs` is a
        number, or a list of flags for optional ones."""
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        names = [self.name() if w else "" for w in wanted]
        while len(names) > 1 and not names[-1]:
            names.pop()
        operands = [v.name if v else "" for v in inputs]
        while operands and not operands[-1]:
            operands.pop()
        node = helper.make_node(op, operands, names, **{k: v for k, v in attributes.items() if v is not None})
        results = self.compute(node)
        if results is None:
            return None
        for v in inputs:
            if v:
                v.uses += 1
        return self.join(node, results, exact)

    def value(self, op, inputs, **attributes):
        """The only result of a node without which there is nothing more to draw."""
        made = self.node(op, inputs, **attributes)
        if made is None:
            raise Refused(op + " of this type")
        return made[0]

    def find(self, name):
        graph = self
        while graph is not None:
            for value in graph.values:
                if value.name == name:
                    return value
            graph = graph.outer
        raise KeyError(name)

    def compute(self, node):
        """The results at each size, or None."""
        names = reads(node)
        trials = []
        for trial in range(len(self.sizes)):
            try:
                values = {n: self.find(n).arrays[trial] for n in names}
                results, coarse = evaluate(node, values, self.opset, inside=self.outer is not None)
                self.coarse = coarse or (trial > 0 and self.coarse)
            except Refused as refused:
                self.refused.setdefault(node.op_type, []).append(str(refused)[:300])
                return None
            if any(a.size > MOST_ELEMENTS or a.ndim > 8 or np.dtype(a.dtype) not in KNOWN for a in results):
                return None
            trials.append(results)
        if any([a.dtype for a in t] != [a.dtype for a in trials[0]]
               or [a.ndim for a in t] != [a.ndim for a in trials[0]]
               for t in trials):
            return None
        return [list(arrays) for arrays in zip(*trials)]

    def join(self, node, results, exact):
        operands = [self.find(n) for n in reads(node)]
        exact = all(v.exact for v in operands) and (exact or node.op_type in EXACT or
                                                    not any(is_float(v[0].dtype) for v in results))
        halves = node.op_type == "QuantizeLinear" and operands[0].dtype in (F16, BF16) # the quotient may have 16 bits
        if halves or node.op_type in ("QLinearConv", "QLinearMatMul"): # three scales are multiplied in any order
            exact = False
        coarse = self.coarse or any(v.coarse for v in operands)
        made = [self.add(name, arrays, exact=exact, coarse=coarse) for name,
                arrays in zip([n for n in node.output if n], results)]
        self.nodes.append((node, operands, made))
        return made

    # --- the whole ----------------------------------------------------------------------------------------------------

    def since(self, op):
        """The version of the op that this opset has; 0: none."""
        try:
            return onnx.defs.get_schema(op, self.opset).since_version
        except onnx.defs.SchemaError:
            return 0

    def types(self, op, position=0):
        """The types that the schema allows for an input, and weft has."""
        schema = onnx.defs.get_schema(op, self.opset)
        texts = sorted(schema.inputs[min(position, len(schema.inputs) - 1)].types) # a set, in any order
        return [BY_TEXT[t[7:-1]] for t in texts if t.startswith("tensor(") and t[7:-1] in BY_TEXT]


KNOWN = {*TYPES, I4, U4, E4M3, E5M2}

# What is one number, however it is computed: moves, choices, comparisons.
EXACT = set("""Identity Reshape Transpose Squeeze Unsqueeze Flatten Concat Split Slice Pad Tile Expand Gather
GatherElements GatherND DepthToSpace SpaceToDepth Trilu EyeLike OneHot ReverseSequence Compress NonZero Shape Size
CenterCropPad Constant ConstantOfShape Cast CastLike Abs Neg Sign Ceil Floor Round Relu Max Min Where Not And Or Xor
Equal
Greater Less GreaterOrEqual LessOrEqual ArgMax ArgMin TopK ReduceMax ReduceMin MaxPool GlobalMaxPool MaxUnpool Hardmax
IsNaN IsInf Clip Dropout Unique BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift If
""".split())

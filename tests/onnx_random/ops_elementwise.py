# SPDX-License-Identifier: Apache-2.0
"""Ops of one element each: unary, binary with broadcasting, variadic, casts, choices."""
from graph import BOOL, FLOATS, I32, I64, INTEGERS, TYPES, is_float
from registry import op

UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Reciprocal Round Sigmoid Sign Sin
Sinh
Softplus Softsign Sqrt Tan Tanh Relu Not BitwiseNot IsNaN HardSwish Mish Identity""".split()
POSITIVE = {"Log": (0.05, 6), "Sqrt": (0, 6), "Acosh": (1, 6)}
BOUNDED = ("Acos", "Asin", "Atanh")


@op(weight=10)
def unary(g):
    name = g.one([u for u in UNARY if g.since(u)])
    x = g.pick(g.types(name), tame=g.chance(0.8) and name not in ("IsNaN", "Identity"))
    if name in POSITIVE and g.chance(0.8):
        x = g.fresh(x.dtype, g.dims(0, 4), *POSITIVE[name])
    if name in BOUNDED and g.chance(0.8):
        x = g.fresh(x.dtype, g.dims(0, 4), -1, 1)
    g.node(name, [x])


@op(weight=4)
def activation(g):
    name = g.one(["Celu", "Elu", "HardSigmoid", "LeakyRelu", "Selu", "ThresholdedRelu", "Shrink", "Gelu", "Swish",
                  "IsInf", "PRelu"])
    if not g.since(name):
        return
    x = g.pick(g.types(name), tame=g.chance(0.8) and name != "IsInf")
    few = {"Celu": ["alpha"], "Elu": ["alpha"], "LeakyRelu": ["alpha"], "ThresholdedRelu": ["alpha"],
           "HardSigmoid": ["alpha", "beta"], "Selu": ["alpha", "gamma"], "Shrink": ["bias", "lambd"],
           "Swish": ["alpha"]}
    attributes = {a: g.real() for a in few.get(name, []) if g.chance(0.7)}
    if name == "Celu" and not attributes.get("alpha", 1):
        attributes = {}
    if name == "Gelu" and g.chance(0.7):
        attributes["approximate"] = g.one(["none", "tanh"])
    if name == "IsInf":
        attributes = {a: g.whole(0, 1) for a in ("detect_negative", "detect_positive") if g.chance(0.6)}
    operands = [x]
    if name == "PRelu":
        operands.append(g.like(x, both=False))
    g.node(name, operands, **attributes)


@op(weight=3)
def clip(g):
    if g.opset < 11:
        return
    x = g.pick(g.types("Clip"), tame=g.chance(0.8))
    low, high = sorted([g.whole(-4, 4), g.whole(-4, 4)])
    if x.dtype.kind == "u":
        low, high = abs(low), abs(low) + abs(high)
    bounds = [g.constant(g.data(x.dtype, (), b, b)) if g.chance(0.75) else None for b in (low, high)]
    g.node("Clip", [x, *bounds])


@op(weight=12)
def binary(g):
    names = ["Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual",
             "LessOrEqual",
             "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Add", "Sub", "Mul"]
    name = g.one([n for n in names if g.since(n)])
    x = g.pick(g.types(name), tame=name not in ("Equal", "Greater", "Less"))
    if name == "Div":
        low, high = (1, 6) if x.dtype in INTEGERS or g.chance(0.5) else (-3, -0.3)
        y = g.like(x, low=low, high=high)
    else:
        y = g.like(x)
    operands = [x, y]
    if name != "Div" and g.chance(0.3):
        operands.reverse()
    g.node(name, operands)


@op(weight=2)
def power(g):
    x = g.pick(g.types("Pow"))
    kinds = g.types("Pow", 1) if g.opset >= 12 else [x.dtype]
    dtype = g.one(kinds)
    real = is_float(dtype) and is_float(x.dtype)
    if g.chance(0.6):
        exponent = g.one([2, 3, 0, 1] + ([0.5, -1, -2, 1.5, -0.5] if real else []))
        y = g.constant(g.data(dtype, g.one([(), (1,)]), exponent, exponent))
    else:
        y = g.like(x, dtype=dtype, low=0, high=3)
    if is_float(x.dtype) and g.chance(0.5):
        x = g.fresh(x.dtype, g.dims(0, 4), 0.1, 3)
        y = g.like(x, dtype=dtype, low=0, high=3) if g.chance(0.5) else y
    g.node("Pow", [x, y])


@op(weight=2)
def modulo(g):
    x = g.pick(g.types("Mod"))
    y = g.like(x, low=1, high=6)
    if is_float(x.dtype):
        g.node("Mod", [x, y], fmod=1, exact=True)
    else:
        g.node("Mod", [x, y], fmod=g.one([None, 0, 1]))


@op(weight=1)
def bit_shift(g):
    x = g.pick(g.types("BitShift"))
    y = g.like(x, low=0, high=7)
    g.node("BitShift", [x, y], direction=g.one(["LEFT", "RIGHT"]))


@op(weight=4)
def variadic(g):
    name = g.one(["Max", "Min", "Sum", "Mean"])
    x = g.pick(g.types(name), tame=name not in ("Max", "Min"))
    operands = [x] + [g.like(x) for _ in range(g.whole(0, 3))]
    g.random.shuffle(operands)
    g.node(name, operands)


@op(weight=4)
def where(g):
    x = g.pick(g.types("Where", 1), tame=False)
    operands = [g.like(x, dtype=BOOL), x, g.like(x)]
    if g.chance(0.3):
        operands[1:] = operands[:0:-1]
    g.node("Where", operands)


@op(weight=6)
def cast(g):
    from onnx import helper
    x = g.pick(g.types("Cast"), tame=g.chance(0.9))
    to = g.one(g.types("Cast"))
    attributes = {}
    if g.opset >= 19 and g.chance(0.2):
        attributes["saturate"] = g.whole(0, 1)
    if g.since("CastLike") and g.chance(0.25):
        g.node("CastLike", [x, g.fresh(to, g.dims(0, 2))], **attributes)
    else:
        g.node("Cast", [x], to=helper.np_dtype_to_tensor_dtype(to), **attributes)


@op(weight=1)
def cast_small(g):
    """To what is storage only, and back."""
    from onnx import helper
    from graph import E4M3, E5M2, I4, U4
    if g.opset < 19:
        return
    to = g.one([E4M3, E5M2] + ([I4, U4] if g.opset >= 21 else []))
    x = g.pick([d for d in FLOATS])
    if not g.chance(0.8):
        x = g.fresh(x.dtype, g.dims(0, 3), -500, 500)
    made = g.node("Cast", [x], to=helper.np_dtype_to_tensor_dtype(to), saturate=g.one([None, 0, 1]), exact=True)
    if made:
        g.node("Cast", made, to=helper.np_dtype_to_tensor_dtype(g.one(FLOATS[:1])), exact=True)


@op(weight=1)
def dropout(g):
    x = g.pick(g.types("Dropout"), low=1)
    if g.opset < 12: # what the mask is then, nobody says
        g.node("Dropout", [x], ratio=g.one([None, 0.3]))
        return
    ratio = g.one([None, g.constant(g.data(g.types("Dropout", 1)[0], (), 0.5, 0.5))])
    training = g.one([None, g.constant(g.data(BOOL, ()) & False)])
    g.node("Dropout", [x, ratio, training], outputs=[True, g.chance(0.3)], seed=g.one([None, 3]))

# SPDX-License-Identifier: Apache-2.0
"""Compares the reference evaluator with numpy, op by op, on random arrays.

    compare.py path/to/weft [seed]

Each case is one line of a graph, the operands' types, and what numpy makes of them. Closes with
`N passed, N failed, N skipped`.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("numpy is missing: skipped")
    sys.exit(77)

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i8": np.int8,
          "u64": np.uint64, "u8": np.uint8, "bool": np.bool_}


def text_of(array):
    name = next(n for n, d in DTYPES.items() if array.dtype == d)
    return name + "[" + ",".join(map(str, array.shape)) + "]"


def make(rng, dtype, *shape):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype[0] in "iu":
        info = np.iinfo(DTYPES[dtype])
        array = rng.integers(info.min, info.max, shape, dtype=DTYPES[dtype], endpoint=True)
        return array.reshape(shape)
    array = rng.normal(0, 3, shape).astype(DTYPES[dtype])
    if array.size > 4:  # a few of what goes wrong first
        array.flat[rng.integers(0, array.size, 4)] = [np.nan, np.inf, -np.inf, -0.0]
    return array


def tame(rng, dtype, *shape):
    return rng.normal(0, 1, shape).astype(DTYPES[dtype])


def conv(x, w, stride, pad, dilation, groups):
    """Convolution over two axes as a sum over taps of shifted slices."""
    n, c, h, width = x.shape
    o, per_group, kh, kw = w.shape
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad[0], pad[2]), (pad[1], pad[3])))
    oh = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, o, oh, ow))
    for g in range(groups):
        outs = slice(g * o // groups, (g + 1) * o // groups)
        for i in range(kh):
            for j in range(kw):
                part = x[:, g * per_group:(g + 1) * per_group, i * dilation[0]:, j * dilation[1]:]
                part = part[:, :, :oh * stride[0]:stride[0], :ow * stride[1]:stride[1]][:, :, :oh, :ow]
                y[:, outs] += np.einsum("nchw,oc->nohw", part, w[outs, :, i, j].astype(np.float64))
    return y.astype(x.dtype)


def softmax(x, axis):
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def truncated(a, b):
    """Integer quotient that truncates, in a wider type."""
    a, b = a.astype(object), b.astype(object)
    return np.vectorize(lambda p, q: 0 if q == 0 else (abs(p) // abs(q)) * (1 if (p < 0) == (q < 0) else -1))(a, b)


def cases(rng):
    for d in ("f64", "f32", "f16", "i64", "i32", "i8", "u64", "u8"):
        a, b = make(rng, d, 3, 5), make(rng, d, 3, 5)
        for op, fn in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("min", np.minimum),
                       ("max", np.maximum)):
            yield f"{op} %a, %b", (a, b), fn(a, b)
        for op, fn in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
                       ("gt", np.greater), ("ge", np.greater_equal)):
            yield f"{op} %a, %b", (a, b), fn(a, b)
        if d[0] == "f":
            yield "div %a, %b", (a, b), np.divide(a, b)
            yield "mod %a, %b form=trunc", (a, b), np.fmod(a, b)
            yield "copysign %a, %b", (a, b), np.copysign(a, b)
            yield "floor_div %a, %b", (a, b), np.floor_divide(a, b)
            yield "trunc %a", (a,), np.trunc(a)
            yield "is_inf %a positive=0 -> bool", (a,), np.isneginf(a)
        else:
            yield "div %a, %b", (a, b), truncated(a, b).astype(object)
            yield "mod %a, %b", (a, b), np.mod(a, b)
            yield "mod %a, %b form=trunc", (a, b), np.fmod(a, b)
            yield "floor_div %a, %b", (a, b), np.floor_divide(a, b)
            for op, fn in (("bit_and", np.bitwise_and), ("bit_or", np.bitwise_or), ("bit_xor", np.bitwise_xor)):
                yield f"{op} %a, %b", (a, b), fn(a, b)
            yield "bit_not %a", (a,), np.invert(a)
            amount = rng.integers(0, a.dtype.itemsize * 8 + 3, a.shape).astype(a.dtype)
            yield "shift_left %a, %b", (a, amount), np.left_shift(a, amount)
            yield "shift_right %a, %b", (a, amount), np.right_shift(a, amount)
        for op, fn in (("reduce_max", np.max), ("reduce_min", np.min)):
            yield f"{op} %a axes=[1]", (a,), fn(a, axis=1)
        yield "arg_max %a axis=1", (a,), np.argmax(a, axis=1)
        yield "arg_min %a axis=0 keepdims=1", (a,), np.argmin(a, axis=0, keepdims=True)
        yield "cummax %a axis=1", (a,), np.maximum.accumulate(a, axis=1)
        yield "cummin %a axis=0", (a,), np.minimum.accumulate(a, axis=0)
        for to in ("f64", "f32", "i64", "u8", "i8", "bool"):
            if d[0] != "f" or to[0] == "f":
                yield f"cast %a -> {to}", (a,), a.astype(DTYPES[to])
        if d[0] != "f":
            yield "sum %a axes=[0]", (a,), np.sum(a, axis=0, dtype=DTYPES[d])
            yield "prod %a axes=[0 1]", (a,), np.prod(a, dtype=DTYPES[d])
            yield "cumsum %a axis=1", (a,), np.cumsum(a, axis=1, dtype=DTYPES[d])
            yield "cumprod %a axis=0 reverse=1", (a,), np.cumprod(a[::-1], axis=0, dtype=DTYPES[d])[::-1]
    truths = make(rng, "bool", 3, 5)
    yield "any %a axes=[1]", (truths,), truths.any(1)
    yield "all %a axes=[0] keepdims=1", (truths,), truths.all(0, keepdims=True)
    calm = tame(rng, "f64", 3, 7)
    yield "variance %a axes=[1] correction=1", (calm,), calm.var(1, ddof=1)
    yield "log_sum_exp %a axes=[0]", (calm,), np.log(np.exp(calm).sum(0))
    a = make(rng, "f64", 4, 6)
    for op, fn in (("abs", np.abs), ("neg", np.negative), ("sign", np.sign), ("ceil", np.ceil), ("floor", np.floor),
                   ("round", np.round), ("sqrt", np.sqrt), ("exp", np.exp), ("log", np.log), ("sin", np.sin),
                   ("cos", np.cos), ("tanh", np.tanh), ("is_nan", np.isnan),
                   ("exp2", np.exp2), ("expm1", np.expm1), ("log2", np.log2), ("log10", np.log10), ("log1p", np.log1p),
                   ("tan", np.tan), ("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan), ("sinh", np.sinh),
                   ("cosh", np.cosh), ("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh),
                   ("softplus", lambda v: np.logaddexp(v, 0)), ("log_sigmoid", lambda v: -np.logaddexp(-v, 0)),
                   ("softsign", lambda v: v / (1 + np.abs(v)))):
        yield f"{op} %a", (a,), fn(a)
    b = make(rng, "f64", 4, 6)
    yield "atan2 %a, %b", (a, b), np.arctan2(a, b)
    yield "bitcast %a -> i64", (a,), a.view(np.int64)
    x = tame(rng, "f64", 2, 3, 4)
    for axes in ((0,), (1,), (0, 2), (0, 1, 2)):
        listed = " ".join(map(str, axes))
        yield f"sum %a axes=[{listed}]", (x,), x.sum(axes)
        yield f"mean %a axes=[{listed}] keepdims=1", (x,), x.mean(axes, keepdims=True)
        yield f"prod %a axes=[{listed}]", (x,), x.prod(axes)
    for axis in range(3):
        yield f"softmax %a axis={axis}", (x,), softmax(x, axis)
        yield f"log_softmax %a axis={axis}", (x,), np.log(softmax(x, axis))
        yield f"concat %a, %a axis={axis}", (x,), np.concatenate([x, x], axis)
        index = rng.integers(-2, 2, (2, 2))
        yield f"gather %a, %b axis={axis}", (x, index), np.take(x, index, axis)
    yield "transpose %a perm=[2 0 1]", (x,), x.transpose(2, 0, 1)
    yield "slice %a start=[0 1 0] end=[2 3 4] step=[1 1 3]", (x,), x[:, 1:, ::3]
    nine = np.array(9.0)
    yield "pad %a, %b pad=[0 1 2 1 0 3]", (x, nine), np.pad(x, ((0, 1), (1, 0), (2, 3)), constant_values=9)
    yield "pad %a, %b pad=[0 1 2 1 0 3] form=edge", (x, nine), np.pad(x, ((0, 1), (1, 0), (2, 3)), "edge")
    yield "pad %a, %b pad=[0 1 2 1 0 3] form=reflect", (x, nine), np.pad(x, ((0, 1), (1, 0), (2, 3)), "reflect")
    p, q = tame(rng, "f64", 2, 3, 4), tame(rng, "f64", 2, 4, 5)
    yield "matmul %a, %b", (p, q), p @ q
    yield "matmul %a, %b trans_a=1 trans_b=1", (p.swapaxes(1, 2).copy(), q.swapaxes(1, 2).copy()), p @ q
    for _ in range(12):
        groups = int(rng.integers(1, 3))
        stride, dilation = rng.integers(1, 4, 2), rng.integers(1, 3, 2)
        pad, taps = rng.integers(0, 3, 4), rng.integers(1, 4, 2)
        image = tame(rng, "f64", 2, 2 * groups, *rng.integers(5, 9, 2))
        weight = tame(rng, "f64", 3 * groups, 2, *taps)
        attrs = " ".join(f"{k}=[{' '.join(map(str, v))}]" for k, v in
                         (("stride", stride), ("pad", pad), ("dilation", dilation)))
        y = conv(image, weight, stride, pad, dilation, groups)
        yield f"conv %a, %b {attrs} groups={groups}", (image, weight), y


def run(weft, folder, line, operands, wanted):
    """The result of one op, through the command; raises with its message."""
    op, _, to = line.partition(" -> ")
    names = ["%a", "%b"][:len(operands)]
    head = ", ".join(f"{n}: {text_of(v)}" for n, v in zip(names, operands))
    result = wanted if wanted.dtype != object else wanted.astype(object).astype(operands[0].dtype)
    kind = text_of(result)
    (folder / "case.weft").write_text(f"weft 1\ngraph @g({head}) {{\n  %r: {kind} = {op}\n  return %r\n}}\n")
    command = [weft, "run", folder / "case.weft", "--reference", "-o", folder]
    for i, operand in enumerate(operands):
        np.save(folder / f"in{i}.npy", operand)
        command += ["-i", folder / f"in{i}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return np.load(folder / "output_0.npy"), result


def main():
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    np.seterr(all="ignore")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as name:
        for line, operands, wanted in cases(rng):
            try:
                given, result = run(sys.argv[1], pathlib.Path(name), line, operands, np.asarray(wanted))
                rtol = 1e-11 if result.dtype == np.float64 else 0
                np.testing.assert_allclose(given, result, rtol=rtol, atol=rtol)
                passed += 1
            except (AssertionError, RuntimeError) as error:
                failed += 1
                print(f"{line} of {', '.join(map(text_of, operands))}: {error}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0 or passed == 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the judge find what is wrong, and nothing else? Answers are what is expected, a rounding away from it, or
changed in one element."""
import os
import sys
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import ml_dtypes, numpy as np, onnx, onnxruntime # noqa: E401,F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import judge
from graph import BF16, F16, F32, F64, I32, I64, Graph, is_float


def two_of_a_type(dtype):
    g = Graph(5, 17, [{}])
    x = g.input(dtype, [7, 9], -3, 3)
    return g, x, g.input(dtype, [7, 9], -3, 3)


def one_node(op, dtype, **attributes):
    g, x, y = two_of_a_type(dtype)
    g.node(op, [x] if op in ("Exp", "Softmax", "Tanh", "ReduceSum", "ReduceProd") else [x, y], **attributes)
    return g


def layers():
    """A product, a norm of it and a sum, of which each rounds."""
    g = Graph(5, 17, [{}])
    x = g.input(F32, [7, 12], -2, 2)
    product = g.node("MatMul", [x, g.input(F32, [12, 9], -1, 1)])[0]
    norm = g.node("LayerNormalization", [product, g.input(F32, [9], 0.5, 2)])[0]
    g.node("ReduceSum", [norm], keepdims=0)
    g.node("Sigmoid", [norm])
    return g


def images():
    g = Graph(5, 17, [{}])
    x = g.input(F32, [1, 4, 9, 9], -2, 2)
    g.node("Conv", [x, g.input(F32, [5, 4, 3, 3], -1, 1)])
    return g


CASES = {"Add": lambda: one_node("Add", F32), "f16": lambda: one_node("Mul", F16),
         "bf16": lambda: one_node("Add", BF16), "f64": lambda: one_node("Sub", F64),
         "i32": lambda: one_node("Mul", I32), "Less": lambda: one_node("Less", F32),
         "Softmax": lambda: one_node("Softmax", F32), "Exp": lambda: one_node("Exp", F16),
         "sum of i64": lambda: one_node("ReduceSum", I64), "layers": layers, "images": images}


def judged(g, change=None, again=None):
    """What the judge says of an answer; `change` makes the results other ones."""
    outputs = [v for _, _, values in g.nodes for v in values if not v.constant]
    made = {v.name for v in outputs}
    results = [v.arrays[0].copy() for v in outputs]
    results = change(results) if change else results
    given = {v.name: v.arrays[0] for v in g.values if v.name not in made}
    answer = types.SimpleNamespace(trials=[results], again=again, winograd=1)
    return judge.judge(g.nodes, outputs, g.opset, [given], answer)


def rounded(results):
    """Each float on one of its neighbours."""
    def neighbour(a):
        if not is_float(a.dtype):
            return a
        sign = np.where(np.arange(a.size) % 2, 1, -1).reshape(a.shape)
        return (a.astype(np.float64) * (1 + judge.ROUNDING[a.dtype] * sign)).astype(a.dtype)
    return [neighbour(a) for a in results]


def other(a, place):
    """Another number there, by a thousand roundings of the largest in f32, or the next integer."""
    a = a.copy()
    if a.dtype == bool:
        a[place] = not a[place]
    elif is_float(a.dtype):
        wide = a.astype(np.float64)
        step = 1000 * min(judge.ROUNDING[a.dtype], judge.ROUNDING[F16]) * np.abs(wide).max()
        a[place] = np.asarray(wide[place] + step).astype(a.dtype)
    else:
        a[place] += 1
    return a


class Judge(unittest.TestCase):
    def test_what_is_expected_is_right(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.assertIsNone(judged(case()))

    def test_a_rounding_is_right(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.assertIsNone(judged(case(), rounded))

    def test_one_other_element_is_found(self):
        for name, case in CASES.items():
            g = case()
            arrays = [v.arrays[0] for _, _, values in g.nodes for v in values]
            for i, array in enumerate(arrays):
                for place in {0, array.size // 2, array.size - 1}:
                    where = np.unravel_index(place, array.shape)
                    with self.subTest(name, output=i, place=place):
                        wrong = judged(g, lambda results: [other(a, where) if k == i else a
                                                           for k, a in enumerate(results)])
                        self.assertIsNotNone(wrong)
                        self.assertEqual(wrong.output, i)
                        self.assertIn(f"1 of {array.size} elements wrong: {[int(n) for n in where]}", wrong.text)

    def test_other_kinds_of_numbers_are_found(self):
        for number in (np.nan, np.inf, -np.inf):
            def change(results, number=number):
                results[0][0, 0] = number
                return results
            self.assertIsNotNone(judged(CASES["Add"](), change))

    def test_types_shapes_and_errors_are_found(self):
        g = CASES["Add"]()
        self.assertIn("float64", judged(g, lambda results: [results[0].astype(np.float64)]).text)
        self.assertIn("shape", judged(g, lambda results: [results[0][:-1]]).text)
        self.assertIn("out of memory", judged(g, lambda results: ("run", -1, "out of memory")).text)
        self.assertIn("bits", judged(g, again=("again", -1, "other bits")).text)

    def test_what_is_open_may_be_anything(self):
        g = Graph(5, 17, [{}])
        x = g.add("x", [np.array([1e30, 2, np.nan], np.float32)])
        g.inputs.append(("x", F32, [3]))
        g.node("Cast", [x], to=onnx.TensorProto.INT32)
        for place, right in ((0, True), (1, False), (2, True)):
            wrong = judged(g, lambda results, place=place: [other(results[0], place)])
            self.assertEqual(wrong is None, right)


    def test_a_number_that_may_be_zero_may_be_false(self):
        for distance, right in ((2.0 ** -24, True), (1e-2, False)): # 1 less a number beside it
            g = Graph(5, 17, [{}])
            x, y = g.add("x", [np.ones(3, np.float32)]), g.add("y", [np.full(3, 1 - distance, np.float32)])
            difference = g.node("Sub", [g.node("Exp", [x])[0], g.node("Exp", [y])[0]])[0]
            g.node("Cast", [difference], to=onnx.TensorProto.BOOL)
            wrong = judged(g, lambda results: [*results[:-1], np.zeros(3, bool)])
            self.assertEqual(wrong is None, right)


    def test_a_divisor_that_may_be_zero_may_be_rounded_to_it(self):
        for distance, right in ((2.0 ** -10, True), (0.5, False)):
            g = Graph(5, 17, [{}])
            x, y = g.add("x", [np.ones(3, np.float16)]), g.add("y", [np.full(3, 1 - distance, np.float16)])
            difference = g.node("Sub", [g.node("Exp", [x])[0], g.node("Exp", [y])[0]])[0]
            g.node("Reciprocal", [difference])
            wrong = judged(g, lambda results: [*results[:-1], np.full(3, np.inf, np.float16)])
            self.assertEqual(wrong is None, right)


class Exact(unittest.TestCase):
    def test_functions_do_not_overflow_on_the_way(self):
        for op in ("Softplus", "Mish"):
            for dtype, number in ((F16, 65504), (F32, 1e30), (F64, 1e300)):
                g = Graph(5, 18, [{}])
                value = g.node(op, [g.add("x", [np.array([number, 0], dtype)])])[0]
                self.assertEqual(value.arrays[0][0], dtype.type(number))
        g = Graph(5, 18, [{}]) # not in f32, which does not hold it
        self.assertAlmostEqual(g.node("Asinh", [g.add("x", [np.array([1e300])])])[0].arrays[0][0], 691.4686750787737)

    def test_shrunk_integers_are_exact(self):
        import texts
        most = 2 ** 63 - 1
        for number, bias, want, is_open in ((most, 0.0, most, False), (most, 3.0, most - 3, False),
                                            (most, 0.1, most - 1, True), (most, -1.0, -2 ** 63, True),
                                            (5, 0.1, 4, False), (1, 0.0, 0, False)):
            g = Graph(5, 18, [{}])
            x = g.add("x", [np.array([number], np.int64)])
            made = g.node("Shrink", [x], bias=bias, lambd=2.0)[0]
            self.assertEqual(int(made.arrays[0][0]), want)
            self.assertEqual(bool(texts.is_open(g.nodes[0][0], [x.arrays[0]], made.arrays)[0][0]), is_open)

    def test_filters_against_aliasing_are_exact(self):
        """Places are thirds; those in f32 are off by more than the weights are."""
        g = Graph(5, 18, [{}])
        x = g.add("x", [np.arange(33, dtype=np.float32).reshape(1, 1, 1, 33)])
        scales = g.constant(np.array([1, 1, 1, 3], np.float32))
        y = g.node("Resize", [x, None, scales], antialias=1, mode="linear",
                   coordinate_transformation_mode="asymmetric")[0]
        want = np.minimum(np.arange(99) / 3, 32).astype(np.float32)
        self.assertTrue((y.arrays[0].ravel() == want).all())
        scales = g.constant(np.array([1, 1, 1, 1 / 3], np.float32))
        y = g.node("Resize", [x, None, scales], antialias=1, mode="linear")[0]
        self.assertTrue(np.allclose(y.arrays[0].ravel()[1:-1], 3 * np.arange(1, 10) + 1, rtol=1e-7))

    def test_many_terms_have_no_error(self):
        g = Graph(5, 17, [{}])
        x = g.add("x", [np.full(20000, 0.1, np.float32)])
        value = g.node("ReduceSum", [x], keepdims=0)[0]
        self.assertEqual(value.arrays[0], np.float32(20000 * float(np.float32(0.1))))

    def test_means_of_integers_are_exact(self):
        g = Graph(5, 17, [{}])
        x = g.add("x", [np.array([-2 ** 63, 10, -1], np.int64)])
        value = g.node("ReduceMean", [x], keepdims=0)[0]
        self.assertEqual(int(value.arrays[0]), -3074457345618258599)

    def test_roots_of_squares_that_underflow_are_open(self):
        import texts
        for number, is_open in ((1e-24, True), (1e25, True), (1e-18, False), (1e18, False), (0, False)):
            g = Graph(5, 17, [{}])
            x = g.add("x", [np.full(3, number, np.float32)])
            made = g.node("ReduceL2", [x], axes=[0], keepdims=0)[0]
            mask = texts.is_open(g.nodes[0][0], [x.arrays[0]], made.arrays)[0]
            self.assertEqual(bool(mask), is_open)

    def test_integers_that_do_not_fit_are_open(self):
        import texts
        for number, is_open in ((2, False), (2 ** 20, True)):
            g = Graph(5, 17, [{}])
            x = g.add("x", [np.full(3, number, np.int32)])
            made = g.node("ReduceSumSquare", [x], axes=[0], keepdims=0)[0]
            mask = texts.is_open(g.nodes[0][0], [x.arrays[0]], made.arrays)[0]
            self.assertEqual(bool(mask), is_open)


if __name__ == "__main__":
    unittest.main()

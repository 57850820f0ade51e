# SPDX-License-Identifier: Apache-2.0
"""Cases of views, movement, what is found by indices, results as large as the data says, and control."""
import numpy as np

from harness import DTYPES, FLOATS, INTEGERS, Case, make, tame

MOVED = ("f64", "f32", "f16", "bf16", "i64", "i8", "u16", "bool")


def kept(array, like):
    """What numpy made of a bf16 array is one still."""
    return array.view(type(like))


def views(rng):
    for d in MOVED:
        x = make(rng, d, 2, 3, 4)
        yield Case("transpose %a perm=[2 0 1]", (x,), x.transpose(2, 0, 1))
        yield Case("reshape %a", (x,), x.reshape(4, 1, 6))
        yield Case("bcast %a dims=[0 2 3]", (x,), kept(np.broadcast_to(x[:, None], (2, 5, 3, 4)), x))
        yield Case("slice %a start=[0 1 0] end=[2 3 4] step=[1 1 3]", (x,), x[:, 1:, ::3])
        yield Case("relayout %a", (x,), x)
        yield Case("concat %a, %b, %a axis=1", (x, x[:, :1]), kept(np.concatenate([x, x[:, :1], x], 1), x))
        yield Case("flip %a axes=[0 2]", (x,), x[::-1, :, ::-1])
        number = x[0, 0, 0].reshape(()) if d != "bf16" else kept(np.asarray(x[0, 0, 0]), x)
        pads = ((0, 1), (1, 0), (2, 3))
        yield Case("pad %a, %b pad=[0 1 2 1 0 3]", (x, number),
                   kept(np.pad(np.asarray(x), pads, constant_values=np.asarray(number)[()]), x))
        for form in ("edge", "reflect", "wrap"):
            wanted = kept(np.pad(np.asarray(x), pads, form), x)
            yield Case(f"pad %a, %b pad=[0 1 2 1 0 3] form={form}", (x, number), wanted)
        for op, function in (("triangle %a diagonal=1", np.tril), ("triangle %a diagonal=1 upper=1", np.triu)):
            yield Case(op, (x,), kept(function(np.asarray(x), 1), x))
        square = make(rng, d, 2, 4, 4)
        yield Case("diagonal %a axes=[1 2]", (square,), kept(np.diagonal(np.asarray(square), 0, 1, 2), square))
    empty = np.zeros((0, 3), np.float32)
    yield Case("transpose %a perm=[1 0]", (empty,), empty.T)
    yield Case("concat %a, %a axis=1", (empty,), np.zeros((0, 6), np.float32))


def by_index(rng):
    for d in MOVED:
        x = make(rng, d, 4, 5)
        for kind in ("i64", "i32", "u8"):
            low = -4 if kind[0] == "i" else 0
            index = tame(rng, kind, 2, 3, low=low, high=3)
            yield Case("gather %a, %b axis=0", (x, index), kept(np.take(np.asarray(x), index.astype(np.int64), 0), x))
            rows = tame(rng, kind, 2, 5, low=low, high=3)
            yield Case("gather_elements %a, %b axis=0", (x, rows),
                       kept(np.take_along_axis(np.asarray(x), rows.astype(np.int64) % 4, 0), x))
        pairs = np.stack([rng.integers(0, 4, 6), rng.integers(-5, 5, 6)], 1)
        yield Case("gather_nd %a, %b", (x, pairs), x[pairs[:, 0], pairs[:, 1]])
        batch = rng.integers(0, 5, (4, 2, 1))
        yield Case("gather_nd %a, %b batch=1", (x, batch),
                   kept(np.take_along_axis(np.asarray(x), batch[..., 0], 1), x))
        places = np.stack([rng.permutation(5)[:2] for _ in range(4)])
        update, result = make(rng, d, 4, 2), x.copy()
        np.put_along_axis(result, places, update, 1)
        yield Case("scatter_elements %a, %b, %c axis=1", (x, places, update), result)
        result, values = x.copy(), make(rng, d, 6)
        for place, value in zip(pairs, values):
            result[place[0], place[1]] = value
        yield Case("scatter_nd %a, %b, %c", (x, pairs, values), result)
        start = np.array([2, -3])
        yield Case("dynamic_slice %a, %b", (x, start), x[2:4, 0:3])
        result = x.copy()
        result[2:4, 0:3] = x[:2, :3]
        yield Case("dynamic_update %a, %b, %c", (x, x[:2, :3], start), result)
        lengths, result = np.array([0, 3, 5, 1]), x.copy()
        for row, n in enumerate(lengths):
            result[row, :n] = x[row, :n][::-1]
        yield Case("reverse_sequence %a, %b axis=1 batch_axis=0", (x, lengths), result)
    for d in INTEGERS:
        x, update = make(rng, d, 4, 5), make(rng, d, 4, 3)
        places = rng.integers(0, 5, (4, 3))
        for form, function in (("add", np.add), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum)):
            result = x.copy()
            function.at(result, (np.arange(4)[:, None], places), update)
            yield Case(f"scatter_elements %a, %b, %c axis=1 form={form}", (x, places, update), result)
            pairs = np.minimum(places[:, :2], [3, 4])
            result = x.copy()
            function.at(result, (pairs[:, 0], pairs[:, 1]), update[:, 0])
            yield Case(f"scatter_nd %a, %b, %c form={form}", (x, pairs, update[:, 0]), result)
    index = rng.integers(-6, 6, (2, 3))
    hot = (index[..., None] % 6 == np.arange(6))
    for d in ("f32", "i64", "bool"):
        values = np.array([0, 1], DTYPES[d])
        yield Case("one_hot %a, %b depth=6 axis=2", (index, values), hot.astype(DTYPES[d]))


def found(rng):
    """nan is not zero; a unique NaN is one NaN."""
    for d in ("f64", "f32", "f16", "i64", "i8", "u32", "bool"):
        x = tame(rng, d, 4, 5, low=0, high=3) if d[0] != "f" else np.rint(tame(rng, d, 4, 5))
        places = np.argwhere(np.asarray(x) != 0).T
        yield Case("nonzero %a extent=[K]", (x,), places, symbols="K=data(20)", types=("i64[2,K]",))
        mask = make(rng, "bool", 5)
        yield Case("compress %a, %b axis=1 extent=[K]", (x, mask), np.compress(mask, x, 1), symbols="K=data(5)",
                   types=(f"{d}[4,K]",))
        values = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        values = (values[0], values[1], values[2].reshape(-1), values[3])
        yield Case("unique %a extent=[K]", (x,), values, symbols="K=data(20)",
                   types=(f"{d}[K]", "i64[K]", "i64[20]", "i64[K]"))
        rows = np.concatenate([x, x[:2]])
        values = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
        values = (values[0], values[1], values[2].reshape(-1), values[3])
        yield Case("unique %a axis=0 extent=[K]", (rows,), values, symbols="K=data(6)",
                   types=(f"{d}[K,5]", "i64[K]", "i64[6]", "i64[K]"))


BODIES = """  graph @double(%x: f32[3,4]) {
    %y: f32[3,4] = add %x, %x
    return %y
  }
  graph @square(%x: f32[3,4]) {
    %y: f32[3,4] = mul %x, %x
    return %y
  }"""
TRIP = """  graph @trip(%i: i64[], %x: f32[3,4], %w: f32[3,4]) {
    %y: f32[3,4] = add %x, %w
    return %y, %y
  }"""


def control(rng):
    x, w = tame(rng, "f32", 3, 4), tame(rng, "f32", 3, 4)
    for condition in (False, True):
        yield Case("if %a, %b then=@double else=@square", (np.array(condition), x), x + x if condition else x * x,
                   bodies=BODIES)
    for trips in (-1, 0, 3, 9):
        count, now, steps = max(0, min(trips, 5)), x, np.zeros((5, 3, 4), np.float32)
        for i in range(count):
            now = now + w
            steps[i] = now
        yield Case("loop %a, %b, %c body=@trip carried=1 length=5", (np.array(trips, np.int64), x, w), (now, steps),
                   bodies=TRIP)


def cases(rng):
    for group in (views, by_index, found, control):
        yield from group(rng)

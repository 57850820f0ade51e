# SPDX-License-Identifier: Apache-2.0
"""The ops of whole.py: resizes, and recurrent networks of several layers as one weft op a layer."""

from __future__ import annotations

from .. import whole  # noqa: F401 - it registers the ops
from .registry import lower
from .windows import lower_resize

#: where torch's gates stand in weft's order: input, output, forget, cell; update, reset, new
LSTM, GRU = (0, 3, 1, 2), (1, 0, 2)


@lower("weft::resize")
def resize(b, n, x, sizes, name, corners, factors):
    return lower_resize(b, n, x, name, corners, list(factors))


def gates(b, x, order):
    """Gates as weft orders them; x: [gates * hidden, ...]."""
    parts = [b.reshape(x, [len(order), b.static(x.dims[0]) // len(order), *x.dims[1:]])]
    parts = [b.slice(parts[0], 0, g, g + 1) for g in order]
    return b.reshape(b.op("concat", *parts, axis=0), x.dims)


def stack(b, parts):
    """[directions, ...] of one value for each direction."""
    parts = [b.unsqueeze(p, 0) for p in parts]
    return parts[0] if len(parts) == 1 else b.op("concat", *parts, axis=0)


def one_layer(b, cell, x, states, weights, biases, **options):
    """x: [times, batch, inputs], states: [directions, batch, hidden]; a list of weights for each direction."""
    order = LSTM if cell == "lstm" else GRU
    w = stack(b, [gates(b, each[0], order) for each in weights])
    r = stack(b, [gates(b, each[1], order) for each in weights])
    if biases:
        both = [b.op("concat", gates(b, each[2], order), gates(b, each[3], order), axis=0) for each in weights]
        bias = stack(b, both)
    else:
        bias = b.scalar(0, x.dtype, [len(weights), 2 * b.static(w.dims[1])])
    y, *last = b.op(cell, x, w, r, bias, *states, direction="bidirectional" if len(weights) == 2 else "forward",
                    **options)
    # [times, directions, batch, hidden] -> [times, batch, directions * hidden]
    y = b.transpose(y, [0, 2, 1, 3])
    return b.reshape(y, [y.dims[0], y.dims[1], b.times(y.dims[2:])]), last


def network(b, cell, x, states, weights, biases, layers, bidirectional, **options):
    directions, each = 2 if bidirectional else 1, 4 if biases else 2
    ends = []
    for layer in range(layers):
        first = layer * directions
        mine = [weights[(first + d) * each:(first + d + 1) * each] for d in range(directions)]
        begin = [b.slice(s, 0, first, first + directions) for s in states]
        x, last = one_layer(b, cell, x, begin, mine, biases, **options)
        ends.append(last)
    joined = [parts[0] if layers == 1 else b.op("concat", *parts, axis=0) for parts in zip(*ends)]
    return (x, *joined)


@lower("weft::lstm")
def lstm(b, n, x, h, c, weights, biases, layers, bidirectional):
    return network(b, "lstm", x, [h, c], list(weights), biases, layers, bidirectional)


@lower("weft::gru")
def gru(b, n, x, h, weights, biases, layers, bidirectional):
    return network(b, "gru", x, [h], list(weights), biases, layers, bidirectional, linear_before_reset=1)

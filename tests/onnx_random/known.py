# SPDX-License-Identifier: Apache-2.0
"""Where weft, onnxruntime and ONNX's evaluator are known to disagree, and who is right by ONNX's text.

Two kinds of entries. NOT_DRAWN says of nodes that are left out before anybody is asked: the text leaves them open, or
the
others are wrong and no third opinion is at hand. OPEN says of findings about a node that are counted and not reported,
since what weft does is a defect that is known, or a choice that is written down elsewhere.
"""
import numpy as np

from texts import attributes_of


def same_padding(node, operands):
    facts = attributes_of(node, auto_pad="NOTSET", strides=None, dilations=None, kernel_shape=None)
    if not facts["auto_pad"].startswith("SAME"):
        return False
    axes = operands[0].ndim - 2
    kernel = facts["kernel_shape"] or operands[3 if node.op_type == "QLinearConv" else 1].shape[2:]
    strides, dilations = facts["strides"] or [1] * axes, facts["dilations"] or [1] * axes
    return any(s > d * (k - 1) + 1 for s, d, k in zip(strides, dilations, kernel)) or (
        node.op_type.endswith("Pool") and any(d > 1 for d in dilations))


SAME = ("auto_pad", same_padding, "SAME says that the extent is ceil(in / stride) and the padding what that needs. "
        "onnxruntime counts dilation wrongly in pools, and a padding below 0, where windows leave gaps, as part of it")
def no_steps(node, operands):
    return operands[0].shape[attributes_of(node, layout=0)["layout"]] == 0


def is_empty(node, operands):
    return 0 in operands[0].shape


def mean_of_nothing(node, operands):
    return attributes_of(node, reduction="mean")["reduction"] == "mean" and is_empty(node, operands)


LOSS = ("reduction", mean_of_nothing, "the mean of no losses is 0 / 0, which is NaN in weft and 0 in onnxruntime")
EMPTY = ("", is_empty, "onnxruntime returns an empty tensor as it is, also where an axis of it is reduced to 1")
STEPS = ("", no_steps, "the last state of no steps is the first one in weft, 0 in onnxruntime; the text does not say")
def is_antialiased_crop(node, operands):
    facts = attributes_of(node, antialias=0, coordinate_transformation_mode="")
    return facts["antialias"] and facts["coordinate_transformation_mode"] == "tf_crop_and_resize"


def is_antialiased_beside_a_factor(node, operands):
    factors = operands[2] if len(operands) > 2 and operands[2] is not None else np.zeros(0, np.float32)
    axes = attributes_of(node, axes=list(range(operands[0].ndim)))["axes"]
    if not attributes_of(node, antialias=0)["antialias"] or not factors.size or factors.min() >= 1:
        return False
    return any(s != 1 and int(s * operands[0].shape[a]) == operands[0].shape[a] for s, a in zip(factors, axes))


def is_open_reshape(node, operands):
    return operands[0].size == 0 and -1 in operands[1]


def averages_padding(node, operands):
    return not attributes_of(node, count_include_pad=0)["count_include_pad"] and pools_padding(node, operands)


def pools_padding(node, operands):
    """Is there a window of which no element lies in the input?"""
    axes = operands[0].ndim - 2
    facts = attributes_of(node, pads=[0] * (2 * axes), strides=[1] * axes, dilations=[1] * axes, auto_pad="NOTSET")
    if facts["auto_pad"] != "NOTSET":
        return False
    for length, kernel, low, high, stride, dilation in zip(operands[0].shape[2:], facts["kernel_shape"], facts["pads"],
                                                           facts["pads"][axes:], facts["strides"], facts["dilations"]):
        for start in range(-low, length + high - dilation * (kernel - 1), stride):
            if not any(0 <= start + k * dilation < length for k in range(kernel)):
                return True
    return False


PADDED = ("pads", pools_padding, "the largest of no elements is -inf in weft and the lowest number in onnxruntime")
PADDING = ("pads", averages_padding, "the mean of no elements is 0 / 0, which is NaN in weft and 0 in onnxruntime")


NOT_DRAWN = {
    "Resize": [("antialias", is_antialiased_crop,
                "by how much a crop shrinks, and so how wide its filter is, is not said"),
               ("scales", is_antialiased_beside_a_factor,
                "onnxruntime leaves an axis whose factor does not change its length as it is, with antialias; the "
                "evaluator and weft do not")],
    "NegativeLogLikelihoodLoss": [LOSS], "SoftmaxCrossEntropyLoss": [LOSS],
    "Reshape": [("shape", is_open_reshape, "of no elements any extent may stand for -1")],
    "ArgMax": [EMPTY], "ArgMin": [EMPTY],
    "LSTM": [STEPS], "GRU": [STEPS], "RNN": [STEPS],
    "MaxPool": [SAME, PADDED], "AveragePool": [SAME, PADDING], "LpPool": [SAME], "Conv": [SAME],
    "ConvTranspose": [SAME],
    "QLinearConv": [SAME], "ConvInteger": [SAME],
}


def is_cubic_border(node, operands):
    facts = attributes_of(node, mode="linear", padding_mode="zeros")
    return facts["mode"] in ("cubic", "bicubic") and facts["padding_mode"] != "zeros"


def has_one_bound(node, operands):
    return len(operands) < 3 or operands[1] is None or operands[2] is None


OPEN = {
    "Clip": [("min, max", has_one_bound,
              "a bound that is left out is the type's largest finite number by the text, so that "
              "infinities become that; weft and ONNX's evaluator leave them, as torch.clamp does")],
    "GridSample": [("padding_mode", is_cubic_border,
                    "of cubic the text does not say whether places are clipped before the "
                    "taps are taken, as torch and onnxruntime do, or the taps")],
}


def not_drawn(node, operands):
    return next((reason for _, holds, reason in NOT_DRAWN.get(node.op_type, ()) if holds(node, operands)), None)


def is_open(node, operands):
    return next((reason for _, holds, reason in OPEN.get(node.op_type, ()) if holds(node, operands)), None)


def not_by_onnx(node, operands):
    """Of one axis, the evaluator gives QLinearConv another one."""
    return node.op_type == "QLinearConv" and operands[0].ndim == 3

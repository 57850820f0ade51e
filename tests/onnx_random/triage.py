# SPDX-License-Identifier: Apache-2.0
"""What a finding is about: the node, and the part of weft that is suspect."""
import json
import os

import numpy as np
from onnx import numpy_helper

import client
import judge
import known
from reference import Refused, by_onnx, by_onnxruntime, reads

STAGES = (("reference without passes", client.REFERENCE | client.NO_PASSES), ("reference", client.REFERENCE),
          ("without passes", client.NO_PASSES), ("as asked", None))


def verdict(runner, case, path, outputs=None, **other):
    """'' if all is right, else what is wrong."""
    import draw
    shown = case.outputs
    try:
        if outputs:
            case.outputs = outputs
            case.build()
        answer = case.ask(runner, path, **other)
        if answer.error:
            return f"{answer.error[0]}: {answer.error[2]}"
        given = [case.given(t) for t in range(len(case.g.sizes))]
        wrong = judge.judge(case.nodes, case.outputs, case.g.opset, given, answer)
        case.last = wrong
        return wrong.text if wrong else ""
    except client.Died as died:
        return f"died: {str(died).splitlines()[0]}"
    finally:
        if outputs:
            case.outputs = shown
            case.build()


def opinions(case, node, trial):
    """Do onnxruntime and ONNX's evaluator agree about this node?"""
    values = {n: case.g.find(n).arrays[trial] for n in reads(node)}
    results = []
    for who in (by_onnxruntime, by_onnx):
        try:
            results.append(who(node, values, case.g.opset))
        except Refused as refused:
            results.append(None)
    if results[0] is None or results[1] is None:
        return "one opinion: " + ("onnx" if results[0] is None else "onnxruntime")
    same = all(a.shape == b.shape and a.dtype == b.dtype and
               (np.all(np.isclose(judge.wide(a), judge.wide(b), rtol=1e-3, atol=1e-4, equal_nan=True)))
               for a, b in zip(*results))
    return "onnxruntime and onnx agree" if same else "onnxruntime and onnx differ"


def explain(runner, kind, text, case, path):
    report = {"where": "", "variant": f"{case.variant} hints {case.hints}", "sizes": str(case.g.sizes)}
    if kind == "refused":
        return report
    stages = []
    for name, flags in STAGES:
        said = verdict(runner, case, path, **({} if flags is None else {"flags": flags}))
        stages.append(f"{name}: {said[:80] or 'right'}")
    report["stages"] = stages
    # With every value an output, the first that is wrong names the node; nothing, where only the whole goes wrong.
    made = [v for _, _, values in case.nodes for v in values if not v.constant]
    case.last = None
    said = verdict(runner, case, path, outputs=made)
    if said and case.last is not None and case.last.output is not None:
        value = made[case.last.output]
        node = next(node for node, _, values in case.nodes if value in values)
        reason = known.is_open(node, [case.g.find(n).arrays[case.last.trial] if n else None for n in node.input])
        if reason:
            report["known"] = reason
        attributes = {a.name: (a.s.decode() if a.type == a.STRING else list(a.ints) or list(a.floats) or a.i or a.f)
                      for a in node.attribute if a.type != a.GRAPH}
        shapes = [f"{case.g.find(n).dtype}{list(case.g.find(n).arrays[case.last.trial].shape)}" if n else "-"
                  for n in node.input]
        report["where"] = f"[{node.op_type} {attributes} of {' '.join(shapes)} opset {case.g.opset}; " \
                          f"{opinions(case, node, case.last.trial)}]"
    else:
        report["where"] = "[" + " ".join(node.op_type for node, _, _ in case.nodes) + "]" + (
            f" all outputs: {said[:100] or 'right'}")
    return report


def keep(folder, case, kind, text, report):
    place = os.path.join(folder, f"{'s' if case.symbolic else 'f'}{case.seed}")
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, "model.onnx"), "wb") as file:
        file.write(case.model.SerializeToString())
    for t, arrays in enumerate(case.trials()):
        for i, array in enumerate(arrays):
            try:
                np.save(os.path.join(place, f"trial{t}_input_{i}.npy"), array)
            except (TypeError, ValueError): # a type that numpy cannot name in a file
                continue
    with open(os.path.join(place, "report.txt"), "w") as file:
        file.write(f"{kind}\n{text}\n{json.dumps(report, indent=1)}\n")
    return place

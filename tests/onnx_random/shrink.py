# SPDX-License-Identifier: Apache-2.0
"""A finding made small: nodes, attributes, operands, sizes and options are taken away while it stays one.

Every step builds another model, has others compute it, and asks weft again; a step after which weft is right, or
fails in
another way, is taken back.
"""
import copy

import client
import judge
from graph import Value
from reference import Refused, evaluate, reads


def failure(runner, case, path):
    """What is wrong, in a word: what a smaller model must be, too."""
    try:
        answer = case.ask(runner, path)
    except client.Died as died:
        return "died " + str(died).split()[0]
    if answer.error:
        return "refused " + answer.error[0]
    wrong = judge.judge(case.nodes, case.outputs, case.g.opset, [case.given(t) for t in range(len(case.g.sizes))],
                        answer)
    if wrong is None:
        return ""
    return "error" if wrong.text.startswith("error in") else "wrong"


def changed(case, nodes=None, outputs=None, inputs=None, values=None, sizes=None):
    """A copy of the case with other parts."""
    new = copy.copy(case)
    new.g = copy.copy(case.g)
    new.g.nodes = list(case.g.nodes if nodes is None else nodes)
    new.g.inputs = list(case.g.inputs if inputs is None else inputs)
    new.g.values = list(case.g.values if values is None else values)
    new.g.sizes = case.g.sizes if sizes is None else sizes
    new.outputs = list(case.outputs if outputs is None else outputs)
    new.build()
    return new


def recomputed(case, nodes, trials=None):
    """The case with the results of these nodes, which changed; None where nobody computes them."""
    trials = range(len(case.g.sizes)) if trials is None else trials
    made = {v.name for _, _, values in case.g.nodes for v in values}
    known = {v.name: v for v in case.g.values if v.name not in made or v.constant}
    known = {n: Value(n, [v.arrays[t] for t in trials], v.constant, v.exact, v.coarse) for n, v in known.items()}
    rows = []
    for node, _, values in nodes:
        operands = [known.get(n) for n in reads(node)]
        if None in operands:
            return None
        try:
            columns = [evaluate(node, {v.name: v.arrays[t] for v in operands}, case.g.opset)
                       for t in range(len(trials))]
        except Refused:
            return None
        names = [n for n in node.output if n]
        results = []
        for k, name in enumerate(names):
            old = next((v for v in values if v.name == name), None)
            value = Value(name, [results_of[k] for results_of, _ in columns], old is not None and old.constant,
                          old is not None and old.exact, any(c for _, c in columns))
            known[name] = value
            results.append(value)
        rows.append((node, operands, results))
    outputs = [known[v.name] for v in case.outputs if v.name in known]
    if len(outputs) < len(case.outputs):
        return None
    return changed(case, rows, outputs, values=list(known.values()), sizes=[case.g.sizes[t] for t in trials])


def cut(case, value):
    """With this value as an input."""
    nodes = [row for row in case.g.nodes if value not in row[2]]
    siblings = [v for row in case.g.nodes if value in row[2] for v in row[2]]
    dims = [d if d is not None else f"{value.name}_{axis}" for axis, d in enumerate(case.g.known_dims(value))]
    inputs = case.g.inputs + [(v.name, v.dtype, dims if v is value else [
        d if d is not None else f"{v.name}_{axis}" for axis, d in enumerate(case.g.known_dims(v))]) for v in siblings]
    return changed(case, nodes, inputs=inputs)


def with_node(case, old, new):
    return recomputed(case, [(new, *row[1:]) if row[0] is old else row for row in case.nodes])


def steps(case):
    """Smaller cases, the smallest first."""
    for value in case.outputs:
        if len(case.outputs) > 1:
            yield lambda value=value: changed(case, outputs=[value])
    if len(case.g.sizes) > 1:
        for trial in range(len(case.g.sizes)):
            yield lambda trial=trial: recomputed(case, case.nodes, [trial])
        for trial in range(1, len(case.g.sizes)):
            yield lambda trial=trial: recomputed(case, case.nodes, [0, trial])
    used = [v for _, operands, _ in case.nodes for v in operands]
    for node, _, made in reversed(case.nodes):
        for value in made:
            if value in used and value not in case.outputs and node.op_type != "Constant":
                yield lambda value=value: cut(case, value)
    for node, operands, made in case.nodes:
        for k, value in enumerate(made):
            for other in operands:
                if other.dtype == value.dtype and other.shapes == value.shapes:
                    yield lambda made=made, other=other, value=value: bypassed(case, value, other)
        for a in node.attribute:
            def without(node=node, name=a.name):
                new = copy.deepcopy(node)
                kept = [x for x in new.attribute if x.name != name]
                del new.attribute[:]
                new.attribute.extend(kept)
                return with_node(case, node, new)
            yield without
        for i in range(1, len(node.input)):
            if node.input[i]:
                def empty(node=node, i=i):
                    new = copy.deepcopy(node)
                    new.input[i] = ""
                    while new.input and not new.input[-1]:
                        del new.input[-1]
                    return with_node(case, node, new)
                yield empty
    for key, value in {"flags": 0, "threads": 1, "cpu": "-", "choice": 1}.items():
        if case.variant[key] != value:
            yield lambda key=key, value=value: with_variant(case, key, value)
    for name in case.hints:
        yield lambda name=name: without_hint(case, name)


def bypassed(case, value, other):
    rows = []
    for node, operands, made in case.nodes:
        if value.name in node.input:
            node = copy.deepcopy(node)
            for i, name in enumerate(node.input):
                node.input[i] = other.name if name == value.name else name
        rows.append((node, operands, made))
    return recomputed(case, rows)


def with_variant(case, key, value):
    new = copy.copy(case)
    new.variant = {**case.variant, key: value}
    return new


def without_hint(case, name):
    new = copy.copy(case)
    new.hints = {n: h for n, h in case.hints.items() if n != name}
    return new


def shrink(runner, case, path, most=400):
    """The smallest case that was found, and what is wrong with it."""
    kind = failure(runner, case, path)
    tries, again = 0, bool(kind)
    while again and tries < most:
        again = False
        for step in steps(case):
            try:
                smaller = step()
            except (Refused, KeyError, StopIteration, ValueError):
                continue
            tries += 1
            if smaller is not None and failure(runner, smaller, path) == kind:
                case, again = smaller, True
                break
            if tries >= most:
                break
    return case, kind

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The importer beside the schemas of ONNX: what it lacks, and what it would pass over in silence.

usage: audit.py WEFT [FOLDER]

First the tables (weft opt --list-onnx) beside every op and version of ONNX's own domain since opset 7: ops and versions
without a row, and rows that take fewer inputs than their schema.

Then, with the folder of the backend's node tests: each model of one node is imported as it is, and again with one thing
changed: each attribute, one that nobody knows, and an input more. Every change must change the graph or be refused; one
that does neither is a mistake here, unless REASONS says why it may be. Exits with 1 if there is one, with 77 without
the onnx package. The list of what is missing is a report and no failure.
"""
import collections
import glob
import os
import subprocess
import sys
import tempfile

try:
    import onnx
    from onnx import AttributeProto, defs, helper, numpy_helper
except ImportError:
    sys.exit(77)

FIRST, LAST = 7, 28

# Attributes that may change nothing, and why.
REASONS = {
    "stash_type": "every norm and range computes in f32 at least",
    "softmax_precision": "it is never less than asked for",
    "hidden_size": "the weights say it",
    "chunk_size": "a hint for another algorithm",
    "round_mode": "of a type that is refused",
    "saturate": "of 8-bit floats alone",
    "consumed_inputs": "has no meaning",
    "seed": "of a node that draws no numbers",
}
# The same for one op.
REASONS_OF_OP = {
    ("Resize", "cubic_coeff_a"): "of mode cubic alone",
    ("Resize", "exclude_outside"): "of mode cubic and antialias alone",
    ("Resize", "extrapolation_value"): "of tf_crop_and_resize alone",
    ("Resize", "nearest_mode"): "of mode nearest alone",
    ("Resize", "keep_aspect_ratio_policy"): "of sizes alone",
    ("Resize", "antialias"): "of shrinking alone",
    ("Attention", "kv_num_heads"): "of 3 axes alone",
    ("Attention", "q_num_heads"): "of 3 axes alone",
    ("Attention", "qk_matmul_output_mode"): "of an output that few ask for",
    ("BatchNormalization", "momentum"): "of training alone",
    ("Bernoulli", "dtype"): "the type that the input has",
    ("Concat", "axis"): "the one axis by its other number",
    ("DequantizeLinear", "axis"): "of scales that are no scalar",
    ("DequantizeLinear", "block_size"): "of scales in blocks",
    ("DequantizeLinear", "output_dtype"): "the type that the scale has",
    ("Dropout", "ratio"): "of training alone",
    ("Gemm", "beta"): "of a third input",
    ("MaxPool", "storage_order"): "of indices, which few ask for",
    ("QuantizeLinear", "axis"): "of scales that are no scalar",
    ("QuantizeLinear", "block_size"): "of scales in blocks",
    ("QuantizeLinear", "precision"): "the type that the scale has",
    ("Reshape", "allowzero"): "of shapes with a 0",
    ("RotaryEmbedding", "num_heads"): "of 3 axes alone",
    ("Shape", "end"): "it is cut to the axes that there are",
    ("Shape", "start"): "it is cut to the axes that there are",
}


def table(weft):
    rows = collections.defaultdict(list)
    listed = subprocess.run([weft, "opt", "--list-onnx"], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        words = line.split()
        if not line.startswith("#") and "." not in words[0]:
            rows[words[0]].append((int(words[1]), int(words[2]), int(words[3])))
    return rows


def schemas():
    versions = collections.defaultdict(dict)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= LAST:
            versions[schema.name][schema.since_version] = schema
    return versions


def compare_tables(rows):
    for name, versions in sorted(schemas().items()):
        if name not in rows:
            print(f"no row: {name}, since {sorted(versions)}")
            continue
        since = sorted(versions)
        for i, version in enumerate(since):
            last = since[i + 1] - 1 if i + 1 < len(since) else LAST
            schema = versions[version]
            fitting = [row for row in rows[name] if row[0] <= max(version, FIRST)]
            if last < FIRST:
                continue
            if not fitting:
                print(f"no row: {name} of opsets {version} to {last}")
                continue
            most = -1 if schema.max_input > 1000 else schema.max_input
            row = max(fitting)
            if row[2] >= 0 and (most < 0 or most > row[2]):
                print(f"inputs: {name} of opset {version} has up to {most}, the row takes {row[2]}")


def text_of(weft, model, folder):
    """The graph as text, or None where it is refused."""
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    done = subprocess.run([weft, "opt", path], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def with_small_constants(case):
    """The model of a case, with its inputs of at most one axis as constants."""
    model = onnx.load(case + "/model.onnx")
    for i, value in reversed(list(enumerate(model.graph.input))):
        path = f"{case}/test_data_set_0/input_{i}.pb"
        if not value.type.HasField("tensor_type") or not os.path.exists(path):
            continue
        tensor = onnx.TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        if len(tensor.dims) <= 1 and len(model.graph.input) > 1 and i > 0:
            tensor.name = value.name
            model.graph.initializer.append(tensor)
            del model.graph.input[i]
    return model


def other_value(schema_attribute, given):
    """Another value of an attribute than the given one or the default; None where there is no telling."""
    kind = schema_attribute.type.value
    if given is None and schema_attribute.default_value.type:
        given = helper.get_attribute_value(schema_attribute.default_value)
    if kind == AttributeProto.INT:
        return {0: 1, 1: 0}.get(given, (given or 0) + 1)
    if kind == AttributeProto.FLOAT:
        return (given or 0.0) + 0.375
    if kind == AttributeProto.STRING:
        return "nothing_of_that_name"
    if kind == AttributeProto.INTS and given:
        return list(given[:-1]) + [given[-1] + 1]
    if kind == AttributeProto.FLOATS and given:
        return list(given[:-1]) + [given[-1] + 0.375]
    return None


def changes(model, schema):
    """Pairs of a word for the change, and the changed model."""
    given = {a.name: helper.get_attribute_value(a) for a in model.graph.node[0].attribute}
    for name, attribute in schema.attributes.items():
        value = other_value(attribute, given.get(name))
        if value is None:
            continue
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        node = changed.graph.node[0]
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend(kept + [helper.make_attribute(name, value)])
        yield name, changed
    for name in ("an unknown attribute", "an input more"):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        node = changed.graph.node[0]
        if name == "an unknown attribute":
            node.attribute.append(helper.make_attribute("nobody_knows", 1))
        elif schema.max_input < 1000 and node.input:
            node.input.extend([""] * (schema.max_input - len(node.input)) + [node.input[0]])
        yield name, changed


def try_changes(weft, cases):
    silent = collections.defaultdict(set)
    tried = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            model = with_small_constants(case)
            opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
            node = model.graph.node[0] if len(model.graph.node) == 1 else None
            if node is None or node.domain not in ("", "ai.onnx"):
                continue
            schema = defs.get_schema(node.op_type, opset)
            before = text_of(weft, model, folder)
            if before is None:
                refused += 1
                continue
            for name, changed in changes(model, schema):
                tried += 1
                forgiven = name in REASONS or (node.op_type, name) in REASONS_OF_OP
                if node.op_type.startswith("Reduce"):  # of no axes alone, or of one that stays
                    forgiven = forgiven or name in ("noop_with_empty_axes", "keepdims")
                variadic = name == "an input more" and (schema.max_input >= 1000 or not node.input)
                if not forgiven and not variadic and text_of(weft, changed, folder) == before:
                    silent[(node.op_type, name)].add(os.path.basename(case))
    for (op, name), where in sorted(silent.items()):
        print(f"silent: {op}, {name}: no change and no error in {len(where)} cases, such as {sorted(where)[0]}")
    print(f"{tried} changes, {len(silent)} silent; {refused} models are refused as they are")
    return not silent


def main():
    compare_tables(table(sys.argv[1]))
    if len(sys.argv) > 2:
        cases = sorted(os.path.dirname(path) for path in glob.glob(sys.argv[2] + "/*/model.onnx"))
        sys.exit(0 if try_changes(sys.argv[1], cases) else 1)


main()

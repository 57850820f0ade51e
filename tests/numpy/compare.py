# SPDX-License-Identifier: Apache-2.0
"""Compares the reference evaluator with numpy and torch, op by op.

    compare.py path/to/weft [seed [op…]]

Every op of `weft opt --list-ops` has a case here or a reason below why there is none; an op with neither fails. The
seed is printed; with ops named, only their cases run. Without numpy nothing runs (exit code 77: skipped); without torch
the ops that need it are skipped, and named. `./dev help` says where to get both. Closes with `N passed, N failed, N
skipped`."""
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIP: python3 has no numpy, so the evaluator is not compared; apt-get install python3-numpy, and "
          "`pip install torch` for the ops that numpy lacks")
    sys.exit(77)

sys.dont_write_bytecode = True  # nothing appears beside the sources

import elementwise
import shapes
import windows

REASONS = {
    "rand_uniform": "numbers of a generator that FORMAT.md defines; tests/unit holds it to the published vectors",
    "rand_normal": "as rand_uniform",
    "bernoulli": "as rand_uniform",
    "multinomial": "as rand_uniform",
    "nms": "neither numpy nor torch has it; the ONNX backend tests do",
    "deform_conv": "neither numpy nor torch has it; the ONNX backend tests do",
    "roi_align": "neither numpy nor torch has it; the ONNX backend tests do",
    "roi_max_pool": "neither numpy nor torch has it; the ONNX backend tests do",
    "lstm": "torch orders gates and biases otherwise, and has no peepholes or clips; the ONNX backend tests do",
    "gru": "as lstm",
    "rnn": "as lstm",
    "search_sorted": "held to hand-computed values by tests/unit",
    "custom": "computes what the caller's function computes",
}


def table_errors(weft, compared):
    """Ops that are neither compared nor excused, or both, or unknown."""
    listed = subprocess.run([weft, "opt", "--list-ops"], capture_output=True, text=True, check=True).stdout
    ops = {line.split()[0] for line in listed.splitlines() if line and not line.startswith("#")}
    missing = ops - compared - set(REASONS)
    if windows.torch is None:
        missing -= set(windows.NEED_TORCH)
    return ([f"{op}: has neither a case nor a reason" for op in sorted(missing)] +
            [f"{op}: has a case and a reason against one" for op in sorted(compared & set(REASONS))] +
            [f"{op}: has a reason but is no op" for op in sorted(set(REASONS) - ops)])


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    wanted = sys.argv[3:]
    np.seterr(all="ignore")
    print(f"seed {seed}")
    passed, errors, compared = 0, [], set()
    with tempfile.TemporaryDirectory() as folder:
        for part in (elementwise, shapes, windows):
            for case in part.cases(np.random.default_rng(seed)):
                compared.add(case.op)
                if wanted and case.op not in wanted:
                    continue
                try:
                    case.check(sys.argv[1], folder)
                    passed += 1
                except (AssertionError, RuntimeError) as error:
                    errors.append(f"{case.name()}: {error}")
    errors += table_errors(sys.argv[1], compared)
    print("\n".join(errors))
    skipped = 0
    if windows.torch is None:
        skipped = len(windows.NEED_TORCH)
        print(f"SKIP: python3 has no torch, so these are not compared: {', '.join(windows.NEED_TORCH)}")
    print(f"{passed} passed, {len(errors)} failed, {skipped} skipped")
    return len(errors) > 0 or passed == 0


sys.exit(main())

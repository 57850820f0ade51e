#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gradient of attention as one kernel beside the five products and the elementwise ops that it is made of.

    bench/attention_grad.py [--threads 2] [--rounds 3] [--cpu LEVEL] [CASE...]

Each case is batch, heads, length, width; operands and results lie as [batch, tokens, heads, width], as a transformer
has them. Both take turns, and the least time of all turns counts, in milliseconds. The logarithms of sums are random
numbers like the rest: no time depends on what they are."""
import argparse
import json
import os
import subprocess
import tempfile

CASES = {  # name: batch, heads, length, width, causal
    "128": (4, 8, 128, 64, 0),
    "128-causal": (4, 8, 128, 64, 1),
    "197": (1, 12, 197, 64, 0),
    "512": (1, 8, 512, 64, 0),
    "512-causal": (1, 8, 512, 64, 1),
    "1024": (1, 12, 1024, 64, 0),
    "1024-causal": (1, 12, 1024, 64, 1),
    "one-head": (1, 1, 1024, 64, 0),
    "windows": (64, 3, 49, 32, 0),
}


def graph(fused, batch, heads, length, width, causal):
    value, lies = f"f32[{batch},{heads},{length},{width}]", f"f32[{batch},{length},{heads},{width}]"
    shape, rows = f"{batch},{heads},{length},{length}", f"f32[{batch},{heads},{length}]"
    scores, factor = f"f32[{shape}]", width ** -0.5
    params = ", ".join(f"%{name}.in: {lies}" for name in "dqkvy")
    lines = [f"graph @gradient({params}, %l: {rows}) {{"]
    lines += [f"  %{name}: {value} = transpose %{name}.in perm=[0 2 1 3]" for name in "dqkvy"]
    if fused:
        lines.append(f"  %dq: {value}, %dk: {value}, %dv: {value} = attention_grad %d, %q, %k, %v, %y, %l "
                     f"factor={factor} causal={causal}")
    else:
        lines += [f"  %product: {scores} = matmul %q, %k trans_b=1", f"  %factor: {scores} = const value={factor}",
                  f"  %all: {scores} = mul %product, %factor"]
        if causal:
            lines += [f"  %row: i64[{shape}] = iota axis=2", f"  %key: i64[{shape}] = iota axis=3",
                      f"  %sees: bool[{shape}] = ge %row, %key", f"  %never: {scores} = const value=-inf",
                      f"  %seen: {scores} = select %sees, %all, %never"]
        lines += [f"  %sums: {scores} = bcast %l dims=[0 1 2]",
                  f"  %x: {scores} = sub {'%seen' if causal else '%all'}, %sums", f"  %w: {scores} = exp %x",
                  f"  %dv: {value} = matmul %w, %d trans_a=1", f"  %change: {scores} = matmul %d, %v trans_b=1",
                  f"  %both: {value} = mul %d, %y", f"  %delta: {rows} = sum %both axes=[3]",
                  f"  %deltas: {scores} = bcast %delta dims=[0 1 2]", f"  %less: {scores} = sub %change, %deltas",
                  f"  %slope: {scores} = mul %w, %less", f"  %z: {scores} = mul %slope, %factor",
                  f"  %dq: {value} = matmul %z, %k", f"  %dk: {value} = matmul %z, %q trans_a=1"]
    lines += [f"  %{name}.out: {lies} = transpose %{name} perm=[0 2 1 3]" for name in ("dq", "dk", "dv")]
    return "\n".join(lines + ["  return %dq.out, %dk.out, %dv.out", "}", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu")
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    options = parser.parse_args()
    weft = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "weft")
    more = ["--cpu", options.cpu] if options.cpu else []
    print("| case | ms | GF/s | composed, ms | composed / one |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.cases:
            batch, heads, length, width, causal = CASES[name]
            least = {}
            for fused in (True, False):
                with open(os.path.join(folder, f"{fused}.weft"), "w", encoding="utf-8") as file:
                    file.write(graph(fused, *CASES[name]))
            for _ in range(options.rounds):
                for fused in (True, False):
                    made = subprocess.run([weft, "bench", os.path.join(folder, f"{fused}.weft"), "--json",
                                           "--no-verify", "--threads", options.threads, *more],
                                          capture_output=True, text=True, check=True).stdout
                    least[fused] = min(least.get(fused, 1e9), json.loads(made)["min_ms"])
            flops = 10 * batch * heads * length ** 2 * width * (0.5 if causal else 1)
            print(f"| {name} | {least[True]:.2f} | {flops / least[True] / 1e6:.0f} | {least[False]:.2f} | "
                  f"{least[False] / least[True]:.2f} |", flush=True)


if __name__ == "__main__":
    main()

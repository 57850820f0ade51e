#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention as one kernel beside its products and softmax apart (WEFT_SKIP=fuse_attention.matmul), and beside torch.

    bench/attention.py [--threads 2] [--rounds 5] [PATTERN...]

Each case is batch, heads, groups, queries, keys, width; q, k, v and the result lie as [batch, tokens, heads * width],
as a transformer has them, or keys and values as [batch, groups, tokens, width], as a cache has them. Variants take
turns, and the least time of each turn counts; printed are medians of turns in microseconds, and medians of ratios
within a turn. torch is scaled_dot_product_attention, where it is installed."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

CASES = {  # name: batch, heads, groups, queries, keys, width, mask; is there a cache
    "128": (1, 12, 12, 128, 128, 64, False, False),
    "128-mask": (1, 12, 12, 128, 128, 64, True, False),
    "197": (1, 12, 12, 197, 197, 64, False, False),
    "1024": (1, 12, 12, 1024, 1024, 64, False, False),
    "1024-mask": (1, 12, 12, 1024, 1024, 64, True, False),
    "batch-8": (8, 12, 12, 128, 128, 64, False, False),
    "windows": (64, 3, 3, 49, 49, 32, False, False),
    "grouped": (1, 32, 8, 64, 64, 128, False, False),
    "decode": (1, 16, 16, 1, 1024, 64, False, False),
    "decode-grouped": (1, 14, 2, 1, 1024, 64, False, False),
    "decode-cache": (1, 16, 16, 1, 1024, 64, False, True),
    "decode-cache-grouped": (1, 14, 2, 1, 1024, 64, False, True),
    "decode-batch": (8, 32, 8, 1, 256, 128, True, True),
    "decode-4096": (1, 16, 16, 1, 4096, 64, False, True),
    "decode-16384": (1, 32, 8, 1, 16384, 128, False, True),
    "4096": (1, 4, 4, 4096, 4096, 64, False, False),
}


def graph(batch, heads, groups, queries, keys, width, mask, cache):
    """The text of a graph that computes it by products and a softmax."""
    q, k = f"{batch},{heads},{queries}", f"{batch},{groups},{keys}"
    repeat = heads // groups
    lines = [f"  %qt: f32[{q},{width}] = transpose %q perm=[0 2 1 3]"]
    key, value = ("%k", "%v") if cache else ("%kt", "%vt")
    if not cache:
        lines += [f"  %{name}t: f32[{k},{width}] = transpose %{name} perm=[0 2 1 3]" for name in "kv"]
    if repeat > 1:
        wide = f"{batch},{groups},{repeat},{keys},{width}"
        for name, x in ("k", key), ("v", value):
            lines.append(f"  %{name}w: f32[{wide}] = bcast {x} dims=[0 1 3 4]")
            lines.append(f"  %{name}r: f32[{batch},{heads},{keys},{width}] = reshape %{name}w")
        key, value = "%kr", "%vr"
    scores = f"f32[{q},{keys}]"
    lines += [f"  %s: {scores} = matmul %qt, {key} trans_b=1", f"  %c: {scores} = const value={width ** -0.5}",
              f"  %f: {scores} = mul %s, %c"]
    if mask:
        lines += [f"  %mb: {scores} = bcast %m dims=[2 3]", f"  %a: {scores} = add %f, %mb"]
    lines += [f"  %w: {scores} = softmax {'%a' if mask else '%f'} axis=3",
              f"  %y: f32[{q},{width}] = matmul %w, {value}",
              f"  %z: f32[{batch},{queries},{heads},{width}] = transpose %y perm=[0 2 1 3]"]
    rows = f"{batch},{groups},{keys},{width}" if cache else f"{batch},{keys},{groups},{width}"
    parameters = [f"%q: f32[{batch},{queries},{heads},{width}]", f"%k: f32[{rows}]", f"%v: f32[{rows}]"]
    if mask:
        parameters.append(f"%m: f32[{queries},{keys}]")
    return "weft 1\ngraph @attention(" + ", ".join(parameters) + ") {\n" + "\n".join(lines) + "\n  return %z\n}\n"


def weft(program, path, threads, skip):
    """The least time of a run, microseconds."""
    environment = dict(os.environ, WEFT_SKIP="fuse_attention.matmul" if skip else "")
    out = subprocess.run([program, "bench", path, "--threads", str(threads), "--seconds", "0.5", "--json"],
                         env=environment, capture_output=True, text=True, check=True).stdout
    return json.loads(out)["min_ms"] * 1e3


def torch_of(case, threads):
    """A function that times torch once, or None where there is no torch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(threads)
    batch, heads, groups, queries, keys, width, mask, cache = case
    q = torch.randn(batch, queries, heads, width).transpose(1, 2)
    k, v = (torch.randn(batch, keys, groups, width).transpose(1, 2) for _ in range(2))
    if cache:
        k, v = k.contiguous(), v.contiguous()
    m = torch.randn(queries, keys) if mask else None

    def run():
        times, end = [], time.perf_counter() + 0.3
        with torch.inference_mode():
            while time.perf_counter() < end or len(times) < 3:
                begin = time.perf_counter()
                torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=m, enable_gqa=heads != groups)
                times.append(time.perf_counter() - begin)
        return min(times) * 1e6
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--weft", default=os.path.join(os.path.dirname(__file__), "..", "build", "weft"))
    parser.add_argument("patterns", nargs="*", help="parts of names of cases")
    arguments = parser.parse_args()
    print(f"{'case':22}{'one us':>10}{'apart us':>10}{'apart/one':>10}{'torch/one':>10}{'GFLOP/s':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if arguments.patterns and not any(p in name for p in arguments.patterns):
                continue
            path = os.path.join(folder, name + ".weft")
            with open(path, "w", encoding="ascii") as file:
                file.write(graph(*case))
            peer = torch_of(case, arguments.threads)
            rounds = []
            for _ in range(arguments.rounds):
                one = weft(arguments.weft, path, arguments.threads, False)
                apart = weft(arguments.weft, path, arguments.threads, True)
                rounds.append((one, apart, apart / one, peer() / one if peer else float("nan")))
            one, apart, ratio, other = (statistics.median(column) for column in zip(*rounds))
            batch, heads, _, queries, keys, width, _, _ = case
            rate = 4 * batch * heads * queries * keys * width / one * 1e-3
            print(f"{name:22}{one:10.1f}{apart:10.1f}{ratio:10.2f}{other:10.2f}{rate:10.0f}", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown from what `weft-check --bench --json` printed, of one run or several.

    build/weft-check --bench --json gemm >out/gemm.json
    python3 bench/kernel_tables.py out/gemm.json [--cases]

By group and number of threads: our share of the machine's limit, and times of the plain loops and of the best peer over
ours, each as geometric mean and worst case. A case that was measured more than once counts as it was last. --cases adds
a table of all cases.
"""

import argparse
import json
import math
from pathlib import Path


def read(paths):
    cases = {}
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if "kernel" in row:
                cases[row["group"], row["threads"], row["family"], row["case"]] = row
    return list(cases.values())


def mean_and_worst(rows, key, scale=1.0, unit=""):
    have = [row for row in rows if row.get(key, 0) > 0]
    if not have:
        return "- | - | -"
    mean = math.exp(sum(math.log(row[key]) for row in have) / len(have))
    worst = min(have, key=lambda row: row[key])
    digits = 0 if unit else 2
    return f"{scale * mean:.{digits}f}{unit} | {scale * worst[key]:.{digits}f}{unit} | {worst['case']}"


def print_groups(rows):
    print("| group | threads | cases | of the limit | worst | of | best peer over ours | worst | of "
          "| plain loops over ours |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for group, threads in dict.fromkeys((row["group"], row["threads"]) for row in rows):
        own = [row for row in rows if (row["group"], row["threads"]) == (group, threads)]
        loops = mean_and_worst(own, "ref").split(" | ")[0]
        print(f"| {group} | {threads} | {len(own)} | {mean_and_worst(own, 'limit', 100, ' %')} "
              f"| {mean_and_worst(own, 'best')} | {loops} |")


def print_cases(rows):
    peers = [key for key in ("onednn", "onednn-own", "openblas") if any(key in row for row in rows)]
    print(f"\n| case | threads | kernel | us | rate | of the limit | {' | '.join(peers)} |")
    print("|---|---|---|---|---|---|" + "---|" * len(peers))
    for row in rows:
        ratios = " | ".join(f"{row[key]:.2f}" if key in row else "-" for key in peers)
        print(f"| {row['case']} | {row['threads']} | {row['kernel'].removeprefix('weft_')} | {row['us']:.1f} "
              f"| {row['rate']:.1f} {row['unit']} | {100 * row['limit']:.0f} % {row['bound']} | {ratios} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--cases", action="store_true")
    arguments = parser.parse_args()
    rows = read(arguments.files)
    print_groups(rows)
    if arguments.cases:
        print_cases(rows)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What layouts are predicted to cost, beside what they cost: row-major, channels-last throughout, as chosen.

    python3 bench/layouts.py [--weft build/weft] [--threads N] [--rounds N] [--seconds S] MODEL...
    python3 bench/layouts.py --choices [cases] [gqa] [swin] [random] [random:101]…

Row-major is the plan without propagate_memory_format; channels-last is forced by prices that make row-major kernels a
hundred times as dear. Each round is a process of each in turns, as memory lies differently in each; times are medians
over rounds of a process's median, ratios medians of the ratios of a round. Plans that are the same, step by step, are
measured as one, since the same plan differs by up to a tenth from process to process. Predictions are in the remark
"weighed" of weft explain; they leave out what is the same in every layout. WEFT_PRICES holds as for every command.

--choices: whether what is chosen is the best of four plans (bench/choices.c), for the graphs of bench/layout_graphs.py.
The four take turns within a process, a round is a process for all graphs; the ratio is that to the plan beside which
the chosen one looks worst, by the median of the rounds.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import layout_graphs

VARIANTS = ("row-major", "channels-last", "chosen")
DEARER = 100
ENOUGH = 1.03  # times the best of four plans


def run(weft, words, extra=None):
    done = subprocess.run([weft, *words], env={**os.environ, **(extra or {})}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"layouts.py: {weft} {' '.join(words)}:\n{done.stderr}")
    return done.stdout


def forced_prices(weft, threads, folder):
    """The shipped prices, but for row-major kernels."""
    path = os.path.join(folder, "forced.prices")
    run(weft, ["calibrate", "--shipped", "-o", path, *threads])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"^(\w+_first) (\d+)$", lambda m: f"{m[1]} {int(m[2]) * DEARER}", text, flags=re.M)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def predicted(weft, model, threads):
    """Milliseconds by variant, or None where no layout is at stake."""
    amount = r"(nothing|[\d.]+ us)"
    weighed = rf"weighed: {amount} as chosen(?: \([^)]*\))?, {amount} row-major throughout, {amount} channels-last"
    found = re.search(weighed, run(weft, ["explain", model, *threads]))
    us = [0 if text == "nothing" else float(text.split()[0]) for text in found.groups()] if found else []
    return found and dict(zip(VARIANTS, (us[i] / 1000 for i in (1, 2, 0))))


def plan_of(weft, model, threads, extra):
    """What the steps are and how their results are stored."""
    return [line for line in run(weft, ["explain", model, *threads], extra).splitlines() if line.startswith("  now ")]


def measured(options, model, threads, forced):
    extra = {"row-major": {"WEFT_SKIP": "propagate_memory_format"}, "channels-last": {"WEFT_PRICES": forced},
             "chosen": {}}
    plans = {variant: plan_of(options.weft, model, threads, extra[variant]) for variant in VARIANTS}
    like = {v: next(u for u in VARIANTS if plans[u] == plans[v]) for v in VARIANTS}
    distinct = sorted(set(like.values()), key=VARIANTS.index)
    times = {variant: [] for variant in distinct}
    words = ["bench", model, "--json", "--no-verify", "--seconds", str(options.seconds), *threads]
    for turn in range(options.rounds):
        for i in range(len(distinct)):
            variant = distinct[(turn + i) % len(distinct)]
            times[variant].append(json.loads(run(options.weft, words, extra[variant]))["median_ms"])
    return {variant: times[like[variant]] for variant in VARIANTS}


def ratio_of(lines):
    """How long the chosen plan takes beside the best of all, each by its median over processes."""
    return max(statistics.median(line["ms"]["chosen"] / line["ms"][plan] for line in lines) for plan in lines[0]["ms"])


def check_choices(options, threads, forced, folder):
    timer = os.path.join(os.path.dirname(options.weft), "tests", "bench_choices")
    print("| graphs | number | within 3 % | the others |")
    print("|---|---|---|---|")
    for name, paths in layout_graphs.write(folder, options.models or list(layout_graphs.SETS)).items():
        words = [*threads, "--seconds", str(options.seconds), "--forced", forced, *paths]
        rounds = [[json.loads(line) for line in run(timer, words).splitlines()] for _ in range(options.rounds)]
        ratios = {os.path.basename(lines[0]["file"])[:-5]: ratio_of(lines) for lines in zip(*rounds)}
        worse = sorted(((ratio, graph) for graph, ratio in ratios.items() if ratio > ENOUGH), reverse=True)
        others = ", ".join(f"{graph} {ratio:.2f}" for ratio, graph in worse)
        print(f"| {name} | {len(ratios)} | {len(ratios) - len(worse)} | {others} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--choices", action="store_true")
    parser.add_argument("--weft", default="build/weft")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    threads = ["--threads", str(options.threads)] if options.threads else []
    if options.choices:
        if not all(map(layout_graphs.is_set, options.models)):
            parser.error(f"sets are {', '.join(layout_graphs.SETS)}, random:101 …")
        with tempfile.TemporaryDirectory() as folder:
            check_choices(options, threads, forced_prices(options.weft, threads, folder), folder)
        return
    if not options.models:
        parser.error("models are missing")
    print("| model | predicted ms: row-major | channels-last | chosen "
          "| measured ms: row-major | channels-last | chosen | chosen / better |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        forced = forced_prices(options.weft, threads, folder)
        for model in options.models:
            name = os.path.basename(model)
            name = os.path.basename(os.path.dirname(os.path.abspath(model))) if name == "model.onnx" else name
            prices = predicted(options.weft, model, threads)
            if not prices:
                print(f"| {name} | no layout is at stake | | | | | | |", flush=True)
                continue
            times = measured(options, model, threads, forced)
            better = min(VARIANTS[:2], key=lambda variant: statistics.median(times[variant]))
            ratio = statistics.median(a / b for a, b in zip(times["chosen"], times[better]))
            cells = [f"{prices[v]:.3f}" for v in VARIANTS] + [f"{statistics.median(times[v]):.3f}" for v in VARIANTS]
            print(f"| {name} | {' | '.join(cells)} | {ratio:.3f} |", flush=True)


if __name__ == "__main__":
    main()

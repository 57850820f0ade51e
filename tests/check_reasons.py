# SPDX-License-Identifier: Apache-2.0
"""What remarks say is what the documents explain: docs/reasons.md has every reason of a refusal that the sources below
have, and no other; docs/explain.md has every verdict, and no other.

usage: check_reasons.py SOURCE"""
import glob
import os
import re
import sys

source = sys.argv[1]
# Whoever refuses, and whoever finds the reasons for them.
GIVERS = ["sched/*.[ch]", "passes/fuse*.c", "passes/match_attention.c", "passes/open_groups.c",
          "passes/propagate_copies.c", "codegen/axes.c", "codegen/fit.c", "codegen/strips.c"]
# Messages of other kinds: about files of prices, errors of targets that callers register, assertions.
OTHERS = ["sched/prices.c", "sched/target.c", "sched/step_own.c", "sched/step.h"]
# Texts that stand around reasons, or say what was done.
NO_REASONS = {"… …", "… …: …", "group of … nodes: …", "not joined with …: …", "not joined with …, which …",
              "not overwritten by", "copied into", "computed inside …", "computed where … is written over it…",
              "computed in the memory of …", "group of … nodes: as one … us, one by one … us",
              "part of the attention that computes …", "softmax(q * k') * v, whose scores need not be stored",
              "chunks of … rows: … KiB are not read again, chunks come to … KiB",
              "by element", "sums of columns", "one chain", "lanes=… slices=…", "transposed convolution",
              "convolution gradient"}
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|#include[^\n]*|'(?:\\.|[^'\\])'|\"((?:\\.|[^\"\\])*)\"", re.S)


def read(path):
    with open(os.path.join(source, path), encoding="utf-8") as text:
        return text.read()


def strings(text):
    """The string literals of C, each with where it ends; those that stand side by side are one."""
    found = []
    for match in TOKEN.finditer(text):
        if match.group(1) is None:
            continue
        if found and not text[found[-1][1]:match.start()].strip():
            found[-1] = (found[-1][0] + match.group(1), match.end())
        else:
            found.append((match.group(1), match.end()))
    return found


def as_shown(text):
    """With an ellipsis for each name or number, or for several without a word between them."""
    text = re.sub(r"%?%[-0-9.*]*(?:l|ll|z)?[diufsx]|%%", "…", text)
    return re.sub("…+", "…", text)


def reasons_of_sources():
    found = {}
    paths = {os.path.relpath(path, source) for giver in GIVERS for path in glob.glob(os.path.join(source, giver))}
    for path in sorted(paths - set(OTHERS)):
        for text, _ in strings(read(path)):
            if " " in text and re.match("[a-z%]", text):
                found.setdefault(as_shown(text), path)
    return {text: path for text, path in found.items() if text not in NO_REASONS}


def first_cells(text, head):
    """What stands in backticks in the first column of tables that begin with this word."""
    found, inside = [], False
    for line in text.splitlines():
        cells = line.split("|")
        inside = line.startswith("|") and (inside or cells[1].strip() == head)
        if inside:
            found += re.findall("`([^`]+)`", cells[1])
    return found


def arguments(text, start):
    """Those of the call whose parenthesis was opened before `start`."""
    found, depth, at = [""], 0, start
    while depth >= 0:
        string = re.compile(r'"(?:\\.|[^"\\])*"').match(text, at)
        piece = string.group() if string else text[at]
        depth += (piece in "([{") - (piece in ")]}")
        if piece == "," and depth == 0:
            found.append("")
        elif depth >= 0:
            found[-1] += piece
        at += len(piece)
    return found


def verdicts_of_sources():
    """The words of the fourth argument of whoever makes a remark, and of the third of note() in one pass."""
    found = set()
    for folder in ("ir", "onnx", "passes", "plan", "runtime", "sched"):
        for path in glob.glob(os.path.join(source, folder, "*.c")):
            text = read(os.path.relpath(path, source))
            for call in re.finditer(r"\b(weft_add_remark(?:_at)?|note)\(", text):
                verdict = arguments(text, call.end())[2 if call.group(1) == "note" else 3:][:1]
                found.update(word for word, _ in strings(verdict[0] if verdict else ""))
    return found


def differ(what, sources, documents):
    missing = [f"{text}  ({sources[text]})" for text in sources if text not in documents]
    stale = [text for text in documents if text not in sources]
    for text in missing:
        print(f"{what} does not explain: {text}")
    for text in stale:
        print(f"{what} explains what nobody says: {text}")
    return bool(missing or stale)


reasons = first_cells(read("docs/reasons.md"), "reason")
failed = differ("docs/reasons.md", reasons_of_sources(), reasons)
twice = {text for text in reasons if reasons.count(text) > 1}
for text in sorted(twice):
    print(f"docs/reasons.md explains twice: {text}")
written = verdicts_of_sources()
explained = first_cells(read("docs/explain.md"), "verdict")
failed |= differ("docs/explain.md", {word: "a verdict" for word in sorted(written)}, set(explained))
print("1 passed, 0 failed, 0 skipped" if not failed and not twice else "0 passed, 1 failed, 0 skipped")
sys.exit(bool(failed or twice))

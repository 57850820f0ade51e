# SPDX-License-Identifier: Apache-2.0
"""_c.py beside the headers: every structure, constant and function, by a C compiler and by reading them."""

from __future__ import annotations

import ctypes as C
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weft import _c, graph

REPOSITORY = Path(__file__).parents[2]

HEADERS = REPOSITORY / "include" / "weft"
compiler = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(not HEADERS.is_dir(), reason="the headers are not there: not a clone")


def header_text() -> str:
    text = "\n".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def c_name(kind: type) -> str:
    """CompileOptions: struct weft_compile_options; Val: weft_val."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
    name = "weft_" + ("diagnostic" if kind is _c.CDiagnostic else words)
    return name if kind in (_c.Val, _c.Node, _c.Dim) else "struct " + name


STRUCTURES = [kind for name, kind in vars(_c).items()
              if isinstance(kind, type) and issubclass(kind, C.Structure) and kind is not C.Structure]


def members(kind: type) -> list[tuple[str, int, int]]:
    """Name, offset and size of each member; those of a union are members of the structure around it."""
    found = []
    for name, field in kind._fields_:
        if name in getattr(kind, "_anonymous_", ()):
            found += [(inner, getattr(kind, inner).offset, getattr(kind, inner).size) for inner, _ in field._fields_]
        else:
            found.append((name, getattr(kind, name).offset, getattr(kind, name).size))
    return found


CONSTANTS = {name: value for name, value in vars(_c).items() if re.fullmatch(r"[A-Z][A-Z0-9_]*", name)
             and isinstance(value, int) and not name.startswith("_")}


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> dict[str, int]:
    """What the compiler says of sizes, offsets and constants."""
    if compiler is None:
        pytest.skip("no C compiler")
    lines = []
    for kind in STRUCTURES:
        name = c_name(kind)
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{m} %zu\\n", offsetof({name}, {m}));\n'
                  f'printf("{name}.{m}.size %zu\\n", sizeof((({name} *)0)->{m}));' for m, _, _ in members(kind)]
    lines += [f'printf("{name} %lld\\n", (long long)WEFT_{name});' for name in CONSTANTS]
    folder = tmp_path_factory.mktemp("abi")
    (folder / "print.c").write_text("#include <stdio.h>\n#include <weft/weft.h>\n#include <weft/viz.h>\n"
                                    "int main(void)\n{\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    program = folder / "print"
    subprocess.run([compiler, "-std=c17", f"-I{HEADERS.parent}", "-o", program, folder / "print.c"], check=True)
    out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {key: int(number) for key, number in (line.rsplit(" ", 1) for line in out.splitlines())}


@pytest.mark.parametrize("kind", STRUCTURES, ids=lambda kind: kind.__name__)
def test_structure(kind, told):
    name = c_name(kind)
    assert C.sizeof(kind) == told[name]
    for member, offset, size in members(kind):
        assert (member, offset, size) == (member, told[f"{name}.{member}"], told[f"{name}.{member}.size"])


def test_every_structure_is_mirrored():
    declared = set(re.findall(r"\bstruct (weft_\w+)\s*\{", header_text()))
    mirrored = {c_name(kind).removeprefix("struct ") for kind in STRUCTURES}
    assert declared == mirrored - {"weft_val", "weft_node", "weft_dim"}


def test_constants(told):
    assert {name: told[name] for name in CONSTANTS} == CONSTANTS


def test_every_constant_is_mirrored():
    text = header_text()
    declared = {word for body in re.findall(r"\benum weft_\w+\s*\{(.*?)\}", text, flags=re.S)
                for word in re.findall(r"\bWEFT_(\w+)\b", body)}
    declared |= set(re.findall(r"#define WEFT_(\w+) +[0-9]", text)) - {"VERSION_NUMBER"}
    assert declared == set(CONSTANTS)


BY_VALUE = {"int": C.c_int, "int64_t": C.c_int64, "uint32_t": C.c_uint32, "size_t": C.c_size_t, "double": C.c_double,
            "char": C.c_char, "unsigned": C.c_uint, "weft_val": _c.Val, "weft_node": _c.Node, "weft_dim": _c.Dim,
            "void": None}


def split(parameters: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(parameters + ","):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(parameters[start:i].strip())
            start = i + 1
    return [part for part in parts if part != "void"]


def fits(declared: str, bound: object) -> bool:
    """Does ctypes' type stand for that of a declaration with or without a name?"""
    if "(*" in declared or "*" in declared:
        is_text = re.match(r"const char \*\w*$", declared)
        return bound is C.c_void_p or (bool(is_text) and bound is C.c_char_p)
    words = [word for word in declared.split() if word != "const"]
    return BY_VALUE[words[0]] is bound


def test_every_function_is_bound():
    declared = {}
    prototype = r"\bWEFT_API\s+([\w\s]+[\s*]+)(weft_\w+)\s*\(((?:[^;()]|\([^;()]*\))*)\);"
    for result, name, parameters in re.findall(prototype, header_text()):
        declared[name] = (" ".join(result.split()), [" ".join(part.split()) for part in split(parameters)])
    bound = {**_c.PROTOTYPES, **_c.VIZ_PROTOTYPES}
    assert set(declared) == set(bound)
    assert len(declared) == len(re.findall(r"^WEFT_API ", header_text(), flags=re.M))
    for name, (result, parameters) in declared.items():
        kinds = bound[name]
        assert fits(result, kinds[0]), name
        assert len(parameters) == len(kinds) - 1, name
        assert all(fits(text, kind) for text, kind in zip(parameters, kinds[1:])), (name, parameters)


def test_kinds_of_attributes():
    rows = re.findall(r"^ATTR\((\w+),\s*(\w+),", (REPOSITORY / "ir" / "attrs.def").read_text(), flags=re.M)
    assert {name for name, kind in rows if kind == "REAL"} == graph.REALS
    assert {name for name, kind in rows if kind == "REALS"} == graph.REAL_LISTS

# SPDX-License-Identifier: Apache-2.0
"""Holds resizing by nearest to exact fractions: which element is taken, for all small extents, kinds of coordinates and
ways to round, with factors that follow from the extents and with stated ones.

    resize.py path/to/weft

Needs nothing but python. Closes with `N passed, N failed`."""
import pathlib
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction
from math import ceil, floor

LARGEST = 9
HALF = Fraction(1, 2)
ROUND = {"prefer_floor": lambda u: ceil(u - HALF), "prefer_ceil": lambda u: floor(u + HALF), "floor": floor,
         "ceil": ceil}
COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_half_pixel_for_nn")
FACTORS = ("0.6", "0.3", "1.4", "0.7", "2.2", "0.35")


def place(coordinates, i, n, m, s):
    """ir/FORMAT.md, `resize`."""
    w = s * n
    pixel = (i + HALF) / s - HALF
    if coordinates == "half_pixel_symmetric":
        return pixel + Fraction(n, 2) * (1 - m / w)
    if coordinates == "pytorch_half_pixel":
        return pixel if m > 1 else Fraction(0)
    if coordinates == "align_corners":
        return Fraction(i * (n - 1)) / (w - 1) if w != 1 else Fraction(0)
    if coordinates == "asymmetric":
        return i / s
    if coordinates == "tf_half_pixel_for_nn":
        return (i + HALF) / s
    return pixel


def cases():
    """(n, m, line of text behind the operand, elements that are taken)"""
    for n in range(1, LARGEST + 1):
        sizes = [(m, Fraction(m, n), "") for m in range(1, LARGEST + 1)]
        sizes += [(floor(Fraction(f) * n), Fraction(f), f" scale=[{f}]") for f in FACTORS if Fraction(f) * n >= 1]
        for m, s, stated in sizes:
            for coordinates in COORDINATES:
                for way, nearest in ROUND.items():
                    wanted = [min(max(nearest(place(coordinates, i, n, m, s)), 0), n - 1) for i in range(m)]
                    yield n, m, f"coordinates={coordinates} nearest={way}{stated}", wanted


def load(path, count):
    """The elements of a one-dimensional f32 array."""
    data = path.read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack(f"<{count}f", data[start:start + 4 * count]))


def save(path, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(values)}f", *values))


def main():
    listed = list(cases())
    lines = [f"  %x{n}: f32[{n}] = slice %x start=[0] end=[{n}]" for n in range(1, LARGEST + 1)]
    lines += [f"  %y{k}: f32[{m}] = resize %x{n} {words}" for k, (n, m, words, _) in enumerate(listed)]
    text = f"graph @f(%x: f32[{LARGEST}]) {{\n" + "\n".join(lines) + "\n  return " + \
           ", ".join(f"%y{k}" for k in range(len(listed))) + "\n}\n"
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "f.weft").write_text(text)
        save(folder / "x.npy", range(LARGEST))
        run = subprocess.run([sys.argv[1], "run", folder / "f.weft", "-i", folder / "x.npy", "-o", folder],
                             capture_output=True, text=True)
        if run.returncode:
            sys.exit(run.stdout[-500:] + run.stderr[-500:])
        for k, (n, m, words, wanted) in enumerate(listed):
            got = load(folder / f"output_{k}.npy", m)
            if got != wanted:
                failed += 1
                print(f"FAIL f32[{n}] to f32[{m}] {words}: {[int(x) for x in got]} instead of {wanted}")
    print(f"{len(listed) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()

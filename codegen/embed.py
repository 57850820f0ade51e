#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes headers as arrays of characters into a C file, without the lines that include weft's own headers.

usage: embed.py OUT NAME=HEADER..."""
import sys


def array(name, path):
    with open(path, encoding='utf-8') as file:
        text = ''.join(line for line in file if not line.startswith('#include "'))
    numbers = [str(byte) if byte < 128 else str(byte - 256) for byte in text.encode('utf-8')] + ['0']
    lines = [','.join(numbers[i:i + 24]) for i in range(0, len(numbers), 24)]
    return 'const char weft_prelude_%s[] = {\n%s};\n' % (name, ',\n'.join(lines))


def main():
    parts = [part.split('=', 1) for part in sys.argv[2:]]
    with open(sys.argv[1], 'w', encoding='utf-8') as out:
        out.write('/* Written by codegen/embed.py. */\n#include "codegen/emit_parts.h"\n\n')
        out.write('\n'.join(array(name, path) for name, path in parts))


main()

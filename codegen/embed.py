#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes texts as arrays of characters into a C file, headers without the lines that include weft's own headers.

usage: embed.py OUT INCLUDE PREFIX NAME=TEXT...      arrays are called PREFIX_NAME, and INCLUDE declares them"""
import sys


def array(prefix, name, path):
    with open(path, encoding='utf-8') as file:
        text = ''.join(line for line in file if not line.startswith('#include "'))
    numbers = [str(byte) if byte < 128 else str(byte - 256) for byte in text.encode('utf-8')] + ['0']
    lines = [','.join(numbers[i:i + 24]) for i in range(0, len(numbers), 24)]
    return 'const char %s_%s[] = {\n%s};\n' % (prefix, name, ',\n'.join(lines))


def main():
    include, prefix = sys.argv[2:4]
    parts = [part.split('=', 1) for part in sys.argv[4:]]
    with open(sys.argv[1], 'w', encoding='utf-8') as out:
        out.write('/* Written by codegen/embed.py. */\n#include "%s"\n\n' % include)
        out.write('\n'.join(array(prefix, name, path) for name, path in parts))


main()

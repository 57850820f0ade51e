# SPDX-License-Identifier: Apache-2.0
"""Nodes are made in the order of statements: no call has two arguments that make nodes, since C leaves open which of
them is computed first, and compilers differ. usage: check_order.py SOURCE

A function that returns a value (weft_val) is taken to make nodes, unless it is known to read one.
"""
import pathlib
import re
import sys

READERS = {'of_operand', 'operand_at', 'weft_def', 'weft_onnx_input', 'weft_operand', 'weft_result'}


def calls(text):
    """Each call in the text: its name, its arguments, its line."""
    for match in re.finditer(r'\b([a-z_][a-z0-9_]*)\(', text):
        at, depth, begin, arguments = match.end(), 1, match.end(), []
        while at < len(text) and depth:
            depth += (text[at] in '([{') - (text[at] in ')]}')
            if text[at] == ',' and depth == 1:
                arguments.append(text[begin:at])
                begin = at + 1
            at += 1
        yield match.group(1), arguments + [text[begin:at - 1]], text.count('\n', 0, match.start()) + 1


root = pathlib.Path(sys.argv[1])
sources = {path: path.read_text() for folder in ('passes', 'onnx', 'ir', 'tests/property')
           for path in sorted((root / folder).glob('*.[ch]'))}
makers = {name for text in sources.values() for name in re.findall(r'^(?:static )?weft_val ([a-z_0-9]+)\(', text, re.M)}
makers -= READERS
bad = 0
for path, text in sources.items():
    for name, arguments, line in calls(text):
        makes = [argument for argument in arguments if makers & set(re.findall(r'\b([a-z_0-9]+)\(', argument))]
        if len(makes) > 1 and name not in ('if', 'for', 'while', 'switch'):
            print(f'{path.relative_to(root)}:{line}: arguments of {name} make nodes in no stated order: '
                  f'{" | ".join(" ".join(argument.split()) for argument in makes)}')
            bad += 1
sys.exit(bad > 0)

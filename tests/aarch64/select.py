# SPDX-License-Identifier: Apache-2.0
"""Which tests run under emulation: select.py BUILD < tests of `meson introspect --tests`

Prints the names of those that start a program of the build, which Meson hands to the emulator. Says on stderr what is
left out: scripts of sh and python and programs that start programs of the build by themselves, where no emulator is in
front; and tests that judge times, which are the emulator's.
"""
import json
import os
import sys

TIMES = {'scale', 'pace'}
STARTERS = {'detect', 'cases'}

build = os.path.realpath(sys.argv[1]) + os.sep
names, scripts, timed = [], [], []
for test in json.load(sys.stdin):
    if not os.path.realpath(test['cmd'][0]).startswith(build) or test['name'] in STARTERS:
        scripts.append(test['name'])
    elif test['name'] in TIMES:
        timed.append(test['name'])
    else:
        names.append(test['name'])
print('\n'.join(names))
print(f'left out: {len(scripts)} tests that start programs where no emulator is in front: '
      f'{", ".join(scripts)}', file=sys.stderr)
print(f'left out: {len(timed)} tests that judge times: {", ".join(timed)}', file=sys.stderr)

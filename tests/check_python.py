# SPDX-License-Identifier: Apache-2.0
"""The Python package beside a build of the library: check_python.py SOURCE BUILD TESTS

Runs pytest over python/tests/TESTS ("torch", or "package" for all but those) with a python that has numpy and pytest:
that of build-python/venv, which ./dev test makes, else the one that runs this. Without them, or without torch for its
tests, they are skipped. The C part of the package, weft._fast, is in wheels alone (./dev python).
"""
import os
import re
import subprocess
import sys

source, build, tests = sys.argv[1:]
venv = os.path.join(source, "build-python/venv/bin/python")
python = venv if os.path.exists(venv) else sys.executable
needs = ["numpy", "pytest"] + ["torch"] * (tests == "torch")
missing = [name for name in needs if subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode]
if subprocess.run([python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).returncode:
    missing.append("Python 3.10")
if missing:
    print(f"skipped: {python} has no {', '.join(missing)}")
    sys.exit(77)
folder = os.path.join(source, "python/tests")
what = [os.path.join(folder, "torch")] if tests == "torch" else [folder, "--ignore", os.path.join(folder, "torch")]
environment = dict(os.environ, WEFT_LIBRARY=os.path.join(build, "libweft.so"),
                   PYTHONPATH=os.path.join(source, "python"))
run = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *what], cwd=source, env=environment,
                     capture_output=True, text=True)
print(run.stdout, end="")
sys.stderr.write(run.stderr)
count = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error|skipped)", run.stdout.splitlines()[-1])}
print(f"{count.get('passed', 0)} passed, {count.get('failed', 0) + count.get('error', 0)} failed, "
      f"{count.get('skipped', 0)} skipped")
sys.exit(run.returncode)

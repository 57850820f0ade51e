# SPDX-License-Identifier: Apache-2.0
"""Are the two CPUs of a rented machine two cores at this moment?

A virtual machine's CPUs move about on those of its host. With two of them, both may be threads of one core for some
seconds: then the multiply-adds of two threads take as long as those of one after the other, every runtime takes 1.5
times as long, and what a runtime loses to latency is hidden, so that the slower ones look better than they are. A cache
line goes from one to the other and back in 50 to 60 ns where they share a core, in 100 to 140 where they share the
last cache, and in 500 to 600 where they do not (measured on Zen 4)."""
import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

ONE_CORE_NS = 80


def _compile():
    source = Path(__file__).with_name("cores.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "cores.so"
        subprocess.run([os.environ.get("CC", "cc").split()[-1], "-O2", "-pthread", "-shared", "-fPIC", str(source),
                        "-o", str(library)], check=True)
        function = ctypes.CDLL(str(library)).round_trip_ns
    function.restype = ctypes.c_double
    return function


def watch():
    """A function that says whether two threads have a core each; where there are more CPUs than two it is not asked."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) != 2:
        return lambda: True
    round_trip = _compile()
    return lambda: round_trip(*cpus) > ONE_CORE_NS

# SPDX-License-Identifier: Apache-2.0
"""The other end of runner.c: models and arrays to weft, results back; a process that dies or hangs is a result too."""
import os
import selectors
import signal
import subprocess
import time

import ml_dtypes
import numpy as np

WEFT_TYPES = [np.float64, np.float32, ml_dtypes.bfloat16, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint64,
              np.uint32, np.uint16, np.uint8, np.bool_, ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn,
              ml_dtypes.float8_e5m2]
NUMBER = {np.dtype(t): i + 1 for i, t in enumerate(WEFT_TYPES)}
TYPE = {i + 1: np.dtype(t) for i, t in enumerate(WEFT_TYPES)}
NIBBLES = (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4))
NO_PASSES, REFERENCE, NO_WINOGRAD, SHARE_RESULTS, WINOGRAD_4 = 1, 2, 4, 8, 16


class Died(Exception):
    pass


def bytes_of(array):
    if array.dtype not in NIBBLES:
        return np.ascontiguousarray(array).tobytes()
    flat = array.reshape(-1).astype(np.int8).view(np.uint8) & 15
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return (flat[0::2] | flat[1::2] << 4).tobytes()


def array_of(data, dtype, shape):
    if dtype not in NIBBLES:
        return np.frombuffer(data, dtype).reshape(shape)
    pairs = np.frombuffer(data, np.uint8)
    flat = np.stack([pairs & 15, pairs >> 4], 1).reshape(-1)[:int(np.prod(shape))].astype(np.int8)
    flat = np.where((flat > 7) & (dtype == NIBBLES[0]), flat - 16, flat)
    return flat.astype(dtype).reshape(shape)


class Answer:
    """error: (stage, status, message) before any trial ran, or None. trials: for each a list of arrays, or an error.
    again: the error of the first trial's second run, or None. winograd: how many times as large as the formula's the
    error of a convolution may be."""

    def __init__(self):
        self.error = self.again = None
        self.trials, self.winograd = [], 1
        self.fallbacks = self.kernels = 0


class Runner:
    def __init__(self, program, limit=120):
        self.program, self.limit, self.process = program, limit, None

    def start(self):
        self.log = open(f"/tmp/onnx-random-{os.getpid()}.log", "w+b")
        # A model that asks for more memory than there is gets an error from malloc, not the attention of the system.
        environment = {"ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0",
                       "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", **os.environ, "WEFT_PRICES": "",
                       "OMP_WAIT_POLICY": "passive"}
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        env=environment)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.buffer = b""

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout, self.log):
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
            self.process = None

    def _more(self):
        left = self.deadline - time.monotonic()
        if left <= 0 or not self.selector.select(left):
            raise Died(f"no answer for {self.limit} seconds")
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        if not data:
            code = self.process.wait()
            self.log.seek(0)
            said = self.log.read()[-6000:].decode(errors="replace")
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise Died(f"{name}\n{said}")
        self.buffer += data

    def _line(self):
        while b"\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode().split()

    def _bytes(self, count):
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def _error(self, words):
        message = self._bytes(int(words[3])).decode(errors="replace")
        self._line()
        return words[1], int(words[2]), message

    def _tensor(self):
        words = self._line()
        dtype, rank = TYPE[int(words[1])], int(words[3])
        shape = [int(word) for word in words[4:4 + rank]]
        return array_of(self._bytes(int(words[4 + rank])), dtype, shape)

    def run(self, path, trials, cpu="-", threads=1, flags=0, choice=1, hints=None):
        """trials: for each a list of arrays, in order of the model's inputs; choice: of every unit, from 1. An Answer,
        or Died."""
        if not self.process:
            self.start()
        self.deadline = time.monotonic() + self.limit
        hints = hints or {}
        parts = [f"case {path} {cpu} {threads} {flags} {choice} {len(trials)} {len(hints)}\n".encode()]
        parts += [f"{name} {hint}\n".encode() for name, hint in hints.items()]
        for inputs in trials:
            parts.append(f"inputs {len(inputs)}\n".encode())
            for array in inputs:
                data, extents = bytes_of(array), "".join(f" {n}" for n in array.shape)
                bits = 4 if array.dtype in NIBBLES else 8 * array.dtype.itemsize
                parts += [f"tensor {NUMBER[array.dtype]} {bits} {array.ndim}{extents} {len(data)}\n".encode(), data]
        try:
            self.process.stdin.write(b"".join(parts))
            self.process.stdin.flush()
            answer = self._answer(len(trials))
            answer.winograd = 5 if flags & WINOGRAD_4 else 1 # as weft.h says of the flag
            return answer
        except BrokenPipeError:
            try:
                while True:
                    self._more()
            except Died as died:
                self.stop()
                raise died from None
        except Died:
            self.stop()
            raise

    def _answer(self, trials):
        answer = Answer()
        while True:
            words = self._line()
            if words[0] == "done":
                return answer
            if words[0] == "ready":
                answer.fallbacks, answer.kernels = int(words[1]), int(words[2])
            elif words[0] == "outputs":
                answer.trials.append([self._tensor() for _ in range(int(words[1]))])
            elif words[1] in ("load", "compile", "create"):
                answer.error = self._error(words)
            elif words[1] == "again" or len(answer.trials) == trials:
                answer.again = self._error(words)
            else:
                answer.trials.append(self._error(words))

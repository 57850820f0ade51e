# SPDX-License-Identifier: Apache-2.0
"""Two processes on the loopback address train a compiled model: the same losses as in eager."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
                                reason="torch without gloo")
WORKER = Path(__file__).parent / "distributed_worker.py"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def train(kind: str) -> list[dict]:
    port = str(free_port())
    workers = [subprocess.Popen([sys.executable, str(WORKER), kind, str(rank), port], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for rank in range(2)]
    try:
        answers = [w.communicate(timeout=240) for w in workers]
    finally:
        for w in workers:
            w.kill()
    for w, (_, errors) in zip(workers, answers):
        assert w.returncode == 0, errors[-3000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in answers]


@pytest.mark.parametrize("kind", ["ddp", "fsdp", "collective"])
def test_two_processes(kind):
    both = train(kind)
    for one in both:
        assert one["plans"] > 0
        assert one["compiled"] == pytest.approx(one["eager"], rel=1e-5)
    assert both[0]["eager"] != both[1]["eager"]  # each has data of its own
    if kind == "collective":
        assert any("all_reduce" in name for name in both[0]["pieces"])

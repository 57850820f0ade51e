# SPDX-License-Identifier: Apache-2.0
"""Caches across processes: each step is a process of its own, and the report says what it found on disk."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("cache_worker.py")
HIT = {"aot": "hit", "cache": "hit", "right": True}


@pytest.fixture
def caches(tmp_path: Path) -> dict[str, str]:
    return {"WEFT_PLANS": str(tmp_path / "plans"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "torch"),
            "WEFT_CACHE_DIR": str(tmp_path / "code")}


def start(caches: dict[str, str], what: str, **changes) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, str(WORKER), what, json.dumps(changes)], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, **caches})


def facts(process: subprocess.Popen) -> dict:
    """What a worker says of the reports of its graphs, one word each where they agree."""
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


def run(caches: dict[str, str], what: str = "inference", **changes) -> dict:
    return facts(start(caches, what, **changes))


def plans(caches: dict[str, str]) -> list[Path]:
    return sorted(Path(caches["WEFT_PLANS"]).glob("*.plan"))


def test_cold_and_warm(caches):
    first = run(caches)
    assert first == {"aot": "miss, stored", "cache": "miss: there is no file of this plan", "right": True}
    assert len(plans(caches)) == 1
    assert list(Path(caches["WEFT_PLANS"]).glob("*.pack"))  # packed weights, which the next process maps
    assert run(caches) == HIT


def test_changed_weights(caches):
    run(caches)
    other = run(caches, seed=1)
    assert other == {"aot": "hit", "cache": "miss: there is no file of this plan", "right": True}
    assert run(caches, seed=1) == HIT
    assert run(caches, update=True)["right"]  # a weight changes after the plan was loaded
    assert run(caches, update=True, assign=True)["right"]


def test_weights_that_keep_changing_become_arguments(caches):
    run(caches)
    assert run(caches, updates=5)["right"]


def test_changed_source(caches):
    run(caches)
    assert run(caches, gelu=True)["aot"] == "miss, stored"


def test_other_threads(caches):
    run(caches)
    assert run(caches, threads=1)["cache"] == "miss: there is no file of this plan"
    assert run(caches) == HIT


def test_other_cpu(caches):
    run(caches)
    assert run({**caches, "WEFT_CPU": "baseline"})["cache"] == "miss: there is no file of this plan"


@pytest.mark.parametrize("how", ["flip", "truncate", "empty", "foreign"])
@pytest.mark.parametrize("suffix", ["plan", "pack"])
def test_damaged_files(caches, how, suffix):
    run(caches)
    for path in Path(caches["WEFT_PLANS"]).glob(f"*.{suffix}"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.chmod(0o600)
        path.write_bytes({"flip": data, "truncate": data[: len(data) // 2], "empty": b"",
                          "foreign": b"something else\n" * 4096}[how])
    found = run(caches)
    assert found["right"] and found["cache"].startswith("miss: ")
    assert run(caches) == HIT  # it was written anew


def test_missing_packs(caches):
    run(caches)
    for path in Path(caches["WEFT_PLANS"]).glob("*.pack"):
        path.unlink()
    assert run(caches)["cache"] == "miss: packed weights of this plan are gone or damaged"
    assert run(caches) == HIT


def test_damaged_entries_of_torch(caches):
    run(caches)
    for path in (Path(caches["TORCHINDUCTOR_CACHE_DIR"]) / "aotautograd").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:100])
    found = run(caches)
    assert found["right"] and found["aot"].startswith("miss") and found["cache"] == "hit"


def test_folder_that_is_none(caches, tmp_path):
    (tmp_path / "plans").write_text("a file")
    found = run(caches)
    assert found["right"] and found["cache"].startswith("off: ")


def test_folder_that_others_may_write(caches, tmp_path):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans").chmod(0o777)
    found = run(caches)
    assert found["right"] and "may be written by its group or by others" in found["cache"]
    assert not plans(caches)


def test_full_folder(caches):
    found = run({**caches, "WEFT_PACKS_BYTES": "1K"})
    assert found["right"] and found["cache"].startswith("miss: ")
    assert not plans(caches)


def test_bound(caches):
    """What was used longest ago goes first."""
    limited = {**caches, "WEFT_PACKS_BYTES": "1M"}
    for seed in range(3):
        assert run(limited, seed=seed)["right"]
    assert sum(p.stat().st_size for p in Path(caches["WEFT_PLANS"]).iterdir()) <= 1 << 20
    assert run(limited, seed=2) == HIT


def test_two_processes_at_once(caches):
    for process in [start(caches, "inference") for _ in range(2)]:
        assert facts(process)["right"]
    assert run(caches) == HIT
    assert not list(Path(caches["WEFT_PLANS"]).glob("tmp-*"))


@pytest.mark.parametrize("off", [{"WEFT_PLANS": ""}, {}])
def test_off(caches, off):
    options = {} if off else {"cache": False}
    for _ in range(2):
        assert run({**caches, **off}, options=options) == {
            "aot": "off: not wanted", "cache": "off: not wanted", "right": True}
    assert not Path(caches["WEFT_PLANS"]).exists()


def test_a_folder_by_option(caches, tmp_path):
    run(caches, options={"cache": str(tmp_path / "other")})
    assert run(caches, options={"cache": str(tmp_path / "other")}) == HIT
    assert not Path(caches["WEFT_PLANS"]).exists()


def test_without_torchs_cache(caches):
    """Plans have a cache of their own."""
    caches["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    run(caches)
    found = run(caches)
    assert found["right"] and found["cache"] == "hit" and found["aot"].startswith("off: torch's cache is off (")


def test_torchs_messages_stay_as_they_were():
    from weft.torch import aot_cache

    logger = logging.getLogger(aot_cache.Refusals.LOGGER)
    before = logger.level, list(logger.filters)
    with pytest.raises(KeyError), aot_cache.refusals() as heard:
        logger.info("Bypassing autograd cache due to: %s", LookupError("weft's own"))
        assert heard.why == "" and logger.isEnabledFor(logging.INFO)
        logger.info("Bypassing autograd cache due to: %s", heard.kind("first\nsecond"))
        assert heard.why == "first"
        raise KeyError
    assert (logger.level, list(logger.filters)) == before


def test_graphs_that_torchs_cache_refuses(caches):
    """The report names torch's reason."""
    found = run(caches, "autocast")
    assert found["right"] and found["aot"].startswith("off: torch refuses: ") and "autocast" in found["aot"].lower()


@pytest.mark.parametrize("what", ["training", "live", "constants", "random", "views", "whole"])
def test_other_graphs(caches, what):
    first = run(caches, what)
    assert first["right"] and first["aot"] == "miss, stored"
    assert run(caches, what) == HIT


def test_changing_sizes(caches):
    """The second plan, of symbols, serves both."""
    first = run(caches, "dynamic")
    assert first["right"]
    assert run(caches, "dynamic") == HIT


def test_parts_in_eager(caches):
    """Pieces have plans on disk; torch's cache is not for graphs that eager ops cut."""
    first, second = run(caches, "eager"), run(caches, "eager")
    assert first["right"] and second["right"] and second["cache"] == "hit"
    assert second["aot"] == "off: a part of the graph runs in eager"


@pytest.mark.parametrize("what", ("inference", "live", "training", "dynamic", "views"))
def test_without_tracing(caches, what):
    """torch's precompilation: a later process does not trace either."""
    first = run(caches, what, precompile=True)
    assert first["right"] and first["traced"] > 0
    for _ in range(2):  # the second writes its entry anew
        assert run(caches, what, precompile=True) == {**HIT, "traced": 0}


def test_without_tracing_other_weights(caches):
    run(caches, precompile=True)
    other = run(caches, precompile=True, seed=1, updates=5)
    assert other["right"] and other["traced"] == 0 and "miss" in other["cache"]
    other = run(caches, precompile=True, updates=5, assign=True)
    assert other["right"] and other["traced"] == 0


def test_without_tracing_another_version(caches):
    run(caches, precompile=True)
    other = run(caches, precompile=True, version="another")
    assert other["right"] and other["traced"] > 0 and other["aot"] == "miss, stored"


def test_a_relative_folder_is_that_of_the_call(tmp_path, monkeypatch):
    from weft.torch.cache import Cache

    contexts = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        contexts.append(Cache.of("plans", 1).context)
        assert (tmp_path / name / "plans").is_dir()
    assert contexts[0] is not contexts[1]


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path):
    from weft.torch.cache import Cache

    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "plans")
    with pytest.warns(UserWarning, match="plans are not kept in .*file/plans: "):
        cache = Cache.of(folder, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Cache.of(folder, 1).why == cache.why != ""
    assert cache.folder is None


@pytest.mark.parametrize("value", [3, None])
def test_option_of_a_wrong_type(value):
    from weft.torch.backend import Options

    with pytest.raises(ValueError, match="cache is True, False or a folder"):
        Options.of({"cache": value})

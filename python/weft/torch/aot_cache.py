# SPDX-License-Identifier: Apache-2.0
"""torch's cache of AOTAutograd: for a graph that dynamo has traced before, a later process runs neither AOTAutograd nor
the translation.

What the cache uses of torch's that is private is here, and tried before it is used: where something differs, graphs
are compiled without this cache, and the report says why. The key is torch's (dynamo's graph, sizes and strides of
arguments, torch's settings) with weft's version and options added; the entry has the translated graph as text, which
is compiled for the process that loads it: its weights, its CPU, its threads.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import pickle
import threading
import unittest.mock
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from .. import _c
from . import whole
from .cache import Cache
from .origin import Origin

FORMAT = 3  #: of what is pickled: program.Program, backend.Stored
SALT = "_weft_cache_key"  #: an attribute of dynamo's graph, which torch takes into its key
MOST_BYTES = 16 << 20  #: of constants that stand in a graph and would be pickled

_local = threading.local()


@functools.cache
def unfit() -> str | None:
    """Why this torch's cache cannot be used, or None."""
    try:
        from torch._functorch import config
        from torch._functorch._aot_autograd.aot_autograd_result import BundledAOTAutogradResult  # noqa: F401
        from torch._functorch._aot_autograd.autograd_cache import (AOTAutogradCachePickler, BypassAOTAutogradCache,
                                                                   should_bundle_autograd_cache,
                                                                   should_use_local_autograd_cache,  # noqa: F401
                                                                   should_use_remote_autograd_cache)  # noqa: F401
        from torch._functorch.aot_autograd import SerializableAOTDispatchCompiler
        from torch._inductor.output_code import OutputCode

        with config.patch(bundled_autograd_cache=True, force_non_lazy_backward_lowering=True):
            if not should_bundle_autograd_cache():
                return "torch does not bundle its entries"
        if not issubclass(BypassAOTAutogradCache, Exception) or not hasattr(OutputCode, "prepare_for_serialization"):
            return "torch's OutputCode differs"
        SerializableAOTDispatchCompiler(OutputCode, lambda gm, inputs: None)
        with without_inductor(), allow_whole():
            pass
        gm, keys = torch.fx.symbolic_trace(torch.nn.Identity()), []
        for salt in "ab":
            setattr(gm, SALT, salt)
            keys.append(AOTAutogradCachePickler(gm).get_hash(gm))
        if keys[0] == keys[1]:
            return "torch's key leaves attributes of graphs out"
        code_class()
    except Exception as problem:  # noqa: BLE001 - private functions may fail in any way
        return f"{type(problem).__name__}: {problem}"
    return None


@functools.cache
def code_class() -> type:
    """A graph as torch's cache keeps it, and as it is called."""
    from torch._inductor.output_code import OutputCode

    class Code(OutputCode):
        def __init__(self, graphs):
            self.graphs, self.stored = graphs, None
            self.run = graphs.compile()
            self._boxed_call = True
            self._fx_graph_cache_key = None
            self._time_taken_ns = 0

        def __call__(self, inputs):
            return self.run(inputs)

        def __reduce__(self):
            return load, (self.stored, version())

        def __copy__(self):
            twin = load(self.stored, version())
            twin.graphs, twin.run = self.graphs, self.run
            return twin

        def prepare_for_serialization(self) -> None:
            """Of a copy, which torch pickles."""
            self.stored = serialized(self.graphs)
            self.graphs = self.run = None

        def post_compile(self, example_inputs, constants, graph_kwargs) -> None:
            """Of what was loaded. An exception makes torch compile without its cache."""
            stored, self.stored = pickle.loads(self.stored), None
            from . import backend  # which imports this module

            session = getattr(_local, "session", None)
            self.run = (backend.restored(stored, *session) if session else
                        backend.installed(stored))  # by torch's precompilation, which traces nothing

        def set_triton_bundle(self, triton_bundle) -> None:
            pass

    return Code


def load(stored: bytes, made_by: str):
    """Called when an entry is unpickled. torch's precompilation has compared no key, and takes an exception here for an
    entry that is not there; later ones end the program."""
    if made_by != version():
        raise LookupError(f"{made_by} has stored the graph, and this is {version()}")
    kind = code_class()
    code = kind.__new__(kind)
    code.graphs, code.run, code.stored, code._boxed_call = None, None, stored, True
    code._fx_graph_cache_key, code._time_taken_ns = None, 0
    return code


def serialized(graphs) -> bytes:
    """Raises what torch takes for a graph that is not to be cached; the report says why."""
    from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache

    try:
        with torch.utils._python_dispatch._disable_current_modes():  # torch is tracing, and constants are real
            made = dumped(graphs)
    except Exception as problem:  # noqa: BLE001 - the graph is compiled, and only not stored
        graphs.report.aot = f"off: {problem}"
        raise BypassAOTAutogradCache(f"weft: {problem}") from problem
    graphs.report.aot = "miss, stored"
    if not graphs.frozen:  # nothing is left to be compiled
        graphs.gm = graphs.model = None
    return made


def dumped(graphs) -> bytes:
    stored = graphs.stored()
    if stored is None:
        raise LookupError("a part of the graph runs in eager")
    # of a float, torch makes a tensor for some uses and guards the value for others; its cache keeps no such guards
    if graphs.model and any(isinstance(n.meta.get("example_value"), torch.SymFloat) for n in graphs.model.graph.nodes):
        raise LookupError("a float that may change is an argument")
    constants = sum(t.nbytes for p in stored.programs.values() for t in p.elements.values())
    if constants > MOST_BYTES:
        raise LookupError(f"the graph holds {constants} bytes of constants")
    return pickle.dumps(stored)


class Refusals(logging.Filter):
    """Why torch leaves a graph out of its cache, in ``why``: torch says so in a message that is off unless asked for.
    Messages of other threads, and those that weft's own exceptions cause, are no refusals of torch's."""

    LOGGER, BEGINNING = "torch._functorch._aot_autograd.autograd_cache", "Bypassing autograd cache"

    def __init__(self, kind: type[Exception], shown: int):
        super().__init__()
        self.kind, self.shown, self.thread, self.why = kind, shown, threading.get_ident(), ""

    def filter(self, record: logging.LogRecord) -> bool:
        reason = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if (str(record.msg).startswith(self.BEGINNING) and isinstance(reason, self.kind)
                and record.thread == self.thread):
            self.why = str(reason).strip().partition("\n")[0].rstrip(". ") or type(reason).__name__
        return record.levelno >= self.shown


@contextlib.contextmanager
def refusals() -> Iterator[Refusals]:
    """Listens to torch's messages; what is printed stays as it was."""
    from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache

    logger = logging.getLogger(Refusals.LOGGER)
    level, heard = logger.level, Refusals(BypassAOTAutogradCache, logger.getEffectiveLevel())
    logger.addFilter(heard)
    logger.setLevel(min(logging.INFO, heard.shown))
    try:
        yield heard
    finally:
        logger.setLevel(level)
        logger.removeFilter(heard)


@contextlib.contextmanager
def session(model, options, cache: Cache, origin: Origin) -> Iterator[Callable]:
    """In it torch compiles a graph of dynamo's. Yields what wraps compilers of AOTAutograd: they return something
    with ``compile()``, and the wrapped ones return what is called."""
    why = cache.why if not cache.folder else unfit() or switched_off()
    if why:
        def plain(compiler: Callable) -> Callable:
            def compile_graph(gm, inputs):
                graphs = compiler(gm, inputs)
                graphs.aot = f"off: {why}"
                return graphs.compile()

            return compile_graph

        yield plain
        return
    from torch._functorch import config
    from torch._functorch.aot_autograd import SerializableAOTDispatchCompiler
    from torch._inductor.output_code import OutputCode

    def wrap(compiler: Callable) -> Callable:
        def compile_graph(gm, inputs):
            graphs = compiler(gm, inputs)
            graphs.aot = f"off: torch refuses: {heard.why}" if heard.why else "miss"
            return code_class()(graphs)

        return SerializableAOTDispatchCompiler(OutputCode, compile_graph)

    setattr(model, SALT, salt(options))
    before = getattr(_local, "session", None)
    _local.session = model, options, cache, origin
    try:
        with (config.patch(bundled_autograd_cache=True, force_non_lazy_backward_lowering=True), without_inductor(),
              allow_whole(), refusals() as heard):
            yield wrap
    finally:
        _local.session = before
        delattr(model, SALT)


def switched_off() -> str | None:
    """As torch decides it for each graph. Only where unfit() finds nothing."""
    from torch._functorch._aot_autograd import autograd_cache

    if autograd_cache.should_use_local_autograd_cache() or autograd_cache.should_use_remote_autograd_cache():
        return None
    return "torch's cache is off (TORCHINDUCTOR_AUTOGRAD_CACHE, TORCHINDUCTOR_FORCE_DISABLE_CACHES)"


@functools.cache
def sources() -> str:
    """Which library and which translation made an entry: their files, by size and time of change."""
    files = [Path(_c.find("weft")), *sorted(Path(__file__).parents[1].rglob("*.py"))]
    facts = [(f.name, s.st_size, s.st_mtime_ns) for f in files if (s := f.stat() if f.is_file() else None)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def without_inductor() -> contextlib.AbstractContextManager:
    """torch's key has passes of Inductor's backends in it, and imports all of Inductor (a second) to ask for them. They
    have no part in what weft makes."""
    from torch._inductor import codecache

    return unittest.mock.patch.object(codecache, "init_backend_registration", lambda: None)


def allow_whole() -> contextlib.AbstractContextManager:
    """torch keeps no graph that calls functions it does not know, and those of whole.py stand in for its own. Which
    version of them it is, the salt says."""
    from torch._inductor import config

    known = config.unsafe_marked_cacheable_functions  # older ones: a list of names
    return config.patch(unsafe_marked_cacheable_functions={**known, **dict.fromkeys(whole.NAMES, "weft")}
                        if isinstance(known, dict) else [*known, *whole.NAMES])


def version() -> str:
    return f"weft {_c.lib.weft_version().decode()} {sources()} format {FORMAT}"


def salt(options) -> str:
    """What torch's key lacks. Options that only say how a plan is called or kept do not change the entry."""
    return f"{version()} freeze {options.freeze} winograd {options.winograd}"

# SPDX-License-Identifier: Apache-2.0
"""What was compiled: a report for each graph that the backend took."""

from __future__ import annotations

import collections
import dataclasses
import threading

from .origin import Origin

MOST_INPUTS = 8  # in the text


@dataclasses.dataclass
class Piece:
    """A weft plan: the whole graph, or one part of a graph that eager ops cut into several."""

    nodes: int  #: ATen ops in it
    plan: object  #: weft.Plan
    graph: object  #: weft.Graph
    frozen: int  #: arguments that are constants of the plan
    translate_s: float
    compile_s: float
    call: str  #: "C" or "Python": how it is called
    why_python: str = ""  #: why it is not called from C
    cache: str = "off"  #: "hit", "miss" or "off", and why: was the plan on disk?
    static: int = 0  #: arguments that are static inputs of the plan: packed again when they have changed

    @property
    def text(self) -> str:
        """The plan as text."""
        return self.plan.text()


@dataclasses.dataclass
class Report:
    """One graph of torch's: forward, backward or inference."""

    kind: str
    nodes: int  #: ATen ops of the graph
    origin: Origin = Origin()  #: which function it is of, and the sizes of its inputs
    aot: str = ""  #: of torch's cache of AOTAutograd: "hit", "miss" or "off", and why
    offload: str = ""  #: how much of the weights moved to a file; or why nothing did
    pieces: list[Piece] = dataclasses.field(default_factory=list)
    eager: dict[str, int] = dataclasses.field(default_factory=dict)  #: op -> how many nodes of it run in eager
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)  #: op -> why
    places: dict[str, list[str]] = dataclasses.field(default_factory=dict)  #: op that weft refuses -> lines, file:line

    @property
    def whole(self) -> bool:
        """Is the graph at most one plan, without eager ops?"""
        return len(self.pieces) <= 1 and not self.eager

    def placed(self, op: str) -> str:
        """The op with its first line."""
        places = self.places.get(op)
        return op if not places else f"{op} at {places[0]}" + f" and {len(places) - 1} more" * (len(places) > 1)

    def __str__(self) -> str:
        origin, given = str(self.origin), self.origin.inputs
        lines = [f"{origin and f'{origin}: '}{self.kind} graph of {self.nodes} ops: {len(self.pieces)} "
                 f"plan{'s' * (len(self.pieces) != 1)}, {sum(self.eager.values())} ops in eager"]
        more = f" and {len(given) - MOST_INPUTS} more" * (len(given) > MOST_INPUTS)
        lines += [f"  inputs: {', '.join(given[:MOST_INPUTS])}{more}"] if given else []
        lines += [f"  AOTAutograd's cache: {self.aot}"] if self.aot else []
        lines += [f"  weights in a file: {self.offload}"] if self.offload else []
        lines += [f"  eager: {self.placed(op)} ({count}): {self.reasons.get(op, 'a small piece between others')}"
                  for op, count in sorted(self.eager.items())]
        lines += [f"  cuts the graph: {self.placed(op)}: {reason}" for op, reason in sorted(self.reasons.items())
                  if op not in self.eager]
        lines += [f"  plan {i}: {p.nodes} ops, {p.frozen} frozen and {p.static} static weights, translated in "
                  f"{p.translate_s:.2f} s, compiled in {p.compile_s:.2f} s, called from {p.call}"
                  f"{p.why_python and f' ({p.why_python})'}, cache: {p.cache}" for i, p in enumerate(self.pieces)]
        return "\n".join(lines)


class Reports:
    """The last reports, newest last. ``weft.torch.reports.clear()`` forgets them."""

    def __init__(self, most: int = 100):
        self._kept: collections.deque[Report] = collections.deque(maxlen=most)
        self._lock = threading.Lock()

    def add(self, report: Report) -> None:
        with self._lock:
            self._kept.append(report)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def __iter__(self):
        return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, i):
        return list(self._kept)[i]

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or NOTHING


NOTHING = ("nothing was compiled: torch asked for nothing. It keeps functions with nn.LSTM or nn.GRU in eager unless "
           "torch._dynamo.config.allow_rnn is set; TORCH_LOGS=graph_breaks says why else")

reports = Reports()

# SPDX-License-Identifier: Apache-2.0
"""A plan in words: what runs, where layouts change, and for each value what passes and the planner decided about it.

All of it is read through the public interface. The command `weft explain` says more: the nodes of the source and what
became of each, and the kernels that a node could have had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import ArgumentError

if TYPE_CHECKING:
    from .plan import Plan, Remark, Step


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _step_line(number: int, step: Step) -> str:
    what = f"@{step.group}, {_plural(step.nodes, 'node')}" if step.group else step.op or "copy"
    read = ", ".join("%" + name for name in step.operands)
    made = ", ".join("%" + name for name in step.results) or "%" + step.value
    parts = f" in {step.parts} parts" if step.parts > 1 else ""
    return f"  {number:4} {made} = {what} ({read}) by {step.kernel}{parts}"


def _remark_lines(remarks: list[Remark]) -> list[str]:
    """Under the value that they are about, in the order of first mention; repeated ones once."""
    groups: dict[str, dict[str, None]] = {}
    for remark in remarks:
        groups.setdefault(remark.where, {})[f"    {remark.who} {remark.verdict}: {remark.reason}"] = None
    return [line for where, lines in groups.items() for line in (where or "the whole", *lines)]


def _summary(plan: Plan, steps: list[Step]) -> list[str]:
    statistics, compiled = plan.statistics, plan.compiled
    lines = [f"inputs: {', '.join(map(str, plan.inputs)) or 'none'}",
             f"results: {', '.join(map(str, plan.outputs)) or 'none'}",
             f"{_plural(len(steps), 'step')} by at most {_plural(statistics.workers, 'thread')}: "
             f"{_plural(statistics.relayouts, 'relayout')}, {statistics.fallbacks} in the reference evaluator; "
             f"{statistics.constant_bytes} bytes of constants of the plan's own"]
    if compiled.groups:
        lines.append(f"{compiled.compiled} of {_plural(compiled.groups, 'group')} compiled, the others interpreted"
                     + (f": {compiled.reason}" if compiled.reason else ""))
    return lines


def explain(plan: Plan, node: str | None = None) -> str:
    steps, remarks = plan.steps, plan.remarks
    if node is None:
        lines = _summary(plan, steps) + ["steps:"]
        lines += [_step_line(i, step) for i, step in enumerate(steps)]
        return "\n".join(lines + ["decisions:"] + _remark_lines(remarks)) + "\n"
    name = node.removeprefix("%")
    about = [remark for remark in remarks if remark.where.removeprefix("%") == name]
    doing = [_step_line(i, step) for i, step in enumerate(steps) if name in (step.value, *step.results, *step.operands)]
    if not about and not doing:
        raise ArgumentError(f"nothing is known of a value {node!r}: no step of the plan reads or makes it")
    return "\n".join(doing + _remark_lines(about)) + "\n"

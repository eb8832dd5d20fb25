"""Checks of writes: races, values that are never read, and the outputs of the skill.

The rules are in docs/reference/skill.md#target-checks and docs/reference/skill.md#flow-checks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cogcli.base.merge import STRATEGIES
from cogcli.base.problems import Severity, suggest_path
from cogcli.specs.checks.dataflow import Dataflow, StatePath
from cogcli.specs.checks.step_facts import PlannedWrite
from cogcli.specs.problem_report import ProblemReport

Masks = defaultdict["StatePath", dict[str, int]]


def check_races(flow: Dataflow) -> None:
    """Report `target.race` for overlapping writes of concurrent steps.

    Each step is compared with the earlier steps in plan order that it does not depend on.
    """
    at: Masks = defaultdict(dict)
    below: Masks = defaultdict(dict)
    for position, fact in enumerate(flow.facts):
        concurrent = ~flow.graph.before[position]
        for write in fact.writes:
            for strategy, bits in _find_overlapping(at, below, write.place):
                racing = bits & concurrent
                if racing and not _may_overlap(strategy, write.strategy):
                    _report_race(fact.report, write, strategy, flow.name(racing))
                    break
        for write in fact.writes:
            place, strategy = write.place, write.strategy
            for masks, end in [(at, len(place)), *((below, end) for end in range(2, len(place)))]:
                found = masks[place[:end]]
                found[strategy] = found.get(strategy, 0) | 1 << position


def _may_overlap(strategy: str, other_strategy: str) -> bool:
    return strategy == other_strategy and STRATEGIES[strategy].keeps_present


def _report_race(
    report: ProblemReport, write: PlannedWrite, strategy: str, other_step: str
) -> None:
    message = f"`{write.target.text}` is also written by concurrent step `{other_step}`"
    hint = f"add `{other_step}` to depends_on, or let both append or deep_merge"
    severity: Severity = "W" if strategy == write.strategy == "replace" else "E"
    report.add("target.race", severity, write.path, message, hint=hint)


def _find_overlapping(
    writers_at: Masks, writers_below: Masks, place: StatePath
) -> Iterator[tuple[str, int]]:
    yield from writers_at.get(place, {}).items()
    yield from writers_below.get(place, {}).items()
    for end in range(2, len(place)):
        yield from writers_at.get(place[:end], {}).items()


def check_rewrites(flow: Dataflow) -> None:
    """Report `target.rewrite` for a value that is overwritten before any step reads it."""
    for position, fact in enumerate(flow.facts):
        for write in fact.writes:
            earlier = flow.written[write.place] & flow.graph.before[position]
            if write.strategy != "overwrite" or write.maybe or not earlier:
                continue
            last = earlier.bit_length() - 1
            readers = (
                flow.read.get(write.place, 0) & ~flow.graph.after[position] & flow.graph.after[last]
            )
            if not readers and not flow.within.get(write.place):
                message = f"`{write.target.text}` of step `{flow.facts[last].step.id}` is overwritten unread"
                fact.report.warn(
                    "target.rewrite", write.path, message, hint="write merge_strategy: replace"
                )


def check_outputs(flow: Dataflow, report: ProblemReport) -> None:
    """Report declared outputs of the skill that no step writes, or that may stay unwritten."""
    for name, field in flow.skill.outputs.items():
        path = ("outputs", name)
        needed = field.needs_value
        if not flow.written.get(path):
            message, hint = (
                f"no step writes output `{name}`",
                f"map a step's output to outputs.{name}",
            )
            report.add(
                "outputs.unproduced", "E" if needed else "W", path, message, hint=hint, key=True
            )
        elif needed and not flow.surely.get(path):
            other = flow.name(flow.written[path])
            message = f"required output `{name}`: `{other}` may leave it unwritten"
            report.warn("outputs.maybe", path, message, hint="give that step `otherwise`", key=True)


def check_names(flow: Dataflow) -> None:
    """Report writes to undeclared outputs, and to vars that no step reads."""
    unread = set()
    for fact in flow.facts:
        for write in fact.writes:
            namespace, name = write.target.namespace, write.target.path[0]
            text = f"`{write.target.text}`"
            if namespace == "outputs" and name not in flow.skill.outputs:
                hint = suggest_path(name, flow.skill.outputs, prefix="outputs.")
                fact.report.warn(
                    "outputs.undeclared", write.path, f"{text} is not a declared output", hint=hint
                )
            if namespace == "vars" and name not in unread and not flow.read.get(("vars", name)):
                unread.add(name)
                fact.report.warn(
                    "vars.unused", write.path, f"{text} is never read", hint="remove it"
                )

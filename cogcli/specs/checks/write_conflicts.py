"""Writes against writes: races, values never read, and the skill's own outputs
(docs/reference/skill.md#target-checks, docs/reference/skill.md#flow-checks)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from cogcli.core.merge import STRATEGIES
from cogcli.core.problems import suggestion
from cogcli.specs.checks.dataflow import Dataflow, StatePath
from cogcli.specs.checks.step_facts import PlannedWrite
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.skill import Skill

Masks = defaultdict["StatePath", dict[str, int]]


def check_races(flow: Dataflow, report: ProblemReport) -> None:
    """`target.race`: overlapping writes of concurrent steps. Each step is compared with the earlier ones in plan order
    that it does not wait for."""
    at: Masks = defaultdict(dict)
    below: Masks = defaultdict(dict)
    for position, fact in enumerate(flow.facts):
        for write in fact.writes:
            beside = ~flow.graph.before[position]
            for strategy, bits in _overlapping(at, below, write):
                racing = bits & beside
                if racing and not (strategy == write.strategy and STRATEGIES[strategy].needs):
                    both = strategy == write.strategy == "replace"
                    _report_race(flow, position, write, racing, report, both_replace=both)
                    break
        for write in fact.writes:
            _add(at, below, write, 1 << position)


def _overlapping(at: Masks, below: Masks, write: PlannedWrite) -> Iterator[tuple[str, int]]:
    place = (write.target.namespace, *write.target.path)
    yield from at.get(place, {}).items()
    yield from below.get(place, {}).items()
    for end in range(2, len(place)):
        yield from at.get(place[:end], {}).items()


def _add(at: Masks, below: Masks, write: PlannedWrite, bit: int) -> None:
    place = (write.target.namespace, *write.target.path)
    at[place][write.strategy] = at[place].get(write.strategy, 0) | bit
    for end in range(2, len(place)):
        below[place[:end]][write.strategy] = below[place[:end]].get(write.strategy, 0) | bit


def _report_race(
    flow: Dataflow,
    position: int,
    write: PlannedWrite,
    racing: int,
    report: ProblemReport,
    *,
    both_replace: bool,
) -> None:
    other = flow.name(racing)
    subject = f"step `{flow.facts[position].step.id}`"
    message = f"{subject}: `{write.target.text}` is also written by concurrent step `{other}`"
    hint = f"add `{other}` to depends_on, or let both append or deep_merge"
    report.add("target.race", "W" if both_replace else "E", write.path, message, hint=hint)


def check_rewrites(flow: Dataflow, report: ProblemReport) -> None:
    """`target.rewrite`: a value that is overwritten before it is read."""
    for position, fact in enumerate(flow.facts):
        for write in fact.writes:
            if write.strategy != "overwrite" or write.maybe:
                continue
            place = (write.target.namespace, *write.target.path)
            earlier = flow.written[place] & flow.graph.before[position]
            if not earlier:
                continue
            last = earlier.bit_length() - 1
            readers = flow.read.get(place, 0) & ~flow.graph.after[position] & flow.graph.after[last]
            if not readers and not flow.within.get(place):
                other = flow.facts[last].step.id
                message = (
                    f"step `{fact.step.id}`: `{write.target.text}` of step `{other}` is overwritten unread"
                )
                report.warn("target.rewrite", write.path, message, hint="say merge_strategy: replace")


def check_outputs(flow: Dataflow, skill: Skill, report: ProblemReport) -> None:
    """Report declared outputs of the skill that no step writes, or that may remain unwritten."""
    for name, field in skill.outputs.items():
        place = ("outputs", name)
        needed = field.required and field.default is None
        path = ("outputs", name)
        if not flow.written.get(place):
            message = f"skill `{skill.id}`: no step writes output `{name}`"
            hint = f"map a step's output to outputs.{name}"
            report.add("outputs.unproduced", "E" if needed else "W", path, message, hint=hint, key=True)
        elif needed and not flow.surely.get(place):
            other = flow.name(flow.written[place])
            message = f"skill `{skill.id}`: required output `{name}`: `{other}` may leave it unwritten"
            report.warn("outputs.maybe", path, message, hint="give that step `otherwise`", key=True)


def check_names(flow: Dataflow, skill: Skill, report: ProblemReport) -> None:
    """Report writes to outputs that are not declared, and to vars that are never read."""
    told = set()
    for fact in flow.facts:
        for write in fact.writes:
            namespace, name = write.target.namespace, write.target.path[0]
            subject = f"step `{fact.step.id}`: `{write.target.text}`"
            if namespace == "outputs" and name not in skill.outputs:
                hint = suggestion(name, skill.outputs)
                report.warn("outputs.undeclared", write.path, f"{subject} is no declared output", hint=hint)
            if namespace == "vars" and name not in told and not flow.read.get(("vars", name)):
                told.add(name)
                report.warn("vars.unused", write.path, f"{subject} is never read", hint="remove it")

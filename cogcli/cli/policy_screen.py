"""Decisions on the screen: their reasons, and those that another pack would decide differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cogcli.app.policy_history import DecisionChange
from cogcli.cli.envelope import dumps
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.policy.pack_diff import PolicyChange

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


class ShownVerdict(Record):
    """A decision about a call, as far as a line shows it."""

    verdict: str
    gate: str | None = None
    rule: str | None = None
    reason: str | None = None

    @property
    def text(self) -> str:
        """The verdict with its gate, and the rule or the word that gave it."""
        gate = f" {self.gate}" if self.gate else ""
        rule = "approved" if self.reason == "approved" else self.rule
        return f"{self.verdict}{gate} ({rule or self.reason})"


class ShownStage(Record):
    """A stage of a governed call."""

    stage: str
    outcome: str
    reason: str | None = None


class ShadowVerdict(Record):
    """What a rule in shadow mode would have decided."""

    rule: str
    verdict: str


class ShownComparison(Record):
    """A comparison that decided a call, or a number that would change the decision."""

    path: str
    rule: str
    text: str


class ExplainedCall(ShownVerdict):
    """A governed call and the reasons of its verdict (`app.policy_history.explain_episode`)."""

    step_id: str
    capability: str
    caused_by: str | None = None
    stages: list[ShownStage]
    inside: list[str]
    matched: list[str]
    reads: Json
    would: list[ShadowVerdict]
    missing: list[str]
    compared: list[ShownComparison]
    flips: list[ShownComparison]
    why: str | None = None


def explanation_lines(payload: Json) -> Iterator[str]:
    """Yield the lines of one governed call: its verdict, the stages in order, the values read, and
    the deciding comparisons."""
    call = read_record(ExplainedCall, payload)
    caused = ", after an answer" if call.caused_by else ""
    yield f"{call.step_id}  {call.capability}  {call.text}{caused}"
    for stage in call.stages:
        reason = f": {stage.reason}" if stage.reason else ""
        yield _row(stage.stage, f"{stage.outcome}{reason}")
    for name, words in (("inside", call.inside), ("matched", call.matched)):
        if words:
            yield _row(name, ", ".join(words))
    for path, value in call.reads.items():
        yield _row("read", f"{path} = {'nothing' if value is None else _value(value)}")
    for each in call.would:
        yield _row("would", f"{each.rule}: {each.verdict} (shadow)")
    for path in call.missing:
        yield _row("missing", path)
    yield from _reasons(call)


def _row(name: str, text: str) -> str:
    return f"  {name:<11} {text}"


def _reasons(call: ExplainedCall) -> Iterator[str]:
    """Yield each deciding comparison, with the nearest number that would change the decision."""
    for each in call.compared:
        flips = [flip for flip in call.flips if (flip.path, flip.rule) == (each.path, each.rule)]
        nearest = f"; {flips[0].text}" if flips else ""
        yield _row("decided by", f"{each.text}{nearest}")
    if call.why:
        yield _row("decided by", f"cannot be told: {call.why}")


def change_lines(changes: Sequence[PolicyChange]) -> Iterator[str]:
    """Yield the differences between two policies, a line for each part and each of its members."""
    for change in changes:
        yield f"{_SIGNS[change.change]} {change.kind} {change.id}"
        if change.change == "changed":
            for name, (old, new) in change.members.items():
                yield f"    {name}: {_value(old)} -> {_value(new)}"


def decision_line(change: DecisionChange) -> str:
    """Return the line of a recorded decision that changes, or that cannot be compared."""
    where = f"{change.episode_id}  {change.event.step_id}  {change.event.payload.get('capability')}"
    if change.before is None or change.after is None:
        return f"? {where}  {change.why}"
    before = read_record(ShownVerdict, change.before)
    after = read_record(ShownVerdict, change.after)
    return f"~ {where}  {before.text} -> {after.text}"


def _value(value: object) -> str:
    text = dumps(value)
    return text if len(text) <= 120 else f"{text[:120]}…"

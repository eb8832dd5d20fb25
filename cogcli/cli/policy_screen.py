"""Decisions about calls on the screen: their reasons, and the differences under another pack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cogcli.app.policy_comparison import DecisionChange
from cogcli.cli.envelope import dumps
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.policy.limits import READS, UNKNOWN_LIMIT
from cogcli.policy.pack_diff import PolicyChange
from cogcli.policy.policy_proof import PolicyProof

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


class DisplayedVerdict(Record):
    """The members of a decision that are displayed."""

    verdict: str
    gate: str | None = None
    rule: str | None = None
    reason: str | None = None

    @property
    def text(self) -> str:
        """The verdict with its gate, and the rule or reason behind it."""
        gate = f" {self.gate}" if self.gate else ""
        rule = "approved" if self.reason == "approved" else self.rule
        return f"{self.verdict}{gate} ({rule or self.reason})"


class DisplayedStage(Record):
    """The displayed members of a stage of a governed call."""

    stage: str
    outcome: str
    reason: str | None = None


class ShadowVerdict(Record):
    """The verdict that a rule in shadow mode would have given."""

    rule: str
    verdict: str


class DisplayedComparison(Record):
    """A comparison that decided a call, or the nearest number that would change the decision."""

    path: str
    rule: str
    text: str


class CountedLimit(Record):
    """The counter of a limit as a decision read it. Numbers are texts."""

    limit: str
    owner: str
    used: str
    amount: str
    max: str
    is_counted: bool
    left: str

    @property
    def text(self) -> str:
        """The amount that the call adds, the amount used before, and the remainder."""
        if not self.is_counted:
            return (
                f"{self.limit} of {self.owner}: {self.used} of {self.max}, {self.left} left;"
                f" this call, approved by a person, is not counted"
            )
        return f"{self.limit} of {self.owner}: {self.used} + {self.amount} of {self.max}, {self.left} left"


class ExplainedCall(DisplayedVerdict):
    """A governed call and the reasons of its verdict (`app.policy_explanation.explain_episode`)."""

    step_id: str
    capability: str
    caused_by: str | None = None
    stages: list[DisplayedStage]
    inside: list[str]
    matched: list[str]
    reads: Json
    limits: list[CountedLimit]
    would: list[ShadowVerdict]
    missing: list[str]
    compared: list[DisplayedComparison]
    flips: list[DisplayedComparison]
    why: str | None = None

    @property
    def unknown_limit(self) -> str:
        """The limit that denied the call because it cannot count it; empty for none."""
        kind, _, limit = (self.reason or "").partition(":")
        return limit if kind == UNKNOWN_LIMIT else ""


def _read_lines(call: ExplainedCall) -> Iterator[str]:
    """Yield a line for each value that the decision read. Counters have separate lines."""
    counters = {f"{READS}{each.limit}" for each in call.limits}
    for path, value in call.reads.items():
        if path not in counters:
            shown = "nothing" if value is None else _value_text(value)
            yield _named_line("read", f"{path} = {shown}")


def explanation_lines(payload: Json) -> Iterator[str]:
    """Yield the lines of a governed call: its verdict, the stages in order, the values read, and
    the deciding comparisons.
    """
    call = read_record(ExplainedCall, payload)
    caused = ", after an answer" if call.caused_by else ""
    yield f"{call.step_id}  {call.capability}  {call.text}{caused}"
    for stage in call.stages:
        reason = f": {stage.reason}" if stage.reason else ""
        yield _named_line(stage.stage, f"{stage.outcome}{reason}")
    for name, words in (("inside", call.inside), ("matched", call.matched)):
        if words:
            yield _named_line(name, ", ".join(words))
    for each in call.limits:
        yield _named_line("limit", each.text)
    if call.unknown_limit:
        why = "its amount or its owner is absent, negative or of another type"
        yield _named_line("limit", f"{call.unknown_limit} cannot count this call: {why}")
    yield from _read_lines(call)
    for shadow in call.would:
        yield _named_line("would", f"{shadow.rule}: {shadow.verdict} (shadow)")
    for path in call.missing:
        yield _named_line("missing", path)
    yield from _reason_lines(call)


def _named_line(name: str, text: str) -> str:
    """Return a line with a name and a text."""
    return f"  {name:<11} {text}"


def _reason_lines(call: ExplainedCall) -> Iterator[str]:
    """Yield a line per deciding comparison, with the nearest number that would change the decision."""
    for each in call.compared:
        flips = [flip for flip in call.flips if (flip.path, flip.rule) == (each.path, each.rule)]
        nearest = f"; {flips[0].text}" if flips else ""
        yield _named_line("decided by", f"{each.text}{nearest}")
    if call.why:
        yield _named_line("decided by", f"cannot be told: {call.why}")


def change_lines(changes: Sequence[PolicyChange]) -> Iterator[str]:
    """Yield a line for each changed part of two policies, and for each changed member of the part."""
    for change in changes:
        yield f"{_SIGNS[change.change]} {change.kind} {change.id}"
        if change.change == "changed":
            for name, (old, new) in change.members.items():
                yield f"    {name}: {_value_text(old)} -> {_value_text(new)}"


def decision_line(change: DecisionChange) -> str:
    """Return the line of a recorded decision that changes or cannot be compared."""
    where = f"{change.episode_id}  {change.event.step_id}  {change.event.payload.get('capability')}"
    if change.before is None or change.after is None:
        return f"? {where}  {change.why}"
    before = read_record(DisplayedVerdict, change.before)
    after = read_record(DisplayedVerdict, change.after)
    return f"~ {where}  {before.text} -> {after.text}"


def proof_lines(proof: PolicyProof) -> Iterator[str]:
    """Yield the lines of a proof: each difference with an example call, then the parts that are not
    covered.
    """
    for difference in proof.differences:
        case = difference.case
        inside = f" inside {case.kind.inside}" if case.kind.inside else ""
        verdicts = [
            read_record(DisplayedVerdict, verdict.to_payload()).text
            for verdict in (difference.before, difference.after)
        ]
        yield (
            f"{difference.relation}  {case.kind.capability.id} for {case.kind.intent}{inside}"
            f"  {' -> '.join(verdicts)}"
        )
        payload = case.to_payload()
        for name in ("safety_mode", "host", "limits", "data"):
            if name in payload:
                yield f"    {name}: {dumps(payload[name])}"
    for part in proof.open_parts:
        yield f"?  {part.what}  {part.why}"


def _value_text(value: object) -> str:
    """Return a value as JSON of limited length."""
    text = dumps(value)
    return text if len(text) <= 120 else f"{text[:120]}…"

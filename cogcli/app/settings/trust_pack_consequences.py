"""The consequences of changed rules and limits of a pack (docs/reference/service.md#trust)."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.spec_types import VERDICTS


class RuleEntry(Record):
    """A rule in the file of a pack."""

    then: object = None
    mode: object = None
    applies_to: object = None

    @property
    def verdict(self) -> str:
        """Return the verdict of its `then`."""
        return str(read_record(RuleEffect, self.then).verdict)

    @property
    def condition(self) -> object:
        """Return its `if`."""
        return self.json.get("if")


class RuleEffect(Record):
    """The `then` of a rule."""

    verdict: object = None


def find_weaker_rule(rule: str, old: RuleEntry, new: RuleEntry) -> Iterator[str]:
    """Yield what a changed rule no longer forbids, asks or checks. `rule` names it."""
    if not old.json:
        return
    was, verdict = old.verdict, new.verdict
    if not new.json:
        yield f"{rule} is gone, was {was}"
        return
    strictness = tuple(reversed(VERDICTS))
    if position_in(strictness, verdict) < position_in(strictness, was):
        yield f"{rule} says {verdict}, was {was}"
    if old.mode == "enforce" and new.mode != "enforce":
        yield f"{rule} is no longer enforced"
    if verdict == was and old.then != new.then:
        yield f"{rule} ({verdict}) has another gate, other limits or obligations"
    if (old.condition, old.applies_to) != (new.condition, new.applies_to):
        yield f"{rule} ({verdict}) has other conditions"


class LimitEntry(Record):
    """A limit in the file of a pack."""

    sum: object = None
    max: int | float | None = None
    per: object = None
    window_s: int | float | None = None
    over: object = None
    gate: object = None
    applies_to: object = None

    @property
    def counted(self) -> tuple[object, ...]:
        """What is counted, and for whom."""
        return self.sum, self.per, self.applies_to

    @property
    def verdict(self) -> object:
        """The verdict on a call that would exceed it."""
        return self.over or "deny"

    @property
    def window(self) -> float:
        """The seconds for which a call is counted."""
        return inf if self.window_s is None else self.window_s


def find_weaker_limit(limit: str, old: LimitEntry, new: LimitEntry) -> Iterator[str]:
    """Yield what a changed limit allows that it did not allow before, or what it counts otherwise. `limit` names it."""
    if not old.json:
        return
    if not new.json:
        yield f"{limit} is gone, its max was {old.max}"
        return
    yield from _find_larger_totals(limit, old, new)
    if old.counted != new.counted:
        yield f"{limit} counts other calls, amounts or owners"
    if new.verdict != old.verdict and new.verdict != "deny":
        yield f"{limit} says {new.verdict}, was {old.verdict}"
    elif old.gate != new.gate:
        yield f"{limit} has another gate"


def _find_larger_totals(limit: str, old: LimitEntry, new: LimitEntry) -> Iterator[str]:
    if old.max is None or new.max is None or new.max > old.max:
        yield f"{limit}: max {new.max}, was {old.max}"
    if new.window < old.window:
        yield f"{limit}: window_s {new.window_s}, was {old.window_s or 'for good'}"


def position_in(scale: tuple[str, ...], word: str) -> int:
    """Return the position of a word in a scale."""
    return scale.index(word) if word in scale else -1

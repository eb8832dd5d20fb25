"""What budgets and limits would hold if other calls had been made: recorded sessions under changed rules
(docs/reference/pack.md#diff). Pure.

1. Whether a call would be made is yes, no or unknown. So a count has bounds: the least and the most that it may be.
2. A call is decided if both bounds decide it equally. If they do not, the decision is unknown.
3. What a limit counted before these sessions follows from the recorded decisions, if the limit counts as it did then.
   For any other limit it is unknown: only what these sessions add is sure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import CallRetried, StepFinished, StepStarted
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.pack_spec import CumulativeLimit, Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.policy.freshness import seconds_of
from cogcli.policy.limits import (
    LimitClaim,
    apply_limits,
    claims_to_reserve,
    difference_of,
    recorded_use,
    sum_exactly,
)
from cogcli.policy.verdict import APPROVED, Verdict

BUDGET: Final = "budget"
"""The stage of a verdict that a budget decides."""
PER_RUN: Final = "tool_calls.per_workflow"
_NONE: Final = Decimal(0)
_Key = tuple[str | None, str | None]
UNKNOWN_COUNT: Final = (
    "what a limit counts then is not known: other calls, or a person, would decide it"
)
UNKNOWN_BUDGET: Final = (
    "whether a budget is spent then is not known: a person would decide about calls before"
)


class RuledCall(NamedTuple):
    """The verdict of a policy's rules on a recorded call, its claims, and the gates that people had approved."""

    verdict: Verdict
    claims: tuple[LimitClaim, ...]
    lifted: frozenset[tuple[str, str]]


class JudgedUse(NamedTuple):
    """The verdict after limits and budgets. It is None if it is unknown, and `why` has the reason."""

    verdict: Verdict | None
    why: str = ""


class _CounterUse:
    """The amount that one call added to a counter: the recorded amount, and the bounds of the replayed one."""

    __slots__ = ("at", "high", "low", "recorded")

    def __init__(self, at: float, recorded: Decimal, low: Decimal, high: Decimal) -> None:
        self.at, self.recorded, self.low, self.high = at, recorded, low, high

    def clear(self) -> None:
        """Count nothing: the call did not leave."""
        self.recorded = self.low = self.high = _NONE


class CounterHistory:
    """The counters of all compared sessions. Their events are applied in order of time."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, str | None], list[_CounterUse]] = defaultdict(list)

    def find_bounds(
        self, claim: LimitClaim, recorded: Decimal | None, at: float
    ) -> tuple[Decimal, Decimal]:
        """Return the lowest and the highest possible value of a counter. `recorded` is its recorded value; None means
        unknown, so the counter may be full.
        """
        uses = [
            use for use in self._uses[claim.limit.id, claim.owner] if _is_within(claim, use, at)
        ]
        low = sum_exactly(use.low for use in uses)
        if recorded is None:
            return low, sum_exactly((Decimal(str(claim.limit.max)), Decimal(1)))
        before = difference_of(recorded, sum_exactly(use.recorded for use in uses))
        before = max(before, _NONE)
        return sum_exactly((before, low)), sum_exactly((before, *(use.high for use in uses)))

    def add(self, claim: LimitClaim, use: _CounterUse) -> None:
        """Add the amount of a call to the counter of a claim."""
        self._uses[claim.limit.id, claim.owner].append(use)


def _is_within(claim: LimitClaim, use: _CounterUse, at: float) -> bool:
    window = claim.limit.window_s
    return window is None or use.at > at - window


class _Outcome(NamedTuple):
    """Whether a call would be made: at least `least` times and at most `most` times."""

    least: int
    most: int


_YES, _NO, _MAYBE = _Outcome(1, 1), _Outcome(0, 0), _Outcome(0, 1)


class _ClosedAttempts(Record):
    """The attempts of a step that has ended. A step that never began has none."""

    attempts: list[AttemptMade]


class _Pending(NamedTuple):
    """A decided call that has not begun."""

    outcome: _Outcome
    claims: tuple[LimitClaim, ...]
    counted: frozenset[str]
    """The limits that count the call if it is made."""
    at: float
    was_lifted: bool = False
    """Whether a person had approved the recorded call, so that limits that ask did not count it."""
    uses: tuple[_CounterUse, ...] = ()
    """The amounts counted already at the decision, because the recorded call was not made."""


class ReplayedUse:
    """The limits and budgets of one session under another pack. `recorded` is the pack of the session."""

    def __init__(
        self,
        recorded: Pack,
        pack: Pack,
        budgets: Mapping[str, int | float],
        counters: CounterHistory,
    ) -> None:
        self._same = _find_equal_limits(recorded, pack)
        self._limit = budgets.get(PER_RUN)
        self._counters = counters
        self._made = _NO
        self._pending: dict[_Key, _Pending] = {}
        self._uses: dict[_Key, list[_CounterUse]] = {}

    def judge(self, event: Event, decided: PolicyDecided, call: RuledCall) -> JudgedUse:
        """Return the verdict on a recorded call, and count the call as far as it would be made."""
        at = seconds_of(event.timestamp)
        found = self._apply_budget(self._limit_call(decided, call, at))
        key = event.run_id, event.step_id
        outcome = _MAYBE if found.verdict is None else _outcome_of(found.verdict)
        was_open = self._pending.pop(key, None)
        if was_open is not None and was_open.uses:
            self._pending[key] = was_open  # counted at the first decision about the call
            return found
        counted = _find_counted_limits(found.verdict, call.claims)
        pending = _Pending(outcome, call.claims, counted, at, decided.reason == APPROVED)
        if decided.verdict != "allow" and outcome.most:
            uses = self._count_use(pending, recorded=False, key=key)
            pending = pending._replace(uses=uses)
        self._pending[key] = pending
        return found

    def apply(self, event: Event, payload: Payload) -> None:
        """Fold an event of the session."""
        key = event.run_id, event.step_id
        match payload:
            case StepStarted(capability=str()) if key in self._pending:
                self._count_made_call(key)
            case CallRetried() if key in self._uses:
                self._add_attempt(_YES)
            case StepFinished() if key in self._uses:
                uses = self._uses.pop(key)
                attempts = read_record(_ClosedAttempts, payload.json).attempts
                if attempts and all(each.left is False for each in attempts):
                    for use in uses:
                        use.clear()
            case StepFinished():
                self._pending.pop(key, None)

    def _count_made_call(self, key: _Key) -> None:
        """Count a call that was made."""
        pending = self._pending.pop(key)
        if not pending.uses:
            self._count_use(pending, recorded=True, key=key)
            return
        for claim, use in zip(pending.claims, pending.uses, strict=False):
            use.recorded = (claim.amount or _NONE) if self._was_counted(claim, pending) else _NONE
            use.low = use.high * pending.outcome.least

    def _count_use(
        self, pending: _Pending, *, recorded: bool, key: _Key
    ) -> tuple[_CounterUse, ...]:
        """Count a call for its budget and its limits, and return the amounts that it adds."""
        self._add_attempt(pending.outcome)
        uses = []
        for claim in pending.claims:
            amount = claim.amount or _NONE
            was = amount if recorded and self._was_counted(claim, pending) else _NONE
            # A call that was not recorded may have failed before it left.
            most = pending.outcome.most if claim.limit.id in pending.counted else 0
            low = amount * min(pending.outcome.least, most) if recorded else _NONE
            use = _CounterUse(pending.at, was, low, amount * most)
            self._counters.add(claim, use)
            uses.append(use)
        self._uses[key] = uses
        return tuple(uses)

    def _was_counted(self, claim: LimitClaim, pending: _Pending) -> bool:
        """Return whether the recorded counter of a limit has a call that was made."""
        is_same = claim.limit.id in self._same
        return is_same and (claim.limit.over == "deny" or not pending.was_lifted)

    def _add_attempt(self, outcome: _Outcome) -> None:
        made = self._made
        self._made = _Outcome(made.least + outcome.least, made.most + outcome.most)

    def _limit_call(self, decided: PolicyDecided, call: RuledCall, at: float) -> JudgedUse:
        """Return the verdict with the limits applied, for the lowest and the highest possible values of the
        counters.
        """
        known = [claim for claim in call.claims if claim.is_known]
        low, high = {}, {}
        for claim in known:
            same = claim.limit.id in self._same
            recorded = recorded_use(decided.reads, [claim]) if same else None
            held = recorded.get(claim.limit.id) if recorded else None
            low[claim.limit.id], high[claim.limit.id] = self._counters.find_bounds(claim, held, at)
        least, most = (
            _remove_gates(apply_limits(call.verdict, call.claims, used), call.lifted)
            for used in (low, high)
        )
        return JudgedUse(least) if _is_equal(least, most) else JudgedUse(None, UNKNOWN_COUNT)

    def _apply_budget(self, found: JudgedUse) -> JudgedUse:
        """Return the verdict with the budget of the run applied."""
        verdict = found.verdict
        if verdict is None or verdict.outcome != "allow" or self._limit is None:
            return found
        if self._made.most < self._limit:
            return found
        if self._made.least < self._limit:
            return JudgedUse(None, UNKNOWN_BUDGET)
        return JudgedUse(
            verdict._replace(outcome="deny", stage=BUDGET, reason=PER_RUN, rule="", gate="")
        )


def _remove_gates(verdict: Verdict, lifted: Iterable[tuple[str, str]]) -> Verdict:
    return verdict.lifted() if (verdict.outcome, verdict.gate) in lifted else verdict


def _is_equal(one: Verdict, other: Verdict) -> bool:
    return (one.outcome, one.gate) == (other.outcome, other.gate)


def _outcome_of(verdict: Verdict) -> _Outcome:
    """Return whether a call with this verdict would be made. One that asks a person may be."""
    if verdict.outcome == "allow":
        return _YES
    return _MAYBE if verdict.asks else _NO


def _find_counted_limits(verdict: Verdict | None, claims: tuple[LimitClaim, ...]) -> frozenset[str]:
    """Return the limits that count a call with this verdict if it is made. A person's yes is not counted by all."""
    found = claims
    if verdict is not None and verdict.outcome == "allow":
        found = claims_to_reserve(verdict, claims, is_lifted=verdict.reason == APPROVED)
    elif verdict is not None:
        found = tuple(claim for claim in claims if claim.limit.over == "deny")
    return frozenset(claim.limit.id for claim in found)


def _find_equal_limits(recorded: Pack, pack: Pack) -> frozenset[str]:
    """Return the limits that count the same calls in both packs, so that recorded counters are valid for both."""
    before = {limit.id: _counting_key(limit) for limit in recorded.policy.limits}
    return frozenset(
        limit.id for limit in pack.policy.limits if before.get(limit.id) == _counting_key(limit)
    )


def _counting_key(limit: CumulativeLimit) -> tuple[object, ...]:
    """Return the members of a limit that determine which calls it counts, and how."""
    return limit.scope, limit.sum, limit.per, limit.window_s, limit.over == "deny"

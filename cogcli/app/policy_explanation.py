"""`policy explain`: the reasons of the recorded decisions of an episode
(docs/reference/pack.md#explain)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from cogcli.app.policy_history import read_governed_run
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.event_type import EventType
from cogcli.declarations.events import StepFinished
from cogcli.declarations.governance_events import BudgetExceeded, PolicyDecided
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.refusals import unreadable
from cogcli.policy.comparisons import VerdictExplanation, explain_verdict
from cogcli.policy.limits import counts_approved_calls, list_counters
from cogcli.policy.run_policy import JudgedCall, RunPolicy
from cogcli.policy.verdict import APPROVED, Verdict
from cogcli.run.log_index_reading import require_known_payload
from cogcli.run.recorded_decisions import (
    RedecisionFold,
    ReplayedDecision,
    policy_under,
)

_CHECKS = ("permission", "rule", "situation")
_ASKING = ("allow_with_gate", "escalate")
"""The verdicts after which a person decides."""


def explain_episode(directory: Path) -> Iterator[Json]:
    """Yield the reasons of each governed decision of an episode, in order; nothing if the run had no
    pack.

    The log is read once, and only decisions about calls that have not ended are in memory. Raise
    the errors of `read_governed_log`."""
    run = read_governed_run(directory)
    if run is None:
        return
    policy = policy_under(run.catalog, run.pack, run.started)
    fold = RedecisionFold(run.catalog, policy, policy)
    explained = ExplainedDecisions()
    with closing(iterate_events(directory, whole=True)) as events:
        for event in events:
            require_known_payload(directory, event)
            try:
                found = fold.step(event)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                why = f"an event is none of ours ({type(error).__name__}: {error!s:.60})"
                raise unreadable(directory, why, file=EVENTS) from error
            explained.take(event)
            if found is not None:
                explained.add(
                    event, _explain_decision(found, run.pack), _explain_comparisons(policy, found)
                )
            yield from explained.ready()
    yield from explained.take_waiting()


class ExplainedDecision:
    """An explained decision without its stages. Later events of the call decide the stages."""

    def __init__(self, event: Event, members: Json, comparisons: Json) -> None:
        self._event = event
        self._members = members
        self._comparisons = comparisons
        self.later = LaterEvents()
        self.has_ended = not event.step_id
        """Whether no later event is about this call."""

    def to_payload(self) -> Json:
        """Return the explanation as an object of `policy explain`."""
        stages = _list_stages(self._event, self.later)
        return {**self._members, "stages": stages, **self._comparisons}


class ExplainedDecisions:
    """The decisions of a log, in order. One is ready when its call has ended, or was decided again."""

    def __init__(self) -> None:
        self._waiting: deque[ExplainedDecision] = deque()
        self._open: dict[tuple[str | None, str], ExplainedDecision] = {}

    def add(self, event: Event, members: Json, comparisons: Json) -> None:
        """Add a decision. `take` must have received its event before."""
        decision = ExplainedDecision(event, members, comparisons)
        self._waiting.append(decision)
        if event.step_id:
            self._open[event.run_id, event.step_id] = decision

    def take(self, event: Event) -> None:
        """Pass an event to the open decisions about its step, and about the step that contains it."""
        if not event.step_id:
            return
        row = row_of(event.event_type)
        own = self._open.get((event.run_id, event.step_id))
        owner = self._open.get((event.run_id, StepPath(event.step_id).owner))
        if owner is not None:
            owner.later.take(event, row)
        if own is None:
            return
        is_decided_again = event.event_type == PolicyDecided.event.name
        if not is_decided_again:
            own.later.take(event, row)
        if is_decided_again or row.closes:
            own.has_ended = True
            del self._open[event.run_id, event.step_id]

    def ready(self) -> Iterator[Json]:
        """Yield the decisions before the first one whose call has not ended."""
        while self._waiting and self._waiting[0].has_ended:
            yield self._waiting.popleft().to_payload()

    def take_waiting(self) -> Iterator[Json]:
        """Yield the decisions that are still waiting, at the end of the log."""
        for decision in self._waiting:
            yield decision.to_payload()


class LaterEvents:
    """The first event of each kind after a decision about a call, up to the next decision about it."""

    def __init__(self) -> None:
        self.answer: Event | None = None
        """The answer of a person."""
        self.asked: Event | None = None
        self.started: Event | None = None
        self.spent: Event | None = None
        """A budget that was exceeded."""
        self.closing: Event | None = None

    def take(self, event: Event, row: EventType) -> None:
        """Add the next event."""
        if row.resolves:
            self.answer = self.answer or event
        if row.asks:
            self.asked = self.asked or event
        if row.starts:
            self.started = self.started or event
        if row.closes:
            self.closing = self.closing or event
        if event.event_type == BudgetExceeded.event.name:
            self.spent = self.spent or event


def _explain_decision(decision: ReplayedDecision, pack: Pack) -> Json:
    """Return the place of a decision, its recorded members, and the counters of the pack's limits."""
    event = decision.event
    members = {
        name: event.payload.get(name)
        for name in ("capability", "decision", "verdict", "stage", "reason")
    }
    kept = (
        "inside",
        "rule",
        "pack",
        "limit",
        "gate",
        "approval_mode",
        "matched",
        "would",
        "rule_errors",
        "obligations",
        "reads",
    )
    members |= {name: event.payload[name] for name in kept if name in event.payload}
    where = {
        "seq": event.seq,
        "event": event.id,
        "step_id": event.step_id,
        "caused_by": event.caused_by,
    }
    decided = read_record(PolicyDecided, event.payload)
    is_approved = decided.reason == APPROVED
    limits = list_counters(decided, _find_uncounted(pack) if is_approved else ())
    return {**where, **members, **({"limits": limits} if limits else {})}


def _find_uncounted(pack: Pack) -> frozenset[str]:
    """Return the limits that do not count a call that a person approved."""
    return frozenset(limit.id for limit in pack.policy.limits if not counts_approved_calls(limit))


def _decide_changed_call(
    policy: RunPolicy, replayed: ReplayedDecision, recorded: JudgedCall, changed: JudgedCall
) -> Verdict:
    """Return the verdict on a recorded call with changed values, by rules, limits and answered gates."""
    call = recorded.call
    claims = policy.find_claims(call.capability, changed.call.arguments or {})
    known_claims = tuple(claim for claim in claims if claim.is_known or not call.unknown)
    verdict = replayed.limits.apply(policy.decide(changed), known_claims)
    is_answered = (verdict.outcome, verdict.gate) in replayed.lifted
    return verdict.lifted() if is_answered else verdict


def _explain_comparisons(policy: RunPolicy, decision: ReplayedDecision) -> Json:
    """Return the comparisons that decided a call, and the changes of values that would change the
    verdict.

    Both are empty if evaluating the policy again gives a different decision."""
    if decision.case is None or decision.verdict is None or decision.is_changed:
        reason = (
            decision.why
            or "what the log holds is decided otherwise: it does not hold all that was seen then"
        )
        return {"compared": [], "flips": [], "missing": [], "why": reason}
    call = decision.case.call
    applicable = policy.rules.rules_for(policy.requester.intent, call.capability)
    rules = tuple(rule for rule in applicable if not rule.may_read(call.unknown))
    decide = partial(_decide_changed_call, policy, decision, decision.case)
    explained: VerdictExplanation = explain_verdict(rules, decision.case, decide, decision.limits)
    return {
        "compared": [{**each._asdict(), "text": each.text} for each in explained.decided],
        "flips": [{**each._asdict(), "text": each.text} for each in explained.flips],
        "missing": list(explained.missing),
    }


def _list_stages(decision: Event, later: LaterEvents) -> list[dict[str, str]]:
    """Return the stages of a governed call in order, each with its outcome. `later` are the events
    after the decision."""
    decided = read_record(PolicyDecided, decision.payload)
    verdict, stage = decided.verdict, decided.stage
    at = len(_CHECKS) if stage is None else _CHECKS.index(stage)
    stages = [
        _stage_members(
            name, _check_outcome(verdict, number - at), decided.reason if name == stage else ""
        )
        for number, name in enumerate(_CHECKS)
    ]
    if verdict in _ASKING:
        return [*stages, _approval_stage(later)]
    return [*stages, *_stages_after_policy(later)] if verdict == "allow" else stages


def _check_outcome(verdict: str | None, distance: int) -> str:
    """Return the outcome of one check. `distance` is its position relative to the check that
    decided: negative for earlier checks, 0 for that check."""
    if verdict == "allow" or distance < 0:
        return "passed"
    if distance == 0:
        return "asked" if verdict in _ASKING else "refused"
    return "passed" if verdict in _ASKING else "not reached"


def _approval_stage(later: LaterEvents) -> dict[str, str]:
    """Return the stage of the approval, with the person who answered."""
    answer = later.answer
    if answer is None:
        return _stage_members("approval", "waiting", "")
    given = read_record(AnsweringPerson, answer.payload)
    role = f" ({given.role})" if given.role else ""
    return _stage_members("approval", str(answer.event_type).partition(".")[2], f"{given.by}{role}")


class AnsweringPerson(Record):
    """The person who answered a request for approval."""

    by: object = None
    role: object = None


def _stages_after_policy(later: LaterEvents) -> Iterator[dict[str, str]]:
    """Yield the stages safety, budget, intent and invocation of a call that the policy allowed."""
    started, spent, closing = later.started, later.spent, later.closing
    ended = read_record(StepFinished, closing.payload if closing else None)
    code = ended.error.code if ended.error else ""
    if started is None and spent is None:
        yield _failed_safety_stage(later, code)
        return
    yield _stage_members("safety", "passed", "")
    key = read_record(BudgetExceeded, spent.payload).key if spent else ""
    yield _stage_members("budget", "passed" if started else "exceeded", key)
    if started is not None:
        yield _stage_members("intent", "written", f"event {started.seq}")
        yield _stage_members("invocation", ended.step_status if closing else "no result", code)


def _failed_safety_stage(later: LaterEvents, code: str) -> dict[str, str]:
    """Return the stage of safety for a call that did not pass it."""
    if code:
        return _stage_members("safety", "refused", code)
    return _stage_members("safety", "asked" if later.asked else "not reached", "")


def _stage_members(name: str, outcome: str, reason: str | None) -> dict[str, str]:
    """Return one stage as an object. An empty reason is omitted."""
    return {"stage": name, "outcome": outcome, **({"reason": reason} if reason else {})}

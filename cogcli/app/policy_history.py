"""`policy explain` and `policy diff`: the reasons of recorded decisions, and the decisions that
another pack changes (docs/reference/pack.md#explain)."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from operator import itemgetter
from pathlib import Path

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.jsonvalue import object_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_type import EventType
from cogcli.declarations.events import StepFinished, row_of
from cogcli.declarations.governance_events import BudgetExceeded, PolicyDecided
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.run_start import RecordedPolicy, start_of
from cogcli.declarations.value_types import Json
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.refusals import another_tools, unreadable
from cogcli.policy.budgets import DEFAULTS, merge_limits
from cogcli.policy.comparisons import VerdictExplanation, explain_verdict
from cogcli.policy.freshness import seconds_of
from cogcli.policy.limits import list_counters
from cogcli.policy.pack_composition import compose
from cogcli.policy.run_policy import JudgedCall, RunPolicy
from cogcli.policy.verdict import Verdict
from cogcli.run.log_index import read_log_index, require_known_payload
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.recorded_decisions import (
    RedecisionFold,
    ReplayedDecision,
    decide_again,
    policy_under,
)
from cogcli.run.replay import read_pinned_catalog
from cogcli.run.replayed_use import BUDGET, CounterHistory, ReplayedUse
from cogcli.specs.catalog import Catalog

_CHECKS = ("permission", "rule", "situation")
_ASKING = ("allow_with_gate", "escalate")
"""The verdicts after which a person decides."""


class GovernedRun(NamedTuple):
    """The first event of a run under a pack, with the pinned specs and the pinned pack."""

    started: Event
    catalog: Catalog
    pack: Pack
    others: tuple[Pack, ...] = ()
    """The packs that add to it; `pack` has their additions."""


class GovernedLog(NamedTuple):
    """The log of a run under a pack, with the pinned specs and the pinned pack."""

    events: list[Event]
    started: Event
    catalog: Catalog
    pack: Pack
    others: tuple[Pack, ...] = ()
    """The packs that add to it; `pack` has their additions."""


class DecisionChange(NamedTuple):
    """A recorded decision, and the verdicts of two packs on the same call.

    A verdict that cannot be computed is None. Then `why` contains the reason."""

    episode_id: str
    event: Event
    before: Json | None
    after: Json | None
    why: str = ""

    def to_payload(self) -> Json:
        """Return the change as a JSON object."""
        event = self.event
        where = {"episode_id": self.episode_id, "seq": event.seq, "step_id": event.step_id}
        what = {
            "capability": event.payload.get("capability"),
            "before": self.before,
            "after": self.after,
        }
        return {**where, **what, **({"why": self.why} if self.why else {})}


class EpisodeComparison(NamedTuple):
    """The number of compared decisions of an episode, those that differ, and those that could not
    be computed."""

    decisions: int
    changed: list[DecisionChange]
    undecided: list[DecisionChange]


def read_governed(directory: Path) -> GovernedLog | None:
    """Return the log of an episode; None if the run had no pack.

    Raise UnusableEnvironment `episode.unreadable`."""
    run = _read_governed_run(directory)
    if run is None:
        return None  # its log may not fit into memory
    events, _ = read_log_index(directory)
    return GovernedLog(events, *run)


def _read_governed_run(directory: Path) -> GovernedRun | None:
    """Return what the first event of a run names; None if it names no pack.

    Raise the errors of `read_governed`."""
    started = _read_first(directory)
    require_known_payload(directory, started)
    request = PolicyRequest.recorded(start_of(started))
    if request is None or not request.pack:
        return None
    catalog = read_pinned_catalog(started, directory)
    pack, others = _find_packs(catalog, request)
    return GovernedRun(started, catalog, pack, others)


def _find_packs(catalog: Catalog, request: PolicyRequest) -> tuple[Pack, tuple[Pack, ...]]:
    """Return the composed pack of a run, and the packs that add to it.

    Raise UnusableEnvironment `episode.unreadable` if the catalog lacks one."""
    found = []
    for reference in (request.pack, *request.with_packs):
        pack = catalog.packs.get(reference.partition("#")[0])
        if pack is None:
            raise UnusableEnvironment(
                "episode.unreadable", f"the specs of this run have no `{reference}`"
            )
        found.append(pack)
    primary, *others = found
    return compose(primary, others), tuple(others)


def is_shadow_run(directory: Path) -> bool:
    """Return whether a run enforced no rule of its pack. Raise the errors of `read_governed`."""
    return _read_policy(directory).shadow


def _read_policy(directory: Path) -> RecordedPolicy:
    """Return the policy in the first event of a run. Raise the errors of `read_governed`."""
    return read_record(RecordedPolicy, object_of(_read_first(directory).payload).get("policy"))


def _read_first(directory: Path) -> Event:
    """Return the first event of a run. Raise the errors of `read_governed`."""
    with closing(iterate_events(directory, whole=True)) as events:
        first = next(events)
    if first.seq is None:
        raise another_tools(directory, first)
    return first


def explain_episode(directory: Path) -> Iterator[Json]:
    """Yield the reasons of each governed decision of an episode, in order; nothing if the run had no
    pack.

    The log is read once, and only decisions about calls that have not ended are in memory. Raise
    the errors of `read_governed`."""
    run = _read_governed_run(directory)
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
                explained.add(event, _explain_decision(found), _explain_comparisons(policy, found))
            yield from explained.ready()
    yield from explained.take_waiting()


class ExplainedDecision:
    """A decision that is explained but for its stages, which later events of the call decide."""

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
        """Add a decision, after its event was taken."""
        decision = ExplainedDecision(event, members, comparisons)
        self._waiting.append(decision)
        if event.step_id:
            self._open[event.run_id, event.step_id] = decision

    def take(self, event: Event) -> None:
        """Pass an event to the open decisions about its step, and about the step that it is a part of."""
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
        """What a person answered."""
        self.asked: Event | None = None
        self.started: Event | None = None
        self.spent: Event | None = None
        """A budget that was exceeded."""
        self.closing: Event | None = None

    def take(self, event: Event, row: EventType) -> None:
        """Take the next event."""
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


def _explain_decision(decision: ReplayedDecision) -> Json:
    """Return the place of a decision and its recorded members."""
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
    limits = list_counters(event.payload)
    return {**where, **members, **({"limits": limits} if limits else {})}


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
        _stage(name, _check_outcome(verdict, number - at), decided.reason if name == stage else "")
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
        return _stage("approval", "waiting", "")
    given = read_record(AnsweringPerson, answer.payload)
    role = f" ({given.role})" if given.role else ""
    return _stage("approval", str(answer.event_type).partition(".")[2], f"{given.by}{role}")


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
    yield _stage("safety", "passed", "")
    key = read_record(BudgetExceeded, spent.payload).key if spent else ""
    yield _stage("budget", "passed" if started else "exceeded", key)
    if started is not None:
        yield _stage("intent", "written", f"event {started.seq}")
        yield _stage("invocation", ended.step_status if closing else "no result", code)


def _failed_safety_stage(later: LaterEvents, code: str) -> dict[str, str]:
    """Return the stage of safety for a call that did not pass it."""
    if code:
        return _stage("safety", "refused", code)
    return _stage("safety", "asked" if later.asked else "not reached", "")


def _stage(name: str, outcome: str, reason: str | None) -> dict[str, str]:
    """Return one stage as an object. An empty reason is omitted."""
    return {"stage": name, "outcome": outcome, **({"reason": reason} if reason else {})}


def read_compared(directory: Path, old: Pack) -> GovernedLog | None:
    """Return the log of an episode; None if the run had no pack with the id of the old one.

    Raise the errors of `read_governed`."""
    log = read_governed(directory)
    return None if log is None or log.pack.pack_id != old.pack_id else log


def compare_logs(logs: Sequence[GovernedLog], old: Pack, new: Pack) -> list[EpisodeComparison]:
    """Return for each log the decisions that two packs make differently: by rules, limits and budgets.

    The calls of all logs count together, in the order of time. If a run was under exactly the old pack, its recorded
    decisions are compared. A run that enforced no rule is compared as if it had."""
    before, after = _decide_logs(logs, old), _decide_logs(logs, new)
    return [
        _compare_decisions(
            log.started.episode_id, mine, theirs, exact=_is_exact(log, old), events=log.events
        )
        for log, mine, theirs in zip(logs, before, after, strict=True)
    ]


def _is_exact(log: GovernedLog, old: Pack) -> bool:
    """Return whether the recorded decisions of a run are those of a pack."""
    policy = start_of(log.started).policy
    return log.pack.hash == compose(old, log.others).hash and not (policy and policy.shadow)


def _decide_logs(logs: Sequence[GovernedLog], pack: Pack) -> list[list[ReplayedDecision]]:
    """Return by log the decisions about its calls as a pack makes them."""
    counters = CounterHistory()
    folds = [_redecide_under(log, compose(pack, log.others), counters) for log in logs]
    found: list[list[ReplayedDecision]] = [[] for _ in logs]
    # Limits count over sessions, so that the events of all come in the order of time.
    streams = (_events_in_time_order(number, log.events) for number, log in enumerate(logs))
    for _, number, event in heapq.merge(*streams, key=itemgetter(0)):
        decided = folds[number].step(event)
        if decided is not None:
            found[number].append(decided)
    return found


def _events_in_time_order(
    number: int, events: Sequence[Event]
) -> Iterator[tuple[float, int, Event]]:
    """Yield the events of a log, each with its time and the number of the log. Times never
    decrease.
    """
    latest = 0.0
    for event in events:
        latest = max(latest, seconds_of(event.timestamp))
        yield latest, number, event


def _redecide_under(log: GovernedLog, pack: Pack, counters: CounterHistory) -> RedecisionFold:
    """Return the fold that decides the calls of a log as a pack does."""
    recorded = policy_under(log.catalog, log.pack, log.started)
    is_same = pack.hash == log.pack.hash and not recorded.rules.is_shadow
    policy = recorded if is_same else policy_under(log.catalog, pack, log.started, enforces=True)
    given = PolicyRequest.recorded(start_of(log.started)) or PolicyRequest()
    budgets = merge_limits(DEFAULTS, pack.meta.defaults.budget)
    for key, value in given.budget.items():
        budgets[key] = min(value, budgets.get(key, value))
    return RedecisionFold(
        log.catalog, recorded, policy, ReplayedUse(log.pack, pack, budgets, counters)
    )


def compare_with_present(episode_id: str, log: GovernedLog, present: Catalog) -> EpisodeComparison:
    """Return the recorded decisions of a run that the present specs and packs make differently.

    Raise UnusableEnvironment `episode.unreadable` if the present specs lack a pack of the run."""
    recorded = policy_under(log.catalog, log.pack, log.started)
    before = list(decide_again(log.events, log.catalog, recorded, recorded))
    request = PolicyRequest.recorded(start_of(log.started)) or PolicyRequest()
    pack, _ = _find_packs(present, request)
    recorded = policy_under(log.catalog, log.pack, log.started)
    policy = policy_under(present, pack, log.started)
    after = list(decide_again(log.events, present, recorded, policy))
    return _compare_decisions(episode_id, before, after, exact=True)


def _compare_decisions(
    episode_id: str,
    old_decisions: Sequence[ReplayedDecision],
    new_decisions: Sequence[ReplayedDecision],
    *,
    exact: bool,
    events: Sequence[Event] = (),
) -> EpisodeComparison:
    """Return the decisions that differ. With `exact`, the recorded decisions are those before, and budgets that
    `events` record."""
    changed, undecided = [], []
    spent = _find_spent(events)
    for mine, theirs in zip(old_decisions, new_decisions, strict=True):
        was = _recorded_members(mine.event, spent) if exact else _comparable_verdict(mine)
        will = _comparable_verdict(theirs)
        why = theirs.why or ("" if exact else mine.why)
        change = DecisionChange(episode_id, mine.event, was, will, why)
        if was is None or will is None:
            undecided.append(change)
        elif _has_different_effect(was, will):
            changed.append(change)
    return EpisodeComparison(len(old_decisions), changed, undecided)


def _find_spent(events: Iterable[Event]) -> dict[str, str]:
    """Return by id of a decision the budget that then refused its call."""
    latest: dict[tuple[str | None, str | None], str] = {}
    found = {}
    for event in events:
        key = event.run_id, event.step_id
        if event.event_type == PolicyDecided.event.name:
            latest[key] = event.id
        elif event.event_type == BudgetExceeded.event.name and key in latest:
            found[latest[key]] = read_record(BudgetExceeded, event.payload).key
    return found


def _recorded_members(event: Event, spent: Mapping[str, str]) -> Json:
    """Return the compared members of a recorded decision, and of the budget that refused its call."""
    members = _select_compared_members(event.payload)
    key = spent.get(event.id)
    if key is None:
        return members
    return {**members, "verdict": "deny", "gate": "", "rule": "", "reason": key, "stage": BUDGET}


def _has_different_effect(was: Json, will: Json) -> bool:
    """Return whether two verdicts differ in more than their reasons."""
    return any(was[name] != will[name] for name in ("verdict", "gate", "obligations"))


def _comparable_verdict(decision: ReplayedDecision) -> Json | None:
    """Return the compared members of a computed verdict; None if it could not be computed."""
    return (
        None
        if decision.verdict is None
        else _select_compared_members(decision.verdict.to_payload())
    )


def _select_compared_members(payload: Json) -> Json:
    """Return the compared members of a decision. A missing text becomes an empty one."""
    members = {
        name: payload.get(name) or "" for name in ("verdict", "gate", "rule", "reason", "stage")
    }
    return {**members, "obligations": sorted(payload.get("obligations") or ())}

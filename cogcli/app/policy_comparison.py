"""`policy diff`: the recorded decisions that another pack, or the present specs, change."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from cogcli.app.policy_history import GovernedLog, find_packs, read_governed_log
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import BudgetExceeded, PolicyDecided
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import start_of
from cogcli.declarations.value_types import Json
from cogcli.policy.budgets import DEFAULTS, merge_limits
from cogcli.policy.freshness import seconds_of
from cogcli.policy.pack_composition import compose
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.recorded_decisions import (
    RedecisionFold,
    ReplayedDecision,
    decide_again,
    policy_under,
)
from cogcli.run.replayed_use import BUDGET, CounterHistory, ReplayedUse
from cogcli.specs.catalog import Catalog


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
            "capability": PolicyDecided.of(event.payload).capability,
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


def read_log_for_comparison(directory: Path, old: Pack) -> GovernedLog | None:
    """Return the log of an episode; None if the run had no pack with the id of the old one.

    Raise the errors of `read_governed_log`."""
    log = read_governed_log(directory)
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
    """Return whether a pack, with the additional packs of the run, is exactly the pack under which the run was
    decided.
    """
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


def compare_with_current(episode_id: str, log: GovernedLog, present: Catalog) -> EpisodeComparison:
    """Return the recorded decisions of a run that the current specs and packs would make differently. Raise
    UnusableEnvironment `episode.unreadable` if the current specs lack a pack of the run.
    """
    recorded = policy_under(log.catalog, log.pack, log.started)
    before = list(decide_again(log.events, log.catalog, recorded, recorded))
    request = PolicyRequest.recorded(start_of(log.started)) or PolicyRequest()
    pack, _ = find_packs(present, request)
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
    return {**members, "obligations": sorted(read_record(PolicyDecided, payload).obligations or ())}

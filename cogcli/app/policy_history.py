"""`policy explain` and `policy diff`: the reasons of recorded decisions, and those that another
pack decides differently (docs/reference/pack.md#explain)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cogcli.base.errors import EnvironmentRefusal
from cogcli.base.step_path import StepPath
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import row_of
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.run_start import start_of
from cogcli.declarations.value_types import Json
from cogcli.policy.comparisons import VerdictExplanation, explain_verdict
from cogcli.policy.run_policy import JudgedCall, RunPolicy
from cogcli.policy.verdict import Verdict
from cogcli.run.log_index import read_log_index
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.recorded_decisions import ReplayedDecision, decide_again, policy_under
from cogcli.run.replay import read_pinned_catalog
from cogcli.specs.catalog import Catalog

_CHECKS = ("permission", "rule", "situation")


class GovernedLog(NamedTuple):
    """The log of a run under a pack, with the specs and the pack that it pinned."""

    events: list[Event]
    started: Event
    catalog: Catalog
    pack: Pack


class DecisionChange(NamedTuple):
    """A recorded decision, and the verdicts of two packs on the same call.

    If a verdict cannot be computed, it is None and `why` has the reason."""

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
    """The number of compared decisions of an episode, the changed ones, and those that could not be
    computed."""

    decisions: int
    changed: list[DecisionChange]
    undecided: list[DecisionChange]


def read_governed(directory: Path) -> GovernedLog | None:
    """Return the log of an episode; None without a pack. Raise EnvironmentRefusal
    `episode.unreadable`."""
    events, log = read_log_index(directory)
    request = PolicyRequest.recorded(start_of(log.started)) if log.started else None
    if log.started is None or request is None or not request.pack:
        return None
    catalog = read_pinned_catalog(log.started, directory)
    pack = catalog.packs.get(request.pack.partition("#")[0])
    if pack is None:
        raise EnvironmentRefusal(
            "episode.unreadable", f"the specs of this run have no `{request.pack}`"
        )
    return GovernedLog(events, log.started, catalog, pack)


def explain_episode(directory: Path) -> list[Json]:
    """Return the reasons of each governed decision of an episode, in order; empty without a pack.

    Raise the errors of `read_governed`."""
    log = read_governed(directory)
    if log is None:
        return []
    policy = policy_under(log.catalog, log.pack, log.started)
    return [
        _explain_decision(log, policy, each)
        for each in decide_again(log.events, log.catalog, policy, policy)
    ]


def _explain_decision(log: GovernedLog, policy: RunPolicy, found: ReplayedDecision) -> Json:
    event = found.event
    told = {
        name: event.payload.get(name)
        for name in ("capability", "decision", "verdict", "stage", "reason")
    }
    kept = (
        "inside",
        "rule",
        "gate",
        "approval_mode",
        "matched",
        "would",
        "rule_errors",
        "obligations",
        "reads",
    )
    told |= {name: event.payload[name] for name in kept if name in event.payload}
    where = {
        "seq": event.seq,
        "event": event.id,
        "step_id": event.step_id,
        "caused_by": event.caused_by,
    }
    stages = _stages(event, list(_events_after_decision(log.events, event)))
    return {**where, **told, "stages": stages, **_explain_comparisons(policy, found)}


def _explain_comparisons(policy: RunPolicy, found: ReplayedDecision) -> Json:
    """Return the comparisons that decided a call, and changes that would flip it.

    They are empty if the log does not reproduce the decision."""
    if found.case is None or found.verdict is None or found.is_changed:
        why = (
            found.why
            or "what the log holds is decided otherwise: it does not hold all that was seen then"
        )
        return {"compared": [], "flips": [], "missing": [], "why": why}
    rules = policy.rules.rules_for(policy.requester.intent, found.case.call.capability)

    def decide(case: JudgedCall) -> Verdict:
        verdict = policy.decide(case)
        return verdict.lifted() if (verdict.verdict, verdict.gate) in found.lifted else verdict

    explained: VerdictExplanation = explain_verdict(rules, found.case, decide)
    return {
        "compared": [{**each._asdict(), "text": each.text} for each in explained.decided],
        "flips": [{**each._asdict(), "text": each.text} for each in explained.flips],
        "missing": list(explained.missing),
    }


def _events_after_decision(events: Sequence[Event], decision: Event) -> Iterator[Event]:
    """Yield the events of a step, its gates included, from a decision up to the next one about it."""
    for event in events:
        if (
            event.run_id != decision.run_id
            or (event.seq or 0) <= (decision.seq or 0)
            or not event.step_id
        ):
            continue
        path = StepPath(event.step_id)
        if event.step_id == decision.step_id and event.event_type == "policy.decided":
            return
        if decision.step_id in (event.step_id, path.owner):
            yield event


def _stages(decision: Event, later: Sequence[Event]) -> list[dict[str, str]]:
    """Return the stages of a governed call in order, each with its outcome."""
    payload = decision.payload
    verdict, stage, reason = payload["verdict"], payload.get("stage"), payload.get("reason") or ""
    asks = verdict in ("allow_with_gate", "escalate")
    at = _CHECKS.index(stage) if stage in _CHECKS else len(_CHECKS)
    stages = []
    for number, name in enumerate(_CHECKS):
        passed = verdict == "allow" or number < at or (asks and number != at)
        outcome = (
            "passed"
            if passed
            else "asked"
            if asks
            else "refused"
            if number == at
            else "not reached"
        )
        stages.append(
            _stage(name, outcome, reason if number == at and outcome != "not reached" else "")
        )
    if asks:
        return [*stages, _answer(later)]
    return [*stages, *_stages_after_policy(later)] if verdict == "allow" else stages


def _answer(later: Sequence[Event]) -> dict[str, str]:
    answer = next((event for event in later if row_of(event.event_type).resolves), None)
    if answer is None:
        return _stage("approval", "waiting", "")
    role = f" ({answer.payload['role']})" if answer.payload.get("role") else ""
    return _stage(
        "approval", str(answer.event_type).partition(".")[2], f"{answer.payload.get('by')}{role}"
    )


def _stages_after_policy(later: Sequence[Event]) -> Iterator[dict[str, str]]:
    """Yield safety, budget, intent and invocation of an allowed call."""
    started = next((event for event in later if row_of(event.event_type).starts), None)
    spent = next((event for event in later if event.event_type == "budget.exceeded"), None)
    closing = next((event for event in later if row_of(event.event_type).closes), None)
    code = ((closing.payload.get("error") or {}).get("code") or "") if closing else ""
    if started or spent:
        reached = "passed"
    elif code:
        reached = "refused"
    else:
        is_asked = any(row_of(event.event_type).asks for event in later)
        reached = "asked" if is_asked else "not reached"
    yield _stage("safety", reached, code if reached == "refused" else "")
    if reached == "passed":
        yield _stage(
            "budget", "passed" if started else "exceeded", spent.payload["key"] if spent else ""
        )
    if started is not None:
        yield _stage("intent", "written", f"event {started.seq}")
        yield _stage("invocation", closing.payload["step_status"] if closing else "no result", code)


def _stage(name: str, outcome: str, reason: str) -> dict[str, str]:
    return {"stage": name, "outcome": outcome, **({"reason": reason} if reason else {})}


def compare_episode(directory: Path, old: Pack, new: Pack) -> EpisodeComparison | None:
    """Return the decisions of an episode that differ between two packs; None for a run under no
    pack of that id.

    If the run was under exactly the old pack, its recorded decisions count. Raise the errors of
    `read_governed`."""
    log = read_governed(directory)
    if log is None or log.pack.pack_id != old.pack_id:
        return None
    before = _decide_again_under(log, old)
    changed, undecided = [], []
    for mine, theirs in zip(before, _decide_again_under(log, new), strict=True):
        exact = log.pack.hash == old.hash
        was = (
            _comparable(mine.event.payload)
            if exact
            else mine.verdict and _comparable(mine.verdict.to_payload())
        )
        will = theirs.verdict and _comparable(theirs.verdict.to_payload())
        change = DecisionChange(
            directory.name, mine.event, was, will, theirs.why or ("" if exact else mine.why)
        )
        if was is None or will is None:
            undecided.append(change)
        elif any(was[name] != will[name] for name in ("verdict", "gate", "obligations")):
            changed.append(change)
    return EpisodeComparison(len(before), changed, undecided)


def _decide_again_under(log: GovernedLog, pack: Pack) -> list[ReplayedDecision]:
    recorded = policy_under(log.catalog, log.pack, log.started)
    policy = (
        recorded if pack.hash == log.pack.hash else policy_under(log.catalog, pack, log.started)
    )
    return list(decide_again(log.events, log.catalog, recorded, policy))


def _comparable(payload: Json) -> Json:
    """Return the fields of a decision that two packs are compared by. A missing value is empty."""
    told = {
        name: payload.get(name) or "" for name in ("verdict", "gate", "rule", "reason", "stage")
    }
    return {**told, "obligations": sorted(payload.get("obligations") or ())}

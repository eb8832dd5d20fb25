"""The cumulative limits of a pack and a whole plan: what all its calls add up to (docs/reference/limits.md#plan).

Nothing is reserved here: each call reserves when it is made. The event of the layer holds what the counters held, so
that resume and replay judge the plan without a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from cogcli.agent.cognition.plan_policy import PlannedCall
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.agent_events import LayerCompleted
from cogcli.declarations.governance_events import PolicyDecided
from cogcli.declarations.layer_records import PolicyGateWrites
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.policy.limits import (
    Counter,
    LimitClaim,
    apply_limits,
    decimal_of,
    difference_of,
    recorded_use,
    sum_exactly,
)
from cogcli.policy.run_policy import RunPolicy
from cogcli.run.engine.context import Engine
from cogcli.run.engine.limits import find_recorded, read_counters
from cogcli.run.engine.run import RootRun


class LimitedPlan(NamedTuple):
    """The calls of a plan with the verdicts by its sum, and the counters that were read."""

    calls: list[PlannedCall]
    counters: list[Json]


def limit_plan(policy: RunPolicy, root: RootRun, calls: list[PlannedCall]) -> LimitedPlan:
    """Return the calls of a plan with the limits applied. Each call is checked together with the amounts of the calls
    before it. An amount that is still unknown is checked when the call is made.
    """
    claims = [_find_known_claims(policy, root.engine, call) for call in calls]
    if not any(claims):
        return LimitedPlan(calls, [])
    held = _find_counter_values(root, calls, claims)
    planned, judged = dict(held), []
    for call, own in zip(calls, claims, strict=True):
        known = [claim for claim in own if claim.counter in planned]
        used = {claim.limit.id: planned[claim.counter] for claim in known}
        verdict = call.verdict and apply_limits(call.verdict, known, used)
        judged.append(call._replace(verdict=verdict))
        _add_claims(planned, known)
    names = ("limit", "owner", "used")
    read = ((each.limit_id, each.owner, str(used)) for each, used in held.items())
    return LimitedPlan(judged, [dict(zip(names, each, strict=True)) for each in read])


def _find_known_claims(
    policy: RunPolicy, engine: Engine, call: PlannedCall
) -> tuple[LimitClaim, ...]:
    verdict, capability = call.verdict, engine.capabilities.get(call.uses)
    if capability is None or verdict is None or not (verdict.allows or verdict.asks):
        return ()
    claims = policy.find_claims(capability.id, call.arguments)
    return tuple(claim for claim in claims if claim.is_known)


def _add_claims(amounts: dict[Counter, Decimal], claims: Iterable[LimitClaim]) -> None:
    for claim in claims:
        amounts[claim.counter] = sum_exactly((amounts[claim.counter], claim.amount or Decimal(0)))


def _find_counter_values(
    root: RootRun, calls: Sequence[PlannedCall], claims: Sequence[Sequence[LimitClaim]]
) -> dict[Counter, Decimal]:
    """Return the values of a plan's counters: the recorded ones if the log has this decision, otherwise the current
    ones.
    """
    every = {claim.counter: claim for each in claims for claim in each}
    engine, run_id = root.engine, root.run.state.run_id
    recorded = find_recorded(engine, "layer.completed", (run_id, None))
    if recorded is not None:
        return _read_recorded_counters(read_record(LayerCompleted, recorded.payload).writes, every)
    held = {claim.counter: used for claim, used in read_counters(engine, list(every.values()))}
    return held | _find_values_at_denials(engine, run_id, calls, claims)


class _CounterReading(Record):
    """A counter in the writes of the layer."""

    limit: object = None
    owner: object = None
    used: object = None


def _read_recorded_counters(writes: object, every: Iterable[Counter]) -> dict[Counter, Decimal]:
    """Return the counters in the writes of the layer. A counter missing there is unknown."""
    found = {}
    for json in read_record(PolicyGateWrites, writes).counters:
        read = read_record(_CounterReading, json)
        for counter in every:
            if (counter.limit_id, counter.owner) == (read.limit, read.owner):
                found[counter] = decimal_of(read.used)
    return found


def _find_values_at_denials(
    engine: Engine,
    run_id: str,
    calls: Sequence[PlannedCall],
    claims: Sequence[Sequence[LimitClaim]],
) -> dict[Counter, Decimal]:
    """Return the counter values recorded with the denials of a run that stopped before the event of the layer."""
    held: dict[Counter, Decimal] = {}
    before: dict[Counter, Decimal] = {}
    for call, own in zip(calls, claims, strict=True):
        recorded = find_recorded(engine, "policy.decided", (run_id, call.step_id))
        reads = read_record(PolicyDecided, recorded.payload).reads if recorded else None
        for claim in own:
            planned = before.setdefault(claim.counter, Decimal(0))
            if used := recorded_use(reads, [claim]):
                held[claim.counter] = difference_of(used[claim.limit.id], planned)
        _add_claims(before, own)
    return held

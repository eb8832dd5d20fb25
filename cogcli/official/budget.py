"""What a plan costs by the prices and durations that are given; what is not given is unknown, not zero."""

from __future__ import annotations

import math
from graphlib import CycleError, TopologicalSorter

from cogcli.official.values import is_number, records_of
from cogcli.sdk import Refused

_MAX_STEPS = 10_000
_MAX_FIGURE = 1e15
_COST = ("cost", "estimated_cost")
_DURATION = ("duration_ms", "estimated_duration_ms", "latency_ms")
_MAX_COST = ("max_cost", "cost", "budget")
_MAX_DURATION = ("max_duration_ms", "duration_ms")


def estimate_budget(
    plan: dict[str, object], limits: dict[str, object] | None = None
) -> dict[str, object]:
    """Return the sum of the steps' costs, and the longest path through their durations.

    A step gives `cost`, or `unit_cost` and `quantity` (1), and `duration_ms`; else `prices` and `durations` of plan
    or limits are asked by its `uses`; else the median duration of that `uses` in `history`, the events of own runs.
    Steps follow one another unless `depends_on` says otherwise. Where a step's figure is missing, `unknown` names it,
    the cost is the known part, the duration is absent, and `within_budget` is said only if already exceeded.
    Refused: no steps or no known cost at all (`no-evidence`), a negative figure or a cycle (`bad-data`).
    """
    steps = _steps(plan)
    given = limits or {}
    prices, durations = (_table(plan, given, name) for name in ("prices", "durations"))
    medians = _medians(plan.get("history"))
    costs = {step: _cost(entry, prices) for step, entry in steps.items()}
    times = {step: _duration(entry, durations, medians) for step, entry in steps.items()}
    known = [cost for cost in costs.values() if cost is not None]
    if not known:
        raise Refused(
            "no-evidence",
            "no step of the plan has a known cost",
            "give `cost` per step, or `prices`",
        )
    unknown = [{"step": s, "figure": "cost"} for s in steps if costs[s] is None]
    unknown += [{"step": s, "figure": "duration_ms"} for s in steps if times[s] is None]
    cost = round(math.fsum(known), 6)
    duration = (
        None
        if None in times.values()
        else _longest(steps, {s: t for s, t in times.items() if t is not None})
    )
    answer: dict[str, object] = {"estimated_cost": cost, "unknown": unknown}
    answer["by_step"] = [{"step": s, "cost": costs[s], "duration_ms": times[s]} for s in steps]
    if duration is not None:
        answer["estimated_duration_ms"] = duration
    checks = [
        (_find_number(given, _MAX_COST), cost, None not in costs.values()),
        (_find_number(given, _MAX_DURATION), duration, duration is not None),
    ]
    within = _within(checks)
    return answer if within is None else answer | {"within_budget": within}


def _steps(plan: dict[str, object]) -> dict[str, dict[str, object]]:
    listed = plan.get("steps")
    if not listed or not isinstance(listed, list):
        raise Refused("no-evidence", "the plan has no steps", "give `steps`, a list of objects")
    steps = records_of(listed, "plan.steps")
    if len(steps) > _MAX_STEPS:
        raise Refused("too-large", f"{len(steps)} steps; at most {_MAX_STEPS} are read")
    found = {str(step.get("id", f"step-{number}")): step for number, step in enumerate(steps, 1)}
    if len(found) < len(steps):
        raise Refused("bad-data", "two steps of the plan have the same id")
    return found


def _table(plan: dict[str, object], limits: dict[str, object], name: str) -> dict[str, object]:
    tables = [table for owner in (plan, limits) if isinstance(table := owner.get(name), dict)]
    return {key: value for table in tables for key, value in table.items()}


def _find_number(entry: dict[str, object], names: tuple[str, ...]) -> float | None:
    """Return the value of the first of `names` that the entry contains, or None.

    Raise Refused if it is not a number from 0 to `_MAX_FIGURE`.
    """
    for name in names:
        value = entry.get(name)
        if value is not None:
            if not is_number(value) or not 0 <= value <= _MAX_FIGURE:
                raise Refused(
                    "bad-data",
                    f"{name}: expected a number from 0 to {_MAX_FIGURE:g}, found {value!r:.40}",
                )
            return value
    return None


def _cost(step: dict[str, object], prices: dict[str, object]) -> float | None:
    uses = str(step.get("uses", ""))
    unit = _find_number(step, ("unit_cost",))
    listed = _find_number(prices, (uses,)) if unit is None else unit
    quantity = _find_number(step, ("quantity",))
    direct = _find_number(step, _COST)
    if direct is not None or listed is None:
        return direct
    return listed * (1 if quantity is None else quantity)


def _duration(
    step: dict[str, object], durations: dict[str, object], medians: dict[str, float]
) -> float | None:
    uses = str(step.get("uses", ""))
    own = _find_number(step, _DURATION)
    listed = _find_number(durations, (uses,)) if own is None else own
    return medians.get(uses) if listed is None else listed


def _medians(history: object) -> dict[str, float]:
    """Median duration by `uses` over the completed steps among the events of own runs."""
    import statistics

    seen: dict[str, list[float]] = {}
    for event in history if isinstance(history, list) else []:
        payload = event.get("payload") if isinstance(event, dict) else None
        if isinstance(payload, dict) and event.get("event_type") == "step.completed":
            latency = payload.get("latency_ms")
            if is_number(latency) and payload.get("uses"):
                seen.setdefault(str(payload["uses"]), []).append(latency)
    return {uses: statistics.median(times) for uses, times in seen.items()}


def _longest(steps: dict[str, dict[str, object]], times: dict[str, float]) -> float:
    """When the last step ends, if each begins as soon as those it depends on have ended."""
    before: dict[str, list[str]] = {}
    previous: list[str] = []
    for step, entry in steps.items():
        named = entry.get("depends_on")
        before[step] = [str(one) for one in named] if isinstance(named, list) else previous
        previous = [step]
    ends: dict[str, float] = {}
    try:
        for step in TopologicalSorter(before).static_order():
            ends[step] = times[step] + max((ends[need] for need in before[step]), default=0)
    except (CycleError, KeyError) as error:
        raise Refused(
            "bad-data", f"a step depends on itself or on an unknown step: {error!s:.60}"
        ) from None
    return round(max(ends.values()), 6)


def _within(checks: list[tuple[float | None, float | None, bool]]) -> bool | None:
    """False once a known part exceeds its limit; True if all limits are met by whole figures; None else."""
    limited = [(limit, found, whole) for limit, found, whole in checks if limit is not None]
    if any(found is not None and found > limit for limit, found, _ in limited):
        return False
    return True if limited and all(whole for _, _, whole in limited) else None

"""Costs and duration of a plan by given prices and durations. Figures that are not given are
unknown, not zero.
"""

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

    A step gives `cost`, or `unit_cost` and `quantity` (1), and `duration_ms`. Otherwise `prices`
    and `durations` of plan or limits are looked up by its `uses`, then the median duration of that
    `uses` in `history`, the events of earlier runs. Steps follow one another unless `depends_on`
    says otherwise. If a step's figure is missing, `unknown` names it, the cost is the known part,
    the duration is absent, and `within_budget` is only given if a limit is exceeded already. Raise
    Refused `no-evidence` without steps or without any known cost, `bad-data` for a negative figure
    or a cycle.
    """
    steps = _steps_by_id(plan)
    limits_given = limits or {}
    prices, durations = (
        _merge_tables(plan, limits_given, name) for name in ("prices", "durations")
    )
    medians = _median_durations(plan.get("history"))
    costs = {step: _step_cost(entry, prices) for step, entry in steps.items()}
    times = {step: _step_duration(entry, durations, medians) for step, entry in steps.items()}
    known_costs = [cost for cost in costs.values() if cost is not None]
    if not known_costs:
        raise Refused(
            "no-evidence",
            "no step of the plan has a known cost",
            "give `cost` per step, or `prices`",
        )
    unknown = [{"step": s, "figure": "cost"} for s in steps if costs[s] is None]
    unknown += [{"step": s, "figure": "duration_ms"} for s in steps if times[s] is None]
    cost = round(math.fsum(known_costs), 6)
    duration = (
        None
        if None in times.values()
        else _end_of_last_step(steps, {s: t for s, t in times.items() if t is not None})
    )
    answer: dict[str, object] = {"estimated_cost": cost, "unknown": unknown}
    answer["by_step"] = [{"step": s, "cost": costs[s], "duration_ms": times[s]} for s in steps]
    if duration is not None:
        answer["estimated_duration_ms"] = duration
    checks = [
        (_find_number(limits_given, _MAX_COST), cost, None not in costs.values()),
        (_find_number(limits_given, _MAX_DURATION), duration, duration is not None),
    ]
    within_budget = _is_within_limits(checks)
    return answer if within_budget is None else answer | {"within_budget": within_budget}


def _steps_by_id(plan: dict[str, object]) -> dict[str, dict[str, object]]:
    """Return the steps of a plan by id. Raise Refused for none, too many, and two of one id."""
    given = plan.get("steps")
    if not given or not isinstance(given, list):
        raise Refused("no-evidence", "the plan has no steps", "give `steps`, a list of objects")
    steps = records_of(given, "plan.steps")
    if len(steps) > _MAX_STEPS:
        raise Refused("too-large", f"{len(steps)} steps; at most {_MAX_STEPS} are read")
    step_by_id = {
        str(step.get("id", f"step-{number}")): step for number, step in enumerate(steps, 1)
    }
    if len(step_by_id) < len(steps):
        raise Refused("bad-data", "two steps of the plan have the same id")
    return step_by_id


def _merge_tables(
    plan: dict[str, object], limits: dict[str, object], name: str
) -> dict[str, object]:
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


def _step_cost(step: dict[str, object], prices: dict[str, object]) -> float | None:
    uses = str(step.get("uses", ""))
    unit = _find_number(step, ("unit_cost",))
    unit_price = _find_number(prices, (uses,)) if unit is None else unit
    quantity = _find_number(step, ("quantity",))
    direct = _find_number(step, _COST)
    if direct is not None or unit_price is None:
        return direct
    return unit_price * (1 if quantity is None else quantity)


def _step_duration(
    step: dict[str, object], durations: dict[str, object], medians: dict[str, float]
) -> float | None:
    uses = str(step.get("uses", ""))
    stated = _find_number(step, _DURATION)
    by_capability = _find_number(durations, (uses,)) if stated is None else stated
    return medians.get(uses) if by_capability is None else by_capability


def _median_durations(history: object) -> dict[str, float]:
    """Return the median duration by `uses`, in ms, over the completed steps among the events of
    earlier runs.
    """
    import statistics

    latencies: dict[str, list[float]] = {}
    for event in history if isinstance(history, list) else []:
        payload = event.get("payload") if isinstance(event, dict) else None
        if isinstance(payload, dict) and event.get("event_type") == "step.completed":
            latency = payload.get("latency_ms")
            if is_number(latency) and payload.get("uses"):
                latencies.setdefault(str(payload["uses"]), []).append(latency)
    return {uses: statistics.median(times) for uses, times in latencies.items()}


def _end_of_last_step(steps: dict[str, dict[str, object]], times: dict[str, float]) -> float:
    """Return when the last step ends, in ms, if each begins as soon as its dependencies have ended."""
    dependencies: dict[str, list[str]] = {}
    previous: list[str] = []
    for step, entry in steps.items():
        stated = entry.get("depends_on")
        dependencies[step] = [str(one) for one in stated] if isinstance(stated, list) else previous
        previous = [step]
    ends: dict[str, float] = {}
    try:
        for step in TopologicalSorter(dependencies).static_order():
            ends[step] = times[step] + max(
                (ends[dependency] for dependency in dependencies[step]), default=0
            )
    except (CycleError, KeyError) as error:
        raise Refused(
            "bad-data", f"a step depends on itself or on an unknown step: {error!s:.60}"
        ) from None
    return round(max(ends.values()), 6)


def _is_within_limits(checks: list[tuple[float | None, float | None, bool]]) -> bool | None:
    """Return False if a figure exceeds its limit, True if all limits are met by complete figures,
    else None.

    Each check is the limit, the figure, and whether the figure is complete.
    """
    checked = [
        (limit, figure, is_complete) for limit, figure, is_complete in checks if limit is not None
    ]
    if any(figure is not None and figure > limit for limit, figure, _ in checked):
        return False
    return True if checked and all(is_complete for _, _, is_complete in checked) else None

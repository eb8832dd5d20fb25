"""`summary.json`: the result of a finished run (docs/reference/episode.md#summary), with one formula for each metric.

The `duration_ms` of a resumed run is its active time (`envelope.ActiveTime`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from cogcli.base.canonical import digest
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import Put
from cogcli.episode.document_bytes import milliseconds_between
from cogcli.episode.large_values import ValueShortener
from cogcli.episode.layout import STEP_STATUSES, SUMMARY_SCHEMA
from cogcli.episode.log_fold import LogFold
from cogcli.episode.log_lines import FIRST


def summary_of(fold: LogFold, put: Put = digest) -> Json:
    """Return the summary of a log whose root run has ended.

    Under rules 2 references replace large outputs: `put` takes the JSON of each and returns its digest.
    """
    projection = fold.projection
    start, ended = projection.start, projection.terminated
    outputs = projection.end.outputs
    if projection.rules > FIRST:
        values = ValueShortener(put, projection.rules)
        outputs = {name: values.refer(value) for name, value in outputs.items()}
    return {
        "schema_version": SUMMARY_SCHEMA,
        "episode_id": ended.episode_id if ended else "",
        "run_id": projection.root,
        "trace_id": ended.trace_id if ended else None,
        "task": projection.task(),
        "skill": start.skill,
        "using": start.using,
        "seed": start.seed,
        "tags": start.tags or {},
        "status": projection.status,
        "status_reason": projection.end.status_reason,
        "started_at": projection.started_at,
        "ended_at": ended.timestamp if ended else None,
        "duration_ms": projection.duration_ms(),
        "outputs": outputs,
        "error": projection.error(),
        "counts": counts(fold),
        "metrics": {name: formula(fold) for name, formula in METRICS.items()},
        "budgets": budgets(fold),
        **({"decision": projection.decision.overview()} if projection.decision else {}),
    }


def counts(fold: LogFold) -> Json:
    """Count steps by status, governed calls, retries, calls answered by a fallback, vetoes and approvals."""
    counters = fold.counters
    by_status = Counter(step["status"] for step in fold.projection.plan.steps)
    return {
        "steps": {status: by_status[status] for status in STEP_STATUSES},
        "calls": counters.calls,
        "retries": counters.retries,
        "fallbacks": counters.fallbacks.counts.total(),
        "vetoes": counters.vetoes,
        "approvals": counters.approvals,
    }


def budgets(fold: LogFold) -> dict[str, Json]:
    """Return limit and use of each budget of the run."""
    decision, state = fold.projection.decision, fold.projection.state
    spent = state.trace.metrics.tokens_in + state.trace.metrics.tokens_out
    given = decision.budgets(spent) if decision is not None else {}
    limit = fold.projection.start.options.timeout_seconds
    if limit is None:
        return given
    timeout = round(limit * 1000)
    nearest = min(timeout, given["wall_clock_ms"]["limit"]) if "wall_clock_ms" in given else timeout
    return {**given, "wall_clock_ms": {"limit": nearest, "used": fold.projection.duration_ms()}}


def success(fold: LogFold) -> bool:
    """Return whether the outcome is `ok`."""
    return fold.projection.status == "ok"


def plan_adherence(fold: LogFold) -> float | None:
    """Return steps done / steps planned."""
    steps = fold.projection.plan.steps
    return sum(step["status"] == "done" for step in steps) / len(steps) if steps else None


def tool_coverage(fold: LogFold) -> float | None:
    """Return distinct capabilities called / distinct capabilities planned. Under rules 1, divide by
    the capabilities of ended steps."""
    planned = fold.counters.used if fold.projection.rules == FIRST else fold.counters.planned
    return len(fold.counters.called & planned) / len(planned) if planned else None


def _since_start(fold: LogFold, timestamp: str | None) -> int | None:
    return (
        None if timestamp is None else milliseconds_between(fold.projection.started_at, timestamp)
    )


def step_latency_ms(fold: LogFold) -> dict[str, int]:
    """Return milliseconds of each step, in plan order."""
    latencies = fold.counters.latencies
    ids = (step["id"] for step in fold.projection.plan.steps)
    return {step_id: latencies[step_id] for step_id in ids if step_id in latencies}


METRICS: Final[dict[str, Callable[[LogFold], object]]] = {
    "success": success,
    "plan_adherence": plan_adherence,
    "tool_coverage": tool_coverage,
    "veto_count": attrgetter("counters.vetoes"),
    # Negative decisions of gates and rules that were not enforced.
    "would_veto_count": attrgetter("counters.would_vetoes"),
    # Attempts that repeated an earlier one, fallbacks not among them.
    "retry_count": attrgetter("counters.retries"),
    # Calls answered by another binding than the first.
    "fallback_count": lambda fold: fold.counters.fallbacks.counts.total(),
    # From the start event to the write-ahead record of the first call.
    "first_action_ms": lambda fold: _since_start(fold, fold.counters.first_action),
    # From the start event to the first vetoed step.
    "time_to_veto_ms": lambda fold: _since_start(fold, fold.counters.first_veto),
    "step_latency_ms": step_latency_ms,
    # The run's own sums, nested runs included.
    **{
        name: attrgetter(f"projection.state.trace.metrics.{name}")
        for name in ("llm_calls", "tool_calls", "tokens_in", "tokens_out")
    },
}

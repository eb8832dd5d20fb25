"""`summary.json`: how a finished run went. Every metric has its one formula here.

Ratios are 0..1, and null where there is nothing to divide by. Times are milliseconds. Steps are the root run's, all
else includes nested runs. `duration_ms` is how long the run was under way, as its end measured it: of a run that was
taken up again the sum of its sittings (`events.sittings`), without what lies between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from cogcli.episode.blobs import Put
from cogcli.episode.document_bytes import milliseconds_between
from cogcli.episode.large_values import digest_of, refer
from cogcli.episode.log_fold import LogFold
from cogcli.episode.rules import FIRST
from cogcli.episode.vocabulary import STEP_STATUSES, SUMMARY_SCHEMA


def summary_of(account: LogFold, put: Put = digest_of) -> dict[str, Any]:
    """The summary of a log whose root run has ended. Under rules 2 large outputs stand by reference: `put` gets the
    JSON of each and gives its digest."""
    projection = account.projection
    asked, ended = projection.asked, projection.terminated
    final = ended.payload if ended and type(ended.payload) is dict else {}
    outputs = final["outputs"] if type(final.get("outputs")) is dict else {}
    if projection.rules > FIRST:
        outputs = {name: refer(value, put) for name, value in outputs.items()}
    return {
        "schema_version": SUMMARY_SCHEMA,
        "episode_id": ended.episode_id if ended else "",
        "run_id": projection.root,
        "trace_id": ended.trace_id if ended else None,
        "task": projection.task(),
        "skill": asked.get("skill"),
        "using": asked.get("using"),
        "seed": asked.get("seed"),
        "tags": asked.get("tags") or {},
        "status": projection.status,
        "status_reason": final.get("status_reason"),
        "started_at": projection.started_at,
        "ended_at": ended.timestamp if ended else None,
        "duration_ms": projection.duration_ms(),
        "outputs": outputs,
        "error": projection.error(),
        "counts": counts(account),
        "metrics": {name: formula(account) for name, formula in METRICS.items()},
        "budgets": budgets(account),
    }


def counts(account: LogFold) -> dict[str, Any]:
    """Steps by status; governed calls begun, attempts repeated, calls answered by a fallback, vetoes, approvals."""
    tally = account.tally
    by_status = Counter(step["status"] for step in account.projection.plan.steps)
    return {
        "steps": {status: by_status[status] for status in STEP_STATUSES},
        "calls": tally.calls,
        "retries": tally.retries,
        "fallbacks": len(tally.fallbacks),
        "vetoes": tally.vetoes,
        "approvals": tally.approvals,
    }


def budgets(account: LogFold) -> dict[str, dict[str, Any]]:
    """Limit and use of every budget that the run was given."""
    options = account.projection.asked.get("options")
    limit = options.get("timeout_seconds") if type(options) is dict else None
    if not isinstance(limit, int | float):
        return {}
    return {"wall_clock_ms": {"limit": round(limit * 1000), "used": account.projection.duration_ms()}}


def success(account: LogFold) -> bool:
    """Whether the outcome is `ok`."""
    return account.projection.status == "ok"


def plan_adherence(account: LogFold) -> float | None:
    """Steps done / steps planned."""
    steps = account.projection.plan.steps
    return sum(step["status"] == "done" for step in steps) / len(steps) if steps else None


def tool_coverage(account: LogFold) -> float | None:
    """Distinct capabilities called / distinct capabilities planned; under rules 1, that ended steps name."""
    planned = account.tally.used if account.projection.rules == FIRST else account.tally.planned
    return len(account.tally.called & planned) / len(planned) if planned else None


def veto_count(account: LogFold) -> int:
    """Steps vetoed."""
    return account.tally.vetoes


def would_veto_count(account: LogFold) -> int:
    """Decisions of gates and rules that said no without being enforced."""
    return account.tally.would_vetoes


def retry_count(account: LogFold) -> int:
    """Attempts that repeated an earlier one, fallbacks not among them."""
    return account.tally.retries


def fallback_count(account: LogFold) -> int:
    """Calls answered by another binding than the first."""
    return len(account.tally.fallbacks)


def first_action_ms(account: LogFold) -> int | None:
    """From the start event to the intent of the first call."""
    return _since_start(account, account.tally.first_action)


def time_to_veto_ms(account: LogFold) -> int | None:
    """From the start event to the first vetoed step."""
    return _since_start(account, account.tally.first_veto)


def _since_start(account: LogFold, timestamp: str | None) -> int | None:
    return None if timestamp is None else milliseconds_between(account.projection.started_at, timestamp)


def step_latency_ms(account: LogFold) -> dict[str, int]:
    """By step, in plan order: from beginning to end."""
    latencies = account.tally.latencies
    ids = (step["id"] for step in account.projection.plan.steps)
    return {step_id: latencies[step_id] for step_id in ids if step_id in latencies}


def _sum(name: str) -> Callable[[LogFold], int]:
    def formula(account: LogFold) -> int:
        """The run's own sum, nested runs included."""
        value: int = getattr(account.projection.state.trace.metrics, name)
        return value

    return formula


METRICS: Final[dict[str, Callable[[LogFold], Any]]] = {
    "success": success,
    "plan_adherence": plan_adherence,
    "tool_coverage": tool_coverage,
    "veto_count": veto_count,
    "would_veto_count": would_veto_count,
    "retry_count": retry_count,
    "fallback_count": fallback_count,
    "first_action_ms": first_action_ms,
    "time_to_veto_ms": time_to_veto_ms,
    "step_latency_ms": step_latency_ms,
    "llm_calls": _sum("llm_calls"),
    "tool_calls": _sum("tool_calls"),
    "tokens_in": _sum("tokens_in"),
    "tokens_out": _sum("tokens_out"),
}

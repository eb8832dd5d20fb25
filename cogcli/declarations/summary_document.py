"""`summary.json`. Lists of episodes read only this document."""

from __future__ import annotations

from typing import Literal

from cogcli.declarations import shared_state as shared
from cogcli.declarations.events import SkillRef
from cogcli.declarations.value_types import Count, Digest, Json, Number, Outcome, Ratio, StepStatus

DecisionStatus = Literal[
    "completed", "refused", "denied", "pending_approval", "escalated", "failed", "aborted"
]


class DecisionSummary(shared.Part):
    """The decision of an agent's run. `decision.json` contains the details."""

    decision_id: str
    decision_key: str
    status: DecisionStatus
    status_reason: str
    record_hash: Digest


class DecisionOverview(DecisionSummary):
    """The parts of the decision of an agent's run that lists of episodes display."""

    intent: str
    pack_ref: str | None
    user_id: str | None


class Counts(shared.Part):
    """The number of events of each kind. Steps are counted in the root run only."""

    steps: dict[StepStatus, Count]
    calls: Count
    retries: Count
    fallbacks: Count
    vetoes: Count
    approvals: Count


class Metrics(shared.Part):
    """Measured values with one formula each.

    Ratios are null if the denominator is zero. Times are in milliseconds.
    """

    success: bool
    plan_adherence: Ratio | None
    tool_coverage: Ratio | None
    veto_count: Count
    would_veto_count: Count
    retry_count: Count
    fallback_count: Count
    first_action_ms: Number | None
    time_to_veto_ms: Number | None
    step_latency_ms: dict[str, Count]
    llm_calls: Count
    tool_calls: Count
    tokens_in: Count
    tokens_out: Count


class Budget(shared.Part):
    """The limits of a run, and the amounts that it used."""

    limit: Number
    used: Number | None


class Summary(shared.Part):
    """`summary.json`."""

    schema_version: Literal["summary/1"]
    episode_id: str
    run_id: str | None
    trace_id: str | None
    task: str
    skill: SkillRef | None
    using: str | None
    seed: Number | None
    tags: Json
    status: Outcome
    status_reason: str | None
    started_at: str
    ended_at: str
    duration_ms: Number | None
    outputs: Json
    error: Json | None
    counts: Counts
    metrics: Metrics
    budgets: dict[str, Budget]
    decision: DecisionOverview | None = None

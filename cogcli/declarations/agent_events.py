"""The events of the turns of an agent: one record per type (docs/reference/agent-run.md).

Each event contains the number of its turn, except the events of a model call.
"""

from __future__ import annotations

from typing import Final

from cogcli.declarations.call_records import Usage
from cogcli.declarations.event_type import EventType, Payload
from cogcli.declarations.field import always
from cogcli.declarations.value_types import Count, Json, Number


class LayerCompleted(Payload):
    """One layer of the cognitive loop: the names of the values that it read, and the values that it
    wrote by name.
    """

    event = EventType(
        "layer.completed", speaker="agent", detail=True, words=("turn", "layer", "skipped")
    )
    turn: Count = always(default=1)
    layer: str
    reads: list[str]
    writes: object
    skipped: str | None = None


class ContextCompiled(Payload):
    """The context that was compiled for a model in a turn."""

    event = EventType(
        "context.compiled",
        "interpret",
        speaker="agent",
        detail=True,
        words=("turn", "context_hash"),
    )
    turn: Count
    context_hash: str
    context: Json


class ModelRequested(Payload):
    """A request to a model, written before it is sent.

    The tools and the schema of the request are JSON texts.
    """

    event = EventType(
        "model.requested",
        "reason",
        speaker="agent",
        begins=True,
        words=("turn", "call_id", "purpose"),
    )
    turn: Count
    call_id: str
    purpose: str
    request: Json


class ModelRetried(Payload):
    """The same request is sent to a model again."""

    event = EventType(
        "model.retried",
        "reason",
        speaker="agent",
        begins=True,
        answers_request=True,
        words=("call_id", "attempt", "reason", "wait_ms", "asked_ms"),
        attributes=("call_id", "attempt", "reason", "wait_ms"),
    )
    call_id: str
    attempt: Count
    reason: str
    wait_ms: Count
    asked_ms: Count | None = None
    """The wait that the provider requested, if it was shortened to `wait_ms`."""
    error: Json


class ModelResent(Payload):
    """A request is sent again, because the process ended before an answer to it was recorded."""

    event = EventType(
        "model.resent",
        "reason",
        speaker="agent",
        begins=True,
        one_process_only=True,
        words=("call_id",),
    )
    call_id: str


class ModelAnswered(Payload):
    """The answer of a model, or its failure. The arguments of tool calls are JSON texts."""

    event = EventType(
        "model.answered",
        "reason",
        speaker="agent",
        reduced=True,
        answers_request=True,
        words=("turn", "call_id", "ms", "tool", "reason"),
        attributes=("call_id", "latency_ms"),
    )
    turn: Count
    call_id: str
    request_hash: str
    reply: Json | None = None
    error: Json | None = None
    usage: Usage
    estimated: bool = always(default=False)
    latency_ms: Count


class AgentUpdated(Payload):
    """The updated state of an agent that uses a model to reason."""

    event = EventType(
        "agent.updated", "reason", speaker="agent", detail=True, words=("turn", "mode")
    )
    turn: Count
    mode: str
    notes: list[Json] = always(default=[])
    """The parts of its update that were dropped, cut or refused."""
    execution: Json
    reasoning: Json


class CandidateProposed(Payload):
    """The proposal of a planner: a template, calls, or a response."""

    event = EventType(
        "candidate.proposed",
        "action_candidate",
        speaker="agent",
        words=("turn", "planner", "template"),
    )
    turn: Count
    planner: str
    template: str | None = always(default=None)
    decision_key: str = always(default="")
    calls: list[Json] = always(default=[])
    response: str = always(default="")


class PlanJudged(Payload):
    """The verdict of the critic on a plan before it runs."""

    event = EventType(
        "critic.verified", "governance", speaker="agent", words=("turn", "verdict", "reason")
    )
    turn: Count
    verdict: str
    reason: str = always(default="")
    fails: list[Json] = always(default=[])


class ResultJudged(Payload):
    """The verdict of the critic on the result of a plan."""

    event = EventType(
        "critic.scored", "governance", speaker="agent", words=("turn", "verdict", "reason")
    )
    turn: Count
    verdict: str
    reason: str = always(default="")
    goal_met: bool | None = always(default=None)
    evidence_gates: list[Json] = always(default=[])


class LoopDetected(Payload):
    """Calls were proposed again and brought nothing new."""

    event = EventType(
        "loop.detected",
        "governance",
        speaker="agent",
        words=("turn", "kind", "count"),
        attributes=("kind", "key", "count"),
    )
    turn: Count
    kind: str
    key: str
    count: Count
    calls: list[str]
    unchanged: list[str]
    hint: str


class PressureCaptured(Payload):
    """The pressure on a turn, by kind, each from 0 to 1."""

    event = EventType(
        "functional_state.captured",
        "insight",
        speaker="agent",
        detail=True,
        words=("turn", "escalation_propensity"),
    )
    turn: Count
    captured_at: str
    budget_pressure: Number
    loop_pressure: Number
    evidence_pressure: Number
    gate_pressure: Number
    conflict_pressure: Number
    escalation_propensity: Number


class MemoryProposed(Payload):
    """The memory proposed after a turn, and the facts that the turn brought."""

    event = EventType("memory.proposed", "memory", speaker="agent", detail=True, words=("turn",))
    turn: Count
    proposals: list[Json]
    facts: list[Json] = always(default=[])


class ReflectionRecorded(Payload):
    """The reflection of an agent on its own turn."""

    event = EventType(
        "reflection.recorded", "reflect", speaker="agent", detail=True, words=("turn", "goal_met")
    )
    turn: Count = always(default=1)
    success: bool
    goal_met: bool | None = always(default=None)
    reasons: list[str]
    budget: Json | None = always(default=None)
    next: str = always(default="")
    stage_ms: dict[str, int] | None = None
    """The milliseconds of each lifecycle phase of the turn."""
    say: str | None = None
    """The text of a pack for the customer, if the turn ended the run without success."""


class DecisionRecorded(Payload):
    """The end of an agent's run. `decision.json` contains the details."""

    event = EventType(
        "decision.recorded",
        "insight",
        speaker="agent",
        words=("decision_key", "status", "status_reason"),
        attributes=("decision_id", "decision_key", "status", "status_reason"),
    )
    decision_id: str
    decision_key: str
    status: str
    status_reason: str
    outcome: str
    outputs: Json
    record_hash: str


PAYLOADS: Final[tuple[type[Payload], ...]] = (
    LayerCompleted,
    ContextCompiled,
    ModelRequested,
    ModelRetried,
    ModelResent,
    ModelAnswered,
    AgentUpdated,
    CandidateProposed,
    PlanJudged,
    ResultJudged,
    LoopDetected,
    PressureCaptured,
    MemoryProposed,
    ReflectionRecorded,
    DecisionRecorded,
)

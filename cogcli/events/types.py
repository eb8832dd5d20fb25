"""One row per event type (docs/reference/episode.md#types): a fold asks the row, not the name.

A new event type is a row here and a model in `events/payloads.py`; where it changes the state of its run, also a
reducer in `mapping/apply.py`. Nothing else lists event types.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class EventType(NamedTuple):
    """What every fold needs to know of one event type. A row is read for each event, so it is a plain tuple."""

    phase: str = ""
    """Its member of `envelope.PHASES`; empty where it differs from event to event."""
    model: str = ""
    """The name of its payload's model in `events/payloads.py`, which a run never imports."""
    reduced: bool = False
    """Whether it changes the state of its run: `mapping.apply` has a reducer for it."""
    begins: bool = False
    """Whether something begins with it that must not begin in a run or step that is over."""
    starts: bool = False
    """Whether a step starts with it."""
    repeats: bool = False
    """Whether it is an attempt after the first."""
    asks: bool = False
    """Whether it asks a person for an approval."""
    write_ahead: bool = False
    """Whether it is on disk before an attempt leaves, so that without a result the call is in doubt."""
    needs_start: bool = False
    """Whether the step must have a `step.started` before it."""
    closes: bool = False
    """Whether it ends a step and carries its writes."""
    fails: bool = False
    """Whether the step that it ends has an error and wrote nothing."""
    decides: bool = False
    """Whether it holds the decision of a gate, a rule or a person: allow, audit or veto."""
    resolves: bool = False
    """Whether it is a person's answer to a request for approval."""
    reopens: bool = False
    """Whether another process continues the log from here: what ran before was cut off."""
    one_process_only: bool = False
    """Whether it belongs to the process that wrote it: resume and replay do not produce it again."""
    by_timing: bool = False
    """Whether it depends on who was faster, or on when a person answered: replay does not miss it."""
    projected: bool = False
    """Whether it is the evidence of a projection: the folds to the state and its document pass it over."""
    answers_request: bool = False
    """Whether it tells what came of a request to a model."""
    outside_time: bool = False
    """Whether it is written while no process drives the run: its time does not count as active time."""
    detail: bool = False
    """Whether it is one of many small steps within a turn, which the plain progress of a run leaves out."""
    words: tuple[str, ...] = ()
    """What a log line shows of it: payload members, or one of the names of `report.table`."""
    attributes: tuple[str, ...] = ()
    """The payload members that a moment of a trace carries; without any it is none."""


_STEP_WORDS: Final = ("uses", "ms", "tool", "reason")
_DECISION: Final = ("decision", "verdict", "gate", "rule")
_DECISION_WORDS: Final = (*_DECISION, "reason")
_DECISION_ATTRIBUTES: Final = (*_DECISION, "on_fail", "enforced")
_APPROVAL: Final = ("approval_id", "capability", "gate", "by", "expires_at")
_RUNTIME: Final = ("reason", "signal", "dropped_bytes")

EVENT_TYPES: Final[dict[str, EventType]] = {
    "run.started": EventType(
        "start", "RunStarted", reduced=True, words=("skill", "version", "episode", "run", "trace")
    ),
    "plan.created": EventType("plan", "PlanCreated", reduced=True),
    "step.started": EventType(
        "act", "StepStarted", reduced=True, begins=True, starts=True, write_ahead=True, words=_STEP_WORDS
    ),
    "step.answered": EventType("act", "StepAnswered", needs_start=True, by_timing=True, words=_STEP_WORDS),
    "step.completed": EventType("act", "StepCompleted", reduced=True, closes=True, words=_STEP_WORDS),
    "step.failed": EventType("act", "StepFailed", reduced=True, closes=True, fails=True, words=_STEP_WORDS),
    "step.skipped": EventType("act", "StepSkipped", reduced=True, closes=True, words=_STEP_WORDS),
    "step.degraded": EventType("act", "StepSkipped", reduced=True, closes=True, words=_STEP_WORDS),
    "step.vetoed": EventType("act", "StepVetoed", reduced=True, closes=True, fails=True, words=_STEP_WORDS),
    "call.retried": EventType(
        "act", "CallRetried", reduced=True, begins=True, repeats=True, write_ahead=True, needs_start=True,
        words=("attempt", "reason", "wait_ms"), attributes=("attempt", "reason", "wait_ms"),
    ),
    "gate.decided": EventType(
        "governance", "Decided", decides=True, words=_DECISION_WORDS, attributes=_DECISION_ATTRIBUTES
    ),
    "policy.decided": EventType(
        "governance", "Decided", decides=True, words=_DECISION_WORDS, attributes=_DECISION_ATTRIBUTES
    ),
    "budget.exceeded": EventType(
        "governance", "BudgetExceeded", words=("key", "used", "limit"), attributes=("key", "used", "limit")
    ),
    "approval.requested": EventType(
        "governance", "Approval", begins=True, asks=True, one_process_only=True, by_timing=True,
        words=("gate", "reason"), attributes=_APPROVAL,
    ),
    "approval.granted": EventType(
        "governance", "Approval", resolves=True, one_process_only=True, words=("gate", "reason"),
        attributes=_APPROVAL,
    ),
    "approval.rejected": EventType(
        "governance", "Approval", resolves=True, one_process_only=True, words=("gate", "reason"),
        attributes=_APPROVAL,
    ),
    "run.paused": EventType(
        "runtime", "Runtime", one_process_only=True, by_timing=True, words=("reason", "signal"),
        attributes=_RUNTIME,
    ),
    "run.resumed": EventType(
        "runtime", "Runtime", reopens=True, one_process_only=True, words=("reason", "signal"), attributes=_RUNTIME
    ),
    "run.recovered": EventType(
        "runtime", "Runtime", reopens=True, one_process_only=True, outside_time=True, words=("reason", "signal"),
        attributes=_RUNTIME,
    ),
    "run.aborting": EventType(
        "runtime", "Runtime", one_process_only=True, by_timing=True, words=("reason", "signal"),
        attributes=_RUNTIME,
    ),
    "run.heartbeat": EventType(
        "runtime", "Heartbeat", one_process_only=True, by_timing=True, words=("elapsed_ms", "waiting_on")
    ),
    "service.started": EventType(
        "runtime", "ServiceChanged", one_process_only=True, by_timing=True, words=("service", "protocol")
    ),
    "service.stopped": EventType(
        "runtime", "ServiceChanged", one_process_only=True, by_timing=True, words=("service", "protocol", "reason")
    ),
    "layer.completed": EventType("", "LayerCompleted", detail=True, words=("turn", "layer", "skipped")),
    "context.compiled": EventType("interpret", "ContextCompiled", detail=True, words=("turn", "context_hash")),
    "model.requested": EventType("reason", "ModelRequested", begins=True, words=("turn", "call_id", "purpose")),
    "model.retried": EventType(
        "reason", "ModelRetried", begins=True, answers_request=True,
        words=("call_id", "attempt", "reason", "wait_ms", "asked_ms"),
        attributes=("call_id", "attempt", "reason", "wait_ms"),
    ),
    "model.resent": EventType("reason", "ModelResent", begins=True, one_process_only=True, words=("call_id",)),
    "model.answered": EventType(
        "reason", "ModelAnswered", reduced=True, answers_request=True,
        words=("turn", "call_id", "ms", "tool", "reason"), attributes=("call_id", "latency_ms"),
    ),
    "agent.updated": EventType("reason", "AgentUpdated", detail=True, words=("turn", "mode")),
    "candidate.proposed": EventType(
        "action_candidate", "CandidateProposed", words=("turn", "planner", "template")
    ),
    "critic.verified": EventType("governance", "Criticised", words=("turn", "verdict", "reason")),
    "critic.scored": EventType("governance", "Criticised", words=("turn", "verdict", "reason")),
    "loop.detected": EventType(
        "governance", "LoopDetected", words=("turn", "kind", "count"), attributes=("kind", "key", "count")
    ),
    "functional_state.captured": EventType(
        "insight", "FunctionalState", detail=True, words=("turn", "escalation_propensity")
    ),
    "memory.proposed": EventType("memory", "MemoryProposed", detail=True, words=("turn",)),
    "reflection.recorded": EventType("reflect", "ReflectionRecorded", detail=True, words=("turn", "goal_met")),
    "decision.recorded": EventType(
        "insight", "DecisionRecorded", words=("decision_key", "status", "status_reason"),
        attributes=("decision_id", "decision_key", "status", "status_reason"),
    ),
    "run.terminated": EventType("terminate", "RunTerminated", reduced=True, words=("status", "ms", "episode")),
    "run.state_projection": EventType(
        "runtime", "StateProjection", projected=True, one_process_only=True, outside_time=True, words=("status",)
    ),
}  # fmt: skip

UNKNOWN: Final = EventType(
    words=("decision", "verdict", "gate", "rule", "attempt", "reason", "signal", "wait_ms")
)
"""The row of a type that is not in the table: another tool's, or a later version's. It moves nothing but the time."""


def row_of(event_type: object) -> EventType:
    """The row of an event type; `UNKNOWN` where the table has none, or the member of another tool's line is no text."""
    return EVENT_TYPES.get(event_type, UNKNOWN) if type(event_type) is str else UNKNOWN

"""One frozen model per event type: exactly the payload keys that a log of ours may hold, beside free `x-` keys.

For `verify` and the generated schemas; nothing on the way of a run imports this module.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from cogcli.core.merge import STRATEGIES
from cogcli.events.types import EVENT_TYPES

Json = dict[str, Any]
Count = Annotated[int, Field(ge=0)]
Number = int | float
Outcome = Literal["ok", "error", "vetoed", "aborted", "partial", "pending"]


class Payload(BaseModel):
    """What all payloads share: strict types, no keys but the declared ones and `x-...`."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    @model_validator(mode="after")
    def _only_free_keys(self) -> Payload:
        for key in self.__pydantic_extra__ or ():
            if not key.startswith("x-"):
                raise ValueError(f"key `{key}` is none of this event's")
        return self


class SkillRef(Payload):
    """Which skill runs."""

    id: str
    version: str | None


class RunStarted(Payload):
    """Everything a run was asked."""

    task: str
    seed: int
    using: str
    skill: SkillRef
    inputs: Json
    frame: Json
    options: Json
    tags: dict[str, str]
    pins: Json
    selection: Json = {}
    taken_over: Json = {}
    """By step: results of an earlier episode that are used instead of doing the step."""
    effects: Json = {}
    """By step path: what the run did that this one runs again, and what was said about each."""
    contracts: Json = {}
    """The skills and capabilities of lenient roots, and what they declare that does not fit together; absent without
    any."""
    policy: Json | None = None
    """What governs the run beside safety levels: pack, intent, user, ceiling and budgets, as they were given."""
    agent: Json | None = None
    """What an agent was asked, its limits, and what its stores gave for that; absent for the run of a skill."""
    typed: list[str] = []
    """The inputs whose typed paths let the run read files that it may not read otherwise; absent without any."""
    intuition_mode: Literal["advisory", "interventive", "hybrid"] | None = None
    """How the rules of the pack take part; absent without a pack."""
    parent_run_id: str | None
    rules: Literal[1, 2] = 1
    """Which rules the log follows (`episode.rules`); the root's first event says it."""


class PlanCreated(Payload):
    """The steps that are going to run."""

    source: str
    rationale: str
    step_records: list[Json]
    steps: list[str]
    plan_id: str | None = None
    """Of a plan that an agent made, as the members below."""
    plan_hash: str | None = None
    turn: Count | None = None


class StepStarted(Payload):
    """The intent of a call, or of a nested skill."""

    step_id: str
    step_status: Literal["running"]
    uses: str
    capability: str | None = None
    skill: str | None = None
    binding: str | None = None
    service: str | None = None
    input: Json | None = None
    reads: list[str] = []
    attempt: Count | None = None
    idempotency_key: str | None = None
    side_effects: str | bool | None = None
    decision: Json | None = None
    items: Count | None = None
    targets: list[str] | None = None
    round: Count | None = None


class StepAnswered(Payload):
    """A result that is judged, or waits for its turn to write, after it is on disk."""

    step_id: str
    output: Json
    attempts: list[Json] = []


def _known_strategy(name: str) -> str:
    if name not in STRATEGIES:
        raise ValueError(f"`{name:.40}` is not a merge strategy")
    return name


MergeStrategy = Annotated[
    str, AfterValidator(_known_strategy), Field(json_schema_extra={"enum": [*STRATEGIES]})
]


class Written(Payload):
    """One write, before merging."""

    target: str
    strategy: MergeStrategy
    value: Any


class Usage(Payload):
    """What a step's calls used."""

    llm_calls: Count
    tool_calls: Count
    tokens_in: Count
    tokens_out: Count


class StepError(Payload):
    """Why a step did not end well."""

    code: str
    message: str
    retryable: bool = False
    hint: str | None = None
    reason: str | None = None
    effect: str | None = None


class StepFinished(Payload):
    """How a step ended, whatever way."""

    step_id: str
    uses: str | None = None
    capability: str | None = None
    reason: str | None = None
    detail: str | None = None
    action_id: str | None = None
    tool: str | None = None
    kind: str | None = None
    input_excerpt: str | None = None
    output: Any = None
    error: StepError | None = None
    writes: list[Written] = []
    reads: list[str] = []
    attempts: list[Json] = []
    fallback: Json | bool | None = None
    latency_ms: Count | None = None
    usage: Usage | None = None
    result_artifacts: list[str] = []
    reused_from: Json | str | None = None


class StepCompleted(StepFinished):
    """A step that is done."""

    step_status: Literal["done"]
    result_status: Literal["ok"]


class StepFailed(StepFinished):
    """A step that went wrong."""

    step_status: Literal["failed"]
    result_status: Literal["error"]


class StepSkipped(StepFinished):
    """A step left out, or degraded by a gate."""

    step_status: Literal["skipped"]
    result_status: Literal["skipped"]


class StepVetoed(StepFinished):
    """A step that was blocked."""

    step_status: Literal["vetoed"]
    result_status: Literal["vetoed"]


class CallRetried(Payload):
    """The intent of an attempt after the first."""

    step_id: str
    attempt: Count
    binding: str | None = None
    service: str | None = None
    reason: str
    wait_ms: Count
    error: Json | None = None
    idempotency_key: str | None = None
    """Where the service has closed the key that the call had before."""


class Decided(Payload):
    """What a gate or a rule decided."""

    decision: Literal["allow", "audit", "veto"]
    verdict: str | None = None
    rule: str | None = None
    gate: str | None = None
    capability: str | None = None
    step_id: str | None = None
    on_fail: str | None = None
    reason: str | None = None
    enforced: bool
    warning: Literal["safety_gate_warning"] | None = None
    """Of a gate that warns."""
    input_hash: str | None = None
    input: Json | None = None
    """The arguments that a pack decided about."""
    facts: Json | None = None
    """What was known then of the entities of the request, by slot."""
    inside: list[str] | None = None
    """The skill tools of a pack that the call is made in."""
    output: Json | None = None
    """What a call answered, as whoever decided about it says."""
    read: Any = None
    reads: Any = None
    stage: Literal["permission", "rule", "situation"] | None = None
    approval_mode: str | None = None
    matched: list[str] = []
    would: list[Json] = []
    rule_errors: list[Json] = []
    obligations: list[str] = []
    action_hash: str | None = None
    evidence_hash: str | None = None


class BudgetExceeded(Payload):
    """The budget that a call would pass, what of it is taken, and its limit."""

    key: str
    used: int
    limit: int


class Approval(Payload):
    """What a person is asked, or answered."""

    approval_id: str
    capability: str | None = None
    binding: str | None = None
    gate: str | None = None
    step_id: str | None = None
    input: Json | None = None
    action_hash: str | None = None
    evidence_hash: str | None = None
    expires_at: str | None = None
    by: str | None = None
    reason: str | None = None
    kind: Literal["gate", "confirmation", "escalation"] | None = None
    proposed_by: str | None = None
    """The skill whose run wants to act, `agent.PACK` for an agent's; only of a pack's gate, as the members below."""
    approver_roles: list[str] | None = None
    """The roles of which an approver needs one; empty: any. Only of a pack's gate, as the members below."""
    allow_self: bool | None = None
    role: str | None = None
    os_user: str | None = None


class Runtime(Payload):
    """A run paused, resumed, recovered or aborting."""

    reason: str | None = None
    checkpoint: Json | None = None
    dropped_bytes: Count | None = None
    signal: str | None = None
    changed_specs: list[str] | None = None
    timeout_seconds: float | None = None


class Heartbeat(Payload):
    """A sign of life of a run that waits for calls. `remaining` is what each budget has left."""

    elapsed_ms: Count
    waiting_on: list[str]
    remaining: Json = {}


class ServiceChanged(Payload):
    """A server that a call of the run started, or that was stopped. `reason` is why it stopped before the run's end."""

    service: str
    protocol: str
    reason: str | None = None


class LayerCompleted(Payload):
    """One layer of the cognitive loop: the names of what it read, and by name what it wrote."""

    layer: str
    reads: list[str]
    writes: Any
    turn: Count = 1
    skipped: str | None = None


class ContextCompiled(Payload):
    """What a model would be given in a turn."""

    turn: Count
    context_hash: str
    context: Json


class CandidateProposed(Payload):
    """What a planner proposes: a template, calls, or a response."""

    turn: Count
    planner: str
    template: str | None = None
    decision_key: str = ""
    calls: list[Json] = []
    response: str = ""


class ModelRequested(Payload):
    """What a model is asked, written before it leaves. The request's tools and schema are JSON texts."""

    turn: Count
    call_id: str
    purpose: str
    request: Json


class ModelRetried(Payload):
    """A model is asked the same once more, for this reason. `asked_ms`: the wait that its provider asked for, where
    that was cut to `wait_ms`."""

    call_id: str
    attempt: Count
    reason: str
    wait_ms: Count
    asked_ms: Count | None = None
    error: Json


class ModelResent(Payload):
    """What was asked before the process ended is asked once more: no answer to it is known."""

    call_id: str


class ModelAnswered(Payload):
    """What a model answered, or how it failed; the arguments of tool calls are JSON texts."""

    turn: Count
    call_id: str
    request_hash: str
    reply: Json | None = None
    error: Json | None = None
    usage: Usage
    estimated: bool = False
    latency_ms: Count


class AgentUpdated(Payload):
    """The state of an agent that a model reasons for; `notes` are what was dropped, cut or refused of its update."""

    turn: Count
    mode: str
    notes: list[Json] = []
    execution: Json
    reasoning: Json


class Criticised(Payload):
    """What the critic says of a plan before it runs, or of what came of it."""

    turn: Count
    verdict: str
    reason: str = ""
    fails: list[Json] = []
    goal_met: bool | None = None
    evidence_gates: list[Json] = []


class LoopDetected(Payload):
    """Calls that were proposed again and brought nothing new."""

    turn: Count
    kind: str
    key: str
    count: Count
    calls: list[str]
    unchanged: list[str]
    hint: str


class FunctionalState(Payload):
    """How hard a turn is pressed; each from 0 to 1."""

    turn: Count
    captured_at: str
    budget_pressure: Number
    loop_pressure: Number
    evidence_pressure: Number
    gate_pressure: Number
    conflict_pressure: Number
    escalation_propensity: Number


class MemoryProposed(Payload):
    """What may be remembered after the turn, and the facts that it brought."""

    turn: Count
    proposals: list[Json]
    facts: list[Json] = []


class ReflectionRecorded(Payload):
    """What an agent thinks of its own turn."""

    success: bool
    reasons: list[str]
    goal_met: bool | None = None
    budget: Json | None = None
    turn: Count = 1
    next: str = ""


class DecisionRecorded(Payload):
    """How an agent's run ends: `decision.json` has the rest."""

    decision_id: str
    decision_key: str
    status: str
    status_reason: str
    outcome: str
    outputs: Json
    record_hash: str


class RunTerminated(Payload):
    """The outcome of a run."""

    status: Outcome
    status_reason: str | None
    outputs: Json
    error: Json | None
    required_missing: list[str]
    contradictions: list[str] = []
    """Outputs that are not of their declared type, in a skill of a lenient root."""


class StateDigest(Payload):
    """Hash and size of a `state.json`."""

    sha256: str
    size_bytes: int


class StateProjection(Payload):
    """The evidence of a `state.json`."""

    status: Outcome
    outcomes: Json
    links: dict[str, str]
    state: StateDigest | None = None
    snapshot: bool | None = None


def model_of(event_type: str) -> type[Payload]:
    """The model that the row of an event type names. Raises KeyError for a type without a row."""
    model: type[Payload] = globals()[EVENT_TYPES[event_type].model]
    return model


def problem_of(event_type: str, payload: Any) -> str | None:
    """What is wrong with the payload of a known event type, in one line."""
    try:
        model_of(event_type).model_validate(payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"payload{'.' + place if place else ''}: {first['msg'].removeprefix('Value error, ')}"
    return None

"""The events of a run: one record per type (docs/reference/episode.md#types).

The record writes the payload of an event, `verify` checks it, and the schemas describe it. Members
that an older log lacks have a default. A reducer in `state.reducer` defines how an event changes
the state of its run. The events of decisions are in `governance_events`, the events of an agent's
turns in `agent_events`. `event_table` lists all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cogcli.base.merge import STRATEGIES
from cogcli.declarations import governance_events
from cogcli.declarations.call_records import (
    AttemptMade,
    FallbackUse,
    RunError,
    StepError,
    Usage,
    WrittenFile,
)
from cogcli.declarations.event_type import EventType, Payload
from cogcli.declarations.field import ABSENT, always
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, IntuitionMode, Json, Outcome

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema


class OneOf:
    """A text that must be one of several names. The names are read when a value is checked."""

    def __init__(self, names: Collection[str], what: str) -> None:
        self.names = names
        self.what = what

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        def check(name: str) -> str:
            if name not in self.names:
                raise ValueError(f"`{name:.40}` is not {self.what}")
            return name

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> Json:
        return {**handler(schema), "enum": [*self.names]}


MergeStrategy = Annotated[str, OneOf(STRATEGIES, "a merge strategy")]


class SkillRef(Record):
    """The skill that a run executes."""

    id: str
    version: str | None = always(default=None)


class RunStarted(Payload):
    """The request that a run began with."""

    event = EventType(
        "run.started",
        "start",
        speaker="system",
        reduced=True,
        words=("skill", "version", "episode", "run", "trace"),
        usual=True,
    )
    task: str
    seed: int
    using: str
    skill: SkillRef
    inputs: Json
    frame: Json
    options: Json
    tags: dict[str, str]
    pins: Json
    selection: Json = always(default={})
    parent_run_id: str | None
    taken_over: Json = {}
    """By step: results of an earlier episode that are used instead of doing the step."""
    contracts: Json = {}
    """The skills and capabilities of lenient roots, and their declarations that contradict each other."""
    policy: Json | None = None
    """The given governance of the run, apart from safety levels: pack, intent, user, ceiling, budgets."""
    effects: Json = {}
    """The effects of the earlier run that this run repeats, with the decision about each, by step path."""
    approvals: Json = {}
    """The unused approvals of the earlier run that this run may reuse, by id."""
    agent: Json | None = None
    """The request to an agent, its limits, and the data read from its stores."""
    gateway: Json | None = None
    """For a session of `gateway serve`: its name, its client, and the episode that it continues."""
    typed: list[str] = []
    """The inputs whose typed paths permit the run to read files that are otherwise forbidden."""
    files: list[Json] = []
    """The files that the run may send, each as `{path, name, bytes, sha256}`."""
    intuition_mode: IntuitionMode | None = None
    """The mode of the pack's rules."""
    rules: Literal[1, 2, 3] = 1
    """The version of the log's rules (`episode.log_lines`), in the first event of the root run."""


class PlanEntry(Record):
    """A step in a plan."""

    id: str
    kind: str
    capability: str | None = None
    description: str
    rationale: str | None = None
    status: str = always(default="pending")
    depends_on: list[str] = always(default=[])
    inputs: object = always(default=None)
    """The values that the step reads, by input name."""
    uses: str | None = None
    """The called target, in logs of other tools."""


class PlanCreated(Payload):
    """The steps that are going to run."""

    event = EventType("plan.created", "plan", reduced=True)
    source: str
    rationale: str
    step_records: list[PlanEntry]
    steps: list[str]
    """The labels of old readers, `kind:description`."""
    plan_id: str | None = None
    """Of a plan that an agent made, as the members below."""
    plan_hash: str | None = None
    turn: Count | None = None


# -- steps and calls ---------------------------------------------------------------------------------

_STEP_WORDS: Final = ("uses", "ms", "tool", "reason")


class StepStarted(Payload):
    """The intent of a call, or of a nested skill. It is on disk before the call is sent."""

    event = EventType(
        "step.started",
        "act",
        reduced=True,
        begins=True,
        starts=True,
        write_ahead=True,
        words=_STEP_WORDS,
        usual=True,
    )
    step_id: str
    step_status: Literal["running"] = always(default="running")
    uses: str
    capability: str | None = None
    binding: str | None = None
    service: str | None = None
    attempt: Count | None = None
    idempotency_key: str | None = None
    side_effects: str | bool | None = None
    skill: str | None = None
    decision: Json | None = None
    items: Count | None = None
    targets: list[str] | None = None
    input: Json | None = always(default=None)
    reads: list[str] = always(default=[])
    round: Count | None = None


class StepAnswered(Payload):
    """A result that is on disk before it is checked, or while it waits for its turn to write."""

    event = EventType(
        "step.answered", "act", needs_start=True, by_timing=True, usual=True, words=_STEP_WORDS
    )
    step_id: str
    output: Json
    attempts: list[AttemptMade] = always(default=[])


class Written(Record):
    """One write, before merging."""

    target: str
    strategy: MergeStrategy
    value: object


class StepFinished(Payload):
    """The end of a step: the members of all closing events."""

    step_id: str
    step_status: str
    result_status: str
    uses: str | None = None
    action_id: str | None = None
    kind: str | None = None
    input_excerpt: str | None = None
    attempts: list[AttemptMade] = ABSENT
    """Of a step that began."""
    usage: Usage | None = None
    capability: str | None = None
    fallback: FallbackUse | bool | None = None
    tool: str | None = None
    reason: str | None = None
    detail: str | None = None
    output: Any = None
    error: StepError | None = None
    reused_from: Json | str | None = None
    writes: list[Written] = always(default=[])
    reads: list[str] = always(default=[])
    latency_ms: Count | None = always(default=None)
    result_artifacts: list[str | WrittenFile] = always(default=[])
    """The names below `working.artifacts` that the step wrote, and its files."""


class StepCompleted(StepFinished):
    """A step that is done."""

    event = EventType(
        "step.completed", "act", reduced=True, closes=True, usual=True, words=_STEP_WORDS
    )
    step_status: Literal["done"] = always(default="done")
    result_status: Literal["ok"] = always(default="ok")


class StepFailed(StepFinished):
    """A step that failed."""

    event = EventType(
        "step.failed", "act", reduced=True, closes=True, fails=True, words=_STEP_WORDS
    )
    step_status: Literal["failed"] = always(default="failed")
    result_status: Literal["error"] = always(default="error")


class StepSkipped(StepFinished):
    """A step that was skipped."""

    event = EventType(
        "step.skipped", "act", reduced=True, closes=True, usual=True, words=_STEP_WORDS
    )
    step_status: Literal["skipped"] = always(default="skipped")
    result_status: Literal["skipped"] = always(default="skipped")


class StepDegraded(StepSkipped):
    """A step that a gate skipped, in a skill that can continue without it."""

    event = EventType("step.degraded", "act", reduced=True, closes=True, words=_STEP_WORDS)


class StepVetoed(StepFinished):
    """A step that was blocked."""

    event = EventType(
        "step.vetoed", "act", reduced=True, closes=True, fails=True, words=_STEP_WORDS
    )
    step_status: Literal["vetoed"] = always(default="vetoed")
    result_status: Literal["vetoed"] = always(default="vetoed")


ENDINGS: Final[dict[str, type[StepCompleted | StepFailed | StepSkipped | StepVetoed]]] = {
    "done": StepCompleted,
    "failed": StepFailed,
    "skipped": StepSkipped,
    "degraded": StepDegraded,
    "vetoed": StepVetoed,
}
"""The closing event of each way in which a step ends."""


class CallRetried(Payload):
    """The intent of an attempt after the first. It is on disk before the attempt is sent."""

    event = EventType(
        "call.retried",
        "act",
        reduced=True,
        begins=True,
        repeats=True,
        write_ahead=True,
        needs_start=True,
        words=("attempt", "reason", "wait_ms"),
        attributes=("attempt", "reason", "wait_ms"),
    )
    step_id: str
    attempt: Count
    binding: str | None = always(default=None)
    service: str | None = always(default=None)
    reason: str
    wait_ms: Count
    error: Json | None = None
    idempotency_key: str | None = None
    """The new key, if the service has closed the call's earlier key."""


class CallPage(Payload):
    """One page of a call that collects all pages. Its rows are in the output of the step."""

    event = EventType(
        "call.page",
        "act",
        one_process_only=True,
        by_timing=True,
        usual=True,
        detail=True,
        words=("page", "items", "total"),
        attributes=("page", "items", "total"),
    )
    step_id: str
    attempt: Count
    page: Count
    items: Count
    """The items of the page."""
    total: Count
    """The number of items in all pages up to this one."""
    url: str | None = None
    status_code: Count | None = None
    response_bytes: Count | None = None
    duration_ms: Count | None = None


class CallSampled(Payload):
    """A service asked the configured model inside an open call, and got its answer or a refusal."""

    event = EventType(
        "call.sampled",
        "act",
        one_process_only=True,
        by_timing=True,
        usual=True,
        words=("service", "number", "code"),
        attributes=("service", "number", "code"),
    )
    step_id: str
    capability: str
    binding: str
    service: str
    attempt: Count
    number: Count
    """The number of the request in the attempt."""
    messages: list[Json]
    """By message `role` and `text`. Empty for a request that was not read whole."""
    max_tokens: Count | None = None
    """The most tokens of the answer, after the limits of the run."""
    text: str | None = None
    """The answer that the service got."""
    finish: str | None = None
    model: str | None = None
    tokens_in: Count = 0
    tokens_out: Count = 0
    """Tokens that were charged. They are also in the usage of the attempt."""
    cost_microusd: Count | None = None
    duration_ms: Count = 0
    code: str | None = None
    """Why the service got no answer. None if it got one."""
    message: str | None = None

    @property
    def spent(self) -> Counter[str]:
        """What was charged, by the name of the budget."""
        spent = Counter({"tokens.workflow": self.tokens_in + self.tokens_out})
        spent["cost_microusd"] += self.cost_microusd or 0
        return spent


# -- the process of a run ----------------------------------------------------------------------------

_RUNTIME_WORDS: Final = ("reason", "signal")
_RUNTIME_ATTRIBUTES: Final = ("reason", "signal", "dropped_bytes")


class RunPaused(Payload):
    """The run waits for a person; nothing else can run."""

    event = EventType(
        "run.paused",
        "runtime",
        speaker="system",
        one_process_only=True,
        by_timing=True,
        words=_RUNTIME_WORDS,
        attributes=_RUNTIME_ATTRIBUTES,
    )
    reason: str | None = None
    checkpoint: Json | None = None
    """In older logs."""


class RunResumed(Payload):
    """The run continues in the same log."""

    event = EventType(
        "run.resumed",
        "runtime",
        speaker="system",
        reopens=True,
        one_process_only=True,
        words=_RUNTIME_WORDS,
        attributes=_RUNTIME_ATTRIBUTES,
    )
    reason: str | None = None
    checkpoint: Json | None = None
    """Sequence and id of the last event before."""
    changed_specs: list[str] = []
    """The specs that are not those the run began with."""
    timeout_seconds: float | None = None
    """A new limit of time."""


class RunRecovered(Payload):
    """The uncommitted end of a log was truncated after a crash."""

    event = EventType(
        "run.recovered",
        "runtime",
        speaker="system",
        reopens=True,
        one_process_only=True,
        outside_time=True,
        words=_RUNTIME_WORDS,
        attributes=_RUNTIME_ATTRIBUTES,
    )
    reason: str | None = None
    checkpoint: Json | None = None
    """Sequence and id of the last event that stays."""
    dropped_bytes: Count | None = None


class RunAborting(Payload):
    """A signal was received. No new call is dispatched."""

    event = EventType(
        "run.aborting",
        "runtime",
        speaker="system",
        one_process_only=True,
        by_timing=True,
        words=_RUNTIME_WORDS,
        attributes=_RUNTIME_ATTRIBUTES,
    )
    reason: str | None = None
    signal: str | None = None


class RunHeartbeat(Payload):
    """A sign of life from a run that waits for calls."""

    event = EventType(
        "run.heartbeat",
        "runtime",
        speaker="agent",
        one_process_only=True,
        by_timing=True,
        words=("elapsed_ms", "waiting_on"),
    )
    elapsed_ms: Count
    waiting_on: list[str]
    remaining: Json = always(default={})
    """The remaining amount of each budget."""


class ServiceStarted(Payload):
    """A call of this step started a server."""

    event = EventType(
        "service.started",
        "runtime",
        speaker="system",
        one_process_only=True,
        by_timing=True,
        words=("service", "protocol"),
    )
    service: str
    protocol: str


class ServiceStopped(Payload):
    """A server was stopped."""

    event = EventType(
        "service.stopped",
        "runtime",
        speaker="system",
        one_process_only=True,
        by_timing=True,
        words=("service", "protocol", "reason"),
    )
    service: str
    protocol: str
    reason: str | None = None
    """The reason for stopping before the end of the run."""


class RunTerminated(Payload):
    """The outcome of a run."""

    event = EventType(
        "run.terminated",
        "terminate",
        speaker="system",
        reduced=True,
        words=("status", "ms", "episode"),
        usual=True,
    )
    status: Outcome
    status_reason: str | None
    outputs: Json
    error: RunError | None
    required_missing: list[str]
    contradictions: list[str] = []
    """Outputs that are not of their declared type, in a skill of a lenient root."""


class StateDigest(Record):
    """Hash and size of a `state.json`."""

    sha256: str
    size_bytes: int


class StateProjected(Payload):
    """The evidence that a `state.json` is about to be written."""

    event = EventType(
        "run.state_projection",
        "runtime",
        speaker="system",
        projected=True,
        one_process_only=True,
        outside_time=True,
        words=("status",),
    )
    status: Outcome
    outcomes: Json
    links: dict[str, str]
    state: StateDigest | None = None
    snapshot: bool | None = None
    """Whether the run is active."""


class WaypointSet(Payload):
    """The hash of a `waypoint.json` that is about to be written, with which a resume is quick."""

    event = EventType(
        "run.waypoint",
        "runtime",
        speaker="system",
        cached=True,
        one_process_only=True,
        outside_time=True,
    )
    sha256: str
    size_bytes: int


STEP_PAYLOADS: Final[tuple[type[Payload], ...]] = (
    RunStarted,
    PlanCreated,
    StepStarted,
    StepAnswered,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepDegraded,
    StepVetoed,
    CallRetried,
    CallPage,
    CallSampled,
)
PROCESS_PAYLOADS: Final[tuple[type[Payload], ...]] = (
    RunPaused,
    RunResumed,
    RunRecovered,
    RunAborting,
    RunHeartbeat,
    ServiceStarted,
    ServiceStopped,
)
END_PAYLOADS: Final[tuple[type[Payload], ...]] = (RunTerminated, StateProjected, WaypointSet)
TYPES_OF_SKILL_RUNS: Final[dict[str, EventType]] = {
    each.event.name: each.event
    for each in (*STEP_PAYLOADS, *governance_events.PAYLOADS, *PROCESS_PAYLOADS, *END_PAYLOADS)
}
"""The types of the events that the run of a skill writes, by name. `event_table` has all types."""
UNKNOWN: Final = EventType(
    "", words=("decision", "verdict", "gate", "rule", "attempt", "reason", "signal", "wait_ms")
)
"""Stands for a type that is not in the table: another tool's, or a later version's."""

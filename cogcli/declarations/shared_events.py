"""Payloads of events as any tool may write them: the members that `state.json`, its summary and
lists of episodes are derived from (docs/reference/episode.md#shared-format).

`declarations.reading` reads them: a member of another type is treated as absent.
"""

from __future__ import annotations

from typing import Any

from cogcli.declarations.record import Record
from cogcli.declarations.value_types import IntuitionMode, Json, Number


class InteropTimeLimits(Record):
    """The run options that logs of any tool may contain: two time limits, in seconds."""

    timeout_seconds: Number | None = None
    step_timeout_seconds: Number | None = None


class RecordedPermissions(Record):
    """The options of a run that permit calls."""

    trust_level: str | None = None
    confirmed_capabilities: Any = None


class SharedStart(Record):
    """The start of a run."""

    task: str
    skill: Json | None = None
    using: str | None = None
    seed: Number | None = None
    tags: Json | None = None
    intuition_mode: IntuitionMode = "advisory"
    options: InteropTimeLimits
    pins: Json
    agent: Json | None = None


class SharedPlanStep(Record):
    """A step of a plan."""

    id: str
    kind: object = None
    description: str
    uses: str
    capability: str | None = None
    status: object = "pending"
    rationale: str | None = None
    depends_on: list[object] | None = None
    inputs: Json | None = None
    outputs: Json | None = None


class SharedPlan(Record):
    """A plan. Another tool may write its steps as labels only."""

    source: str
    rationale: str | None = None
    step_records: list[object] | None = None
    steps: list[object]


class SharedAttempt(Record):
    """One attempt of a call."""

    binding_id: str | None = None
    status: str


class SharedActivity(Record):
    """The payload of an event in which a step begins or ends, or an action is recorded."""

    step_id: str | None = None
    step_status: object = None
    uses: str | None = None
    capability: str | None = None
    binding: str | None = None
    attempts: list[SharedAttempt]
    action_id: str | None = None
    kind: str | None = None
    tool: str | None = None
    input_excerpt: object = None
    output_excerpt: object = None
    input: object = None
    output: object = None
    result_status: str | None = None
    provenance: str | None = None
    reason: str | None = None
    result_artifacts: list[object] | None = None
    latency_ms: Number | None = None
    duration_ms: Number | None = None


class SharedEnd(Record):
    """The end of a run."""

    status: object = None
    status_reason: str | None = None
    outputs: Json
    error: Json | str | None = None
    metrics: Json
    required_missing: list[object]


class StatedBelief(Record):
    """A belief of an event or of working memory."""

    statement: str | None = None
    confidence: Number | None = None
    provenance: str


class StatedFact(Record):
    """A fact to remember."""

    key: str | None = None
    value: object = None
    provenance: str


class SharedMemory(Record):
    """The beliefs and facts that an event of an agent adds."""

    beliefs: list[StatedBelief]
    scratchpad: str | None = None
    facts: list[StatedFact] | None = None


class WorkingMessage(Record):
    """A message of working memory."""

    role: str
    content: str | None = None
    text: str

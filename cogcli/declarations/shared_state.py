"""`state.json` as any tool may write it: only what the shared format requires
(docs/reference/episode.md#shared-format).

Readers accept this form. cogcli writes `documents.StateDocument`, whose parts are narrower versions
of these. Optional members may be null. Keys that the shared format does not define may occur
anywhere. Its three vocabularies are closed.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cogcli.declarations.record import Record
from cogcli.declarations.value_types import (
    Json,
    Number,
    Outcome,
    Ratio,
    StepKind,
    StepStatus,
    ValueLimits,
)

Version = Annotated[str, ValueLimits(pattern=r"^1\.")]


class Part(Record):
    """The common base of all document parts: undeclared keys are allowed.

    The schemas of cogcli's own documents forbid them.
    """

    other_members: ClassVar[bool] = True


class SeedEpisode(Part):
    """The `episode` block of the state: the id of the run and how it was started."""

    id: str
    seed: Number | None = None
    tags: Json | None = None
    using: str | None = None
    started_at: str
    intuition_mode: str | None = None


class SeedGoal(Part):
    """The `goal` block of the state: the caller's task."""

    task: str
    type: str | None = None


class SeedBelief(Part):
    """A statement that the agent believes."""

    statement: str
    confidence: Ratio
    provenance: str
    timestamp: str | None = None


class SeedStep(Part):
    """One step and its status."""

    id: str
    kind: StepKind
    description: str
    status: StepStatus
    rationale: str | None = None
    inputs: Json | None = None
    outputs: Json | None = None


class SeedPlan(Part):
    """The latest plan."""

    source: str | None = None
    updated_at: str | None = None
    rationale: str | None = None
    steps: list[SeedStep]


class SeedFact(Part):
    """One remembered fact."""

    key: str
    value: object
    timestamp: str | None = None
    provenance: str | None = None


class SeedMemory(Part):
    """The memory of the run."""

    facts: list[SeedFact] | None = None
    scratchpad: str | None = None


class SeedAction(Part):
    """One executed action."""

    id: str | None = None
    kind: str | None = None
    tool: str | None = None
    input_excerpt: object = None
    result_status: str | None = None
    step_id: str | None = None
    provenance: object = None
    result_artifacts: list[object] | None = None
    duration_ms: Number | None = None
    timestamp: str | None = None


class SeedOutcomes(Part):
    """The outcome of the run, or its current status."""

    status: Outcome
    actions: list[SeedAction] | None = None
    metrics: Json | None = None
    artifacts: list[object] | None = None
    error: Json | str | None = None


class SeedState(Part):
    """`state.json` of any tool."""

    version: Version
    state_schema_version: Version
    episode: SeedEpisode
    goal: SeedGoal
    beliefs: list[SeedBelief] | None = None
    plan: SeedPlan
    memory: SeedMemory | None = None
    outcomes: SeedOutcomes
    links: dict[str, str] | None = None


class SharedEpisode(SeedEpisode):
    """The run of this episode, with the optional members that reports display."""

    run_id: str | None = None
    trace_id: str | None = None
    skill: Json | str | None = None


class SharedState(SeedState):
    """`state.json` as reports and lists read it, without its log."""

    episode: SharedEpisode

"""The documents of an episode: one record per document, and one per part of it."""

from __future__ import annotations

from typing import Annotated, Literal

from cogcli.declarations import shared_state as shared
from cogcli.declarations.call_records import WrittenFile
from cogcli.declarations.events import SkillRef
from cogcli.declarations.summary_document import Counts, DecisionStatus
from cogcli.declarations.value_types import (
    Count,
    Digest,
    Hex,
    Json,
    Number,
    Outcome,
    ValueLimits,
)

FileName = Annotated[str, ValueLimits(pattern=r"^(blobs/[0-9a-f]{64}|[a-z]+\.(jsonl|json|torn))$")]


class Episode(shared.SeedEpisode):
    """The run of this episode.

    `run_id`, `trace_id` and `skill` are missing if another tool wrote the log.
    """

    intuition_mode: Literal["advisory", "interventive", "hybrid"] = "advisory"
    run_id: str | None = None
    trace_id: str | None = None
    skill: SkillRef | None = None


class Goal(shared.SeedGoal):
    """The task of the run."""

    type: Literal["task"] = "task"


class Belief(shared.SeedBelief):
    """A statement that the agent believes."""


class PlanStep(shared.SeedStep):
    """One step and its status."""

    depends_on: list[object] | None = None


class Plan(shared.Part):
    """The latest plan."""

    source: str | None = None
    updated_at: str | None = None
    rationale: str | None = None
    steps: list[PlanStep]


class Fact(shared.SeedFact):
    """One remembered fact."""


class Memory(shared.Part):
    """The memory of the run."""

    facts: list[Fact]
    scratchpad: str | None = None


class Action(shared.SeedAction):
    """One executed action."""

    id: str
    input_excerpt: str | None = None
    output_excerpt: str | None = None
    provenance: str | None = None
    timestamp: str


class Outcomes(shared.Part):
    """The outcome of the run, or its current status."""

    status: Outcome
    actions: list[Action]
    metrics: Json
    artifacts: list[str | WrittenFile]
    error: Json | None
    outputs: Json


class Links(shared.Part):
    """The files of the episode.

    Only terminal runs have a summary and a manifest. Only runs of agents have a context and a
    decision.
    """

    events: Literal["events.jsonl"]
    learn: Literal["learn.jsonl"]
    summary: Literal["summary.json"] | None = None
    manifest: Literal["manifest.json"] | None = None
    context: Literal["context.json"] | None = None
    decision: Literal["decision.json"] | None = None


class StateDocument(shared.Part):
    """`state.json` in the form that cogcli writes. Other tools may write `shared_state.SeedState`."""

    version: Literal["1.0"]
    state_schema_version: Literal["1.0.0"]
    episode: Episode
    goal: Goal
    beliefs: list[Belief]
    plan: Plan
    memory: Memory
    outcomes: Outcomes
    links: Links


class ContextFile(shared.Part):
    """`context.json`: the compiled context of each turn."""

    schema_version: Literal["context/1"]
    turns: list[Json]


class Actor(shared.Part):
    """The user who made the request, and the role in which the agent acted."""

    user_id: str | None
    role: str | None
    agent: str | None


class Critic(shared.Part):
    """The verdicts of the critic on each plan, and on each turn."""

    verify: list[Json]
    score: list[Json]


class DecisionLineage(shared.Part):
    """The inputs of the decision."""

    pack_ref: str | None
    policy_hash: str | None
    pack_refs: list[str] | None = None
    """With several packs: the reference of each, the primary one first."""
    snapshot_ref: str | None
    compiled_context_hashes: list[Digest]
    model: Json | None
    tokenizer: Json | None
    functional_state: list[Json]
    parent_decision_id: str | None


class DecisionBudget(shared.Part):
    """Limits by dotted key, and the used amounts of those that are measured."""

    limits: dict[str, Number]
    used: dict[str, Count]


class DecisionFile(shared.Part):
    """`decision.json`."""

    schema_version: Literal["decision/1"]
    decision_id: str
    decision_key: str
    run_id: str
    trace_id: str | None
    tenant_id: str | None
    session_id: str | None
    status: DecisionStatus
    status_reason: str
    outcome: str
    intent: str
    task_template: str | None
    actor: Actor
    subjects: list[str]
    evidence_refs: list[str]
    evidence_gates: list[Json]
    policy_decisions: list[Json]
    approvals: list[Json]
    controls_active: list[str]
    plan_ref: Json | None
    calls: list[Json]
    outputs: Json
    critic: Critic
    memory_proposals: list[Json]
    lineage: DecisionLineage
    budget: DecisionBudget
    children: list[Json]
    say: str | None = None
    """The text of a pack for the customer, if the run was refused or denied, or waits."""
    record_hash: Digest


class Latencies(shared.Part):
    """The durations of the steps."""

    total_ms: Count
    max_ms: Count
    slowest_step: str | None


class Basis(shared.Part):
    """The data that a reflection is based on."""

    success: bool
    reasons: list[str]
    latencies: Latencies
    counts: Counts


class Proposal(shared.Part):
    """A suggestion with evidence. It is not applied automatically."""

    kind: Literal[
        "binding-fallback",
        "step-timeout",
        "second-try",
        "budget-spent",
        "output-missing",
        "high-pressure",
    ]
    about: str
    suggestion: str
    count: Count
    evidence_ids: list[str]


class LearnEntry(shared.Part):
    """One line of `learn.jsonl`."""

    seq: Count
    id: Annotated[str, ValueLimits(pattern=r"^lr_")]
    timestamp: str
    episode_id: str
    run_id: str | None
    entry_type: Literal["reflection"]
    agent_id: str
    basis: Basis
    proposals: list[Proposal]
    evidence_ids: list[str]
    caused_by: str
    prev: Digest


class ManifestFile(shared.Part):
    """One file of an episode."""

    name: FileName
    sha256: Hex
    size_bytes: Count
    kind: str


class HashChain(shared.Part):
    """The log's length and the hash of its last line."""

    events: Count
    head: Digest


class Signature(shared.Part):
    """The signature of the manifest, which covers all other members."""

    alg: Literal["ed25519"]
    key_id: str
    value: str


class Manifest(shared.Part):
    """`manifest.json`."""

    schema_version: Literal["manifest/1"]
    episode_id: str
    created_at: str
    files: list[ManifestFile]
    chain: HashChain
    pins: Json
    unsigned: list[tuple[Count, Count]] | None = None
    """Ranges of events that the signature does not vouch for: the first and the last `seq` of each."""
    signature: Signature | None


class CheckpointRecord(shared.Part):
    """A slot of `checkpoint.jsonl`, without its padding."""

    schema_version: Literal["checkpoint/1"]
    episode_id: str
    events: Count
    head: Digest
    """The hash of the last of `events` lines."""
    next: Digest | None
    """The hash of the line that is about to follow; at a pause and at the end, of the last line."""
    unvouched: list[tuple[Count, Count]]
    """Ranges of events, as first and last `seq`, that no known record covered when a process continued the log."""
    manifest: Digest | None
    """The hash of the manifest, at the end."""
    given: Count
    """The user renewed the permissions of all events before this `seq`."""
    mac: str | None
    """Keyed BLAKE2b of the members above, with the user's key."""
    signature: Signature | None
    """Over the members above, by the user's signing key."""

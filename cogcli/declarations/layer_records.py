"""What the layers of a turn write, and the context that is compiled for a model, as far as views of
a run show them (docs/reference/agent-run.md#layers)."""

from __future__ import annotations

from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count


class PerceivedEvent(Record):
    """Something that the agent was given in a turn."""

    id: str
    type: str


class PerceptionWrites(Record):
    """The layer `perception`."""

    events: list[PerceivedEvent]


class AttentionWrites(Record):
    """The layer `attention`."""

    focus: list[str]
    """Ids of events."""
    salience_scores: dict[str, float]


class AgentSelf(Record):
    """How the agent presents itself."""

    role: object = None
    voice: object = None


class IdentityWrites(Record):
    """The layer `identity`."""

    agent_self: AgentSelf


class GoalsWrites(Record):
    """The layer `goals`."""

    intent: str | None = None


class CandidateRef(Record):
    """Which plan is judged."""

    candidate_plan_id: str | None = None


class JudgmentWrites(Record):
    """The layer `judgment`."""

    candidate: CandidateRef


class PolicyGateWrites(Record):
    """The layer `policy_gate`."""

    verdict: str | None = None
    obligations: list[str]


class ProposedFact(Record):
    """What may be remembered."""

    entity: str
    predicate: str


class ProposedMemory(Record):
    """A candidate for the memory of a user."""

    candidate: ProposedFact


class ConsolidationWrites(Record):
    """The layer `consolidation`."""

    proposals: list[ProposedMemory]


class TurnReflection(Record):
    """What the agent thinks of its own turn."""

    goal_met: bool | None = None
    next: str | None = None
    budget: dict[str, float]
    """What each budget has left."""


class ReflectionWrites(Record):
    """The layer `reflection`."""

    reflection: TurnReflection


class ContextSection(Record):
    """A section of the context."""

    block_id: str
    bucket: str
    tokens: Count
    trust: str
    truncated: bool
    content: object = None


class CompiledPrompt(Record):
    """What a model is given."""

    context_blocks: list[ContextSection]


class ContextOmission(Record):
    """A candidate that the compiler left out of the context, or reduced. Exactly one of the ids names it."""

    block_id: str | None = None
    capability: str | None = None
    ref: str | None = None
    id: str | None = None
    reason: str | None = None

    @property
    def name(self) -> str:
        """The one id that it has."""
        return self.block_id or self.capability or self.ref or self.id or ""


class BudgetReport(Record):
    """How many tokens the context has, by section, and what had no room."""

    used: dict[str, int]
    omissions: list[ContextOmission]


class ContextLedger(Record):
    """The stages of the compiler."""

    stage_hashes: dict[str, str]


class ContextDocument(Record):
    """The context of a turn (docs/reference/agent-run.md#layers)."""

    compiled_prompt: CompiledPrompt
    budget_report: BudgetReport
    context_ledger: ContextLedger
    redactions: list[ContextOmission]
    """What is kept from the model."""


class AgentLimits(Record):
    """The member `agent` of `run.started`."""

    limits: dict[str, float]


class ModelMessage(Record):
    """One message of a prompt."""

    role: str
    content: object = None


class ModelQuestion(Record):
    """What a model is asked: the member `request` of `model.requested`."""

    messages: list[ModelMessage]


class RecordedReply(Record):
    """What a model answered: the member `reply` of `model.answered`."""

    model: str
    finish: str
    request_id: str
    text: object = None
    tool_calls: object = None

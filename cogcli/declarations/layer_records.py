"""The values that the layers of a turn write, and the compiled context of a model, in the parts
that views of a run display (docs/reference/agent-run.md#layers).
"""

from __future__ import annotations

from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Json


class PerceivedEvent(Record):
    """An input of the agent in a turn."""

    id: str
    type: str
    waited: bool = False
    """Whether the turn before deferred it."""


class SessionSignals(Record):
    """The conversation of a request, as the first turn perceives it."""

    state: str = ""
    """`started` or `resumed`."""
    last_run_failed: bool = False


class PerceptionInput(Record):
    """The values that the layer `perception` reads and that logs of edition 1 lack."""

    session: SessionSignals | None = None
    waiting: list[Json] = []
    """The events that the turn before deferred."""


class PerceptionWrites(Record):
    """The values that the layer `perception` writes."""

    events: list[PerceivedEvent]


class GateDecision(Record):
    """The decision whether a turn may begin, and the remaining amount of each budget."""

    proceed: bool | None = None
    exceeded: str = ""
    remaining: dict[str, float] = {}


class BudgetGateWrites(Record):
    """The values that the layer `budget_gate` writes."""

    gate_decision: GateDecision


class FocusState(Record):
    """The focus of a turn, and the ids of the events that it defers."""

    mode: str | None = None
    buffered: list[str] = []


class FocusedEvents(Record):
    """The events of a turn, and the focus that defers some of them."""

    events: list[Json] = []
    focus_state: FocusState = FocusState()


class FocusWrites(Record):
    """The values that the layer `focus` writes."""

    focus_state: FocusState


class AttentionWrites(Record):
    """The values that the layer `attention` writes."""

    focus: list[str]
    """Ids of events."""
    salience_scores: dict[str, float]


class AgentSelf(Record):
    """The agent's presentation of itself."""

    role: object = None
    voice: object = None
    agent_id: object = None


class IdentityWrites(Record):
    """The values that the layer `identity` writes."""

    agent_self: AgentSelf


class GoalsWrites(Record):
    """The values that the layer `goals` writes."""

    intent: str | None = None
    active_goals: list[str] = []


class CandidateRef(Record):
    """The plan to decide about."""

    candidate_plan_id: str | None = None
    session: str = ""
    """The entity of the conversation. Empty for logs of edition 1."""
    about: Json = {}
    """The topics of the conversation, by name."""
    ref: str = ""


class JudgmentWrites(Record):
    """The values that the layer `judgment` writes."""

    candidate: CandidateRef


class PolicyGateWrites(Record):
    """The values that the layer `policy_gate` writes."""

    verdict: str | None = None
    obligations: list[str]
    calls: list[Json] = []
    """The verdict on each call of the plan, as far as its arguments are known."""
    counters: list[Json] = []
    """The values of the pack's limit counters before the plan."""


class TurnEffect(Record):
    """The effect of a step of a turn's plan, as the layer `action` writes it."""

    step_id: str
    capability: str
    status: str
    ref: str
    code: str | None = None
    """The code of its error."""
    facts: list[Json] = []
    """The facts that the context showed."""
    result: str | None = None
    """The digest of its output."""


class ProposedFact(Record):
    """A fact that is proposed for memory."""

    entity: str
    predicate: str


class ProposedMemory(Record):
    """A candidate for the memory of a user."""

    proposal_id: str | None = None
    candidate: ProposedFact


class ConsolidationWrites(Record):
    """The values that the layer `consolidation` writes."""

    proposals: list[ProposedMemory]


class TurnReflection(Record):
    """The reflection of the agent on its own turn."""

    goal_met: bool | None = None
    next: str | None = None
    budget: dict[str, float]
    """The remaining amount of each budget."""


class ReflectionWrites(Record):
    """The values that the layer `reflection` writes."""

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
    """The prompt that a model receives."""

    context_blocks: list[ContextSection]


class ContextOmission(Record):
    """A candidate that the compiler dropped from the context, or reduced.

    Exactly one of the ids is set.
    """

    block_id: str | None = None
    bucket: str | None = None
    """Of a block: its section."""
    capability: str | None = None
    ref: str | None = None
    id: str | None = None
    reason: str | None = None

    @property
    def name(self) -> str:
        """Return the id that is set."""
        return self.block_id or self.capability or self.ref or self.id or ""


class BudgetReport(Record):
    """The number of tokens in the context, by section, and the items that did not fit."""

    used: dict[str, int]
    reserved: int = 0
    """The tokens that the prompt needs outside of its sections."""
    omissions: list[ContextOmission]


class ContextLedger(Record):
    """The stages of the compiler."""

    stage_hashes: dict[str, str]
    context_hash: str | None = None


class ContextDocument(Record):
    """The context of a turn (docs/reference/agent-run.md#layers)."""

    compiled_prompt: CompiledPrompt
    budget_report: BudgetReport
    context_ledger: ContextLedger
    redactions: list[ContextOmission]
    """The content withheld from the model."""


class AgentLimits(Record):
    """The member `agent` of `run.started`."""

    limits: dict[str, float]


class RequestOrigin(Record):
    """The members of a task that a request need not have."""

    channel: str = ""
    locale: str = ""
    session: Json = {}
    attachments: list[Json] = []


class StoredAgentState(Record):
    """The parts of a stored state in its latest version."""

    execution: Json = {}
    reasoning: Json = {}
    user_profile: Json | None = None


class ModelMessage(Record):
    """One message of a prompt."""

    role: str
    content: object = None


class ModelQuestion(Record):
    """The request to a model: the member `request` of `model.requested`."""

    messages: list[ModelMessage]


class RecordedReply(Record):
    """The answer of a model: the member `reply` of `model.answered`."""

    model: str
    finish: str
    request_id: str
    text: object = None
    tool_calls: object = None

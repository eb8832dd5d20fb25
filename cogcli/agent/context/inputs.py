"""The input of a compilation: request, run, and fetched values (docs/reference/pack.md#compiler)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cogcli.agent.context.compiled import ContextBlock, Omission
from cogcli.agent.context.tokenizer import ESTIMATE, Tokenizer
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.value_types import Json
from cogcli.policy.pack_policy import Policy


class User(NamedTuple):
    """The user of a request. `consent` are the classes of proposals that may be kept and recalled."""

    user_id: str = "default"
    role: str = ""
    consent: tuple[str, ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether it is not the default user."""
        return self.user_id != "default"


_OPTIONAL: Final = ("tenant_id", "agent", "refused_by", "message_hash")
"""Members of a request that its JSON has only if they are set, as earlier requests did not have them."""


class AgentRequest(NamedTuple):
    """One request to an agent."""

    message: str
    intent: str = ""
    params: Json = NOTHING
    user: User = User()
    channel: str = ""
    locale: str = ""
    focus: str = "off"
    attachments: tuple[Json, ...] = ()
    request_id: str = ""
    session_id: str = ""
    tenant_id: str = ""
    """The tenant that the caller expects. It is the one of the pack, or there is no run."""
    agent: Json = NOTHING
    """The agent that the caller expects: `agent_id`, and the role and the voice of the pack."""
    refused_by: tuple[str, ...] = ()
    """The guardrails that refuse the message. If there are any, `message` is a notice that replaces the text."""
    message_hash: str = ""
    """The hash of the refused text."""

    def to_payload(self) -> Json:
        """Return the request as JSON, for its hash."""
        user = {**self.user._asdict(), "consent": list(self.user.consent)}
        lists = {"attachments": list(self.attachments), "refused_by": list(self.refused_by)}
        payload = {**self._asdict(), "user": user, **lists}
        return {name: value for name, value in payload.items() if value or name not in _OPTIONAL}


class RunContext(NamedTuple):
    """The values of the run for the layers of a turn. Each turn gets a new one."""

    run_id: str
    trace_id: str
    tenant_id: str = "local"
    safety_mode: str = "read_only"
    role: str = ""
    voice: str = ""
    session_id: str = ""
    parent_run_id: str = ""
    lane: str = ""
    turn: int = 1
    snapshot_ref: str = ""
    started_at: str = ""
    now: str = ""
    """The timestamp of the last recorded event, instead of a clock."""


class Edge(NamedTuple):
    """One statement of knowledge: the `predicate` of `subject`, a `type:id`, is `value`, or the entity `object`. Times
    are ISO 8601 in UTC, empty where open."""

    subject: str
    predicate: str
    evidence_ref: str
    observed_at: str
    object: str = ""
    value: Any = None
    valid_from: str = ""
    valid_until: str = ""
    trust: str = "untrusted"
    data_class: str = "internal"
    tenant_id: str = "local"
    seq: int = 0

    @property
    def stated(self) -> Any:
        """The value of the edge: its entity `object`, or else its `value`."""
        return self.object or self.value


class PromotedMemory(NamedTuple):
    """One promoted proposal. `rank` is its distance from the request by bm25, the nearest first."""

    memory_id: str
    tier: str
    memory_class: str
    entity: str
    predicate: str
    value: object
    promoted_at: str
    user_id: str = ""
    tenant_id: str = "local"
    data_class: str = "internal"
    evidence_refs: tuple[str, ...] = ()
    rank: float = 0.0


class Attention(NamedTuple):
    """The focus of a turn: the references in focus, and the salience of each reference."""

    focus: tuple[str, ...] = ()
    salience: Mapping[str, float] = NOTHING
    held_attachments: tuple[int, ...] = ()
    """The places of the attachments that are deferred until the turn has ended."""

    def includes(self, ref: str) -> bool:
        """Return whether a reference is in focus. One that was not ranked always is."""
        return ref in self.focus or ref not in self.salience


def edge_ref(edge: Edge) -> str:
    """Return the reference of an edge for attention."""
    return f"{edge.subject}:{edge.predicate}"


class CompileInput(NamedTuple):
    """The input of a compilation. `capabilities` are the usable ones, by id."""

    pack: Pack
    policy: Policy
    request: AgentRequest
    run: RunContext
    capabilities: Mapping[str, Capability]
    edges: tuple[Edge, ...] = ()
    """Candidates from the snapshot, then facts of this run's calls in their order."""
    memories: tuple[PromotedMemory, ...] = ()
    session: tuple[str, ...] = ()
    """The texts of the conversation so far, the oldest first."""
    summary: ContextBlock | None = None
    """The summary of older messages, which names them."""
    summary_cut: Omission | None = None
    """The messages that the summary replaces."""
    session_signals: Json = NOTHING
    """The session of the request: its id, whether it starts, and how its last run ended."""
    state: Mapping[str, object] = NOTHING
    """The state of the run for rules."""
    limits: Mapping[str, float] = NOTHING
    """The budget of the run by dotted key."""
    tokenizer: Tokenizer = ESTIMATE
    edition: int = LATEST_EDITION
    """The edition of the checks of the pack."""
    reserved: int = 0
    """The tokens that the prompt adds to the blocks."""
    attention: Attention | None = None
    """The attention of the turn. None if everything is in focus."""
    state_omissions: tuple[Omission, ...] = ()
    """The lines of the agent's state that the prompt lacks or shows in part."""

    @property
    def held_attachments(self) -> tuple[int, ...]:
        """The places of the attachments that the prompt does not name in this turn."""
        return self.attention.held_attachments if self.attention else ()

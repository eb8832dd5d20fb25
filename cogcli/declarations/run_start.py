"""The first event of a run with all its parts, as needed to resume, rerun or replay the run.

`RunStarted` does not type these parts, because older logs and other tools write others. A log is
checked against `RecordedStart` before a run continues from it (`run/recorded_start.py`). After
that, `start_of` reads it.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from cogcli.declarations.envelope import Event
from cogcli.declarations.events import RunStarted
from cogcli.declarations.governance_events import ApprovalOrigin
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Json, Number, ValueLimits

Seconds = Annotated[float, ValueLimits(above=0)]


class _OpenRecord(Record):
    """A record whose JSON may have undeclared members."""

    other_members: ClassVar[bool] = True


class PinnedBinding(_OpenRecord):
    """One binding of a pinned chain."""

    binding_id: str
    service_id: str
    protocol: str
    timeout_seconds: float
    start_seconds: float = 0
    retry_count: Count = 0
    retry_backoff_base: float = 0
    retry_backoff_factor: float = 0
    fallback_on: str = ""
    repeats_faults: bool = False
    pages: Count = 1


class PinnedChain(_OpenRecord):
    """The bindings through which a capability may be called, in order."""

    members: list[PinnedBinding]


class PinnedModel(_OpenRecord):
    """The language model of an agent."""

    adapter: str
    name: str = ""
    context_tokens: int | None = None
    deterministic: bool = False
    features: list[str] = []


Variables = dict[str, dict[str, str]]


class RunPins(_OpenRecord):
    """The versions of everything that a run uses, pinned when it began."""

    cogcli: str = ""
    """The version that began the run."""
    specs: dict[str, str] = {}
    """The digest of each spec, by its kind and id."""
    specs_blob: str = ""
    """The digest of the blob that contains the specs; empty in a log without one."""
    variables: Variables = {}
    """By service, the values of its variables."""
    model: PinnedModel | None = None
    policy: str | None = None
    """The pack of an agent and its hash, as the members below."""
    policy_hash: str | None = None
    packs: list[str] = []
    """With several packs: the reference of each, the primary one first."""
    snapshot: str | None = None
    tokenizer: Json | None = None


LATEST_EDITION: Final = 2
"""The edition of the checks of a pack that a new run follows (docs/reference/pack.md#editions)."""


class RecordedPolicy(Record):
    """The policy of the run, as its flags set it."""

    pack: str = ""
    intent: str = ""
    user: str = ""
    safety_mode: str = ""
    budget: dict[str, int] = {}
    with_packs: list[str] = []
    """Further packs, which add rules, guardrails and texts."""
    shadow: bool = False
    """Whether no rule of the pack is enforced."""
    edition: Count = 1
    """The edition of the checks of the pack."""


class RecordedContracts(_OpenRecord):
    """The specs of lenient registry roots, and their contradictions."""

    lenient: list[str] = []
    found: list[Json] = []


class RequestUser(_OpenRecord):
    """The user of a request to an agent."""

    user_id: str = ""
    role: str = ""
    consent: list[str] = []


class ExpectedAgent(_OpenRecord):
    """The agent that a request expects: each member that it names must be that of the pack."""

    agent_id: str = ""
    """The agent in whose name the request is made."""


class Attachment(_OpenRecord):
    """A file that a request names."""

    name: str


class RecordedRequest(_OpenRecord):
    """A request to an agent."""

    message: str
    intent: str = ""
    params: Json = {}
    user: RequestUser | None = None
    channel: str = ""
    locale: str = ""
    focus: str = ""
    attachments: list[Json] = []
    request_id: str = ""
    session_id: str = ""
    tenant_id: str = ""
    agent: Json = {}
    refused_by: list[str] = []
    message_hash: str = ""


class RecordedEdge(Record):
    """One statement of knowledge."""

    subject: str
    predicate: str
    evidence_ref: str
    observed_at: str
    object: str = ""
    value: Any = None
    valid_from: str = ""
    valid_until: str = ""
    trust: str = ""
    data_class: str = ""
    tenant_id: str = ""
    seq: int = 0


class RecordedMemory(Record):
    """One memory of earlier runs."""

    memory_id: str
    tier: str
    memory_class: str
    entity: str
    predicate: str
    value: object
    promoted_at: str
    user_id: str = ""
    tenant_id: str = ""
    data_class: str = ""
    evidence_refs: list[str]
    rank: float = 0.0


class SessionMessage(_OpenRecord):
    """One message of a conversation."""

    role: str
    content: str


class RecordedSession(_OpenRecord):
    """The conversation that a request continues."""

    messages: list[SessionMessage]
    reasoning: Json = {}
    last_run_failed: bool = False


class FetchedRecords(_OpenRecord):
    """The records that the stores of an agent returned."""

    edges: list[RecordedEdge]
    memories: list[RecordedMemory]
    snapshot_ref: str
    profile: Json | None = None
    session: RecordedSession | None = None


class AgentStart(_OpenRecord):
    """A request to an agent, its limits, and the records that its stores returned."""

    request: RecordedRequest
    limits: dict[str, Number] = {}
    fetched: FetchedRecords
    tenant_id: str | None = None
    role: str | None = None
    """The role in which the agent acts."""
    subjects: list[str] = []
    """The entities of the request."""
    debug: bool = False
    """Whether the caller requested details."""
    mode: str | None = None
    timeout_s: Seconds | None = None
    price_in: Number | None = None
    """Dollars per million tokens of a request."""
    price_out: Number | None = None
    """Dollars per million tokens of a reply."""


class EarlierApproval(Record):
    """An approval that an ended run did not use. A rerun of that run may take it over once."""

    approval_id: str
    origin: ApprovalOrigin
    run_id: str
    """The run that requested the approval. Its id is part of `action_hash`."""
    step_id: str
    capability: str
    bindings: list[str] = []
    """The chain of the call; empty for a skill."""
    gate: str = ""
    action_hash: str
    evidence_hash: str
    expires_at: str
    by: str
    role: str | None = None
    os_uid: int | None = None
    os_user: str | None = None
    signed: bool = False
    """Whether the answer was signed. A signed answer is valid for its own run only, so no rerun uses it."""
    reason: str = ""


class GatewayStart(_OpenRecord):
    """A session of a gateway."""

    session: str = ""
    """The session name that the caller chose; empty for a session of one connection."""
    continues: str = ""
    """The episode of the sealed session that it continues."""


class RecordedStart(RunStarted):
    """The first event of a run, with every part that is read again."""

    # Each of these is narrower than the member of `RunStarted`, which is open.
    pins: RunPins  # type: ignore[assignment]
    selection: dict[str, PinnedChain] = {}
    """By capability the chain that was chosen for the run."""
    contracts: RecordedContracts | None = None  # type: ignore[assignment]
    policy: RecordedPolicy | None = None  # type: ignore[assignment]
    agent: AgentStart | None = None  # type: ignore[assignment]
    approvals: dict[str, EarlierApproval] = {}
    gateway: GatewayStart | None = None  # type: ignore[assignment]


def start_of(started: Event) -> RecordedStart:
    """Return the first event of a run as a record. Nothing is checked: the log already was."""
    return RecordedStart.of(started.payload)

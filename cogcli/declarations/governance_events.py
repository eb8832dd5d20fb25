"""The events of decisions and approvals: one record per type (docs/reference/episode.md#types)."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.event_type import EventType, Payload
from cogcli.declarations.field import ABSENT, always
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Json

_DECISION: Final = ("decision", "verdict", "gate", "rule")
_DECISION_WORDS: Final = (*_DECISION, "reason")
_DECISION_ATTRIBUTES: Final = (*_DECISION, "on_fail", "enforced")
IN_DOUBT: Final = "effect.in-doubt"
"""The rule by which a person decides about a call that may have happened. The decision is final:
`rerun`, `skip`, `fail`, or `done` with its answer."""


class GateDecided(Payload):
    """The decision of a safety gate."""

    event = EventType(
        "gate.decided",
        "governance",
        decides=True,
        words=_DECISION_WORDS,
        attributes=_DECISION_ATTRIBUTES,
    )
    decision: Literal["allow", "audit", "veto"]
    verdict: str | None = None
    gate: str | None = None
    on_fail: str | None = None
    reason: str | None = None
    enforced: bool = always(default=True)
    warning: Literal["safety_gate_warning"] | None = None
    """Of a gate that warns: the name by which readers of the shared format find it."""
    input_hash: str | None = None
    """The hash of the gate's input."""


class PolicyDecided(Payload):
    """The decision of a run's policy, a pack or a person about a call."""

    event = EventType(
        "policy.decided",
        "governance",
        speaker="policy",
        decides=True,
        words=_DECISION_WORDS,
        attributes=_DECISION_ATTRIBUTES,
    )
    decision: Literal["allow", "audit", "veto"]
    verdict: str | None = None
    stage: Literal["permission", "rule", "situation"] | None = None
    """The check that decided."""
    reason: str | None = None
    rule: str | None = None
    pack: str | None = None
    """With several packs: the one whose rule decided, or the primary one."""
    limit: str | None = None
    """The cumulative limit that decided."""
    gate: str | None = None
    enforced: bool = always(default=True)
    approval_mode: str | None = None
    matched: list[str] = ABSENT
    would: list[Json] = ABSENT
    rule_errors: list[Json] = ABSENT
    obligations: list[str] = ABSENT
    reads: object = ABSENT
    capability: str | None = None
    step_id: str | None = None
    input_hash: str | None = None
    input: Json | None = None
    """The arguments that a pack decided about."""
    facts: Json | None = None
    """The facts known at that time about the entities of the request, by slot."""
    unknown: list[str] | None = None
    """Of a call that was denied with its plan: the paths of values that were not known yet, so that rules that read
    them were left out."""
    inside: list[str] | None = None
    """The skill tools of a pack that the call is made in."""
    output: Json | None = None
    """The answer of a call that may have happened, as stated by the person who decides."""
    action_hash: str | None = None
    evidence_hash: str | None = None


class BudgetExceeded(Payload):
    """The budget that a call would exceed, the amount used, and the limit."""

    event = EventType(
        "budget.exceeded",
        "governance",
        speaker="policy",
        words=("key", "used", "limit"),
        attributes=("key", "used", "limit"),
    )
    key: str
    used: int
    limit: int


_APPROVAL_WORDS: Final = ("gate", "reason")
_APPROVAL_ATTRIBUTES: Final = ("approval_id", "capability", "gate", "by", "expires_at")


class ApprovalOrigin(Record):
    """The approval of an ended run that a rerun reused. It has the same id there."""

    episode_id: str
    event: str
    """The id of the person's answer in the log of that episode."""
    granted_at: str


class AnswerSignature(Record):
    """The signature of a person's answer by an SSH key."""

    key: str
    """The fingerprint of the key, `SHA256:...`."""
    value: str
    """The armored signature of the [statement](execution.md#signed)."""


class GateAnswer(Record):
    """The output of a gate."""

    allowed: bool | None = None


class CallEvidence(Record):
    """The evidence against a call, whose hash binds an approval. A safety level alone gives none."""

    gate: str = ""
    when: str = ""
    """Of a gate in a safety block: whether it was called before or after the call."""
    output: Json | None = None
    """The output of the call, if the gate judged it."""
    rule: str = ""
    """Of a pack: the rule that decided."""
    reads: Json = {}
    """Of a pack: the values that its rules read."""
    verdict: str = ""
    policy: str = ""


class Approval(Payload):
    """One exact action that a person decides about."""

    answer: ClassVar[Literal["", "granted", "rejected"]] = ""
    """The answer of the person; empty for a request."""

    approval_id: str
    capability: str | None = None
    binding: str | None = None
    gate: str | None = None
    step_id: str | None = None
    input: Json | None = None
    action_hash: str | None = None
    evidence_hash: str | None = None
    expires_at: str | None = None
    reason: str | None = None
    kind: Literal["gate", "confirmation", "escalation"] | None = None
    proposed_by: str | None = None
    """The skill whose run wants to act, `agent.PACK` for an agent's; of a pack's gate only, as the
    members below."""
    approver_roles: list[str] | None = None
    """The roles that may approve; empty: any role."""
    allow_self: bool | None = None
    rule: str | None = None
    """The rule of a pack that requires the approval."""
    signed: bool | None = None
    """Whether only a signed answer counts."""
    say: str | None = None
    """The text of a pack for the customer."""
    decides_on: list[str] | None = None
    """The members of `input` that the rule read."""
    role: str | None = None
    os_uid: int | None = None
    """The user id of the operating system's user who answered."""
    os_user: str | None = None
    """The name of that user. In contrast, `by` is only what the person states."""
    by: str | None = None
    signature: AnswerSignature | None = None
    deferred: bool | None = None
    """For an answer recorded without continuing the run: the call is evaluated as of the next resumption."""
    taken_from: ApprovalOrigin | None = None
    """For an answer transferred by a rerun: its origin. The event also describes the request, which this log lacks."""


class ApprovalRequested(Approval):
    """A person is requested to decide about an action."""

    event = EventType(
        "approval.requested",
        "governance",
        speaker="system",
        begins=True,
        asks=True,
        one_process_only=True,
        by_timing=True,
        words=_APPROVAL_WORDS,
        attributes=_APPROVAL_ATTRIBUTES,
    )


class ApprovalGranted(Approval):
    """A person approved the action."""

    answer = "granted"
    event = EventType(
        "approval.granted",
        "governance",
        resolves=True,
        one_process_only=True,
        words=_APPROVAL_WORDS,
        attributes=_APPROVAL_ATTRIBUTES,
    )


class ApprovalRejected(Approval):
    """A person rejected the action."""

    answer = "rejected"

    event = EventType(
        "approval.rejected",
        "governance",
        resolves=True,
        one_process_only=True,
        words=_APPROVAL_WORDS,
        attributes=_APPROVAL_ATTRIBUTES,
    )


class FieldSchema(Record):
    """The keywords of a form field's JSON Schema that screens read. Others are left out."""

    type: str = "any"
    enum: list[object] | None = None
    oneOf: list[Json] = []  # the keyword of JSON Schema
    title: str | None = None
    description: str | None = None


class InputField(Record):
    """One field of a form. Its name is a value here, so that no mask of secrets hides its schema."""

    name: str
    accepts: Json
    """The JSON Schema of its value."""
    required: bool = False

    @property
    def choices(self) -> list[object]:
        """The values that the field may take; empty for no list of them."""
        schema = read_record(FieldSchema, self.accepts)
        if schema.enum is not None:
            return schema.enum
        return [each["const"] for each in schema.oneOf if "const" in each]

    @property
    def type_text(self) -> str:
        """Return the type of the field's values in a few words: its choices, else its JSON type, else `any`."""
        if self.choices:
            return " | ".join(map(str, self.choices))
        return read_record(FieldSchema, self.accepts).type

    @property
    def sample(self) -> object:
        """A value of the field's type, as an example to change."""
        if "default" in self.accepts:
            return self.accepts["default"]
        choices = self.choices
        return choices[0] if choices else _SAMPLES.get(self.type_text, "TEXT")


_SAMPLES: Final[dict[str, object]] = {"integer": 1, "number": 1, "boolean": True, "array": []}


class FormSchema(Record):
    """The schema of a form on the wire: an object of plain values."""

    required: list[str] = []
    properties: dict[str, Json] = {}


class InputForm(Record):
    """A form of a service. Every member is foreign data."""

    name: str
    """The name by which the service finds the answer."""
    message: str
    fields: list[InputField]
    url: str | None = None
    """The address that the service asks the person to open. Such a form has no fields."""

    @classmethod
    def fields_of_schema(cls, schema: Json) -> list[InputField]:
        """Return the fields of a form from its schema: an object of plain values."""
        form = read_record(FormSchema, schema)
        return [
            InputField(name=name, accepts=accepts, required=name in form.required)
            for name, accepts in form.properties.items()
        ]

    @property
    def schema(self) -> Json:
        """The JSON Schema of an answer: an object with these fields and no others."""
        return {
            "type": "object",
            "properties": {field.name: field.accepts for field in self.fields},
            "required": [field.name for field in self.fields if field.required],
            "additionalProperties": False,
        }


class InputRequested(Payload):
    """A service asks a person for input: it left a call unfinished, or it asked inside an open call."""

    event = EventType(
        "input.requested",
        "governance",
        speaker="system",
        begins=True,
        one_process_only=True,
        by_timing=True,
        words=("capability", "service"),
        attributes=("input_id", "capability", "service"),
    )
    input_id: str
    step_id: str
    capability: str
    binding: str
    service: str
    attempt: Count
    """The attempt that was left unfinished, or that is open."""
    forms: list[InputForm]
    request_state: str | None = None
    """The state that is returned to the service with the answer."""
    made: AttemptMade | None = None
    """The record of that attempt, without its reply. None inside an open call, whose answer follows at once."""

    @property
    def reason(self) -> str:
        """Why the call is unfinished."""
        return (self.made.message if self.made else None) or ""

    @property
    def sample(self) -> object:
        """An answer with the types of the forms, as an example to change."""
        samples = {
            form.name: {each.name: each.sample for each in form.fields} for form in self.forms
        }
        return samples[self.forms[0].name] if len(samples) == 1 else samples


class InputGiven(Payload):
    """A person's answer to what a service asks for. It approves nothing."""

    event = EventType(
        "input.given",
        "governance",
        one_process_only=True,
        words=("action",),
        attributes=("input_id", "action", "by"),
    )
    input_id: str
    step_id: str
    action: Literal["accept", "decline", "cancel"]
    """`cancel` for an open call alone: the person decided nothing."""
    answers: Json
    """With `accept`: by the name of the form, the values of its fields."""
    by: str
    os_uid: int | None = None
    """The user id of the operating system's user who answered."""
    os_user: str | None = None
    """Their name there."""


PAYLOADS: Final[tuple[type[Payload], ...]] = (
    GateDecided,
    PolicyDecided,
    BudgetExceeded,
    ApprovalRequested,
    ApprovalGranted,
    ApprovalRejected,
    InputRequested,
    InputGiven,
)

"""Capabilities: contracts with typed inputs, typed outputs and safety
(docs/reference/capability.md#keys)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, get_args

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.merge import STRATEGIES
from cogcli.declarations.field import key, place
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.options import CONFORMANCE_PROFILES, TRUST_LEVELS
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import (
    CapabilityId,
    Conformance,
    ServiceTarget,
    Version,
    Words,
)
from cogcli.declarations.value_types import Json

TrustLevel = Annotated[str, SpecLimits(choices=TRUST_LEVELS)]
OnFail = Literal["block", "warn", "degrade", "require_human"]
Role = Literal["perceive", "analyze", "evaluate", "decide", "synthesize", "act", "reflect"]
DataClass = Literal["public", "internal", "pii", "confidential", "restricted"]
"""The lowest first."""
ScopeConstraint = Literal[
    "no_external_network",
    "sandboxed_execution",
    "no_credential_passthrough",
    "read_only",
    "ephemeral_only",
]
EffectClass = Literal["none", "idempotent", "effect", "unknown"]
Merge = Annotated[str, SpecLimits(choices=STRATEGIES)]
CapabilityName = Annotated[Words, SpecLimits(ids="capabilities")]
"""A capability, by its id or an alias."""
StatedSafety = SpecLimits(minimum=1, code="safety.empty")
"""Lists of a safety block are left out rather than empty."""

TRUST_RANKS: Final = {level: rank for rank, level in enumerate(TRUST_LEVELS)}
CONFORMANCE_RANKS: Final = {level: rank for rank, level in enumerate(CONFORMANCE_PROFILES)}
STRICTNESS: Final = ("warn", "degrade", "require_human", "block")
"""The values of `on_fail`, the weakest first."""
GATES: Final = ("mandatory_pre_gates", "mandatory_post_gates")


class Properties(Spec):
    """The behavior of a capability: effects, role and limits."""

    deterministic: bool | None = None
    """Stated for readers; nothing depends on it."""
    side_effects: bool | None = None
    """Whether a call changes something outside: the [effect class](#effects)."""
    idempotent: bool = False
    """Whether repeating an equal call changes nothing further."""
    state_access: Literal["none", "read", "write", "read_write"] | None = None
    """Stated for readers."""
    audit_level: Literal["basic", "standard", "strict"] | None = None
    """Stated for readers."""
    required_conformance_profile: Conformance | None = None
    """The minimum conformance of a [binding](binding.md#eligibility).
    Default: `"experimental"`"""


class CapabilityMetadata(Spec):
    """Keys of a capability outside its contract."""

    other_members = True
    required_conformance_profile: Conformance | None = None
    """Before that of `properties`.
    Default: that of `properties`"""
    status: str | None = None
    """`deprecated`: as `deprecated: true`."""
    examples: list[Any] | None = None
    """[Examples](#examples).
    Default: `[]`"""
    tags: tuple[str, ...] = ()
    """Words to find it by."""
    layer: Any = None
    """Stated for readers."""


class DefaultOutputPath(Spec):
    """The path for a hinted output if a step has no `output` mapping."""

    type: str
    """A type of the [table](#hints)."""
    target: str | None = None
    """Another target.
    Default: that of the type"""
    merge: Merge | None = None
    """Another [merge strategy](execution.md#merge).
    Default: that of the type"""


class CognitiveHints(Spec):
    """The default mapping of a capability's inputs and outputs."""

    role: Role | tuple[Role, ...] | None = None
    """The purpose of the capability. Its first value determines the [kind](#effects) of the steps."""
    consumes: str | tuple[str, ...] | None = None
    """Types, stated for readers."""
    produces: dict[str, DefaultOutputPath] = NOTHING
    """Output to where it is written."""


class Gate(Spec):
    """A capability that is called before or after a call to permit it."""

    shorthand = "capability"
    capability: CapabilityName
    """Who is asked."""
    on_fail: OnFail = "block"
    """The verdict if the gate answers no."""
    input: dict[str, str] | None = None
    """The gate's inputs.
    Default: equal names"""


class Safety(Spec):
    """The safety block of a capability: the conditions for a call, before and after it.

    Its `json` is recorded, and displayed to the approver.
    """

    trust_level: TrustLevel = "sandbox"
    """The least trust of a run that may call it."""
    requires_confirmation: bool = False
    """Whether a person must have confirmed the capability by its id."""
    mandatory_pre_gates: Annotated[tuple[Gate, ...], StatedSafety] = ()
    mandatory_post_gates: Annotated[tuple[Gate, ...], StatedSafety] = ()
    """[Gates](#gates) before and after the call.
    Default: none"""
    allowed_targets: Annotated[tuple[ServiceTarget, ...], StatedSafety] = ()
    """Which services may do it.
    Default: none"""
    scope_constraints: Annotated[tuple[ScopeConstraint, ...], StatedSafety] = ()
    """Constraints on how a call may be made.
    Default: none"""
    data_classification: DataClass | None = None
    """The classification of its data, which [retention](pack.md#retention) depends on."""
    reversible: bool | None = None
    """Whether its effect can be undone."""
    description: str | None = None
    risk_level: str | None = None
    rationale: str | None = None
    """Shown to a person who is asked."""
    mitigations: str | tuple[str, ...] | None = None
    """Shown to a person who is asked."""


class Probe(Spec):
    """The capability that checks whether an earlier call happened."""

    capability: CapabilityName
    """Its id."""


class Capability(Spec):
    """A capability merged with its bases."""

    id: CapabilityId
    """[Its name](spec-files.md#ids), that of its file."""
    version: Version
    """SemVer, quoted."""
    description: Words
    """The purpose of the capability, in one sentence."""
    name: str = ""
    """A title."""
    inputs: Fields = NOTHING
    """The inputs of a call. Null: none.
    Default: required, unless it `extends`"""
    outputs: Fields = NOTHING
    """The outputs of a call. Null: none.
    Default: required, unless it `extends`"""
    properties: Properties = Properties()
    """The behavior of the capability."""
    metadata: Annotated[Json, SpecLimits(keys=CapabilityMetadata)] = NOTHING
    """Metadata. Other keys of yours are allowed here."""
    cognitive_hints: CognitiveHints | None = None
    """[Hints](#hints)."""
    safety: Safety | None = None
    """The [safety block](#safety)."""
    declared_probe: Probe | None = key(default=None, name="probe")
    """[Who knows](#probe) whether a call happened."""
    requires: tuple[CapabilityName, ...] = ()
    """Ids of capabilities that belong to it; an unknown one is W `capability.unknown`."""
    deprecated: bool = False
    """Its use is W `capability.deprecated`."""
    replacement: CapabilityName | None = None
    """The capability to use instead. If it is unknown: W `capability.unknown`."""
    aliases: tuple[CapabilityId, ...] = ()
    """Other ids of the capability, valid everywhere. An alias that equals an id or another alias is `alias.clash`."""
    extends: CapabilityName | None = None
    """Id of a [base](#extends)."""
    status: str | None = None
    """Stated for readers."""
    file: str = place(default="")
    """The path shown to users."""
    reaches: tuple[Capability, ...] = place(default=())
    """Of a skill as a tool: every capability that a run of it may call, gates and probes included."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the purposes of the capability, the main one first."""
        role = self.cognitive_hints.role if self.cognitive_hints else None
        return (role,) if isinstance(role, str) else role or ()

    @property
    def data_class(self) -> str:
        """Return the highest classification of a call's output. For a skill, include everything that it reaches."""
        declared = (
            each.safety.data_classification for each in (self, *self.reaches) if each.safety
        )
        known = [each for each in declared if each is not None]
        return max(known, key=get_args(DataClass).index, default="internal")

    @property
    def answers_allowed(self) -> bool:
        """Whether the capability has the boolean output `allowed`, as a gate must."""
        allowed = self.outputs.get("allowed")
        return allowed is not None and allowed.type == "boolean"

    @property
    def produces(self) -> dict[str, DefaultOutputPath]:
        """Return the hinted path of each output that has one."""
        return self.cognitive_hints.produces if self.cognitive_hints else NOTHING

    @property
    def probe(self) -> str:
        """Return the capability that checks whether a call happened; empty if none is declared."""
        return self.declared_probe.capability if self.declared_probe else ""

    @property
    def effect(self) -> EffectClass:
        """Return the effect class of a call (docs/reference/capability.md#effects)."""
        if self.properties.side_effects is False:
            return "none"
        if self.properties.side_effects:
            return "idempotent" if self.properties.idempotent else "effect"
        return "effect" if self.safety else "unknown"

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Return all gates in calling order."""
        safety = self.safety
        return (*safety.mandatory_pre_gates, *safety.mandatory_post_gates) if safety else ()

    def gate_places(self) -> Iterator[tuple[tuple[str | int, ...], Gate]]:
        """Yield all gates in calling order, each with its path in the capability."""
        for phase in GATES if self.safety else ():
            for index, gate in enumerate(getattr(self.safety, phase)):
                yield ("safety", phase, index), gate

    @property
    def asks(self) -> tuple[str, ...]:
        """Return the capabilities that a call of this one also calls: its gates in order, then its
        probe.
        """
        return (*(gate.capability for gate in self.gates), *((self.probe,) if self.probe else ()))

    @property
    def conformance(self) -> str | None:
        """Return the conformance profile that the capability requires of its bindings, or None."""
        profile: str | None = self.metadata.get("required_conformance_profile")
        return profile or self.properties.required_conformance_profile

    @property
    def is_deprecated(self) -> bool:
        """Return whether its use is reported."""
        status: object = self.metadata.get("status")
        return self.deprecated or status == "deprecated"

    @property
    def step_kind(self) -> str:
        """Return the kind of a step that calls the capability
        (docs/reference/capability.md#effects).

        It follows from the first role, else from the side effects.
        """
        if self.roles:
            return _KIND_OF_ROLE[self.roles[0]]
        return "act" if self.properties.side_effects else "analyze"


_KIND_OF_ROLE: Final = {
    "perceive": "detect",
    "analyze": "analyze",
    "evaluate": "analyze",
    "synthesize": "analyze",
    "decide": "plan",
    "act": "act",
    "reflect": "review",
}

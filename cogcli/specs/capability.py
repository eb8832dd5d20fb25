"""Capabilities: contracts with typed inputs, typed outputs and safety (docs/reference/capability.md#keys)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.options import CONFORMANCE_PROFILES, TRUST_LEVELS
from cogcli.specs.fields import Fields, fields_from, value_from

TRUST_RANKS: Final = {level: rank for rank, level in enumerate(TRUST_LEVELS)}
CONFORMANCE_RANKS: Final = {profile: rank for rank, profile in enumerate(CONFORMANCE_PROFILES)}
ON_FAIL: Final = ("block", "warn", "degrade", "require_human")
STRICTNESS: Final = ("warn", "degrade", "require_human", "block")
"""The values of `on_fail`, the weakest first."""
GATES: Final = ("mandatory_pre_gates", "mandatory_post_gates")
ROLES: Final = ("perceive", "analyze", "evaluate", "decide", "synthesize", "act", "reflect")

EffectClass = Literal["none", "idempotent", "effect", "unknown"]


class Gate(NamedTuple):
    """A capability called before or after a call to permit it. `input` None: equally named fields are passed."""

    capability: str
    on_fail: str = "block"
    input: dict[str, str] | None = None


class Safety(NamedTuple):
    """The safety block of a capability: what must hold before and after a call."""

    trust_level: str = "sandbox"
    requires_confirmation: bool = False
    mandatory_pre_gates: tuple[Gate, ...] = ()
    mandatory_post_gates: tuple[Gate, ...] = ()
    allowed_targets: tuple[str, ...] = ()
    scope_constraints: tuple[str, ...] = ()
    declared: dict[str, Any] = NOTHING
    """The block as written, which is recorded and shown to the approver."""


class Production(NamedTuple):
    """The target of a hinted output when a step has no `output` mapping."""

    type: str
    target: str | None = None
    merge: str | None = None


class Capability(NamedTuple):
    """A capability with its bases folded in. `file` is the path shown to users."""

    id: str
    version: str
    description: str
    inputs: Fields
    outputs: Fields
    properties: dict[str, Any] = NOTHING
    metadata: dict[str, Any] = NOTHING
    roles: tuple[str, ...] = ()
    produces: dict[str, Production] = NOTHING
    safety: Safety | None = None
    probe: str = ""
    """The capability that finds out whether a call of this one happened; empty without one."""
    requires: tuple[str, ...] = ()
    deprecated: bool = False
    replacement: str | None = None
    aliases: tuple[str, ...] = ()
    name: str = ""
    file: str = ""
    reaches: tuple[Capability, ...] = ()
    """Of a skill as a tool: every capability that a run of it may call, gates and probes included."""

    @property
    def effect(self) -> EffectClass:
        """The effect class of a call (docs/reference/capability.md#effects)."""
        declared = self.properties.get("side_effects")
        if declared is False:
            return "none"
        if declared is True:
            return "idempotent" if self.properties.get("idempotent") else "effect"
        return "effect" if self.safety else "unknown"

    @property
    def gates(self) -> tuple[Gate, ...]:
        """All gates in calling order."""
        safety = self.safety
        return (*safety.mandatory_pre_gates, *safety.mandatory_post_gates) if safety else ()

    def gate_places(self) -> Iterator[tuple[tuple[str | int, ...], Gate]]:
        """All gates in calling order, each with its path in the capability."""
        for phase in GATES if self.safety else ():
            for index, gate in enumerate(getattr(self.safety, phase)):
                yield ("safety", phase, index), gate

    @property
    def asks(self) -> tuple[str, ...]:
        """The capabilities called for a call of this one: its gates in order, then its probe."""
        return (*(gate.capability for gate in self.gates), *((self.probe,) if self.probe else ()))

    @property
    def conformance(self) -> str | None:
        """The conformance profile that this capability demands of its bindings, if any."""
        key = "required_conformance_profile"
        return self.metadata.get(key) or self.properties.get(key)

    @property
    def step_kind(self) -> str:
        """The kind of a step calling this (docs/reference/capability.md#effects): by first role, else by side
        effects."""
        if self.roles:
            return _KIND_OF_ROLE[self.roles[0]]
        return "act" if self.properties.get("side_effects") else "analyze"


_KIND_OF_ROLE: Final = {
    "perceive": "detect",
    "analyze": "analyze",
    "evaluate": "analyze",
    "synthesize": "analyze",
    "decide": "plan",
    "act": "act",
    "reflect": "review",
}


def capability_from(raw: dict[str, Any], file: str = "") -> Capability:
    """A capability from its checked mapping, bases already folded in."""
    hints = raw.get("cognitive_hints") or {}
    roles = hints.get("role") or ()
    produces = hints.get("produces") or {}
    return value_from(
        Capability,
        raw,
        inputs=fields_from(raw.get("inputs")),
        outputs=fields_from(raw.get("outputs")),
        roles=(roles,) if isinstance(roles, str) else tuple(roles),
        produces={name: value_from(Production, entry) for name, entry in produces.items()},
        safety=_safety_from(raw.get("safety")),
        probe=(raw.get("probe") or {}).get("capability") or "",
        requires=tuple(raw.get("requires") or ()),
        aliases=tuple(raw.get("aliases") or ()),
        file=file,
    )


def _safety_from(raw: dict[str, Any] | None) -> Safety | None:
    if raw is None:
        return None
    gates = {
        key: tuple(
            Gate(g) if isinstance(g, str) else value_from(Gate, g) for g in raw.get(key) or ()
        )
        for key in GATES
    }
    lists = {key: tuple(raw.get(key) or ()) for key in ("allowed_targets", "scope_constraints")}
    return value_from(Safety, raw, **gates, **lists, declared=raw)


# -- hints: the targets of a step's outputs without an `output` mapping (docs/reference/capability.md#hints) -----------

LIST_TYPES: Final = {
    "Risk": "working.risks",
    "Option": "working.options",
    "Criterion": "working.criteria",
    "Evidence": "working.evidence",
    "Entity": "working.entities",
    "Hypothesis": "working.hypotheses",
    "Uncertainty": "working.uncertainties",
    "Decision": "working.intermediate_decisions",
    "Message": "working.messages",
}
"""Targets that hold lists of objects: a single value becomes a list, an element `v` that is no object `{value: v}`."""
SINGLE_TYPES: Final = {"Summary": "output.summary"}
KEYED_TYPES: Final = ("Score", "Tradeoff", "Plan", "Artifact", "Context")
"""Stored as `working.artifacts.<field>`."""
HINT_TYPES: Final = (*LIST_TYPES, *SINGLE_TYPES, *KEYED_TYPES)


class HintWrite(NamedTuple):
    """One output with its target and merge strategy; `as_list`: whether its value is put into a list."""

    output: str
    target: str
    strategy: str
    as_list: bool


def hinted_writes(capability: Capability, *, as_list: bool = False) -> Iterator[HintWrite]:
    """The writes that a capability's hints declare, each a list if `as_list`.

    An output of an unknown type without a target has none.
    """
    for name, production in capability.produces.items():
        listed, keyed = production.type in LIST_TYPES, production.type in KEYED_TYPES
        known = LIST_TYPES.get(production.type) or SINGLE_TYPES.get(production.type)
        target = production.target or known or (f"working.artifacts.{name}" if keyed else None)
        if target is None or name not in capability.outputs:
            continue
        merges = keyed and capability.outputs[name].type == "object" and not as_list
        strategy = "append" if listed else "deep_merge" if merges else "replace"
        yield HintWrite(name, target, production.merge or strategy, listed)

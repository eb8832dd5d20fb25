"""The shape and the rules of capabilities (docs/reference/capability.md#keys)."""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.merge import STRATEGIES
from cogcli.specs.capability import ON_FAIL, ROLES, TRUST_RANKS
from cogcli.specs.common_shape import CAPABILITY_REF, CONFORMANCE, TARGETS, VERSION, check_version
from cogcli.specs.field_shape import FIELDS, check_fields
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import (
    Boolean,
    Data,
    Keys,
    ListOf,
    MapOf,
    Text,
    either,
    is_ignored,
    record,
    required,
)

CONSTRAINTS: Final = (
    "no_external_network",
    "sandboxed_execution",
    "no_credential_passthrough",
    "read_only",
    "ephemeral_only",
)
DATA_CLASSES: Final = ("public", "internal", "pii", "confidential", "restricted")
_ROLE: Final = Text(choices=ROLES)

_GATES: Final = ListOf(
    either(
        Text(empty=False),
        record(
            {
                "capability": required(Text(empty=False)),
                "on_fail": Text(choices=ON_FAIL),
                "input": MapOf(Text()),
            }
        ),
    ),
    least=1,
    code="safety.empty",
)
_SAFETY: Final[Keys] = {
    "trust_level": Text(choices=tuple(TRUST_RANKS)),
    "requires_confirmation": Boolean(),
    "mandatory_pre_gates": _GATES,
    "mandatory_post_gates": _GATES,
    "allowed_targets": ListOf(Text(choices=TARGETS), least=1, code="safety.empty"),
    "scope_constraints": ListOf(Text(choices=CONSTRAINTS), least=1, code="safety.empty"),
    "data_classification": Text(choices=DATA_CLASSES),
    "reversible": Boolean(),
    "description": Text(),
    "risk_level": Text(),
    "rationale": Text(),
    "mitigations": either(Text(), ListOf(Text())),
}
_PROPERTIES: Final[Keys] = {
    "deterministic": Boolean(),
    "side_effects": Boolean(),
    "idempotent": Boolean(),
    "state_access": Text(choices=("none", "read", "write", "read_write")),
    "audit_level": Text(choices=("basic", "standard", "strict")),
    "required_conformance_profile": CONFORMANCE,
}
_HINTS: Final[Keys] = {
    "role": either(_ROLE, ListOf(_ROLE)),
    "consumes": either(Text(), ListOf(Text())),
    "produces": MapOf(
        record(
            {
                "type": required(Text()),
                "target": Text(),
                "merge": Text(choices=STRATEGIES),
            }
        )
    ),
}
_METADATA: Final = record(
    {
        "required_conformance_profile": CONFORMANCE,
        "status": Text(),
        "examples": ListOf(Data()),
        "tags": ListOf(Text()),
        "layer": Data(),
    },
    open=True,
)
CAPABILITY: Final = record(
    {
        "id": required(CAPABILITY_REF),
        "version": required(VERSION),
        "description": required(Text(empty=False)),
        "name": Text(),
        "inputs": FIELDS,
        "outputs": FIELDS,
        "properties": _PROPERTIES,
        "metadata": _METADATA,
        "cognitive_hints": _HINTS,
        "safety": _SAFETY,
        "probe": {"capability": required(Text(empty=False))},
        "requires": ListOf(Text(empty=False)),
        "deprecated": Boolean(),
        "replacement": Text(empty=False),
        "aliases": ListOf(CAPABILITY_REF),
        "extends": Text(empty=False),
        "status": Text(),
    }
)


def check_capability(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report the faults of a capability by itself that its shape cannot express; bases are checked in the catalog."""
    check_version(raw, report)
    for key in ("inputs", "outputs"):
        if key not in raw and raw.get("extends") is None:
            report.error("key.missing", (), f"key `{key}` is missing")
        check_fields(raw.get(key), key, report)
    safety = raw.get("safety")
    if isinstance(safety, dict) and all(
        is_ignored(key) or value is None for key, value in safety.items()
    ):
        hint = "state what must hold, or remove the block"
        report.error("safety.empty", ("safety",), "`safety` is empty", hint=hint)

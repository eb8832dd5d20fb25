"""The shape and the rules of capabilities (docs/reference/capability.md#keys)."""

from __future__ import annotations

from typing import Any, Final

from cogcli.core.merge import STRATEGIES
from cogcli.specs.capability import ON_FAIL, ROLES, TRUST_RANKS
from cogcli.specs.common_shape import CAPABILITY_REF, CONFORMANCE, TARGETS, VERSION, check_version
from cogcli.specs.field_shape import FIELDS, check_fields
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import (
    Boolean,
    Data,
    Either,
    ListOf,
    MapOf,
    Record,
    Text,
    is_ignored,
    may,
    required_key,
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
    Either(
        (
            Text(empty=False),
            Record(
                {
                    "capability": required_key(Text(empty=False)),
                    "on_fail": may(Text(choices=ON_FAIL)),
                    "input": may(MapOf(Text())),
                }
            ),
        )
    ),
    least=1,
    code="safety.empty",
)
SAFETY: Final = Record(
    {
        "trust_level": may(Text(choices=tuple(TRUST_RANKS))),
        "requires_confirmation": may(Boolean()),
        "mandatory_pre_gates": may(_GATES),
        "mandatory_post_gates": may(_GATES),
        "allowed_targets": may(ListOf(Text(choices=TARGETS), least=1, code="safety.empty")),
        "scope_constraints": may(ListOf(Text(choices=CONSTRAINTS), least=1, code="safety.empty")),
        "data_classification": may(Text(choices=DATA_CLASSES)),
        "reversible": may(Boolean()),
        "description": may(Text()),
        "risk_level": may(Text()),
        "rationale": may(Text()),
        "mitigations": may(Either((Text(), ListOf(Text())))),
    }
)
_PROPERTIES: Final = Record(
    {
        "deterministic": may(Boolean()),
        "side_effects": may(Boolean()),
        "idempotent": may(Boolean()),
        "state_access": may(Text(choices=("none", "read", "write", "read_write"))),
        "audit_level": may(Text(choices=("basic", "standard", "strict"))),
        "required_conformance_profile": may(CONFORMANCE),
    }
)
_HINTS: Final = Record(
    {
        "role": may(Either((_ROLE, ListOf(_ROLE)))),
        "consumes": may(Either((Text(), ListOf(Text())))),
        "produces": may(
            MapOf(
                Record(
                    {
                        "type": required_key(Text()),
                        "target": may(Text()),
                        "merge": may(Text(choices=STRATEGIES)),
                    }
                )
            )
        ),
    }
)
_METADATA: Final = Record(
    {
        "required_conformance_profile": may(CONFORMANCE),
        "status": may(Text()),
        "examples": may(ListOf(Data())),
        "tags": may(ListOf(Text())),
        "layer": may(Data()),
    },
    open=True,
)
CAPABILITY: Final = Record(
    {
        "id": required_key(CAPABILITY_REF),
        "version": required_key(VERSION),
        "description": required_key(Text(empty=False)),
        "name": may(Text()),
        "inputs": may(FIELDS),
        "outputs": may(FIELDS),
        "properties": may(_PROPERTIES),
        "metadata": may(_METADATA),
        "cognitive_hints": may(_HINTS),
        "safety": may(SAFETY),
        "probe": may(Record({"capability": required_key(Text(empty=False))})),
        "requires": may(ListOf(Text(empty=False))),
        "deprecated": may(Boolean()),
        "replacement": may(Text(empty=False)),
        "aliases": may(ListOf(CAPABILITY_REF)),
        "extends": may(Text(empty=False)),
        "status": may(Text()),
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
    if isinstance(safety, dict) and all(is_ignored(key) or value is None for key, value in safety.items()):
        hint = "state what must hold, or remove the block"
        report.error("safety.empty", ("safety",), "`safety` is empty", hint=hint)

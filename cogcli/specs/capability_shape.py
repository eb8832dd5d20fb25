"""The shape and the rules of capabilities (docs/reference/capability.md#keys)."""

from __future__ import annotations

from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.declarations.capability_spec import Capability
from cogcli.specs.common_rules import check_version
from cogcli.specs.field_shape import check_fields, refuse_file_defaults
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import is_ignored
from cogcli.specs.shape_of_spec import shape_of_spec
from cogcli.specs.unchecked import object_at, value_at

CAPABILITY: Final = shape_of_spec(Capability)


def check_capability(raw: Json, report: ProblemReport) -> None:
    """Report faults of a single capability that its shape cannot express. The catalog checks its bases."""
    check_version(raw, report)
    for key in ("inputs", "outputs"):
        if key not in raw and value_at(raw, "extends") is None:
            report.error("key.missing", (), f"key `{key}` is missing")
        check_fields(object_at(raw, key), key, report)
    refuse_file_defaults(object_at(raw, "inputs"), report)
    safety = value_at(raw, "safety")
    if isinstance(safety, dict) and _is_empty(safety):
        hint = "state what must hold, or remove the block"
        report.error("safety.empty", ("safety",), "`safety` is empty", hint=hint)


def _is_empty(members: Json) -> bool:
    return all(is_ignored(name) or value is None for name, value in members.items())

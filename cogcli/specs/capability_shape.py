"""The shape and the rules of capabilities (docs/reference/capability.md#keys)."""

from __future__ import annotations

from typing import Any, Final

from cogcli.declarations.capability_spec import Capability
from cogcli.specs.common_rules import check_version
from cogcli.specs.field_shape import check_fields
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import is_ignored
from cogcli.specs.shape_of_spec import shape_of_spec

CAPABILITY: Final = shape_of_spec(Capability)


def check_capability(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report faults of a single capability that its shape cannot express. The catalog checks its bases."""
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

"""Contract examples in a capability's metadata, as far as they can be checked without a call
(docs/reference/capability.md#examples)."""

from __future__ import annotations

from typing import Any

from cogcli.core.problems import KeyPath, suggestion
from cogcli.specs.capability import Capability
from cogcli.specs.fields import FieldSpec, fit_values
from cogcli.specs.problem_report import ProblemReport


def check_examples(capability: Capability, report: ProblemReport, subject: str) -> None:
    """`example.contract`: report inputs and outputs of executable examples that do not fit the capability."""
    for index, example in enumerate(capability.metadata.get("examples") or ()):
        if not isinstance(example, dict):
            continue
        key = "inputs" if "inputs" in example else "input"
        if key not in example:
            continue
        path: KeyPath = ("metadata", "examples", index)
        said = f"{subject}: example {index + 1}"
        _check_values(example[key], capability.inputs, (*path, key), report, said, whole=True)
        if example.get("outputs") is not None:
            _check_values(
                example["outputs"], capability.outputs, (*path, "outputs"), report, said, whole=False
            )
        if example.get("match") not in (None, "exact", "shape"):
            message = f"{said}: match `{example['match']}`, expected `exact` or `shape`"
            report.warn("example.contract", (*path, "match"), message)


def _check_values(
    values: Any, fields: dict[str, FieldSpec], path: KeyPath, report: ProblemReport, said: str, *, whole: bool
) -> None:
    """Report values that do not fit their fields. `whole`: whether required fields must be present."""
    if not isinstance(values, dict):
        report.warn("example.contract", path, f"{said}: expected an object of values")
        return
    for name in values:
        if name not in fields:
            message = f"{said}: unknown field `{name}`"
            report.warn("example.contract", (*path, name), message, hint=suggestion(name, fields), key=True)
    asked = fields if whole else {name: field for name, field in fields.items() if name in values}
    for violation in fit_values(asked, values)[1]:
        place = [int(part) if part.isdecimal() else part for part in violation.place.split("/")]
        report.warn("example.contract", (*path, *place), f"{said}: {violation.message}")

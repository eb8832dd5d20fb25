"""Contract examples in a capability's metadata, as far as they can be checked without a call
(docs/reference/capability.md#examples)."""

from __future__ import annotations

from typing import Any

from cogcli.core.problems import suggestion
from cogcli.specs.capability import Capability
from cogcli.specs.fields import Fields, fit_values
from cogcli.specs.problem_report import ProblemReport


def check_examples(capability: Capability, report: ProblemReport) -> None:
    """`example.contract`: report inputs and outputs of executable examples that do not fit the capability."""
    for index, example in enumerate(capability.metadata.get("examples") or ()):
        if not isinstance(example, dict):
            continue
        key = "inputs" if "inputs" in example else "input"
        if key not in example:
            continue
        part = report.inner(f"example {index + 1}", "metadata", "examples", index)
        _check_values(key, example[key], capability.inputs, part, whole=True)
        if example.get("outputs") is not None:
            _check_values("outputs", example["outputs"], capability.outputs, part, whole=False)
        if example.get("match") not in (None, "exact", "shape"):
            message = f"match `{example['match']}`, expected `exact` or `shape`"
            part.warn("example.contract", ("match",), message)


def _check_values(key: str, values: Any, fields: Fields, report: ProblemReport, *, whole: bool) -> None:
    """Report values that do not fit their fields. `whole`: whether required fields must be present."""
    if not isinstance(values, dict):
        report.warn("example.contract", (key,), "expected an object of values")
        return
    for name in values:
        if name not in fields:
            message, hint = f"unknown field `{name}`", suggestion(name, fields)
            report.warn("example.contract", (key, name), message, hint=hint, key=True)
    given = fields if whole else {name: field for name, field in fields.items() if name in values}
    for violation in fit_values(given, values)[1]:
        place = (int(part) if part.isdecimal() else part for part in violation.place.split("/"))
        report.warn("example.contract", (key, *place), violation.message)

"""The shape and the rules of field specifications (docs/reference/spec-files.md#fields)."""

from __future__ import annotations

from typing import Final

from cogcli.base.jsonvalue import Json, kind_of, preview
from cogcli.base.schema.limits import faults
from cogcli.declarations.field_spec import FieldSpec
from cogcli.specs.fields import TYPES, fit_values, has_type
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import is_ignored
from cogcli.specs.shape_of_spec import shape_of_spec
from cogcli.specs.unchecked import list_at, value_at

FIELD: Final = shape_of_spec(FieldSpec)


def check_fields(fields: Json, side: str, report: ProblemReport) -> None:
    """Report the faults of all fields in the mapping at the key `side`."""
    for name, field in fields.items():
        if isinstance(field, dict) and not is_ignored(name):
            inner = report.inner(f"`{side}.{name}`", side, name)
            _check_field(field, f"{side}.{name}", report, inner)
            if side == "outputs":
                _refuse_files(field, inner)


def _check_field(field: Json, name: str, spec_report: ProblemReport, report: ProblemReport) -> None:
    """Report the faults of a field in `report`, and the faults of its elements in `spec_report`."""
    type = value_at(field, "type")
    if type not in TYPES:
        return
    problem_count = len(report.problems)
    _check_items(field, name, spec_report, report)
    for index, value in enumerate(list_at(field, "enum")):
        if not has_type(value, type):
            message = f"enum value is {preview(value)}, expected {type}"
            report.error("field.enum", ("enum", index), message)
    schema = value_at(field, "schema")
    if schema is not None:
        _check_schema(schema, report)
    has_default = value_at(field, "default") is not None
    if has_default and len(report.problems) == problem_count and _is_well_formed(field):
        _check_default(FieldSpec.of(field), report)


def refuse_file_defaults(fields: Json, report: ProblemReport) -> None:
    """Report each default of a file among the inputs of a capability: only a skill that is run has files."""
    for name, field in fields.items():
        if value_at(field, "type") == "file" and value_at(field, "default") is not None:
            message = "a file of a capability has no default"
            hint = "give the default to the input of the skill"
            inner = report.inner(f"`inputs.{name}`", "inputs", name)
            inner.error("field.file", ("default",), message, hint=hint)


def _refuse_files(field: Json, report: ProblemReport) -> None:
    """Report an output that is a file, or a list of files: only inputs of a run name files."""
    paths: list[tuple[str, ...]] = [("type",), ("items", "type")]
    for path in paths:
        if value_at(field, *path) == "file":
            hint = "give its content, or the path as a string"
            report.error("field.file", path, "an output is a file", hint=hint)


def _check_default(field: FieldSpec, report: ProblemReport) -> None:
    if field.type == "file":
        _check_file_default(field.default, report)
        return
    _, violations = fit_values({"default": field}, {"default": field.default})
    for violation in violations[:1]:
        reason = violation.message.partition(": ")[2] or violation.message
        report.error("field.default", ("default",), f"default: {reason}")


def _check_file_default(default: object, report: ProblemReport) -> None:
    """Report a default that is not a path below the folder of the project."""
    parts = default.replace("\\", "/").split("/") if isinstance(default, str) else [""]
    if not all(parts) or ".." in parts or "\0" in parts[-1]:
        message = f"default: expected a path below the project, found {preview(default)}"
        report.error("field.default", ("default",), message)


def _check_items(field: Json, name: str, spec_report: ProblemReport, report: ProblemReport) -> None:
    items = value_at(field, "items")
    if items is None:
        return
    if field["type"] != "array":
        message = f"`items` on type {field['type']}, expected type array"
        report.error("field.items", ("items",), message, key=True)
    if not isinstance(items, dict):
        return
    for key in ("required", "default"):
        if items.get(key) is not None:
            message = f"`{key}` has no meaning for an element"
            report.error("field.items", ("items", key), message, hint="remove it", key=True)
    inner = report.part(f"{spec_report.subject}: `{name}.items`", "items")
    _check_field(items, f"{name}.items", spec_report, inner)


def _check_schema(schema: object, report: ProblemReport) -> None:
    if not isinstance(schema, dict | bool):
        message = f"schema is {preview(schema)}, expected object or boolean"
        report.error("field.schema", ("schema",), message)
        return
    for where, reason in faults(schema):
        report.error("field.schema", ("schema", *where), reason)


def _is_well_formed(field: object) -> bool:
    """Return whether a FieldSpec can be built from a value. The shape check reports the other values."""
    if value_at(field, "type") not in TYPES:
        return False
    if kind_of(value_at(field, "enum")) not in ("list", "null"):
        return False
    items = value_at(field, "items")
    return items is None or _is_well_formed(items)

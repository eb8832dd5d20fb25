"""The shape and the rules of field specifications (docs/reference/spec-files.md#fields)."""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.jsonvalue import kind_of, list_of, object_of, preview
from cogcli.base.schema.limits import faults
from cogcli.declarations.field_spec import FieldSpec
from cogcli.specs.fields import TYPES, fit_values, has_type
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import is_ignored
from cogcli.specs.shape_of_spec import shape_of_spec

FIELD: Final = shape_of_spec(FieldSpec)


def check_fields(raw: Any, side: str, report: ProblemReport) -> None:
    """Report the faults of every field in the mapping of fields at the key `side`."""
    for name, field in object_of(raw).items():
        if isinstance(field, dict) and not is_ignored(name):
            _check_field(
                field, f"{side}.{name}", report, report.inner(f"`{side}.{name}`", side, name)
            )


def _check_field(
    field: dict[str, Any], name: str, whole: ProblemReport, report: ProblemReport
) -> None:
    """Report the faults of a field, and of its elements in `whole`, the report of the spec."""
    type: Any = field.get("type")
    if type not in TYPES:
        return
    before = len(report.problems)
    _check_items(field, name, whole, report)
    for index, value in enumerate(list_of(field.get("enum"))):
        if not has_type(value, type):
            message = f"enum value is {preview(value)}, expected {type}"
            report.error("field.enum", ("enum", index), message)
    if field.get("schema") is not None:
        _check_schema(field["schema"], report)
    if (
        field.get("default") is not None
        and len(report.problems) == before
        and _is_well_formed(field)
    ):
        _, violations = fit_values({"default": FieldSpec.of(field)}, {"default": field["default"]})
        for violation in violations[:1]:
            reason = violation.message.partition(": ")[2] or violation.message
            report.error("field.default", ("default",), f"default: {reason}")


def _check_items(
    field: dict[str, Any], name: str, whole: ProblemReport, report: ProblemReport
) -> None:
    items = field.get("items")
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
    inner = report.part(f"{whole.subject}: `{name}.items`", "items")
    _check_field(items, f"{name}.items", whole, inner)


def _check_schema(schema: Any, report: ProblemReport) -> None:
    if not isinstance(schema, dict | bool):
        message = f"schema is {preview(schema)}, expected object or boolean"
        report.error("field.schema", ("schema",), message)
        return
    for where, reason in faults(schema):
        report.error("field.schema", ("schema", *where), reason)


def _is_well_formed(field: dict[str, Any]) -> bool:
    """Return whether a FieldSpec can be built. The shape check reports malformed fields."""
    items = field.get("items")
    enum = field.get("enum")
    return (enum is None or kind_of(enum) == "list") and (
        items is None
        or (isinstance(items, dict) and items.get("type") in TYPES and _is_well_formed(items))
    )

"""The shape and the rules of field specifications (docs/reference/spec-files.md#fields)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cogcli.core.jsonvalue import kind_of, preview
from cogcli.specs.fields import TYPES, field_from, fit_values, has_type
from cogcli.specs.id_grammar import FIELD_NAME
from cogcli.specs.shape import (
    Boolean,
    Data,
    ListOf,
    MapOf,
    Record,
    RecordKey,
    Text,
    is_ignored,
    may,
    required_key,
)

if TYPE_CHECKING:
    from cogcli.core.problems import KeyPath
    from cogcli.specs.problem_report import ProblemReport

_KEYS: Final[dict[str, RecordKey]] = {
    "type": required_key(Text(choices=TYPES)),
    "required": may(Boolean()),
    "default": may(Data()),
    "description": may(Text()),
    "enum": may(ListOf(Data(), least=1, code="field.enum")),
    "schema": may(Data()),
}
FIELD: Final = Record(_KEYS)
_KEYS["items"] = may(FIELD)
FIELD_ID: Final = Text(
    pattern=FIELD_NAME,
    code="id.format",
    expected="a letter or `_`, then at most 63 letters, digits, `_` or `-`",
)
FIELDS: Final = MapOf(FIELD, name=FIELD_ID)


def check_fields(raw: Any, path: KeyPath, report: ProblemReport, subject: str) -> None:
    """Report the faults of every field in a mapping of fields."""
    if not isinstance(raw, dict):
        return
    for name, field in raw.items():
        if isinstance(field, dict) and not is_ignored(name):
            said = f"{subject}: `{path[-1]}.{name}`"
            _check_field(field, (*path, name), report, said)


def _check_field(field: dict[str, Any], path: KeyPath, report: ProblemReport, said: str) -> None:
    type = field.get("type")
    if type not in TYPES:
        return
    before = len(report.problems)
    _check_items(field, path, report, said)
    if isinstance(field.get("enum"), list):
        _check_enum(field["enum"], type, (*path, "enum"), report, said)
    if field.get("schema") is not None:
        _check_schema(field["schema"], (*path, "schema"), report, said)
    if field.get("default") is not None and len(report.problems) == before and _is_well_formed(field):
        _check_default(field, (*path, "default"), report, said)


def _check_items(field: dict[str, Any], path: KeyPath, report: ProblemReport, said: str) -> None:
    items = field.get("items")
    if items is None:
        return
    if field["type"] != "array":
        message = f"{said}: `items` on type {field['type']}, expected type array"
        report.error("field.items", (*path, "items"), message, key=True)
    if not isinstance(items, dict):
        return
    for key in ("required", "default"):
        if items.get(key) is not None:
            message = f"{said}: `{key}` has no meaning for an element"
            report.error("field.items", (*path, "items", key), message, hint="remove it", key=True)
    _check_field(items, (*path, "items"), report, f"{said[:-1]}.items`")


def _check_enum(enum: list[Any], type: str, path: KeyPath, report: ProblemReport, said: str) -> None:
    for index, value in enumerate(enum):
        if not has_type(value, type):
            message = f"{said}: enum value is {preview(value)}, expected {type}"
            report.error("field.enum", (*path, index), message)


def _check_schema(schema: Any, path: KeyPath, report: ProblemReport, said: str) -> None:
    from cogcli.schema.limits import faults

    if not isinstance(schema, dict | bool):
        message = f"{said}: schema is {preview(schema)}, expected object or boolean"
        report.error("field.schema", path, message)
        return
    for where, reason in faults(schema):
        report.error("field.schema", (*path, *where), f"{said}: {reason}")


def _check_default(field: dict[str, Any], path: KeyPath, report: ProblemReport, said: str) -> None:
    spec = field_from(field)
    _, violations = fit_values({"default": spec}, {"default": field["default"]})
    for violation in violations[:1]:
        reason = violation.message.partition(": ")[2] or violation.message
        report.error("field.default", path, f"{said}: default: {reason}")


def _is_well_formed(field: dict[str, Any]) -> bool:
    """Whether a FieldSpec can be built; the shape check reports what is malformed."""
    items = field.get("items")
    enum = field.get("enum")
    return (enum is None or kind_of(enum) == "list") and (
        items is None or (isinstance(items, dict) and items.get("type") in TYPES and _is_well_formed(items))
    )

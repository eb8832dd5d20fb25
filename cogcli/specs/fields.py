"""Field specifications: the types of inputs and outputs, and checks of values (docs/reference/spec-files.md#fields)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from cogcli.base.jsonvalue import MAX_INTEGER, Json, deep_copy, equal, kind_of, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.pinned_file import read_pinned_file
from cogcli.declarations.field_spec import Fields, FieldSpec, FieldType

TYPES: Final = get_args(FieldType)


class Violation(NamedTuple):
    """A difference between a value and its declaration. `kind` is missing, unknown, type, enum or schema."""

    kind: str
    place: str
    message: str


def fields_from(raw: Json | None) -> Fields:
    """Return the fields in a checked mapping. None has no fields."""
    return {name: FieldSpec.of(spec) for name, spec in (raw or {}).items()}


def fit_values(fields: Fields, values: Json) -> tuple[Json, list[Violation]]:
    """Return the declared values, with defaults applied and integers normalized, and all violations.

    Undeclared names are dropped. For an optional field null means absent, except for the type `any`. The default of a
    file is a path: it counts only where a run begins (`run/file_inputs.py`). The result shares unchanged lists and
    dicts with `values`.
    """
    kept: Json = {}
    violations: list[Violation] = []
    for name, field in fields.items():
        value = values.get(name)
        if value is None and not (field.type == "any" and name in values):
            if field.default is not None and field.type != "file":
                kept[name] = deep_copy(field.default)
            elif field.required:
                violations.append(Violation("missing", name, f"`{name}`: required, not given"))
        else:
            kept[name] = _fit_value(field, value, name, violations)
    return kept, violations


def find_plain_types(fields: Fields) -> dict[str, type] | None:
    """Return the types for `are_plain` in the order of these fields. Return None if a field has a limit other than its
    type.
    """
    types: dict[str, type] = {}
    for name, field in fields.items():
        exact = _TYPES_OF_VALUES.get(field.type)
        if exact is None or (field.enum, field.items, field.schema) != (None, None, None):
            return None
        types[name] = exact
    return types


def are_plain(values: Json, types: Mapping[str, type] | None) -> bool:
    """Return whether `fit_values` would return these values unchanged, as for most calls.

    False means that `fit_values` must decide. `types` is the result of `find_plain_types`.
    """
    if types is None or [*values] != [*types]:
        return False
    for name, value in values.items():
        exact = type(value)
        if exact is not types[name] or (exact is int and abs(value) > MAX_INTEGER):
            return False
    return True


def _fit_value(field: FieldSpec, value: Any, place: str, violations: list[Violation]) -> Any:
    """Return the normalized value. Violations are appended to `violations`."""
    if not has_type(value, field.type):
        message = f"`{place}`: expected {field.type}, found {preview(value)}"
        violations.append(Violation("type", place, message))
        return value
    if field.type == "integer" and type(value) is float:
        value = int(value)
    if field.enum is not None and not any(equal(value, option) for option in field.enum):
        violations.append(_explain_choices(field.enum, value, place))
    if field.items is not None and type(value) is list:
        value = [
            _fit_value(field.items, item, f"{place}/{n}", violations)
            for n, item in enumerate(value)
        ]
    if field.schema is not None:
        violations += _find_schema_violations(field.schema, value, place)
    return value


def _explain_choices(choices: list[Any], value: object, place: str) -> Violation:
    options = ", ".join(preview(option) for option in choices[:10])
    message = f"`{place}`: expected one of {options}, found {preview(value)}"
    return Violation("enum", place, message)


def _find_schema_violations(schema: object, value: object, place: str) -> Iterator[Violation]:
    from cogcli.base.schema.validator import errors

    for where, message in errors(schema, value):
        full = f"{place}/{where}" if where else place
        yield Violation("schema", full, f"`{full}`: {message}")


def has_type(value: Any, declared_type: str) -> bool:
    """Return whether a JSON value has a declared type. A boolean is not a number, 3.0 is an integer, 1e300 is not."""
    exact = type(value)
    if exact is int and declared_type == "integer":
        return bool(-MAX_INTEGER <= value <= MAX_INTEGER)
    if declared_type == "any" or exact is _EXACT_TYPES.get(declared_type):
        return True
    if declared_type == "file":
        return read_pinned_file(value) is not None
    kind = kind_of(value)
    if declared_type == "integer":
        return (
            kind == "number" and -MAX_INTEGER <= value <= MAX_INTEGER and float(value).is_integer()
        )
    return kind == _KIND_OF_TYPE[declared_type]


_EXACT_TYPES: Final = {"string": str, "boolean": bool, "array": list, "object": dict}
"""The types of most values, which are compared first."""
_TYPES_OF_VALUES: Final = {**_EXACT_TYPES, "integer": int}
"""The types of the values that `fit_values` returns unchanged if they have no other limit."""
_KIND_OF_TYPE: Final = {
    "string": "text",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "object",
}

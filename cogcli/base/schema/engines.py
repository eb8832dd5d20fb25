"""Adapters for the two schema engines, so that both report the same breaches at the same places.

Neither engine loads anything: references stay inside the schema (`normalizer`), the registry is
empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema.messages import SchemaViolation

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError as RustError

DIALECT: Final = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
"""The meta-schema of 2020-12, which both engines contain."""


class CompiledSchema(NamedTuple):
    """A schema compiled for an engine.

    `fits(value)` returns whether a value fits. `breaches(value, first)` yields all breaches, or the
    first one.
    """

    fits: Callable[[object], bool]
    breaches: Callable[[object, bool], Iterator[SchemaViolation]]


class SchemaRejected(Exception):
    """The engine refuses a schema."""


class _PythonError(Protocol):
    """The parts of a jsonschema error that this module reads.

    `concerned` is added here: the keys that the error is about.
    """

    validator: str
    validator_value: Any
    instance: Any
    context: list[_PythonError]
    concerned: str | list[str]

    @property
    def absolute_path(self) -> Iterable[str | int]: ...


class _PythonValidator(Protocol):
    """The methods of a jsonschema validator that this module calls."""

    def is_type(self, value: object, type: str) -> bool: ...
    def is_valid(self, value: object) -> bool: ...
    def evolve(self, *, schema: object) -> _PythonValidator: ...


_Check = Callable[[_PythonValidator, Any, Any, Json], Iterator[_PythonError]]
"""A keyword of jsonschema: its validator, the keyword's value, the checked value, and the schema."""


def compile_python(schema: object) -> CompiledSchema:
    """Return a schema compiled for jsonschema. Raise SchemaRejected."""
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    validator = _extend_python_validator()
    registry: Registry[object] = Registry()
    if schema is DIALECT:
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        registry = REGISTRY
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        raise SchemaRejected from error
    engine = validator(schema, registry=registry)

    def breaches(value: object, first: bool) -> Iterator[SchemaViolation]:
        for error in islice(engine.iter_errors(value), 1 if first else None):
            yield from _python_breaches(error)

    return CompiledSchema(engine.is_valid, breaches)


def _extend_python_validator() -> Any:
    """Return the validator class of jsonschema with corrected keyword checks."""
    from jsonschema import Draft202012Validator, validators

    theirs: _Check = Draft202012Validator.VALIDATORS["additionalProperties"]

    def additional_properties(
        validator: _PythonValidator, allowed: object, value: Json, schema: Json
    ) -> Iterator[_PythonError]:
        for error in theirs(validator, allowed, value, schema):
            if allowed is False:
                error.concerned = _unknown_keys(value, schema)
            yield error

    own: dict[str, _Check] = {
        "multipleOf": _multiple_of,
        "propertyNames": _property_names,
        "uniqueItems": _unique_items,
        "additionalProperties": additional_properties,
    }
    return validators.extend(Draft202012Validator, own)


def _unknown_keys(value: Json, schema: Json) -> list[str]:
    """Return the keys of an object that its schema does not name."""
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [
        key for key in value if key not in known and not any(re.search(p, key) for p in patterns)
    ]


def _multiple_of(
    validator: _PythonValidator, divisor: float, value: object, schema: Json
) -> Iterator[_PythonError]:
    """Check `multipleOf` in decimal: 0.3 is a multiple of 0.1, unlike in the library's float
    division.
    """
    from jsonschema import ValidationError

    if not validator.is_type(value, "number"):
        return
    if (Fraction(repr(value)) / Fraction(repr(divisor))).denominator != 1:
        yield ValidationError("")


def _unique_items(
    validator: _PythonValidator, unique: bool, value: list[object], schema: Json
) -> Iterator[_PythonError]:
    """Check `uniqueItems` in linear time. The library would compare every pair."""
    from jsonschema import ValidationError

    if not unique or not validator.is_type(value, "array"):
        return
    if len(set(map(_hashable_key, value))) < len(value):
        yield ValidationError("")


def _hashable_key(value: object) -> Hashable:
    """Return a hashable key that is equal for equal JSON values: 1 equals 1.0, but not true."""
    if isinstance(value, dict):
        return dict, frozenset((key, _hashable_key(each)) for key, each in value.items())
    if isinstance(value, list):
        return list, tuple(map(_hashable_key, value))
    return isinstance(value, bool), value


def _property_names(
    validator: _PythonValidator, names: object, value: Json, schema: Json
) -> Iterator[_PythonError]:
    """Check `propertyNames` and record each key that does not fit."""
    from jsonschema import ValidationError

    if validator.is_type(value, "object"):
        validator_of_name = validator.evolve(schema=names)
        for name in value:
            if not validator_of_name.is_valid(name):
                error = ValidationError("")
                error.concerned = name
                yield error


def _python_breaches(error: _PythonError) -> Iterator[SchemaViolation]:
    """Yield the breaches that an error of jsonschema reports."""
    place = tuple(error.absolute_path)
    keyword, limit, value = error.validator, error.validator_value, error.instance
    match keyword:
        case "required":
            yield from _missing_keys(place, limit, value)
        case "dependentRequired":
            for key, names in limit.items():
                if key in value:
                    yield from _missing_keys(place, names, value)
        case "propertyNames" | "additionalProperties":
            yield SchemaViolation(place, keyword, error.concerned)
        case "oneOf":
            yield SchemaViolation(place, keyword, not error.context)
        case _:
            yield SchemaViolation(place, _KEYWORD_ALIASES.get(keyword, keyword), limit)


def _missing_keys(
    place: tuple[str | int, ...], names: Iterable[str], value: Json
) -> Iterator[SchemaViolation]:
    return (SchemaViolation(place, "required", name) for name in names if name not in value)


_KEYWORD_ALIASES: Final = {
    "minContains": "contains",
    "maxContains": "contains",
    "falseSchema": "not",
}


def compile_rust(schema: Any) -> CompiledSchema:
    """Return a schema compiled for jsonschema-rs with its linear-time engine for patterns.

    Raise SchemaRejected.
    """
    import jsonschema_rs

    try:
        engine = jsonschema_rs.Draft202012Validator(schema, **rust_options())
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SchemaRejected from error

    def breaches(value: Any, first: bool) -> Iterator[SchemaViolation]:
        if engine.is_valid(value):
            return
        found: list[SchemaViolation] = []
        if first:  # the library creates all errors together, and each takes far longer than a check
            try:
                engine.validate(value)
            except jsonschema_rs.ValidationError as error:
                found = _drop_false_alarms([error])
        for breach in found or _drop_false_alarms(engine.iter_errors(value)):
            yield breach._replace(place=_exact_place(value, breach.place))

    return CompiledSchema(engine.is_valid, breaches)


def _exact_place(value: Any, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the path with object keys as text.

    jsonschema-rs 0.60 reports keys of digits as numbers.
    """
    place: list[str | int] = []
    for part in path:
        own = str(part) if isinstance(value, dict) else part
        place.append(own)
        value = value[own]
    return tuple(place)


def _drop_false_alarms(found: Iterable[RustError]) -> list[SchemaViolation]:
    """Return the actual violations. If a schema has `additionalProperties: false`, jsonschema-rs 0.60 also reports
    present keys as missing.
    """
    pairs = [(_rust_breach(error), error.instance) for error in found]
    return [breach for breach, value in pairs if not _is_false_alarm(breach, value)]


def _is_false_alarm(breach: SchemaViolation, value: Any) -> bool:
    return breach.keyword == "required" and breach.limit in value


def rust_options() -> Json:
    """Return options that fetch nothing, assert no format, and run patterns without backtracking."""
    import jsonschema_rs

    return {
        "validate_formats": False,
        "offline": True,
        "pattern_options": jsonschema_rs.RegexOptions(),
    }


def _rust_breach(error: RustError) -> SchemaViolation:
    """Return the breach that an error of jsonschema-rs reports."""
    import jsonschema_rs

    place, kind = tuple(error.instance_path), error.kind
    keyword = kind.name
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.PropertyNames):
        return SchemaViolation(place, keyword, kind.error.instance)
    if keyword == "oneOf":
        return SchemaViolation(place, keyword, type(kind).__name__.endswith("OneOfMultipleValid"))
    if keyword == "anyOf":
        return SchemaViolation(place, keyword, None)
    if keyword == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
        return SchemaViolation(
            place, "additionalProperties", None
        )  # no key is known, so the engine lists none
    members = kind.as_dict()
    return SchemaViolation(
        place, _KEYWORD_ALIASES.get(keyword, keyword), next(iter(members.values()), None)
    )

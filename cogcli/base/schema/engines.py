"""The two engines that apply a schema, adapted to give the same breaches at the same places.

Neither loads anything: references stay inside the schema (`normalizer`), the registry is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Any, Final, NamedTuple

from cogcli.base.schema.messages import Breach

DIALECT: Final = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
"""The meta-schema of 2020-12, which both engines contain."""


class CompiledSchema(NamedTuple):
    """A schema in an engine. `fits(value)`: whether a value fits; `breaches(value, first)`: all or the first."""

    fits: Callable[[Any], bool]
    breaches: Callable[[Any, bool], Iterator[Breach]]


class Unusable(Exception):
    """A schema that the engine refuses."""


def compile_python(schema: Any) -> CompiledSchema:
    """A schema compiled for jsonschema. Raises Unusable."""
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    validator = _python_class()
    registry: Any = Registry()
    if schema is DIALECT:
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        registry = REGISTRY
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        raise Unusable from error
    engine = validator(schema, registry=registry)

    def breaches(value: Any, first: bool) -> Iterator[Breach]:
        for error in islice(engine.iter_errors(value), 1 if first else None):
            yield from _python_breaches(error)

    return CompiledSchema(engine.is_valid, breaches)


def _python_class() -> Any:
    from jsonschema import Draft202012Validator, validators

    theirs = Draft202012Validator.VALIDATORS["additionalProperties"]

    def additional_properties(
        validator: Any, allowed: Any, value: Any, schema: Any
    ) -> Iterator[Any]:
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for error in theirs(validator, allowed, value, schema):
            if allowed is False:
                error.value_named = [
                    key
                    for key in value
                    if key not in known and not any(re.search(p, key) for p in patterns)
                ]
            yield error

    own = {
        "multipleOf": _multiple_of,
        "propertyNames": _property_names,
        "uniqueItems": _unique_items,
        "additionalProperties": additional_properties,
    }
    return validators.extend(Draft202012Validator, own)


def _multiple_of(validator: Any, divisor: Any, value: Any, schema: Any) -> Iterator[Any]:
    """`multipleOf` by decimal value: 0.3 is a multiple of 0.1, which the library's float division denies."""
    from jsonschema import ValidationError

    if not validator.is_type(value, "number"):
        return
    if (Fraction(repr(value)) / Fraction(repr(divisor))).denominator != 1:
        yield ValidationError("")


def _unique_items(validator: Any, unique: Any, value: Any, schema: Any) -> Iterator[Any]:
    """`uniqueItems` in linear time; the library compares every pair."""
    from jsonschema import ValidationError

    if (
        unique
        and validator.is_type(value, "array")
        and len(set(map(_identity_of, value))) < len(value)
    ):
        yield ValidationError("")


def _identity_of(value: Any) -> Any:
    """A hashable value, equal for equal JSON values: 1 equals 1.0, 1 does not equal true."""
    if isinstance(value, dict):
        return dict, frozenset((key, _identity_of(each)) for key, each in value.items())
    if isinstance(value, list):
        return list, tuple(map(_identity_of, value))
    return isinstance(value, bool), value


def _property_names(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "object"):
        validator_of_name = validator.evolve(schema=names)
        for name in value:
            if not validator_of_name.is_valid(name):
                error = ValidationError("")
                error.value_named = name
                yield error


def _python_breaches(error: Any) -> Iterator[Breach]:
    place = tuple(error.absolute_path)
    keyword, limit, value = error.validator, error.validator_value, error.instance
    if keyword == "required":
        yield from (Breach(place, "required", name) for name in limit if name not in value)
    elif keyword == "dependentRequired":
        for given, names in limit.items():
            yield from (
                Breach(place, "required", n) for n in names if given in value and n not in value
            )
    elif keyword in ("propertyNames", "additionalProperties"):
        yield Breach(place, keyword, error.value_named)
    elif keyword == "oneOf":
        yield Breach(place, keyword, not error.context)
    else:
        yield Breach(place, _KEYWORD_ALIASES.get(keyword, keyword), limit)


_KEYWORD_ALIASES: Final = {
    "minContains": "contains",
    "maxContains": "contains",
    "falseSchema": "not",
}


def compile_rust(schema: Any) -> CompiledSchema:
    """A schema compiled for jsonschema-rs with its linear-time engine for patterns. Raises Unusable."""
    import jsonschema_rs

    engine: Any
    try:
        engine = jsonschema_rs.Draft202012Validator(schema, **rust_options())
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise Unusable from error

    def breaches(value: Any, first: bool) -> Iterator[Breach]:
        if engine.is_valid(value):
            return
        found: list[Breach] = []
        if first:  # the library creates all errors together, and each takes far longer than a check
            try:
                engine.validate(value)
            except jsonschema_rs.ValidationError as error:
                found = _true_breaches([error])
        for breach in found or _true_breaches(engine.iter_errors(value)):
            yield breach._replace(place=_exact_place(value, breach.place))

    return CompiledSchema(engine.is_valid, breaches)


def _exact_place(value: Any, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the path with object keys as text. jsonschema-rs 0.60 reports keys of digits as numbers."""
    place: list[str | int] = []
    for part in path:
        own = str(part) if isinstance(value, dict) else part
        place.append(own)
        value = value[own]
    return tuple(place)


def _true_breaches(found: Iterable[Any]) -> list[Breach]:
    """The breaches that hold: beside `additionalProperties: false`, 0.60 also reports present keys as missing."""
    value_named = ((_rust_breach(error), error) for error in found)
    return [
        b for b, error in value_named if b.keyword != "required" or b.limit not in error.instance
    ]


def rust_options() -> dict[str, Any]:
    """Options: fetch nothing, assert no format, run patterns without backtracking."""
    import jsonschema_rs

    return {
        "validate_formats": False,
        "offline": True,
        "pattern_options": jsonschema_rs.RegexOptions(),
    }


def _rust_breach(error: Any) -> Breach:
    place, kind = tuple(error.instance_path), error.kind
    keyword = kind.name
    if keyword == "propertyNames":
        return Breach(place, keyword, kind.error.instance)
    if keyword == "oneOf":
        return Breach(place, keyword, type(kind).__name__.endswith("OneOfMultipleValid"))
    if keyword == "anyOf":
        return Breach(place, keyword, None)
    if keyword == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
        return Breach(
            place, "additionalProperties", None
        )  # no key is known, so the engine lists none
    members = kind.as_dict()
    return Breach(place, _KEYWORD_ALIASES.get(keyword, keyword), next(iter(members.values()), None))

"""The two engines that apply a schema, each made to answer in the same terms: which breaches, and where.

Neither ever loads anything: references lead inside the schema (`contract_prepared`), the registry is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Any, Final, NamedTuple

from cogcli.schema.messages import Breach


class CompiledSchema(NamedTuple):
    """A schema in an engine: whether a value fits, and its breaches; the first alone where only that is wanted."""

    fits: Callable[[Any], bool]
    breaches: Callable[[Any, bool], Iterator[Breach]]


class Unusable(Exception):
    """A schema that the engine does not take."""


def python_judge(schema: Any) -> CompiledSchema:
    """A schema in jsonschema. Raises Unusable."""
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    validator = _python_class()
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        raise Unusable from error
    engine = validator(schema, registry=Registry())
    return _python_judge(engine)


def _python_judge(engine: Any) -> CompiledSchema:
    def breaches(value: Any, first: bool) -> Iterator[Breach]:
        for error in islice(engine.iter_errors(value), 1 if first else None):
            yield from _python_breaches(error)

    return CompiledSchema(engine.is_valid, breaches)


def _python_class() -> Any:
    from jsonschema import Draft202012Validator, validators

    own = {
        "multipleOf": _multiple_of,
        "propertyNames": _property_names,
        "uniqueItems": _unique_items,
        "additionalProperties": _additional_properties(
            Draft202012Validator.VALIDATORS["additionalProperties"]
        ),
    }
    return validators.extend(Draft202012Validator, own)


def _multiple_of(validator: Any, divisor: Any, value: Any, schema: Any) -> Iterator[Any]:
    """Of the decimals as they are written: 0.3 is a multiple of 0.1."""
    from jsonschema import ValidationError

    if (
        validator.is_type(value, "number")
        and (Fraction(repr(value)) / Fraction(repr(divisor))).denominator != 1
    ):
        yield ValidationError("")


def _unique_items(validator: Any, unique: Any, value: Any, schema: Any) -> Iterator[Any]:
    """By what stands for each item; theirs compares each with each."""
    from jsonschema import ValidationError

    if unique and validator.is_type(value, "array") and len(set(map(_standing_for, value))) < len(value):
        yield ValidationError("")


def _standing_for(value: Any) -> Any:
    """The same for equal values of JSON alone: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, dict):
        return dict, frozenset((key, _standing_for(each)) for key, each in value.items())
    if isinstance(value, list):
        return list, tuple(map(_standing_for, value))
    return isinstance(value, bool), value


def _property_names(validator: Any, names: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "object"):
        judge = validator.evolve(schema=names)
        for name in value:
            if not judge.is_valid(name):
                error = ValidationError("")
                error.told = name
                yield error


def _additional_properties(theirs: Any) -> Any:
    def check(validator: Any, allowed: Any, value: Any, schema: Any) -> Iterator[Any]:
        for error in theirs(validator, allowed, value, schema):
            if allowed is False:
                error.told = _unknown(value, schema)
            yield error

    return check


def _unknown(value: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    import re

    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [key for key in value if key not in known and not any(re.search(p, key) for p in patterns)]


def _python_breaches(error: Any) -> Iterator[Breach]:
    place = tuple(error.absolute_path)
    keyword, limit, value = error.validator, error.validator_value, error.instance
    if keyword == "required":
        yield from (Breach(place, "required", name) for name in limit if name not in value)
    elif keyword == "dependentRequired":
        for given, names in limit.items():
            yield from (Breach(place, "required", n) for n in names if given in value and n not in value)
    elif keyword in ("propertyNames", "additionalProperties"):
        yield Breach(place, keyword, error.told)
    elif keyword == "oneOf":
        yield Breach(place, keyword, not error.context)
    else:
        yield Breach(place, _SAME.get(keyword, keyword), limit)


_SAME: Final = {"minContains": "contains", "maxContains": "contains", "falseSchema": "not"}


def rust_judge(schema: Any) -> CompiledSchema:
    """A schema in jsonschema-rs, on the engine for patterns that is linear. Raises Unusable."""
    import jsonschema_rs

    engine: Any
    try:
        engine = jsonschema_rs.Draft202012Validator(schema, **rust_options())
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise Unusable from error

    def breaches(value: Any, first: bool) -> Iterator[Breach]:
        if engine.is_valid(value):
            return
        # All are made at once, and each takes far longer than a check.
        found = _true_breaches(_first(engine, value)) if first else []
        for breach in found or _true_breaches(engine.iter_errors(value)):
            yield breach._replace(place=_place_in(value, breach.place))

    return CompiledSchema(engine.is_valid, breaches)


def _place_in(value: Any, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """A place of which 0.60 gives keys that are made of digits as numbers."""
    place: list[str | int] = []
    for part in path:
        own = str(part) if isinstance(value, dict) else part
        place.append(own)
        value = value[own]
    return tuple(place)


def _first(engine: Any, value: Any) -> Iterator[Any]:
    import jsonschema_rs

    try:
        engine.validate(value)
    except jsonschema_rs.ValidationError as error:
        yield error


def _true_breaches(found: Iterator[Any]) -> list[Breach]:
    """Beside `additionalProperties: false`, 0.60 also calls missing what is there and not allowed."""
    told = ((_rust_breach(error), error) for error in found)
    return [b for b, error in told if b.keyword != "required" or b.limit not in error.instance]


def rust_options() -> dict[str, Any]:
    """Nothing is fetched, no format is asserted, no pattern goes back."""
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
        return Breach(place, "additionalProperties", None)  # no key is known, so the engine lists none
    said = kind.as_dict()
    return Breach(place, _SAME.get(keyword, keyword), next(iter(said.values()), None))


_DIALECT: Final = {"$ref": "https://json-schema.org/draft/2020-12/schema"}


def meta_python_judge() -> CompiledSchema:
    """What a schema of 2020-12 must look like, in jsonschema."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    engine = _python_class()(_DIALECT, registry=REGISTRY)
    return _python_judge(engine)


def meta_rust_judge() -> CompiledSchema:
    """The same in jsonschema-rs, which holds the dialect itself."""
    return rust_judge(_DIALECT)

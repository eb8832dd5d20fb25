"""Validates data by a JSON Schema. Both come from the caller, so neither is trusted."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from cogcli.official.patterns import matches, require_bounded_time
from cogcli.official.values import pointer_part
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

# The formats that need no further library: the same verdict on every machine.
_FORMATS = ("date", "email", "ipv4", "ipv6", "uuid")
_MAX_MESSAGE = 200


def validate(
    data: object, schema: dict[str, Any], max_errors: int = 100, check_formats: bool = True
) -> dict[str, object]:
    """Return whether data fits a JSON Schema (2020-12 unless `$schema` names another draft), with
    its errors.

    Errors are `{path, message, rule}`; `path` is a JSON pointer, and at most `max_errors` are
    listed. References stay inside the schema: nothing is fetched. Raise Refused for an invalid
    schema.
    """
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    validator = _make_validator(schema, check_formats)
    try:
        for pattern, of_keys in _find_patterns(schema):
            require_bounded_time(pattern, of_keys=of_keys)
        validator.check_schema(schema)
        breaches = list(islice(validator.iter_errors(data), max_errors + 1))
    except SchemaError as error:
        raise Refused(
            "bad-data",
            f"schema: at {_json_pointer(error.absolute_path)!r}: {_shorten_message(error.message)}",
        ) from None
    except Unresolvable as error:
        raise Refused(
            "bad-data", f"schema: unresolved reference, {_shorten_message(str(error))}"
        ) from None
    except Refused as refused:
        raise Refused(refused.reason, f"schema: {refused}") from None
    except ValueError as error:
        raise Refused("bad-data", f"schema: {error}") from None
    except RecursionError:
        raise Refused(
            "bad-data", "schema: refers to itself without end, or the data is nested too deeply"
        ) from None
    errors = [_error_entry(error) for error in breaches[:max_errors]]
    return {"valid": not breaches, "errors": errors, "truncated": len(breaches) > max_errors}


def _make_validator(schema: dict[str, Any], check_formats: bool) -> Validator:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    validator_class = validator_for(schema, default=None)
    if validator_class is None and "$schema" in schema:
        raise Refused(
            "bad-data", f"schema: unknown draft {_shorten_message(str(schema['$schema']))}"
        )
    # An explicit registry: the default one would fetch remote references.
    checker = FormatChecker(_FORMATS) if check_formats else None
    extended: Any = extend(validator_class or Draft202012Validator, {"pattern": _check_pattern})
    validator: Validator = extended(schema, registry=Registry(), format_checker=checker)
    return validator


def _error_entry(error: ValidationError) -> dict[str, object]:
    return {
        "path": _json_pointer(error.absolute_path),
        "message": _shorten_message(error.message),
        "rule": str(error.validator),
    }


def _json_pointer(path: Iterable[str | int]) -> str:
    return "".join(f"/{pointer_part(key)}" for key in path)


def _shorten_message(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"


def _find_patterns(schema: object) -> Iterator[tuple[str, bool]]:
    """Yield every text that the schema may use as a regular expression, and whether it is for keys."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pattern, by_key_pattern = node.get("pattern"), node.get("patternProperties")
            key_patterns = (
                [(text, True) for text in by_key_pattern]
                if isinstance(by_key_pattern, dict)
                else []
            )
            candidates = [(pattern, False), *key_patterns]
            yield from (
                (text, keys)
                for text, keys in candidates
                if isinstance(text, str) and _is_valid_pattern(text)
            )
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _is_valid_pattern(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _check_pattern(validator: Any, pattern: str, value: object, schema: object) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "string") and not matches(pattern, str(value)):
        yield ValidationError(f"{value!r} does not match {pattern!r}")

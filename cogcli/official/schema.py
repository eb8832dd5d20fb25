"""Judging data by a JSON Schema. Schema and data both come from the caller, so neither is trusted."""

from __future__ import annotations

import re
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

# The formats that need no further library: the same verdict on every machine.
_FORMATS = ("date", "email", "ipv4", "ipv6", "uuid")
_MAX_MESSAGE = 200
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|\((?:\?P?<\w+>|\?[a-z:=!<]{1,3})?|[*+?]|\{\d*,?\d*\}|.", re.DOTALL
)


def validate(
    data: object, schema: dict[str, Any], max_errors: int = 100, check_formats: bool = True
) -> dict[str, object]:
    """Whether data fits a JSON Schema (2020-12 unless `$schema` names another draft), and where it does not.

    Errors are `{path, message, rule}`, path being a JSON pointer; at most `max_errors` are listed. References
    stay inside the schema: nothing is fetched. A schema that is none is a ValueError.
    """
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    validator = _validator(schema, check_formats)
    runaway = next(filter(_runs_away, _patterns(schema)), None)
    if runaway is not None:
        raise ValueError(f"schema: pattern {_short(runaway)!r} repeats a repeat, which can take for ever")
    try:
        validator.check_schema(schema)
        found = list(islice(validator.iter_errors(data), max_errors + 1))
    except SchemaError as error:
        raise ValueError(f"schema: at {_pointer(error.absolute_path)!r}: {_short(error.message)}") from None
    except Unresolvable as error:
        raise ValueError(f"schema: unresolved reference, {_short(str(error))}") from None
    except RecursionError:
        raise ValueError("schema: refers to itself without end, or the data is nested too deeply") from None
    errors = [_described(error) for error in found[:max_errors]]
    return {"valid": not found, "errors": errors, "truncated": len(found) > max_errors}


def _validator(schema: dict[str, Any], check_formats: bool) -> Validator:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.validators import validator_for
    from referencing import Registry

    known = validator_for(schema, default=None)
    if known is None and "$schema" in schema:
        raise ValueError(f"schema: unknown draft {_short(str(schema['$schema']))}")
    # An explicit registry: the default one would fetch remote references.
    checker = FormatChecker(_FORMATS) if check_formats else None
    return (known or Draft202012Validator)(schema, registry=Registry(), format_checker=checker)


def _described(error: ValidationError) -> dict[str, object]:
    return {
        "path": _pointer(error.absolute_path),
        "message": _short(error.message),
        "rule": str(error.validator),
    }


def _pointer(path: Iterable[str | int]) -> str:
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)


def _short(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"


def _patterns(schema: object) -> Iterator[str]:
    """Every text that the schema may use as a regular expression."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pattern, keyed = part.get("pattern"), part.get("patternProperties")
            candidates = [pattern, *(keyed if isinstance(keyed, dict) else ())]
            yield from (text for text in candidates if isinstance(text, str) and _compiles(text))
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _runs_away(pattern: str) -> bool:
    """Whether a repeated group holds a repeat and no mark shows where a round ends: `(a+)+`, not `(-a+)*`.

    Such a pattern takes exponential time in Python, and nothing can interrupt it.
    """
    groups: list[list[str]] = [[]]
    tokens = _TOKEN.findall(pattern)
    for part, following in zip_longest(tokens, tokens[1:], fillvalue=""):
        if part.startswith("("):
            groups.append([])
        elif part == ")" and len(groups) > 1:
            inside = groups.pop()
            varies = any(map(_repeats, inside)) or "?" in inside
            if varies and _repeats(following) and not _marked(inside):
                return True
            groups[-1] += [".", "*"] if varies else ["."]
        else:
            groups[-1].append(part)
    return False


def _repeats(token: str) -> bool:
    return token in ("*", "+") or (token.startswith("{") and "," in token)


def _marked(inside: list[str]) -> bool:
    """Whether the group starts or ends with one fixed character that nothing else in it matches."""
    if "|" in inside:
        return False
    for mark, others in ((inside[0], inside[1:]), (inside[-1], inside[:-1])):
        char = mark[1:] if mark.startswith("\\") and not mark[1:].isalnum() else mark
        fixed = len(char) == 1 and (char != mark or char not in ".^$*+?") and others[:1] != ["?"]
        atoms = [atom for atom in others if not _repeats(atom) and atom not in "?^$"]
        if fixed and not _repeats(others[0]) and not any(re.fullmatch(atom, char) for atom in atoms):
            return True
    return False

"""The lines of a knowledge import, all checked before the first is written (docs/reference/pack.md#knowledge)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from cogcli.base.errors import UsageError
from cogcli.base.jsonvalue import has_at_most_values, kind_of
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.pack_spec import DATA_CLASSES, TRUST
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

MAX_LINE: Final = 64 * 1024
_MAX_VALUES: Final = 1000
_REQUIRED: Final = ("subject", "predicate", "evidence_ref", "observed_at")
_TEXTS: Final = (
    *_REQUIRED,
    "tenant_id",
    "object",
    "valid_from",
    "valid_until",
    "trust",
    "data_class",
)
_TIMES: Final = ("observed_at", "valid_from", "valid_until")
_KNOWN: Final = (*_TEXTS, "value", "retracts")
_CHOICES: Final = {"trust": TRUST, "data_class": DATA_CLASSES}


class KnowledgeLine(Record):
    """The optional members of a line that are compared."""

    object: str | None = None
    value: Any = None
    valid_from: str | None = None
    valid_until: str | None = None
    retracts: int | None = None
    """The number of the edge that it retracts."""


def checked_lines(data: bytes, file: str) -> Iterator[tuple[int, Json]]:
    """Yield the objects of a JSONL text, each with the number of its line. Empty lines are skipped. Raise
    UsageError `input.json` with the first faulty line.
    """
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, _check_line(line, file, number)


def _check_line(line: bytes, file: str, number: int) -> Json:
    if len(line) > MAX_LINE:
        raise line_refusal(file, number, f"longer than {MAX_LINE} bytes")
    try:
        value = loads(line)
    except InvalidJson as error:
        raise line_refusal(file, number, str(error)) from error
    if not isinstance(value, dict):
        raise line_refusal(file, number, f"expected an object, found {kind_of(value)}")
    for fault in faults_of(value):
        raise line_refusal(file, number, fault)
    edge = KnowledgeLine.of(value)
    first, last = edge.valid_from, edge.valid_until
    if first and last and datetime.fromisoformat(first) >= datetime.fromisoformat(last):
        raise line_refusal(file, number, "`valid_until`: expected a time after `valid_from`")
    return value


def faults_of(line: Json) -> Iterator[str]:
    """Yield the faults of an object as a line of an import."""
    for find in (_key_faults, _text_faults, _form_faults, _value_faults):
        yield from find(line)


def _key_faults(line: Json) -> Iterator[str]:
    yield from (f"unknown key `{name}`" for name in line if name not in _KNOWN)
    yield from (f"key `{name}` is missing" for name in _REQUIRED if not line.get(name))


def _text_faults(line: Json) -> Iterator[str]:
    for name in _TEXTS:
        if name in line and not (isinstance(line[name], str) and len(line[name]) <= 1024):
            yield f"`{name}`: expected text of at most 1024 characters"


def _form_faults(line: Json) -> Iterator[str]:
    """Yield a fault for each text that is not an entity, a time or a word of its vocabulary."""
    for name in ("subject", "object"):
        if line.get(name) and not all(str(line[name]).partition(":")[::2]):
            yield f"`{name}`: expected an entity `type:id`"
    for name in _TIMES:
        if line.get(name) and not _is_time(str(line[name])):
            yield f"`{name}`: expected a time with its zone, as 2026-05-04T09:30:00Z"
    for name, choices in _CHOICES.items():
        if name in line and line[name] not in choices:
            yield f"`{name}`: expected one of {', '.join(choices)}"


def _value_faults(line: Json) -> Iterator[str]:
    if "retracts" in line and (type(line["retracts"]) is not int or line["retracts"] < 1):
        yield "`retracts`: expected the number of an edge"
    edge = KnowledgeLine.of(line)
    if not has_at_most_values(edge.value, _MAX_VALUES):
        yield f"`value`: more than {_MAX_VALUES} values"
    if edge.value is not None and edge.object:
        yield "`value` and `object`: an edge has one of them"


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def line_refusal(file: str, line: int, message: str) -> UsageError:
    """Return the error for a faulty line of an import."""
    hint = "nothing was imported: correct the line, and import the file again"
    return UsageError("input.json", message, file=file, line=line, column=1, hint=hint)

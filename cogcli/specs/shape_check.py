"""Compares a parsed file with its shape (docs/reference/spec-files.md#keys).

1. `x-` keys are ignored in every record and map, but not in `Data` and in maps of foreign names.
2. Null for an optional key means absent. For a required key null needs a shape that allows it.
3. An unknown key is reported at the key, a wrong value at the value, a missing key at the mapping.
"""

from __future__ import annotations

from typing import Any

from cogcli.base.jsonvalue import Json, kind_of, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath, suggestion
from cogcli.specs.credentials import text_holds_credential
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import (
    KIND,
    Data,
    ListOf,
    MapOf,
    NumberShape,
    RecordShape,
    Shape,
    Text,
    UnionShape,
    is_ignored,
)
from cogcli.specs.unchecked import text_at


def check_shape(shape: Shape, value: object, report: ProblemReport) -> None:
    """Report every difference between a parsed value and its shape. Each message begins with the report's subject."""
    _check_value(shape, value, _CheckedPlace(report.part(""), (), report.subject, 0))


class _CheckedPlace(NamedTuple):
    """The place of a value to check.

    `named` is the number of path segments that the subject of its messages includes.
    """

    report: ProblemReport
    path: KeyPath
    subject: str
    named: int

    @property
    def prefix(self) -> str:
        """The part of the path that the subject does not include, with a dot at the end."""
        return "".join(f"{part}." for part in self.path[self.named :])

    def at_member(self, step: str | int) -> _CheckedPlace:
        return self._replace(path=(*self.path, step))

    def error(self, code: str, message: str, *, hint: str = "", key: str | None = None) -> None:
        """Report an error of the value, or of its member `key`."""
        own = ".".join(map(str, self.path[self.named :]))
        subject = f"{self.subject}: `{own}`" if own else self.subject
        path = self.path if key is None else (*self.path, key)
        self.report.error(code, path, f"{subject}: {message}", hint=hint, key=key is not None)


def _check_value(shape: Shape, value: Any, spot: _CheckedPlace) -> None:
    match shape:
        case Data():
            return
        case UnionShape():
            chosen = shape.option_for(value)
            if chosen is None:
                _report_type(shape, value, spot)
            else:
                _check_value(chosen, value, spot)
        case _ if kind_of(value) != KIND[type(shape)]:
            _report_type(shape, value, spot)
        case Text():
            _check_text(shape, value, spot)
        case NumberShape():
            _check_number(shape, value, spot)
        case ListOf():
            _check_list(shape, value, spot)
        case MapOf():
            _check_map(shape, value, spot)
        case RecordShape():
            _check_record(shape, value, spot)


def _report_type(shape: Shape, value: object, spot: _CheckedPlace) -> None:
    code, hint, is_secret = "value.type", "", False
    match shape:
        case ListOf():
            hint = shape.hint
        case Text():
            hint = shape.hint or _suggest_quotes(value)
            is_secret = shape.secretive
            code = shape.code if is_secret else code
    is_secret = is_secret or (isinstance(value, str) and text_holds_credential(value))
    found = kind_of(value) if is_secret else preview(value)
    spot.error(code, f"found {found}, expected {_list_kinds(shape)}", hint=hint)


def _suggest_quotes(value: object) -> str:
    """Return a hint if a string was written as a number or a boolean. Empty for any other value."""
    if kind_of(value) not in ("number", "boolean"):
        return ""
    return f'quote it: "{preview(value).split(" ", 1)[1]}"'


def _check_text(shape: Text, value: str, spot: _CheckedPlace) -> None:
    if shape.choices and value not in shape.choices:
        expected = f"one of {', '.join(f'`{choice}`' for choice in shape.choices)}"
        same = [choice for choice in shape.choices if choice.lower() == value.lower()]
        hint = f"write {same[0]}" if same else suggestion(value, shape.choices)
        spot.error("value.choice", f"found {preview(value)}, expected {expected}", hint=hint)
    elif not _has_form(shape, value):
        found = "" if shape.secretive else f"found {preview(value)}, "
        expected = shape.expected or ("text" if shape.empty else "text that is not empty")
        spot.error(shape.code, f"{found}expected {expected}", hint=shape.hint)


def _has_form(shape: Text, value: str) -> bool:
    """Return whether a string has the pattern and the length that its shape requires."""
    if shape.pattern and not shape.pattern.fullmatch(value):
        return False
    if shape.longest and len(value) > shape.longest:
        return False
    return shape.empty or bool(value.strip())


def _check_number(shape: NumberShape, value: float, spot: _CheckedPlace) -> None:
    if shape.whole and value != int(value):
        _report_type(shape, value, spot)
        return
    low = shape.minimum is not None and value < shape.minimum
    high = shape.maximum is not None and value > shape.maximum
    if low or high or (shape.above is not None and value <= shape.above):
        spot.error("value.range", f"found {preview(value)}, expected {_describe_number(shape)}")


def _check_list(shape: ListOf, value: list[object], spot: _CheckedPlace) -> None:
    minimum, maximum = shape.minimum, shape.maximum
    if len(value) < minimum or (maximum and len(value) > maximum):
        between = f"{minimum} to {maximum}" if minimum else f"at most {maximum}"
        expected = between if maximum else f"at least {minimum}"
        spot.error(
            shape.code,
            f"found {len(value)} {'entry' if len(value) == 1 else 'entries'}, expected {expected}",
        )
    for index, item in enumerate(value):
        _check_value(shape.item, item, spot.at_member(index))


def _check_map(shape: MapOf, value: Json, spot: _CheckedPlace) -> None:
    own = {name: item for name, item in value.items() if shape.foreign or not is_ignored(name)}
    if shape.filled and not own:
        spot.error("value.range", "empty, expected an entry")
    for name, item in own.items():
        if shape.name.pattern and not shape.name.pattern.fullmatch(name):
            message = f"found name `{name}`, expected {shape.name.expected}"
            spot.error(shape.name.code, message, key=name)
        _check_value(shape.value, item, spot.at_member(name))


def _check_record(shape: RecordShape, value: Json, spot: _CheckedPlace) -> None:
    if shape.thing:
        spot = _add_id_to_subject(shape.thing, value, spot)
    for name, item in value.items():
        key = shape.keys.get(name)
        if key is not None:
            if item is not None or (key.required and not key.nullable):
                _check_value(key.shape, item, spot.at_member(name))
        elif not shape.open and not is_ignored(name):
            _report_unknown_key(shape, name, value, spot)
    _report_missing_keys(shape, value, spot)


def _report_missing_keys(shape: RecordShape, value: Json, spot: _CheckedPlace) -> None:
    for name, key in shape.keys.items():
        if key.required and name not in value:
            message = f"{spot.subject}: key `{spot.prefix}{name}` is missing"
            spot.report.error("key.missing", spot.path, message)


def _add_id_to_subject(kind: str, value: Json, spot: _CheckedPlace) -> _CheckedPlace:
    """Return the place with a subject that includes the id of the mapping, or its number in its list."""
    id = text_at(value, "id")
    number = f" {spot.path[-1] + 1}" if spot.path else ""
    label = number if id is None else f" `{id}`"
    return spot._replace(subject=kind + label, named=len(spot.path))


def _report_unknown_key(shape: RecordShape, name: str, value: Json, spot: _CheckedPlace) -> None:
    free = [key for key in shape.keys if key not in value]
    others = f"keys: {', '.join(free)}" if free else "no other key may stand there"
    hint = _suggest_place(name, shape) or suggestion(name, shape.keys) or others
    message = f"{spot.subject}: unknown key `{spot.prefix}{name}`"
    spot.report.error("key.unknown", (*spot.path, name), message, hint=hint, key=True)


def _suggest_place(name: str, shape: RecordShape) -> str:
    """Return a hint if a member of the mapping accepts an unknown key. Empty if none does."""
    for outer, key in shape.keys.items():
        match key.shape:
            case RecordShape(keys=keys) if name in keys:
                return f"write it below `{outer}`"
    return ""


def _list_kinds(shape: Shape) -> str:
    match shape:
        case UnionShape():
            return " or ".join(map(_list_kinds, shape.options))
        case NumberShape(whole=True):
            return "whole number"
        case _:
            return KIND.get(type(shape), "any value")


def _describe_number(shape: NumberShape) -> str:
    words = "a whole number" if shape.whole else "a number"
    if shape.minimum is not None and shape.maximum is not None:
        return f"{words} from {shape.minimum:g} to {shape.maximum:g}"
    bounds = {"above": shape.above, "at least": shape.minimum, "at most": shape.maximum}
    limits = ", ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    return f"{words} {limits}".strip()

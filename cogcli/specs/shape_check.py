"""Comparing a parsed file with its shape (docs/reference/spec-files.md#keys).

1. `x-` keys are ignored in every record and every map of ours, not in `Data` and maps of foreign names.
2. Null for an optional key means absent; for a required key only where the shape allows null.
3. An unknown key is reported at the key, a wrong value at the value, a missing key at the mapping.
"""

from __future__ import annotations

from typing import Any

from cogcli.core.jsonvalue import kind_of, preview
from cogcli.core.problems import KeyPath, Problem, suggestion
from cogcli.specs.credentials import text_holds_credential
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import KIND, Data, Either, ListOf, MapOf, NumberShape, Record, Shape, Text, is_ignored
from cogcli.yaml.positions import Places


def check_shape(
    shape: Shape, value: Any, places: Places | None, file: str, subject: str, *, at: KeyPath = ()
) -> list[Problem]:
    """A problem per difference of a parsed value from its shape; `subject` begins each message."""
    walk = _ShapeChecker(ProblemReport(file, places))
    walk.check(shape, value, at, subject, len(at))
    return walk.report.problems


class _ShapeChecker:
    """Checks the values of one file. `named`: the number of path segments that the subject includes."""

    def __init__(self, report: ProblemReport) -> None:
        self.report = report

    def check(self, shape: Shape, value: Any, path: KeyPath, subject: str, named: int) -> None:
        if isinstance(shape, Either):
            chosen = next((o for o in shape.options if kind_of(value) == KIND[type(o)]), None)
            if chosen is None:
                self._wrong_type(shape, value, path, subject, named)
            else:
                self.check(chosen, value, path, subject, named)
        elif isinstance(shape, Data):
            return
        elif kind_of(value) != KIND[type(shape)] or (
            isinstance(shape, NumberShape) and shape.whole and value != int(value)
        ):
            self._wrong_type(shape, value, path, subject, named)
        elif isinstance(shape, Text):
            self._text(shape, value, path, _subject_of(subject, path, named))
        elif isinstance(shape, NumberShape):
            self._number(shape, value, path, _subject_of(subject, path, named))
        elif isinstance(shape, ListOf):
            self._list(shape, value, path, subject, named)
        elif isinstance(shape, MapOf):
            self._map(shape, value, path, subject, named)
        elif isinstance(shape, Record):
            self._record(shape, value, path, subject, named)

    def _wrong_type(self, shape: Shape, value: Any, path: KeyPath, subject: str, named: int) -> None:
        hint = shape.hint if isinstance(shape, ListOf | Text) else ""
        if not hint and isinstance(shape, Text) and kind_of(value) in ("number", "boolean"):
            hint = f'quote it: "{preview(value).split(" ", 1)[1]}"'
        secretive = shape.code if isinstance(shape, Text) and shape.secretive else ""
        found = (
            kind_of(value)
            if secretive or (isinstance(value, str) and text_holds_credential(value))
            else preview(value)
        )
        message = f"{_subject_of(subject, path, named)}: found {found}, expected {_kind_names(shape)}"
        self.report.error(secretive or "value.type", path, message, hint=hint)

    def _text(self, shape: Text, value: str, path: KeyPath, subject: str) -> None:
        if shape.choices and value not in shape.choices:
            message = f"{subject}: found {preview(value)}, expected {expected_text(shape)}"
            other_case = next(
                (f"write {choice}" for choice in shape.choices if choice.lower() == value.lower()), ""
            )
            hint = other_case or suggestion(value, shape.choices)
            self.report.error("value.choice", path, message, hint=hint)
        elif (
            (shape.pattern and not shape.pattern.fullmatch(value))
            or (not shape.empty and not value.strip())
            or (shape.longest and len(value) > shape.longest)
        ):
            found = "" if shape.secretive else f"found {preview(value)}, "
            message = f"{subject}: {found}expected {expected_text(shape)}"
            self.report.error(shape.code, path, message, hint=shape.hint)

    def _number(self, shape: NumberShape, value: float, path: KeyPath, subject: str) -> None:
        low = shape.least is not None and value < shape.least
        if low or (shape.most is not None and value > shape.most) or _is_at_most(shape.above, value):
            self.report.error(
                "value.range", path, f"{subject}: found {preview(value)}, expected {expected_text(shape)}"
            )

    def _list(self, shape: ListOf, value: list[Any], path: KeyPath, subject: str, named: int) -> None:
        if len(value) < shape.least or (shape.most and len(value) > shape.most):
            found = f"found {len(value)} entries, expected {_range_text(shape.least, shape.most)}"
            self.report.error(shape.code, path, f"{_subject_of(subject, path, named)}: {found}")
        for index, item in enumerate(value):
            self.check(shape.item, item, (*path, index), subject, named)

    def _map(self, shape: MapOf, value: dict[str, Any], path: KeyPath, subject: str, named: int) -> None:
        if shape.filled and not any(shape.foreign or not is_ignored(name) for name in value):
            self.report.error(
                "value.range", path, f"{_subject_of(subject, path, named)}: empty, expected an entry"
            )
        for name, item in value.items():
            if not shape.foreign and is_ignored(name):
                continue
            if shape.name.pattern and not shape.name.pattern.fullmatch(name):
                message = f"{_subject_of(subject, path, named)}: found name `{name}`, expected {shape.name.expected}"
                self.report.error(shape.name.code, (*path, name), message, key=True)
            self.check(shape.value, item, (*path, name), subject, named)

    def _record(self, shape: Record, value: dict[str, Any], path: KeyPath, subject: str, named: int) -> None:
        if shape.thing:
            own = value.get("id")
            label = f"`{own}`" if isinstance(own, str) else str(path[-1] + 1 if path else "")
            subject, named = f"{shape.thing} {label}".strip(), len(path)
        prefix = "".join(f"{part}." for part in path[named:])
        for name, item in value.items():
            key = shape.keys.get(name)
            if key is None:
                if not shape.open and not is_ignored(name):
                    message = f"{subject}: unknown key `{prefix}{name}`"
                    hint = suggestion(name, shape.keys)
                    self.report.error("key.unknown", (*path, name), message, hint=hint, key=True)
            elif item is not None or (key.required and not key.nullable):
                self.check(key.shape, item, (*path, name), subject, named)
        for name, key in shape.keys.items():
            if key.required and name not in value:
                self.report.error("key.missing", path, f"{subject}: key `{prefix}{name}` is missing")


def _subject_of(subject: str, path: KeyPath, named: int) -> str:
    own = ".".join(map(str, path[named:]))
    return f"{subject}: `{own}`" if own else subject


def _is_at_most(bound: float | None, value: float) -> bool:
    return bound is not None and value <= bound


def _range_text(least: int, most: int) -> str:
    if not most:
        return f"at least {least}"
    return f"{least} to {most}" if least else f"at most {most}"


def _kind_names(shape: Shape) -> str:
    if isinstance(shape, Either):
        return " or ".join(_kind_names(option) for option in shape.options)
    if isinstance(shape, NumberShape) and shape.whole:
        return "whole number"
    return KIND.get(type(shape), "any value")


def expected_text(shape: Shape) -> str:
    """The demand of a text or number as a short phrase."""
    if isinstance(shape, Text):
        if shape.choices:
            return f"one of {', '.join(f'`{choice}`' for choice in shape.choices)}"
        return shape.expected or ("text" if shape.empty else "text that is not empty")
    if isinstance(shape, NumberShape):
        return _number_text(shape)
    return _kind_names(shape)


def _number_text(shape: NumberShape) -> str:
    words = "a whole number" if shape.whole else "a number"
    if shape.least is not None and shape.most is not None:
        return f"{words} from {shape.least:g} to {shape.most:g}"
    bounds = {"above": shape.above, "at least": shape.least, "at most": shape.most}
    limits = ", ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    return f"{words} {limits}".strip()

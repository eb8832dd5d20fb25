"""The comparison of a parsed file with its shape (docs/reference/spec-files.md#keys).

1. `x-` keys are ignored in every record and map, but not in `Data` and in maps of foreign names.
2. Null for an optional key means absent. For a required key null needs a shape that allows it.
3. An unknown key is reported at the key, a wrong value at the value, a missing key at the mapping.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cogcli.base.jsonvalue import kind_of, preview
from cogcli.base.problems import KeyPath, suggestion
from cogcli.specs.credentials import text_holds_credential
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import (
    KIND,
    Data,
    Either,
    ListOf,
    MapOf,
    NumberShape,
    RecordShape,
    Shape,
    Text,
    is_ignored,
)


def check_shape(shape: Shape, value: Any, report: ProblemReport) -> None:
    """Report each difference of a parsed value from its shape. The report's subject begins each message."""
    _check(shape, value, _Spot(report.part(""), (), report.subject, 0))


class _Spot(NamedTuple):
    """A value's place. `named` is the number of path segments that the subject of its messages includes."""

    report: ProblemReport
    path: KeyPath
    subject: str
    named: int

    def below(self, step: str | int) -> _Spot:
        return self._replace(path=(*self.path, step))

    def error(self, code: str, message: str, *, hint: str = "", key: str | None = None) -> None:
        """Report a fault of the value, or of its `key`."""
        own = ".".join(map(str, self.path[self.named :]))
        subject = f"{self.subject}: `{own}`" if own else self.subject
        path = self.path if key is None else (*self.path, key)
        self.report.error(code, path, f"{subject}: {message}", hint=hint, key=key is not None)


def _check(shape: Shape, value: Any, spot: _Spot) -> None:
    if isinstance(shape, Either):
        chosen = shape.option_for(value)
        if chosen is None:
            _report_type(shape, value, spot)
        else:
            _check(chosen, value, spot)
    elif isinstance(shape, Data):
        return
    elif kind_of(value) != KIND[type(shape)] or (
        isinstance(shape, NumberShape) and shape.whole and value != int(value)
    ):
        _report_type(shape, value, spot)
    elif isinstance(shape, Text):
        _check_text(shape, value, spot)
    elif isinstance(shape, NumberShape):
        low = shape.least is not None and value < shape.least
        high = shape.most is not None and value > shape.most
        if low or high or (shape.above is not None and value <= shape.above):
            spot.error("value.range", f"found {preview(value)}, expected {_describe_number(shape)}")
    elif isinstance(shape, ListOf):
        _check_list(shape, value, spot)
    elif isinstance(shape, MapOf):
        _check_map(shape, value, spot)
    elif isinstance(shape, RecordShape):
        _check_record(shape, value, spot)


def _report_type(shape: Shape, value: Any, spot: _Spot) -> None:
    text = shape if isinstance(shape, Text) else None
    hint = shape.hint if isinstance(shape, ListOf | Text) else ""
    if not hint and text and kind_of(value) in ("number", "boolean"):
        hint = f'quote it: "{preview(value).split(" ", 1)[1]}"'
    secretive = text is not None and text.secretive
    hidden = secretive or (isinstance(value, str) and text_holds_credential(value))
    message = f"found {kind_of(value) if hidden else preview(value)}, expected {_kind_names(shape)}"
    spot.error(text.code if text and secretive else "value.type", message, hint=hint)


def _check_text(shape: Text, value: str, spot: _Spot) -> None:
    if shape.choices and value not in shape.choices:
        expected = f"one of {', '.join(f'`{choice}`' for choice in shape.choices)}"
        other_case = next(
            (f"write {choice}" for choice in shape.choices if choice.lower() == value.lower()), ""
        )
        hint = other_case or suggestion(value, shape.choices)
        spot.error("value.choice", f"found {preview(value)}, expected {expected}", hint=hint)
    elif (
        (shape.pattern and not shape.pattern.fullmatch(value))
        or (not shape.empty and not value.strip())
        or (shape.longest and len(value) > shape.longest)
    ):
        found = "" if shape.secretive else f"found {preview(value)}, "
        expected = shape.expected or ("text" if shape.empty else "text that is not empty")
        spot.error(shape.code, f"{found}expected {expected}", hint=shape.hint)


def _check_list(shape: ListOf, value: list[Any], spot: _Spot) -> None:
    least, most = shape.least, shape.most
    if len(value) < least or (most and len(value) > most):
        between = f"{least} to {most}" if least else f"at most {most}"
        expected = between if most else f"at least {least}"
        spot.error(
            shape.code,
            f"found {len(value)} {'entry' if len(value) == 1 else 'entries'}, expected {expected}",
        )
    for index, item in enumerate(value):
        _check(shape.item, item, spot.below(index))


def _check_map(shape: MapOf, value: dict[str, Any], spot: _Spot) -> None:
    own = {name: item for name, item in value.items() if shape.foreign or not is_ignored(name)}
    if shape.filled and not own:
        spot.error("value.range", "empty, expected an entry")
    for name, item in own.items():
        if shape.name.pattern and not shape.name.pattern.fullmatch(name):
            message = f"found name `{name}`, expected {shape.name.expected}"
            spot.error(shape.name.code, message, key=name)
        _check(shape.value, item, spot.below(name))


def _check_record(shape: RecordShape, value: dict[str, Any], spot: _Spot) -> None:
    report, path = spot.report, spot.path
    if shape.thing:
        own = value.get("id")
        label = f"`{own}`" if isinstance(own, str) else str(path[-1] + 1 if path else "")
        spot = spot._replace(subject=f"{shape.thing} {label}".strip(), named=len(path))
    prefix = "".join(f"{part}." for part in path[spot.named :])
    for name, item in value.items():
        key = shape.keys.get(name)
        if key is None:
            if not shape.open and not is_ignored(name):
                message = f"{spot.subject}: unknown key `{prefix}{name}`"
                free = [key for key in shape.keys if key not in value]
                hint = _suggest_place(name, shape) or suggestion(name, shape.keys)
                hint = hint or (
                    f"keys: {', '.join(free)}" if free else "no other key may stand there"
                )
                report.error("key.unknown", (*path, name), message, hint=hint, key=True)
        elif item is not None or (key.required and not key.nullable):
            _check(key.shape, item, spot.below(name))
    for name, key in shape.keys.items():
        if key.required and name not in value:
            report.error("key.missing", path, f"{spot.subject}: key `{prefix}{name}` is missing")


def _suggest_place(name: str, shape: RecordShape) -> str:
    """Return a hint for a key that a member of the mapping accepts. Empty for any other."""
    inner = {outer: key.shape for outer, key in shape.keys.items()}
    homes = (
        outer
        for outer, each in inner.items()
        if isinstance(each, RecordShape) and name in each.keys
    )
    return next((f"write it below `{outer}`" for outer in homes), "")


def _kind_names(shape: Shape) -> str:
    if isinstance(shape, Either):
        return " or ".join(map(_kind_names, shape.options))
    if isinstance(shape, NumberShape) and shape.whole:
        return "whole number"
    return KIND.get(type(shape), "any value")


def _describe_number(shape: NumberShape) -> str:
    words = "a whole number" if shape.whole else "a number"
    if shape.least is not None and shape.most is not None:
        return f"{words} from {shape.least:g} to {shape.most:g}"
    bounds = {"above": shape.above, "at least": shape.least, "at most": shape.most}
    limits = ", ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    return f"{words} {limits}".strip()

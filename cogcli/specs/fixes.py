"""Repairs of problems that have exactly one possible fix (docs/reference/command-line.md#fixes)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from difflib import SequenceMatcher
from typing import Any, Final

from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath, Problem, did_you_mean, names_from_hint
from cogcli.base.redact import names_secret
from cogcli.base.yaml.edit import UneditableYaml, rename_key, replace_values, source_of
from cogcli.base.yaml.positions import YamlPositions
from cogcli.base.yaml.reader import parse
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.protocol import Protocols
from cogcli.specs.shape import (
    Boolean,
    ListOf,
    MapOf,
    NumberShape,
    RecordShape,
    Shape,
    Text,
    UnionShape,
    options_of,
)
from cogcli.specs.shapes import check_file, shape_of
from cogcli.specs.unchecked import object_at

_MAX_TRIED: Final = 100
"""The maximum number of problems of a file to repair, since each requires another parse."""
_NEAR: Final = 0.75
"""Two words with a higher similarity, from 0 to 1, are treated as the same word."""
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_WORD: Final = re.compile(r"[^\s,\[\]{}]+")


_QUOTED: Final = re.compile(r"`([^`]+)`")
_NAME: Final = re.compile(
    rf"[\"']?(?:\$\{{)?((?:{NESTED})?[\w-]+(?:\.[\w-]+)*+)(?![\w-]|[.:][\w-])"
)
"""A whole reference or id, not a part of a longer word."""


class RepairedText(NamedTuple):
    """A repaired text, and the problems that the repair solves."""

    text: str
    fixed: list[Problem]


class _FaultPlace(NamedTuple):
    """The place of a fault: the possible shapes, the shape of its container, its value and the value's source text."""

    shapes: tuple[Shape, ...]
    holder: Shape
    siblings: Json
    key: Any
    value: object
    source: str


class _Repair(NamedTuple):
    """A possible repair: a new name for the key, or a new value."""

    name: str = ""
    value: object = None


def repair(text: str, kind: str, protocols: Protocols) -> RepairedText:
    """Return the text of a file after each repair that causes no new problem. All other bytes are unchanged."""
    fixed: list[Problem] = []
    tried: set[tuple[str, str]] = set()
    parsed, problems = _parse_and_check(text, kind, protocols)
    while len(tried) < _MAX_TRIED:
        problem = next(
            (p for p in problems if p.code in FIXES and _problem_key(p) not in tried), None
        )
        if problem is None:
            break
        tried.add(_problem_key(problem))
        changed = _apply_only_repair(text, parsed, problem, shape_of(kind, protocols))
        if changed is None:
            continue
        new, below = changed
        read, after = _parse_and_check(new, kind, protocols)
        expected = {_problem_key(each) for each in problems} - {_problem_key(problem)}
        if all(_is_harmless(each, expected, below) for each in after):
            text, parsed, problems = new, read, after
            fixed.append(problem)
    return RepairedText(text, fixed)


def _problem_key(problem: Problem) -> tuple[str, str]:
    return problem.code, problem.path


def _is_harmless(
    problem: Problem, expected_problems: set[tuple[str, str]], renamed_key: str
) -> bool:
    """Return whether a problem may exist after a repair.

    It may if it was expected, is a warning, or is in the value of a renamed key.
    """
    return (
        _problem_key(problem) in expected_problems
        or problem.severity == "W"
        or _is_below(problem.path, renamed_key)
    )


class SpellingFix(NamedTuple):
    """A correction for a misspelled word at an offset of a string, as the hint of a problem proposes it."""

    problem: Problem
    start: int
    wrong: str
    right: str


def respelling_of(text: str, problem: Problem) -> SpellingFix | None:
    """Return the correction for a misspelled reference or id in a problem.

    Return None if the hint does not propose exactly one similar name, or if the text differs at the place of the
    problem.
    """
    meant = names_from_hint(problem.hint)
    start = _find_offset(text, problem)
    names_a_secret = any(map(names_secret, problem.path.split("/")))
    if not meant or problem.code in FIXES or start is None or names_a_secret:
        return None
    found = _NAME.match(text, start)
    if found is None or not any(word in found[1] for word in _QUOTED.findall(problem.message)):
        return None
    near = [each for each in meant if _are_similar(found[1], each) and each != found[1]]
    return SpellingFix(problem, found.start(1), found[1], near[0]) if len(near) == 1 else None


def _find_offset(text: str, problem: Problem) -> int | None:
    """Return the offset of a problem in a string, or None if the text has no such line."""
    lines = text.split("\n")
    if not 1 <= problem.line <= len(lines):
        return None
    return sum(len(line) + 1 for line in lines[: problem.line - 1]) + problem.column - 1


def respell(text: str, respellings: Iterable[SpellingFix]) -> str:
    """Return a string with these corrections applied. All other bytes are unchanged."""
    for each in sorted(respellings, key=lambda each: each.start, reverse=True):
        text = f"{text[: each.start]}{each.right}{text[each.start + len(each.wrong) :]}"
    return text


def _are_similar(word: str, other: str) -> bool:
    return (
        SequenceMatcher(None, word.removeprefix(NESTED), other.removeprefix(NESTED)).ratio()
        >= _NEAR
    )


def _is_below(pointer: str, renamed_key: str) -> bool:
    """Return whether a problem is in the value of a key that was renamed. No check had read that
    value before.
    """
    return bool(renamed_key) and f"{pointer}/".startswith(f"{renamed_key}/")


def _parse_and_check(
    text: str, kind: str, protocols: Protocols
) -> tuple[tuple[Any, YamlPositions], list[Problem]]:
    parsed = parse(text.encode(), file="")
    if parsed.value is None:
        return (None, parsed.places), parsed.problems
    checked = check_file(kind, parsed.value, parsed.places, "", protocols)
    return (parsed.value, parsed.places), [*parsed.problems, *checked.problems]


def _apply_only_repair(
    text: str, value_and_places: tuple[Any, YamlPositions], problem: Problem, shape: Shape
) -> tuple[str, str] | None:
    """Return the text with the only repair of a problem, and the pointer of a renamed key.

    Return None if the problem does not have exactly one repair.
    """
    value, places = value_and_places
    path = _parse_pointer(value, problem.path)
    if not path or any(names_secret(str(part)) for part in path):
        return None
    spot = _locate_fault(shape, value, path, source_of(text, places.value(path)))
    answers = [
        answer
        for each in spot.shapes
        for answer in FIXES[problem.code](spot._replace(shapes=(each,)))
    ]
    if len(answers) != 1:
        return None
    (answer,) = answers
    with suppress(UneditableYaml):
        if answer.name:
            return rename_key(text, path, answer.name), pointer_of((*path[:-1], answer.name))
        return replace_values(text, {path: answer.value}), ""
    return None


def _parse_pointer(value: Any, pointer: str) -> KeyPath:
    """Return the path for a JSON pointer into a value. Empty if it leads nowhere."""
    path: list[object] = []
    for part in pointer.split("/")[1:]:
        step: Any = int(part) if isinstance(value, list) and part.isdecimal() else part
        step = step if isinstance(step, int) else step.replace("~1", "/").replace("~0", "~")
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return ()
        path.append(step)
    return tuple(path)


def _locate_fault(shape: Shape, value: Any, path: KeyPath, source: str) -> _FaultPlace:
    holder, within = shape, value
    for step in path:
        holder, within = shape, value
        holder = (holder.option_for(within) or holder) if isinstance(holder, UnionShape) else holder
        shape, value = _find_member_shape(holder, step), value[step]
    return _FaultPlace(options_of(shape), holder, object_at(within), path[-1], value, source)


def _find_member_shape(shape: Shape, step: Any) -> Shape:
    """Return the shape of a member, or the shape unchanged if it has no members."""
    match shape:
        case RecordShape(keys=keys) if step in keys:
            return keys[step].shape
        case MapOf(value=member):
            return member
        case ListOf(item=item):
            return item
        case _:
            return shape


def _find_name_repairs(spot: _FaultPlace) -> Iterator[_Repair]:
    """Yield the known key that is similar to a misspelled one, if it is the only one and not present yet."""
    if isinstance(spot.holder, RecordShape):
        meant = _find_only_near_word(spot.key, list(spot.holder.keys))
        if meant and meant not in spot.siblings:
            yield _Repair(name=meant)


def _find_choice_repairs(spot: _FaultPlace) -> Iterator[_Repair]:
    """Yield the allowed choice that is similar to the value, if it is the only one."""
    (shape,) = spot.shapes
    if isinstance(shape, Text) and isinstance(spot.value, str):
        same = [choice for choice in shape.choices if choice.lower() == spot.value.lower()]
        meant = same[0] if len(same) == 1 else _find_only_near_word(spot.value, list(shape.choices))
        if meant:
            yield _Repair(value=meant)


def _find_type_repairs(spot: _FaultPlace) -> Iterator[_Repair]:
    """Yield the value with the expected type, if only its notation is wrong."""
    (shape,) = spot.shapes
    match shape, spot.value:
        case Text(), bool() | int() | float():
            yield _Repair(value=spot.source)
        case NumberShape(), str(text) if _NUMBER.fullmatch(text):
            yield _Repair(value=json.loads(text))
        case Boolean(), "true" | "false" as text:
            yield _Repair(value=text == "true")
        case ListOf(item=Text()), str(text) if _WORD.fullmatch(text):
            yield _Repair(value=[text])


def _find_only_near_word(word: str, known_words: list[str]) -> str:
    """Return the known word that is similar to this word, if it is the only one, otherwise an empty string."""
    near = did_you_mean(word, known_words)
    return near[0] if len(near) == 1 and _are_similar(word, near[0]) else ""


FIXES: Final[dict[str, Callable[[_FaultPlace], Iterator[_Repair]]]] = {
    "key.unknown": _find_name_repairs,
    "value.choice": _find_choice_repairs,
    "value.type": _find_type_repairs,
}
"""By code: a function that yields the repairs for one shape. With two or more repairs, none is made."""

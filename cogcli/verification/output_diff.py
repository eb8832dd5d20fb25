"""Comparing outputs with those that a scenario expects (docs/reference/protocols.md#scenarios): exact,
subset or shape.

- exact: equal as JSON, without coercion.
- subset: every expected member is present; lists have the same length, their elements fit one by one.
- shape: the same kinds of values; every element of a list has the kind of the first expected one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import equal, kind_of

ABSENT: Final = object()
"""The value of an absent member."""
_MOST: Final = 20


class OutputDifference(NamedTuple):
    """One place where the two differ: its dotted path, and both values, `ABSENT` where there is none."""

    path: str
    expected: Any
    found: Any


def differences(expected: Any, found: Any, match: str) -> list[OutputDifference]:
    """At most 20 differences; none if the value is as expected."""
    told: list[OutputDifference] = []
    _compare(expected, found, match, "", told)
    return told[:_MOST]


def _compare(expected: Any, found: Any, match: str, path: str, told: list[OutputDifference]) -> None:
    if len(told) >= _MOST:
        return
    if isinstance(expected, dict) and isinstance(found, dict):
        _objects(expected, found, match, path, told)
    elif isinstance(expected, list) and isinstance(found, list):
        _lists(expected, found, match, path, told)
    elif kind_of(expected) != kind_of(found) if match == "shape" else not equal(expected, found):
        told.append(OutputDifference(path, expected, found))


def _objects(
    expected: dict[str, Any], found: dict[str, Any], match: str, path: str, told: list[OutputDifference]
) -> None:
    for name, value in expected.items():
        if name in found:
            _compare(value, found[name], match, _joined(path, name), told)
        else:
            told.append(OutputDifference(_joined(path, name), value, ABSENT))
    if match == "exact":
        told += [
            OutputDifference(_joined(path, name), ABSENT, found[name])
            for name in found
            if name not in expected
        ]


def _lists(
    expected: list[Any], found: list[Any], match: str, path: str, told: list[OutputDifference]
) -> None:
    if match == "shape":
        for number, element in enumerate(found if expected else ()):
            _compare(expected[0], element, match, _joined(path, number), told)
        return
    for number in range(max(len(expected), len(found))):
        place = _joined(path, number)
        if number >= len(found):
            told.append(OutputDifference(place, expected[number], ABSENT))
        elif number >= len(expected):
            told.append(OutputDifference(place, ABSENT, found[number]))
        else:
            _compare(expected[number], found[number], match, place, told)


def _joined(path: str, name: str | int) -> str:
    return f"{path}.{name}" if path else str(name)

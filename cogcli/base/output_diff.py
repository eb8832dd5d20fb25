"""Compares JSON values, such as outputs with the outputs that a scenario expects
(docs/reference/protocols.md#scenarios).

- exact: equal as JSON, without coercion.

- subset: every expected member is present. Lists have the same length and matching elements.

- shape: the same kinds of values. Every element of a list has the kind of the first expected
element.

- same types: like exact, but 1 and 1.0 differ. No scenario uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from typing import Final

from cogcli.base.jsonvalue import Json, equal, kind_of
from cogcli.base.named_tuple import NamedTuple

MISSING: Final = object()
"""The value of an absent member."""
EXACT, SUBSET, SHAPE, SAME_TYPES = "exact", "subset", "shape", "same types"
_MAX_DIFFERENCES: Final = 20


class OutputDifference(NamedTuple):
    """One difference: its dotted path, and both values, `MISSING` if one is missing."""

    path: str
    expected: object
    found: object


def differences(expected: object, found: object, match: str) -> list[OutputDifference]:
    """Return at most 20 differences; empty if the value matches."""
    return list(islice(_compare_values(expected, found, match, ""), _MAX_DIFFERENCES))


def _compare_values(
    expected: object, found: object, match: str, path: str
) -> Iterator[OutputDifference]:
    if isinstance(expected, dict) and isinstance(found, dict):
        pairs: Iterable[tuple[str | int, object, object]] = _compared_members(
            expected, found, match
        )
    elif isinstance(expected, list) and isinstance(found, list):
        pairs = _compared_elements(expected, found, match)
    else:
        if expected is MISSING or found is MISSING or not _is_equal(expected, found, match):
            yield OutputDifference(path, expected, found)
        return
    for name, one, other in pairs:
        yield from _compare_values(one, other, match, f"{path}.{name}" if path else str(name))


def _compared_members(
    expected: Json, found: Json, match: str
) -> Iterator[tuple[str, object, object]]:
    names = {**expected, **found} if match in (EXACT, SAME_TYPES) else expected
    for name in names:
        yield name, expected.get(name, MISSING), found.get(name, MISSING)


def _compared_elements(
    expected: list[object], found: list[object], match: str
) -> Iterator[tuple[int, object, object]]:
    if match == SHAPE:
        expected = expected[:1] * len(found)  # an empty expected list matches any list
        found = found[: len(expected)]
    both = zip_longest(expected, found, fillvalue=MISSING)
    for number, (one, other) in enumerate(both):
        yield number, one, other


def _is_equal(expected: object, found: object, match: str) -> bool:
    if match == SHAPE:
        return kind_of(expected) == kind_of(found)
    return equal(expected, found) and (match != SAME_TYPES or type(expected) is type(found))

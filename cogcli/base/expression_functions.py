"""The functions of expressions (docs/reference/execution.md#functions). Each returns a JSON value,
or raises ExpressionError `expr.type` or `expr.limit`. Except for sorting, its time is linear in its
arguments."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from cogcli.base.errors import ExpressionError
from cogcli.base.jsonvalue import MAX_INTEGER, equal, kind_of
from cogcli.base.named_tuple import NamedTuple

MAX_TEXT: Final = 1_000_000
"""The most characters of a text that `join` returns."""
_MAX_DIGITS: Final = 15


class Function(NamedTuple):
    """One function: its implementation, its minimum and maximum number of arguments, and its usage
    text.
    """

    call: Callable[..., object]
    minimum: int
    maximum: int
    usage: str


def contains(container: object, part: object) -> bool:
    """Return whether a list has an equal element, an object has the key, or a string contains the substring.

    Raise ExpressionError.
    """
    match container:
        case list() | tuple():
            return any(equal(part, item) for item in container)
        case dict() if type(part) is str:
            return part in container
        case str() if type(part) is str:
            return part in container
    found = f"found {kind_of(part)} in {kind_of(container)}"
    raise _type_error(f"looks into a list, or for a text into an object or a text, {found}")


def _type_error(message: str) -> ExpressionError:
    return ExpressionError("expr.type", message)


def _wrong_kind_error(expected: str, found: object) -> ExpressionError:
    """Return the error for a value of the wrong kind."""
    return _type_error(f"takes {expected}, found {kind_of(found)}")


def _require_text(value: object) -> str:
    if type(value) is not str:
        raise _wrong_kind_error("text", value)
    return value


def _require_list(value: object) -> Sequence[Any]:
    if type(value) is list or type(value) is tuple:
        return value
    raise _wrong_kind_error("list", value)


def _length_of_value(value: object) -> int:
    if type(value) is str or type(value) is list or type(value) is dict or type(value) is tuple:
        return len(value)
    raise _wrong_kind_error("text or list or object", value)


def _to_lower(text: object) -> str:
    return _require_text(text).lower()


def _to_upper(text: object) -> str:
    return _require_text(text).upper()


def _starts_with(text: object, prefix: object) -> bool:
    return _require_text(text).startswith(_require_text(prefix))


def _join_items(items: object, separator: object = "") -> str:
    """Return the items of a list joined as one text. Strings are used verbatim, numbers in JSON form. Raise
    ExpressionError `expr.limit`.
    """
    words = [_list_item_text(item) for item in _require_list(items)]
    between = _require_text(separator)
    size = sum(map(len, words)) + len(between) * max(len(words) - 1, 0)
    if size > MAX_TEXT:
        raise ExpressionError("expr.limit", f"gives {size} characters, at most {MAX_TEXT}")
    return between.join(words)


def _list_item_text(item: object) -> str:
    """Return the text of a list item that is joined."""
    if type(item) is str:
        return item
    if type(item) is int or type(item) is float:
        return repr(item)
    raise _type_error(f"takes a list of texts and numbers, found {kind_of(item)} in it")


def _round_half_away(number: object, digits: object = 0) -> int | float:
    """Return the number rounded half away from zero in its decimal notation.

    Without `digits` return an integer.
    """
    if type(number) is not int and type(number) is not float:
        raise _wrong_kind_error("number", number)
    if type(digits) is not int or not 0 <= digits <= _MAX_DIGITS:
        raise _type_error(f"takes 0 to {_MAX_DIGITS} digits")
    if abs(number) > MAX_INTEGER or isinstance(number, int):
        return number
    # Importing decimal takes a tenth of a short run.
    from decimal import ROUND_HALF_UP, Context, Decimal

    places = Decimal(1).scaleb(-digits)
    rounded = Decimal(repr(number)).quantize(places, ROUND_HALF_UP, Context(prec=60))
    return float(rounded) + 0.0 if digits else int(rounded)  # never -0.0


def _require_sortable(items: object) -> list[Any]:
    """Return the list if its members are all numbers or all strings; otherwise raise ExpressionError."""
    members = list(_require_list(items))
    kinds = set(map(kind_of, members))
    if not (kinds <= {"number"} or kinds <= {"text"}):
        raise _type_error(f"takes numbers or texts, found {' and '.join(sorted(kinds))}")
    return members


def _make_extreme(choose: Callable[[list[Any]], object]) -> Callable[..., object]:
    """Return the function `min` or `max` of the language."""

    def extreme(*values: object) -> object:
        items = _require_sortable(values[0] if len(values) == 1 else list(values))
        if not items:
            raise _type_error("takes a list that is not empty")
        return choose(items)

    return extreme


def _any_true(items: object) -> bool:
    return any(_require_list(items))


def _all_true(items: object) -> bool:
    return all(_require_list(items))


def _sum_exactly(items: object) -> int | float:
    """Return the sum: exact for integers, correctly rounded for other numbers."""
    numbers = _require_list(items)
    for item in numbers:
        if kind_of(item) != "number":
            raise _type_error(f"takes a list of numbers, found {kind_of(item)} in it")
    if all(type(item) is int for item in numbers):
        total: int = sum(numbers)
        if abs(total) <= MAX_INTEGER:
            return total
    else:
        try:
            return math.fsum(numbers)
        except OverflowError:
            pass
    raise ExpressionError("expr.limit", "gives a number that JSON does not hold")


def _sort_items(items: object) -> list[object]:
    return sorted(_require_sortable(items))


_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3]):?(?P<minutes>[0-5]\d))?)?",
    re.ASCII,
)
_EPOCH: Final = datetime.datetime(1970, 1, 1)


def _epoch_seconds(text: object) -> int | float:
    """Return the seconds since 1970 in UTC of an ISO 8601 date or time. A date means its first moment; a time without a
    zone is UTC.
    """
    written = _require_text(text)
    match = _TIME.fullmatch(written)
    moment = _parse_moment(match) if match else None
    if match is None or moment is None:
        raise _type_error(
            f"takes a date or time as 2026-01-31 or 2026-01-31T09:00:00Z, found `{written[:40]}`"
        )
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1) - _zone_seconds(match)
    parts = (match["fraction"] or "").rstrip("0")
    return seconds + int(parts) / 10 ** len(parts) if parts else seconds


def _parse_moment(match: re.Match[str]) -> datetime.datetime | None:
    """Return the parsed moment without its zone; None if the date or time of day does not exist."""
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    try:
        return datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None


def _zone_seconds(match: re.Match[str]) -> int:
    """Return the number of seconds by which the zone in the text is ahead of UTC."""
    ahead = int(match["hours"] or 0) * 3600 + int(match["minutes"] or 0) * 60
    return -ahead if match["sign"] == "-" else ahead


_ANY_NUMBER: Final = 256

FUNCTIONS: Final[dict[str, Function]] = {
    "len": Function(_length_of_value, 1, 1, "len(text, list or object)"),
    "lower": Function(_to_lower, 1, 1, "lower(text)"),
    "upper": Function(_to_upper, 1, 1, "upper(text)"),
    "contains": Function(contains, 2, 2, "contains(list, object or text, part)"),
    "startswith": Function(_starts_with, 2, 2, "startswith(text, prefix)"),
    "join": Function(_join_items, 1, 2, "join(list, separator)"),
    "round": Function(_round_half_away, 1, 2, "round(number, digits)"),
    "min": Function(_make_extreme(min), 1, _ANY_NUMBER, "min(list) or min(a, b)"),
    "max": Function(_make_extreme(max), 1, _ANY_NUMBER, "max(list) or max(a, b)"),
    "any": Function(_any_true, 1, 1, "any(list)"),
    "all": Function(_all_true, 1, 1, "all(list)"),
    "sum": Function(_sum_exactly, 1, 1, "sum(list)"),
    "sorted": Function(_sort_items, 1, 1, "sorted(list)"),
    "date": Function(_epoch_seconds, 1, 1, "date(text)"),
}

"""The functions of expressions (docs/reference/execution.md#functions). Each returns a JSON value,
or raises ExpressionError `expr.type` or `expr.limit`. Except for sorting, its time is linear in its
arguments."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cogcli.base.errors import ExpressionError
from cogcli.base.jsonvalue import MAX_INTEGER, equal, kind_of

MAX_TEXT: Final = 1_000_000
"""The most characters of a text that `join` returns."""
_MAX_DIGITS: Final = 15


class Function(NamedTuple):
    """One function: its implementation, its least and most number of arguments, and its notation in
    messages."""

    call: Callable[..., Any]
    least: int
    most: int
    usage: str


def contains(container: Any, part: Any) -> bool:
    """Whether a list has an equal element, an object the key, or a text the part. Raises ExpressionError."""
    kind = kind_of(container)
    if kind == "list":
        return any(equal(part, item) for item in container)
    if kind in ("object", "text") and kind_of(part) == "text":
        return part in container
    found = f"found {kind_of(part)} in {kind}"
    raise _type_error(f"looks into a list, or for a text into an object or a text, {found}")


def _type_error(message: str) -> ExpressionError:
    return ExpressionError("expr.type", message)


def _require(kinds: tuple[str, ...], value: Any) -> Any:
    if kind_of(value) not in kinds:
        raise _type_error(f"takes {' or '.join(kinds)}, found {kind_of(value)}")
    return value


def _length(value: Any) -> int:
    return len(_require(("text", "list", "object"), value))


def _lower(text: Any) -> str:
    return str(_require(("text",), text)).lower()


def _upper(text: Any) -> str:
    return str(_require(("text",), text)).upper()


def _starts_with(text: Any, prefix: Any) -> bool:
    return str(_require(("text",), text)).startswith(_require(("text",), prefix))


def _join(items: Any, separator: Any = "") -> str:
    """Join the items of a list. Text is used verbatim, numbers in JSON form. Raise ExpressionError `expr.limit`."""
    words = [_word(item) for item in _require(("list",), items)]
    size = sum(map(len, words)) + len(_require(("text",), separator)) * max(len(words) - 1, 0)
    if size > MAX_TEXT:
        raise ExpressionError("expr.limit", f"gives {size} characters, at most {MAX_TEXT}")
    return str(separator).join(words)


def _word(item: Any) -> str:
    if kind_of(item) not in ("text", "number"):
        raise _type_error(f"takes a list of texts and numbers, found {kind_of(item)} in it")
    return item if isinstance(item, str) else repr(item)


def _round(number: Any, digits: Any = 0) -> Any:
    """Round half away from zero, in the decimal notation of the number. Without `digits` return an
    integer."""
    _require(("number",), number)
    if type(digits) is not int or not 0 <= digits <= _MAX_DIGITS:
        raise _type_error(f"takes 0 to {_MAX_DIGITS} digits")
    if abs(number) > MAX_INTEGER or isinstance(number, int):
        return number
    from decimal import (
        ROUND_HALF_UP,
        Context,
        Decimal,
    )  # importing decimal takes a tenth of a short run

    places = Decimal(1).scaleb(-digits)
    rounded = Decimal(repr(number)).quantize(places, ROUND_HALF_UP, Context(prec=60))
    return float(rounded) + 0.0 if digits else int(rounded)  # never -0.0


def _require_sortable(items: Any) -> list[Any]:
    """Return the list if its members can be sorted: all numbers, or all texts."""
    kinds = {kind_of(item) for item in _require(("list",), items)}
    if not (kinds <= {"number"} or kinds <= {"text"}):
        raise _type_error(f"takes numbers or texts, found {' and '.join(sorted(kinds))}")
    return list(items)


def _make_extreme(choose: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def extreme(*values: Any) -> Any:
        items = _require_sortable(values[0] if len(values) == 1 else list(values))
        if not items:
            raise _type_error("takes a list that is not empty")
        return choose(items)

    return extreme


def _any(items: Any) -> bool:
    return any(_require(("list",), items))


def _all(items: Any) -> bool:
    return all(_require(("list",), items))


def _sum(items: Any) -> Any:
    """Add numbers: exactly for integers, correctly rounded for others."""
    for item in _require(("list",), items):
        if kind_of(item) != "number":
            raise _type_error(f"takes a list of numbers, found {kind_of(item)} in it")
    if all(type(item) is int for item in items):
        total = sum(items)
        if abs(total) <= MAX_INTEGER:
            return total
    else:
        try:
            return math.fsum(items)
        except OverflowError:
            pass
    raise ExpressionError("expr.limit", "gives a number that JSON does not hold")


def _sorted(items: Any) -> list[Any]:
    return sorted(_require_sortable(items))


_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3]):?(?P<minutes>[0-5]\d))?)?",
    re.ASCII,
)
_EPOCH: Final = datetime.datetime(1970, 1, 1)


def _date(text: Any) -> Any:
    """Return the seconds since 1970 in UTC of an ISO 8601 date (its first moment) or time. A time
    without a zone is UTC."""
    match = _TIME.fullmatch(_require(("text",), text))
    numbers = [int(part or 0) for part in match.groups()[:6]] if match else []
    try:
        moment = datetime.datetime(*numbers)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        moment = None
    if match is None or moment is None:
        raise _type_error(
            f"takes a date or time as 2026-01-31 or 2026-01-31T09:00:00Z, found `{text[:40]}`"
        )
    away = int(match["hours"] or 0) * 3600 + int(match["minutes"] or 0) * 60
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1) + (
        away if match["sign"] == "-" else -away
    )
    parts = (match["fraction"] or "").rstrip("0")
    return seconds + int(parts) / 10 ** len(parts) if parts else seconds


_ANY_NUMBER: Final = 256

FUNCTIONS: Final[dict[str, Function]] = {
    "len": Function(_length, 1, 1, "len(text, list or object)"),
    "lower": Function(_lower, 1, 1, "lower(text)"),
    "upper": Function(_upper, 1, 1, "upper(text)"),
    "contains": Function(contains, 2, 2, "contains(list, object or text, part)"),
    "startswith": Function(_starts_with, 2, 2, "startswith(text, prefix)"),
    "join": Function(_join, 1, 2, "join(list, separator)"),
    "round": Function(_round, 1, 2, "round(number, digits)"),
    "min": Function(_make_extreme(min), 1, _ANY_NUMBER, "min(list) or min(a, b)"),
    "max": Function(_make_extreme(max), 1, _ANY_NUMBER, "max(list) or max(a, b)"),
    "any": Function(_any, 1, 1, "any(list)"),
    "all": Function(_all, 1, 1, "all(list)"),
    "sum": Function(_sum, 1, 1, "sum(list)"),
    "sorted": Function(_sorted, 1, 1, "sorted(list)"),
    "date": Function(_date, 1, 1, "date(text)"),
}

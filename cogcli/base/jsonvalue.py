"""JSON values: copying, comparison, and conversion of foreign Python values."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeGuard, TypeVar

from cogcli.base.foreign_data import list_data, object_data, scalar_data

Json = dict[str, Any]
"""An object of JSON whose members are not known."""
NOTHING: Final[dict[Any, Any]] = {}
"""The empty object as a shared default; it is never changed."""
MAX_DEPTH: Final = 100
MAX_INTEGER: Final = 2**53 - 1
LONG_LIST: Final = 64
"""Elements from which a list is looked for among known ones."""
_LONGEST_PLACE: Final = 80
_LARGEST: Final = sys.float_info.max
_Item = TypeVar("_Item")
SCALARS: Final = (str, int, float, bool, type(None))


def text_of(value: object) -> str:
    """Return the value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Json:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def with_lists(members: Json) -> Json:
    """Return the members with each tuple as a list, as JSON has it."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in members.items()
    }


def list_of(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def only_texts(values: Iterable[object]) -> list[str]:
    """Return the strings among these values, in order."""
    return [value for value in values if isinstance(value, str)]


def items_of(value: object) -> list[Any]:
    """Return the items of a list; any other value as the only item."""
    return value if isinstance(value, list) else [value]


def map_members(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a list or an object with each of its values changed; a scalar unchanged."""
    if type(value) is dict:
        return {name: change(member) for name, member in value.items()}
    return [change(item) for item in value] if type(value) is list else value


def is_list_of(value: object, kind: type[_Item]) -> TypeGuard[list[_Item]]:
    """Return whether a value is a list whose items are all of this type."""
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


class NotJson(ValueError):
    """JSON cannot represent a Python value; `place` is its dotted path, empty for the root."""

    def __init__(self, place: str, reason: str) -> None:
        shown = place if len(place) <= _LONGEST_PLACE else f"{place[:_LONGEST_PLACE]}…"
        super().__init__(f"{reason} at `{shown}`" if place else reason)
        self.place = place
        self.reason = reason


def inner_values(value: object) -> Collection[Any]:
    """Return the elements of a list, or the values of an object; empty for a scalar."""
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def walk_values(value: object) -> Iterator[object]:
    """Yield a value and all values inside it, in unspecified order."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += inner_values(part)


def walk_scalars(value: object) -> Iterator[object]:
    """Yield the strings, numbers, booleans and nulls in a value, in order. Keys are not included."""
    match value:
        case dict():
            for member in value.values():
                yield from walk_scalars(member)
        case list():
            for member in value:
                yield from walk_scalars(member)
        case _:
            yield value


def has_at_most_values(value: object, limit: int) -> bool:
    """Return whether a value consists of at most `limit` values, including itself. Counting stops there."""
    return sum(1 for _ in islice(walk_values(value), limit + 1)) <= limit


def deep_copy(value: Any) -> Any:
    """Return a copy that shares no list or dict with `value`; a tuple becomes a list."""
    if type(value) is dict:
        return {k: v if type(v) in SCALARS else deep_copy(v) for k, v in value.items()}
    if type(value) is list or type(value) is tuple:
        return [v if type(v) in SCALARS else deep_copy(v) for v in value]
    return value


def copy_writable(value: Any) -> Any:
    """Return a copy whose objects and lists can be changed independently. The elements of its lists are shared with
    `value`.

    No write to a state changes an element of a list, since paths lead through objects only. So copying a list takes
    time by its length, not by its size.
    """
    if type(value) is dict:
        return {k: v if type(v) in SCALARS else copy_writable(v) for k, v in value.items()}
    if type(value) is list or type(value) is tuple:
        return list(value)
    return value


def to_plain_json(value: Any, place: str = "", depth: int = 0) -> Any:
    """Return `value` as plain JSON that shares nothing with it. Raise NotJson with the place.

    Tuples become lists, values of subclasses become values of their base types, named tuples and
    dataclasses become objects (`base.foreign_data`).
    """
    kind = type(value)
    if kind is str:
        return _require_valid_text(value, place)
    if kind is bool or value is None:
        return value
    if kind is int:
        if -MAX_INTEGER <= value <= MAX_INTEGER:
            return value
        raise NotJson(place, "integer beyond 2^53-1")
    if kind is float:
        if value - value == 0.0:
            return value
        raise NotJson(place, "number that is not finite")
    if kind is dict:
        return _convert_object(value.items(), place, depth)
    if kind is list or kind is tuple:
        return _convert_list(value, place, depth)
    return _convert_foreign(value, place, depth)


def _convert_foreign(value: object, place: str, depth: int) -> Any:
    """Return a value of a foreign type as plain JSON. Raise NotJson."""
    if (scalar := scalar_data(value)) is not None:
        return to_plain_json(scalar, place, depth)
    if (members := object_data(value)) is not None:
        return _convert_object(members, place, depth)
    if (items := list_data(value)) is not None:
        return _convert_list(items, place, depth)
    raise NotJson(place, f"`{type(value).__name__}`, no JSON value,")


def _convert_list(items: Iterable[object], place: str, depth: int) -> list[Any]:
    _require_depth(place, depth)
    prefix = f"{place}." if place else ""
    # Most values are ASCII strings: they need no call and no place.
    return [
        item
        if type(item) is str and item.isascii()
        else to_plain_json(item, f"{prefix}{n}", depth + 1)
        for n, item in enumerate(items)
    ]


def _convert_object(members: Iterable[tuple[object, object]], place: str, depth: int) -> Json:
    _require_depth(place, depth)
    prefix = f"{place}." if place else ""
    result: Json = {}
    for name, item in members:
        key = name if type(name) is str else _require_text_key(name, place)
        if key in result:  # two unequal keys of foreign text types may become the same text
            raise NotJson(place, f"two keys `{key}`")
        if not key.isascii():
            _require_valid_text(key, place)
        if type(item) is str and item.isascii():
            result[key] = item
        else:
            result[key] = to_plain_json(item, prefix + key, depth + 1)
    return result


def _require_text_key(name: object, place: str) -> str:
    key = scalar_data(name)
    if not isinstance(key, str):
        raise NotJson(place, f"key of type {type(name).__name__}")
    return key


def _require_depth(place: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise NotJson(place, f"nesting deeper than {MAX_DEPTH}")


def _require_valid_text(value: str, place: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotJson(place, "text with a lone surrogate") from None
    return value


def nearest_float(number: str | int | float) -> float:
    """Return the finite float that is nearest to a number."""
    return min(max(float(number), -_LARGEST), _LARGEST)


def kind_of(value: object) -> str:
    """Return the word that messages use for a value's type: text, number, boolean, list, object or
    null.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return _WORDS.get(type(value), type(value).__name__)


_WORDS: Final = {
    str: "text",
    int: "number",
    float: "number",
    list: "list",
    tuple: "list",
    dict: "object",
}


def preview(value: object, limit: int = 60) -> str:
    """Return a value as one short line: its type word, and the value itself if it is a scalar."""
    if isinstance(value, str):
        text = value if len(value) <= limit else f"{value[: limit - 1]}…"
        return f'text "{text}"'
    if value is None or isinstance(value, list | dict):
        return kind_of(value)
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{kind_of(value)} {shown}"[:limit]


def equal(a: object, b: object) -> bool:
    """Return whether two values are deeply equal without coercion: `1 == 1.0`, but `true` is not `1`."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


@contextmanager
def paused_collection() -> Iterator[None]:
    """Turn the cycle collector off within the `with` block, and restore the previous setting. Reference counting still
    frees memory.

    JSON and specs contain no cycles. Searching for them takes a third of the time of reading a large log, and a fifth
    of the time of checking many expressions.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

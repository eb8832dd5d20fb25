"""JSON values as the shipped functions compare and check them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

Record = dict[str, object]
_MAX_DEPTH = 200


def records_of(value: object, name: str) -> list[Record]:
    """Return a value that is a list of objects. Raise Refused for another one, with the place of
    the first other element.
    """
    if not isinstance(value, list):
        raise Refused("bad-data", f"`{name}` is {kind_of(value)}, expected a list of objects")
    for place, record in enumerate(value):
        if not isinstance(record, dict):
            raise Refused("bad-data", f"`{name}.{place}` is {kind_of(record)}, expected an object")
    return value


def columns_of(records: list[Record]) -> list[str]:
    """Return the names of all fields, in the order of first occurrence."""
    return list(dict.fromkeys(name for record in records for name in record))


def require_columns(records: list[Record], names: Iterable[object], kind: str = "column") -> None:
    """Raise Refused for a name that no record has. Without records any name is accepted."""
    columns = columns_of(records)
    for name in names:
        if records and name not in columns:
            raise Refused(
                "bad-data", f"no {kind} {name!r:.60}", f"there are {', '.join(columns)!s:.200}"
            )


def identity(value: object) -> Hashable:
    """Return a hashable value that is equal for equal JSON values only: `1` and `1.0` are equal,
    `1` and `true` are not.
    """
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, dict):
        return ("object", frozenset((name, identity(inner)) for name, inner in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(identity, value)))
    return value if isinstance(value, int | float | str) else None


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number. Booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def at_path(value: object, path: str) -> tuple[bool, object]:
    """Return whether a path such as `a.b.0` exists in a value, and the value there. A key equal to
    the whole path counts first.
    """
    if isinstance(value, dict) and path in value:
        return True, value[path]
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and len(key) < 9 and int(key) < len(value):
            value = value[int(key)]
        else:
            return False, None
    return True, value


def walk(value: object) -> Iterator[tuple[str, str, object]]:
    """Yield (JSON pointer, nearest key, value) of every value that is not a list or object, in
    order.

    Each key of an object is yielded with None before its content. Raise Refused for a value nested
    too deeply.
    """
    waiting: list[tuple[str, str, object, int]] = [("", "", value, 0)]
    while waiting:
        pointer, key, inner, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise Refused("too-large", f"nested deeper than {_MAX_DEPTH}")
        if isinstance(inner, dict):
            children = [
                (f"{pointer}/{pointer_part(name)}", str(name), inner[name], depth + 1)
                for name in inner
            ]
            yield from ((place, name, None) for place, name, _, _ in children)
            waiting += reversed(children)
        elif isinstance(inner, list):
            waiting += [(f"{pointer}/{n}", key, one, depth + 1) for n, one in enumerate(inner)][
                ::-1
            ]
        else:
            yield pointer, key, inner


def pointer_part(key: object) -> str:
    """Return a key escaped for a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def first_text(values: Mapping[str, object], *names: str) -> str:
    """Return the first of these members that is a non-empty text, or an empty text."""
    return next(
        (value for name in names if isinstance(value := values.get(name), str) and value), ""
    )


def list_of(values: Mapping[str, object], name: str) -> list[Any]:
    """Return a member that is a list, or an empty list."""
    value = values.get(name)
    return value if isinstance(value, list) else []


def children_of(value: object) -> list[object]:
    """Return the values of an object or list; none for another value."""
    return (
        list(value.values())
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else []
    )


def kind_of(value: object) -> str:
    """Return the JSON type of a value, for messages and comparisons."""
    if is_number(value):
        return "number"
    names = {bool: "boolean", str: "text", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), "unknown")

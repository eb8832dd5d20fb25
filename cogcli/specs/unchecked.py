"""Access to values that have not been checked yet.

The rules of a kind of file run even if the file has other faults, so that all of them are reported together. A faulty
file has no typed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cogcli.base.jsonvalue import Json


def value_at(value: object, *path: str) -> Any:
    """Return the value below these keys, or None if a key is absent or its parent is not an object."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_at(value: object, *path: str) -> str | None:
    """Return the text below these keys, or None if the value is not a string."""
    found = value_at(value, *path)
    return found if isinstance(found, str) else None


def object_at(value: object, *path: str) -> Json:
    """Return the object below these keys, or an empty object if the value is not an object."""
    found = value_at(value, *path)
    return found if isinstance(found, dict) else {}


def list_at(value: object, *path: str) -> list[object]:
    """Return the list below these keys, or an empty list if the value is not a list."""
    found = value_at(value, *path)
    return found if isinstance(found, list) else []


def objects_at(value: object, *path: str) -> Iterator[tuple[int, Json]]:
    """Yield (index, object) for the entries of a list that are objects."""
    for index, entry in enumerate(list_at(value, *path)):
        if isinstance(entry, dict):
            yield index, entry


def texts_at(value: object, *path: str) -> Iterator[tuple[int, str]]:
    """Yield (index, text) for the entries of a list that are strings."""
    for index, entry in enumerate(list_at(value, *path)):
        if isinstance(entry, str):
            yield index, entry


def members_of(value: object) -> Iterable[tuple[Any, Any]]:
    """Return the members of an object by key, or the elements of a list by index. Empty for any other value."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()

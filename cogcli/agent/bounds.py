"""The bounds of an agent's state. Texts are truncated at a word, collections lose their oldest entries, and each loss
is a note (docs/reference/agent-state.md#limits). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from cogcli.agent.context.truncation import cut_text
from cogcli.base.canonical import compact
from cogcli.base.jsonvalue import NotJson, object_of, preview, to_plain_json
from cogcli.declarations.value_types import Json

Note = Json
Item = TypeVar("Item")
MAX_NOTES: Final = 20
_DETAIL: Final = 160


def note(code: str, subject: str, detail: str = "") -> Note:
    """Return a note about a dropped, truncated or refused value."""
    return {"code": code, "what": subject[:_DETAIL], "detail": detail[:_DETAIL]}


def limit_notes(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Return at most MAX_NOTES notes. If some are omitted, the last note counts them."""
    if len(notes) <= MAX_NOTES:
        return tuple(notes)
    rest = len(notes) - MAX_NOTES + 1
    return (*notes[: MAX_NOTES - 1], note("more", "notes", f"{rest} more"))


def json_size(value: object) -> int:
    """Return the size of a value as JSON, in bytes."""
    return len(compact(value))


def encodable(text: str) -> str:
    """Return the text with each lone surrogate, which UTF-8 cannot encode, replaced by a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def truncate_text(
    text: str, limit: int, subject: str, notes: list[Note], *, in_bytes: bool = False
) -> str:
    """Return the stripped text, truncated to `limit` characters, or bytes of JSON if `in_bytes`."""
    cut = cut_text(encodable(text.strip()), limit, json_size if in_bytes else len)
    if cut.truncated:
        notes.append(
            note("cut", subject, f"more than {limit} {'bytes' if in_bytes else 'characters'}")
        )
    return cut.text


def newest(items: Sequence[Item], limit: int, subject: str, notes: list[Note]) -> tuple[Item, ...]:
    """Return the last `limit` items. Add a note if items were dropped."""
    if len(items) > limit:
        notes.append(note("dropped", subject, f"the {len(items) - limit} oldest, {limit} are kept"))
    return tuple(items[-limit:]) if limit else ()


def append_newest(items: Sequence[str], text: str) -> tuple[str, ...]:
    """Return the items with a text appended. An equal item is removed first; case and surrounding white space are
    ignored.
    """
    folded = text.strip().casefold()
    return (*(item for item in items if item.strip().casefold() != folded), text)


def plain_json(value: object, subject: str, notes: list[Note]) -> object:
    """Return a copy of the value as JSON. If JSON cannot represent it, return None and add a note."""
    try:
        return to_plain_json(value)
    except NotJson as error:
        notes.append(note("wrong_type", subject, str(error)))
        return None


def copy_object(value: object, subject: str, notes: list[Note]) -> Json:
    """Return a copy of the value as a JSON object. For another type, return an empty object and add a note."""
    if not isinstance(value, Mapping):
        notes.append(wrong_type(subject, "an object", value))
        return {}
    return object_of(plain_json(dict(value), subject, notes))


def wrong_type(subject: str, expected: str, value: object) -> Note:
    """Return the note about a dropped value of another type."""
    return note("wrong_type", subject, f"expected {expected}, found {preview(value)}")


def truncate_value(value: object, limit: int, subject: str, notes: list[Note]) -> Any:
    """Return a copy of the value as JSON, shortened to about `limit` bytes."""
    short, cut = shorten_json(plain_json(value, subject, notes), limit)
    if cut:
        notes.append(note("cut", subject, f"more than {limit} bytes"))
    return short


def shorten_json(value: object, max_bytes: int) -> tuple[object, bool]:
    """Shorten a JSON value to about `max_bytes` bytes, and return it with whether a part is missing.

    Objects and lists lose their last members, texts their end.
    """
    if json_size(value) <= max_bytes:
        return value, False
    match value:
        case str():
            return cut_text(value, max_bytes, json_size).text, True
        case dict():
            return _first_members(value, max_bytes - _BRACKETS), True
        case list():
            return _first_items(value, max_bytes - _BRACKETS), True
        case _:
            return None, True


def _first_members(value: Json, max_bytes: int) -> Json:
    """Return the members of an object that fit, each shortened to the remaining bytes."""
    members: Json = {}
    for name, item in value.items():
        max_bytes -= json_size(name) + 2
        if max_bytes < _SMALLEST:
            break
        members[name], _ = shorten_json(item, max_bytes)
        max_bytes -= json_size(members[name])
    return members


def _first_items(value: list[object], max_bytes: int) -> list[object]:
    """Return the items of a list that fit, each shortened to the remaining bytes."""
    items: list[object] = []
    for item in value:
        max_bytes -= 1
        if max_bytes < _SMALLEST:
            break
        items.append(shorten_json(item, max_bytes)[0])
        max_bytes -= json_size(items[-1])
    return items


_BRACKETS: Final = 1
"""The bytes around the parts of a value: two brackets, but one comma fewer than parts."""


_SMALLEST: Final = 8
"""The least bytes for a part of a value."""

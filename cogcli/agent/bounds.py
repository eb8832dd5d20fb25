"""The bounds of an agent's state: texts are cut at a word, collections lose their oldest entries, and each cut or drop
is a note (docs/reference/agent-state.md#limits). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from cogcli.agent.context.truncation import cut_text
from cogcli.base.canonical import compact
from cogcli.base.jsonvalue import NotJson, object_of, preview, to_plain_json
from cogcli.declarations.value_types import Json

Note = Json
Item = TypeVar("Item")
MOST_NOTES: Final = 20
_DETAIL: Final = 160


def note(code: str, what: str, detail: str = "") -> Note:
    """A note about a dropped, cut or refused value."""
    return {"code": code, "what": what[:_DETAIL], "detail": detail[:_DETAIL]}


def bounded_notes(notes: Sequence[Note]) -> tuple[Note, ...]:
    """At most MOST_NOTES notes; the last one counts the omitted ones."""
    if len(notes) <= MOST_NOTES:
        return tuple(notes)
    rest = len(notes) - MOST_NOTES + 1
    return (*notes[: MOST_NOTES - 1], note("more", "notes", f"{rest} more"))


def json_size(value: object) -> int:
    """The size of a value as JSON, in bytes."""
    return len(compact(value))


def encodable(text: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot hold: each becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def bounded_text(
    text: str, most: int, what: str, notes: list[Note], *, in_bytes: bool = False
) -> str:
    """The stripped text, cut to so many characters, or bytes of JSON."""
    cut = cut_text(encodable(text.strip()), most, json_size if in_bytes else len)
    if cut.truncated:
        notes.append(note("cut", what, f"more than {most} {'bytes' if in_bytes else 'characters'}"))
    return cut.text


def newest(items: Sequence[Item], most: int, what: str, notes: list[Note]) -> tuple[Item, ...]:
    """The last `most` items, with a note about dropped ones."""
    if len(items) > most:
        notes.append(note("dropped", what, f"the {len(items) - most} oldest, {most} are kept"))
    return tuple(items[-most:]) if most else ()


def with_newest(items: Sequence[str], text: str) -> tuple[str, ...]:
    """The items with a text as the newest. It replaces an equal one, also with other case or white space around."""
    folded = text.strip().casefold()
    return (*(item for item in items if item.strip().casefold() != folded), text)


def plain(value: object, what: str, notes: list[Note]) -> object:
    """A copy of the value as JSON; None, with a note, for one that JSON cannot hold."""
    try:
        return to_plain_json(value)
    except NotJson as error:
        notes.append(note("wrong_type", what, str(error)))
        return None


def plain_object(value: object, what: str, notes: list[Note]) -> Json:
    """A copy of the value as a JSON object; empty, with a note, for another type."""
    if not isinstance(value, Mapping):
        notes.append(wrong_type(what, "an object", value))
        return {}
    return object_of(plain(dict(value), what, notes))


def wrong_type(what: str, expected: str, found: object) -> Note:
    """The note about a dropped value of another type."""
    return note("wrong_type", what, f"expected {expected}, found {preview(found)}")


def bounded_value(value: object, most: int, what: str, notes: list[Note]) -> Any:
    """A copy of the value as JSON, shortened to about so many bytes."""
    short, cut = shortened(plain(value, what, notes), most)
    if cut:
        notes.append(note("cut", what, f"more than {most} bytes"))
    return short


def shortened(value: object, room: int) -> tuple[object, bool]:
    """Shorten a JSON value to about so many bytes: objects and lists lose their last members, texts their end. Return
    also whether a part is missing."""
    if json_size(value) <= room:
        return value, False
    if isinstance(value, str):
        return cut_text(value, room, json_size).text, True
    room -= 1  # two brackets, and one comma fewer than members
    if isinstance(value, dict):
        members: Json = {}
        for name, item in value.items():
            room -= json_size(name) + 2
            if room < _SMALLEST:
                break
            members[name], _ = shortened(item, room)
            room -= json_size(members[name])
        return members, True
    if isinstance(value, list):
        items: list[object] = []
        for item in value:
            room -= 1
            if room < _SMALLEST:
                break
            items.append(shortened(item, room)[0])
            room -= json_size(items[-1])
        return items, True
    return None, True


_SMALLEST: Final = 8
"""The least bytes for a part of a value."""

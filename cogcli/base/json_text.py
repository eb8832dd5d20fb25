"""JSON values by their text: excerpts, and replies that carry a given list. `jsonvalue` does without orjson."""

from __future__ import annotations

from typing import Any, Final

import orjson

from cogcli.base.jsonvalue import LONG_LIST, Json, NotJson, to_plain_json

_WIDEST: Final = 4
"""The most bytes of a character."""
_ONLY_JSON: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_STRICT_INTEGER
)


def excerpt_of_json(value: object, length: int) -> str:
    """Return the first `length` characters of the JSON of a value.

    Of a long list, alone or as a member of an object, only as many elements are encoded as these characters can show.
    """
    most = length * _WIDEST
    if type(value) is dict:
        value = {key: _first_items(member, most) for key, member in value.items()}
    return first_characters(orjson.dumps(_first_items(value, most)), length)


def first_characters(text: bytes, length: int) -> str:
    """Return the first `length` characters of a text in UTF-8."""
    if len(text) <= length:
        return text.decode()
    return text[: length * _WIDEST].decode(errors="ignore")[:length]


def _first_items(value: object, most: int) -> object:
    return value[:most] if type(value) is list and len(value) > most else value


def _find_continued_lists(reply: dict[Any, Any], given: Json) -> dict[Any, list[Any]]:
    """Return by key the long list of `given` with which a member of the reply begins."""
    lists = [each for each in given.values() if type(each) is list and len(each) >= LONG_LIST]
    if not lists:
        return {}
    found = {key: _find_beginning(member, lists) for key, member in reply.items()}
    return {key: beginning for key, beginning in found.items() if beginning and type(key) is str}


def to_plain_reply(value: Any, given: Json) -> Any:
    """Return the result of `to_plain_json`. A long list that begins with the elements of a list in `given` shares these
    elements with it. So cached knowledge about the elements stays valid for a reply that extends the list.
    """
    carried = _find_continued_lists(value, given) if type(value) is dict else {}
    if not carried:
        return to_plain_json(value)
    rests = {
        key: member[len(carried[key]) :] if key in carried else member
        for key, member in value.items()
    }
    try:
        plain = to_plain_json(rests)
    except NotJson:
        return to_plain_json(value)  # it names the place in the whole list
    return {
        key: [*carried.get(key, ()), *rest] if key in carried else rest
        for key, rest in plain.items()
    }


def _find_beginning(value: object, lists: list[list[Any]]) -> list[Any]:
    """Return the longest of these lists whose elements a value begins with; empty if no list matches."""
    fitting = (known for known in lists if type(value) is list and _begins_with(value, known))
    return max(fitting, key=len, default=[])


def _begins_with(value: list[Any], known: list[Any]) -> bool:
    """Return whether a list of foreign values begins with values that are JSON of the same text as these."""
    beginning = value[: len(known)]
    if len(value) < len(known):
        return False
    try:
        same = orjson.dumps(beginning, option=_ONLY_JSON) == orjson.dumps(known, option=_ONLY_JSON)
    except TypeError:
        return False
    # A number that is not finite has the text of null, a tuple that of a list.
    return same and beginning == known

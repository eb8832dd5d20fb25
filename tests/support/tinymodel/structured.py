"""What the tiny model answers where a schema is demanded, by the name `schema:KIND`.

`valid` fits the schema and quotes the data; `prose` is no JSON; `wrong-type`, `extra-key`, `unlisted`, `invented` break
what was demanded; `cut` ends at half, `cut-whole` says so of a whole answer; `injected` does what the data tells it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from support.tinymodel.behaviours import Answer

INVENTED: Final = "words that stand nowhere in what was given"
UNLISTED: Final = "no-such-choice"
_DATA: Final = re.compile(r"<data>\n(.*)\n</data>", re.DOTALL)
_WRONG: Final = {
    "string": 7, "number": "seven", "integer": "seven", "boolean": "yes", "array": "none", "object": [],
}  # fmt: skip


def answer(kind: str, body: dict[str, Any]) -> Answer:
    """The answer to a chat request whose `response_format` has a schema. Raises KeyError for an unknown kind."""
    schema = body["response_format"]["json_schema"]["schema"]
    data = data_in(body)
    made = _make(schema, data, "")
    text = json.dumps(made, ensure_ascii=False)
    if kind == "prose":
        return Answer("Sure! Here is what you asked for: it looks fine to me.")
    if kind == "cut":
        return Answer(text[: len(text) // 2], finish="length")
    if kind == "cut-whole":
        return Answer(text, finish="length")
    changed = {
        "valid": lambda: made,
        "wrong-type": lambda: {
            **made,
            next(iter(made)): _WRONG[schema["properties"][next(iter(made))]["type"]],
        },
        "extra-key": lambda: {**made, "approved": True},
        "injected": lambda: {**made, "obeyed": _orders(data)},
        "unlisted": lambda: _replace(schema, made, UNLISTED, listed=True),
        "invented": lambda: _replace(schema, made, INVENTED, listed=False),
    }[kind]()
    return Answer(json.dumps(changed, ensure_ascii=False))


def data_in(body: dict[str, Any]) -> Any:
    """The data of a chat request: what stands between its markers, {} without any."""
    for message in body["messages"]:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for part in parts:
            if message["role"] == "user" and (found := _DATA.fullmatch(part.get("text") or "")):
                return json.loads(found[1])
    return {}


def _make(schema: dict[str, Any], data: Any, name: str) -> Any:
    """The smallest value for a schema; a text is that of the same name in the data, else the first one there."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema:
        return {key: _make(each, data, key) for key, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [_make(schema["items"], data, name)] * max(1, schema.get("minItems", 1))
    if kind in ("number", "integer", "boolean"):
        return {"number": schema.get("minimum", 0.5), "integer": 1, "boolean": True}[kind]
    texts = list(_texts(data, ""))
    named = [text for key, text in texts if key == name]
    return (named or [text for _, text in texts] or ["a text"])[0]


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    members = (
        value.items()
        if isinstance(value, dict)
        else [(name, item) for item in value or ()]
        if isinstance(value, list)
        else ()
    )
    for key, item in members:
        yield from _texts(item, key)


def _orders(data: Any) -> str:
    """The first sentence of the data that gives an order."""
    found = (text for _, text in _texts(data, "") if "ignore" in text.lower())
    return next(found, "nothing to obey")


def _replace(schema: dict[str, Any], value: Any, text: str, *, listed: bool) -> Any:
    """The value with each text replaced whose schema has a list of choices, or with each other one."""
    if isinstance(value, dict):
        return {
            k: _replace(schema.get("properties", {}).get(k, {}), v, text, listed=listed)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_replace(schema.get("items", {}), item, text, listed=listed) for item in value]
    return text if isinstance(value, str) and ("enum" in schema) == listed else value

"""What a model replied, of any bytes (docs/reference/agent-state.md#reply). Pure, and total: nothing is raised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cogcli.agent.bounds import Note, bounded_notes, json_size, note, wrong_type
from cogcli.agent.reply_text import ReplyProblem as ReplyProblem
from cogcli.agent.reply_text import read_object
from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import NOTHING, preview

MAX_CALL_BYTES: Final = 32 * 1024
"""Of all calls of a reply together."""
_KEYS: Final = (
    "thinking",
    "tool_calls",
    "context_updates",
    "response",
    "switch_mode",
    "switch_why",
)
_CONTEXT_KEYS: Final = ("goal", "strategy", "facts", "insights")
_CALL_KEYS: Final = ("name", "args", "id", "depends_on")
_TEXT: Final = {"type": "string"}
REPLY_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "thinking": _TEXT,
        "tool_calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": _TEXT,
                    "args": {"type": "object"},
                    "id": _TEXT,
                    "depends_on": {"type": "array", "items": _TEXT},
                },
                "required": ["name", "args"],
            },
        },
        "context_updates": {
            "type": "object",
            "properties": {
                "goal": _TEXT,
                "strategy": _TEXT,
                "facts": {"type": "object"},
                "insights": {"type": "array", "items": _TEXT},
            },
        },
        "response": _TEXT,
        "switch_mode": {"enum": ["fast", "deep"]},
        "switch_why": _TEXT,
    },
}
"""For models that can be asked for a schema; the parser decides all the same."""


class Reply(NamedTuple):
    """A reply that can be used. `calls` are `{name, args, id?, depends_on?}`, `notes` `{code, what, detail}`: what was
    dropped. Texts that were not given are empty."""

    thinking: str = ""
    calls: tuple[dict[str, Any], ...] = ()
    goal: str = ""
    strategy: str = ""
    facts: dict[str, Any] = NOTHING
    insights: tuple[str, ...] = ()
    response: str = ""
    switch_mode: str = ""
    switch_why: str = ""
    notes: tuple[Note, ...] = ()


class _Refused(Exception):
    """The reply cannot be used."""

    def __init__(self, code: str, path: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.problem = ReplyProblem(code, pointer_of(path), message)


def parse_reply(text: str | bytes, limit: int) -> Reply | ReplyProblem:
    """The reply in a text, with at most `limit` calls; for bytes of any kind."""
    notes: list[Note] = []
    found = read_object(text, notes)
    return found if isinstance(found, ReplyProblem) else _reply(found, limit, notes)


def reply_of_tool_calls(text: str, calls: Iterable[Any], limit: int) -> Reply | ReplyProblem:
    """The reply of a provider that gives calls `{id, name, args}` beside the text. The text may be a reply as well,
    whose own calls do not count then; any other text is the thinking."""
    given = list(calls)
    if not given:
        return parse_reply(text, limit)
    notes: list[Note] = []
    found = read_object(text, notes)
    if isinstance(found, ReplyProblem):
        if found.code == "too_large":
            return found
        found, notes = {"thinking": text}, []
    return _reply({**found, "tool_calls": given}, limit, notes)


def _reply(value: Mapping[str, Any], limit: int, notes: list[Note]) -> Reply | ReplyProblem:
    try:
        calls = _calls(value.get("tool_calls"), limit, notes)
        response = value.get("response")
        if response is not None and not isinstance(response, str):
            raise _Refused("bad_type", ("response",), f"expected text, found {preview(response)}")
    except _Refused as refused:
        return refused.problem
    if not calls and not (response or "").strip():
        return ReplyProblem("empty_reply", "", "neither a call nor a response")
    _note_unknown(value, _KEYS, (), notes)
    context = value.get("context_updates")
    if context is not None and not isinstance(context, dict):
        notes.append(wrong_type("/context_updates", "an object", context))
    updates = context if isinstance(context, dict) else {}
    place = ("context_updates",)
    _note_unknown(updates, _CONTEXT_KEYS, place, notes)
    return Reply(
        _text(value, "thinking", (), notes),
        calls,
        _text(updates, "goal", place, notes),
        _text(updates, "strategy", place, notes),
        _facts(updates.get("facts"), notes),
        _insights(updates.get("insights"), notes),
        (response or "").strip(),
        _text(value, "switch_mode", (), notes),
        _text(value, "switch_why", (), notes),
        bounded_notes(notes),
    )


def _text(value: Mapping[str, Any], key: str, place: tuple[str, ...], notes: list[Note]) -> str:
    found = value.get(key)
    if isinstance(found, str):
        return found.strip()
    if found is not None:
        notes.append(wrong_type(pointer_of((*place, key)), "text", found))
    return ""


def _facts(found: Any, notes: list[Note]) -> dict[str, Any]:
    """Facts with a name and a value; null changes nothing."""
    if found is not None and not isinstance(found, dict):
        notes.append(wrong_type("/context_updates/facts", "an object", found))
    members = found.items() if isinstance(found, dict) else ()
    return {key.strip(): value for key, value in members if key.strip() and value is not None}


def _insights(found: Any, notes: list[Note]) -> tuple[str, ...]:
    """The texts of a list; a text is not a list of its letters."""
    if found is not None and not isinstance(found, list):
        notes.append(wrong_type("/context_updates/insights", "a list", found))
    kept = []
    for place, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, str):
            kept.append(item.strip())
        else:
            notes.append(wrong_type(f"/context_updates/insights/{place}", "text", item))
    return tuple(text for text in kept if text)


def _calls(found: Any, limit: int, notes: list[Note]) -> tuple[dict[str, Any], ...]:
    place = ("tool_calls",)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise _Refused("bad_type", place, f"expected a list, found {preview(found)}")
    if len(found) > limit:
        raise _Refused("too_many_calls", place, f"{len(found)} calls, at most {limit} are allowed")
    calls = tuple(_call(item, (*place, number), notes) for number, item in enumerate(found))
    if json_size(calls) > MAX_CALL_BYTES:
        raise _Refused("too_large", place, f"more than {MAX_CALL_BYTES} bytes of calls")
    return calls


def _call(found: Any, place: tuple[str | int, ...], notes: list[Note]) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise _Refused("bad_type", place, f"expected an object, found {preview(found)}")
    name, args, id, after = (found.get(key) for key in _CALL_KEYS)
    if not isinstance(name, str) or not name.strip():
        raise _Refused("bad_type", (*place, "name"), f"expected a name, found {preview(name)}")
    if args is not None and not isinstance(args, dict):
        raise _Refused("bad_type", (*place, "args"), f"expected an object, found {preview(args)}")
    if id is not None and not isinstance(id, str):
        raise _Refused("bad_type", (*place, "id"), f"expected text, found {preview(id)}")
    if after is not None and not (
        isinstance(after, list) and all(isinstance(each, str) for each in after)
    ):
        raise _Refused(
            "bad_type", (*place, "depends_on"), f"expected a list of ids, found {preview(after)}"
        )
    _note_unknown(found, _CALL_KEYS, place, notes)
    given = {"id": id or None, "depends_on": after}
    return {
        "name": name.strip(),
        "args": args or {},
        **{key: item for key, item in given.items() if item is not None},
    }


def _note_unknown(
    value: Mapping[str, Any], known: Sequence[str], place: Sequence[str | int], notes: list[Note]
) -> None:
    notes += [note("unknown_field", pointer_of((*place, key))) for key in value if key not in known]

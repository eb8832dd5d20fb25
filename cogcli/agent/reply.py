"""The parser of a model's reply, for any bytes (docs/reference/agent-state.md#reply). Pure; raises nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from cogcli.agent.bounds import Note, json_size, limit_notes, note, wrong_type
from cogcli.agent.reply_text import ReplyProblem as ReplyProblem
from cogcli.agent.reply_text import read_object
from cogcli.base.json_pointer import pointer_of
from cogcli.base.jsonvalue import NOTHING, is_list_of, preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

MAX_CALL_BYTES: Final = 32 * 1024
"""The maximal bytes of all calls of a reply."""
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
_NAMES: Final[dict[type, str]] = {str: "text", dict: "an object", list: "a list"}
_Kind = TypeVar("_Kind")
_TEXT: Final = {"type": "string"}
REPLY_SCHEMA: Final[Json] = {
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
"""For models that take a schema; the parser decides in any case."""


class Reply(NamedTuple):
    """A usable reply. `calls` is the JSON of `ReplyCall` values, `notes` about dropped values are `{code, what,
    detail}`. Missing texts are empty."""

    thinking: str = ""
    calls: tuple[Json, ...] = ()
    goal: str = ""
    strategy: str = ""
    facts: Json = NOTHING
    insights: tuple[str, ...] = ()
    response: str = ""
    switch_mode: str = ""
    switch_why: str = ""
    notes: tuple[Note, ...] = ()


class ReplyCall(Record):
    """A call in a usable reply."""

    name: str
    args: Json
    id: str | None = None
    depends_on: list[str] | None = None


class _Refused(Exception):
    """The reply cannot be used."""

    def __init__(self, code: str, path: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.problem = ReplyProblem(code, pointer_of(path), message)


def parse_reply(text: str | bytes, limit: int) -> Reply | ReplyProblem:
    """Parse the reply in a text or any bytes, with at most `limit` calls."""
    notes: list[Note] = []
    found = read_object(text, notes)
    return found.problem or _parse_members(found.members, limit, notes)


def reply_of_tool_calls(text: str, calls: Iterable[object], limit: int) -> Reply | ReplyProblem:
    """Return the reply of a provider that returns its calls `{id, name, args}` separately from the
    text. If the text is a reply itself, its calls are ignored. Any other text becomes `thinking`.
    """
    given = list(calls)
    if not given:
        return parse_reply(text, limit)
    notes: list[Note] = []
    members, problem = read_object(text, notes)
    if problem is not None:
        if problem.code == "too_large":
            return problem
        members, notes = {"thinking": text}, []
    return _parse_members({**members, "tool_calls": given}, limit, notes)


class _Members(NamedTuple):
    """The members of an object of a reply; `place` is its path."""

    value: Json
    place: tuple[str | int, ...]
    notes: list[Note]

    def optional(self, key: str, kind: type[_Kind]) -> _Kind | None:
        """Return the member; None, with a note, for one of another type."""
        found = self.value.get(key)
        if found is None or isinstance(found, kind):
            return found
        self.notes.append(wrong_type(pointer_of((*self.place, key)), _NAMES[kind], found))
        return None

    def text(self, key: str) -> str:
        """Return the text of an optional member, without white space around it. Empty if there is none."""
        return (self.optional(key, str) or "").strip()

    def member(self, key: str, kind: type[_Kind]) -> _Kind | None:
        """Return the member, or None for null. Raise _Refused for one of another type."""
        found = self.value.get(key)
        if found is None or isinstance(found, kind):
            return found
        raise _bad_type((*self.place, key), _NAMES[kind], found)

    def record_unknown(self, known_keys: Sequence[str]) -> None:
        """Add a note for each member with another key."""
        unknown = [key for key in self.value if key not in known_keys]
        self.notes.extend(note("unknown_field", pointer_of((*self.place, key))) for key in unknown)


def _bad_type(place: Sequence[str | int], expected: str, value: object) -> _Refused:
    return _Refused("bad_type", place, f"expected {expected}, found {preview(value)}")


def _parse_members(value: Json, limit: int, notes: list[Note]) -> Reply | ReplyProblem:
    members = _Members(value, (), notes)
    try:
        calls = _parse_tool_calls(members.member("tool_calls", list), limit, notes)
        response = (members.member("response", str) or "").strip()
    except _Refused as refused:
        return refused.problem
    if not calls and not response:
        return ReplyProblem("empty_reply", "", "neither a call nor a response")
    members.record_unknown(_KEYS)
    updates = members.optional("context_updates", dict) or {}
    context = _Members(updates, ("context_updates",), notes)
    context.record_unknown(_CONTEXT_KEYS)
    return Reply(
        members.text("thinking"),
        calls,
        context.text("goal"),
        context.text("strategy"),
        _parse_facts(context),
        _parse_insights(context),
        response,
        members.text("switch_mode"),
        members.text("switch_why"),
        limit_notes(notes),
    )


def _parse_facts(context: _Members) -> Json:
    """Return facts with a name and a value; null changes nothing."""
    facts = context.optional("facts", dict) or {}
    return {key.strip(): value for key, value in facts.items() if key.strip() and value is not None}


def _parse_insights(context: _Members) -> tuple[str, ...]:
    """Return the texts of a list."""
    kept = []
    for number, item in enumerate(context.optional("insights", list) or ()):
        if isinstance(item, str):
            kept.append(item.strip())
        else:
            place = pointer_of((*context.place, "insights", number))
            context.notes.append(wrong_type(place, "text", item))
    return tuple(text for text in kept if text)


def _parse_tool_calls(
    values: list[object] | None, limit: int, notes: list[Note]
) -> tuple[Json, ...]:
    """Return the tool calls of a reply as JSON. Raise _Refused if there are more than `limit`."""
    path = ("tool_calls",)
    if values is None:
        return ()
    if len(values) > limit:
        raise _Refused("too_many_calls", path, f"{len(values)} calls, at most {limit} are allowed")
    calls = tuple(
        _parse_tool_call(item, (*path, number), notes) for number, item in enumerate(values)
    )
    if json_size(calls) > MAX_CALL_BYTES:
        raise _Refused("too_large", path, f"more than {MAX_CALL_BYTES} bytes of calls")
    return calls


def _parse_tool_call(value: object, path: tuple[str | int, ...], notes: list[Note]) -> Json:
    """Return a tool call as JSON. Unknown keys are added to `notes`. Raise _Refused for a wrong type."""
    if not isinstance(value, dict):
        raise _bad_type(path, "an object", value)
    members = _Members(value, path, notes)
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        raise _bad_type((*path, "name"), "a name", name)
    args = members.member("args", dict)
    id = members.member("id", str)
    after = value.get("depends_on")
    if after is not None and not is_list_of(after, str):
        raise _bad_type((*path, "depends_on"), "a list of ids", after)
    members.record_unknown(_CALL_KEYS)
    call = ReplyCall(name=name.strip(), args=args or {}, id=id or None, depends_on=after)
    return call.json

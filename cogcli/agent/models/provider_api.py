"""What the adapters of providers share: a provider's wire as data and functions, and reading foreign JSON.

Nothing of a reply is believed to be of its form: a member of another type counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

from cogcli.agent.models.port import ModelError, ModelRequest
from cogcli.agent.models.server_events import ServerEvent
from cogcli.base.jsonvalue import MAX_INTEGER, text_of
from cogcli.base.strict_json import JsonRefused, loads

MAX_REPLY: Final = 4 * 1024 * 1024
_LONGEST_NAME: Final = 64
_SYSTEM: Final = ("system", "developer")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")


class ProviderReply(NamedTuple):
    """A reply as a provider gives it; a count is None where it gives none."""

    text: str
    tool_calls: tuple[dict[str, Any], ...]
    finish: str
    tokens_in: int | None
    tokens_out: int | None
    model: str
    id: str


class StreamFold(Protocol):
    """Puts the events of one stream together to the value that the provider would have sent whole."""

    whole: bool
    """Whether all of the answer has come: a stream that ends before is broken."""
    done: bool
    """Whether nothing comes any more."""

    def apply(self, event: ServerEvent, value: Any) -> str:
        """Take an event with the JSON value of its data; what it adds to the text. Raises ProviderFailure."""
        ...

    @property
    def value(self) -> dict[str, Any]:
        """The reply so far, in the form of one that is not streamed."""
        ...


class Outgoing(NamedTuple):
    """What a body is made of; `own`: at the provider's own address."""

    request: ModelRequest
    model: str
    stream: bool
    own: bool


class ProviderApi(NamedTuple):
    """How one kind of provider is spoken to."""

    path: str
    """Below the base address."""
    base_url: str
    """The provider's own address, where no other is set."""
    auth_ref: str
    """Where the key for that address is."""
    features: tuple[str, ...]
    optional: dict[str, str]
    """Members of a body that are left out for a server that refuses them, each with the words that refusals use."""
    headers: Callable[[str], dict[str, str]]
    """The headers for a key, which may be empty, beside those of every request."""
    body: Callable[[Outgoing], dict[str, Any]]
    reply: Callable[[dict[str, Any]], ProviderReply | None]
    """The reply in a body; None for a body of no known form."""
    fold: Callable[[], StreamFold]
    """For the events of one stream."""


class ProviderFailure(Exception):
    """An error that a provider reports inside a stream: `{type, message, code, param}` as far as it says so."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__()
        self.error = error


def sent_names(tools: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By tool its name on the wire, where only letters, digits, `_` and `-` are allowed, 64 of them; each another."""
    found: dict[str, str] = {}
    for tool in tools:
        bare = name = _FOREIGN.sub("_", tool["name"])[:_LONGEST_NAME]
        number = 1
        while name in found.values():
            number += 1
            name = f"{bare[: _LONGEST_NAME - 4]}_{number}"
        found[tool["name"]] = name
    return found


def split_system(request: ModelRequest) -> tuple[str, list[dict[str, str]]]:
    """The text of all messages of `system` and `developer`, and the other messages; of neither providers want none."""
    text = "\n\n".join(each["content"] for each in request.messages if each["role"] in _SYSTEM)
    others = [dict(each) for each in request.messages if each["role"] not in _SYSTEM]
    return (text, others) if others else ("", [{"role": "user", "content": text}])


_LONG_COUNT: Final = re.compile(
    rb'("(?:prompt|completion|total|input|output|cache_creation_input|cache_read_input|cached|reasoning)_tokens"'
    rb"[ \t\r\n]*:[ \t\r\n]*)[0-9]{16,}(?![0-9.eE])"
)
"""A count of tokens that may be beyond 2^53, and what stands before it."""


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; a count of tokens beyond what JSON may hold here is null in it: an answer is not lost
    for how it was counted. Raises ModelError `protocol`."""
    try:
        return loads(text, max_bytes=MAX_REPLY)
    except JsonRefused as error:
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        counted, found = _LONG_COUNT.subn(rb"\1null", raw)
        with suppress(JsonRefused):
            if found:
                return loads(counted, max_bytes=MAX_REPLY)
        raise ModelError("protocol", f"the answer is not JSON: {error}") from error


def arguments_of(text: str) -> Any:
    """The arguments of a call that come as JSON text; the text itself where that is not JSON: whoever reads the reply
    decides what it is worth."""
    try:
        return parse_json(text) if text.strip() else {}
    except ModelError:
        return text


def object_at(value: Any, *path: str | int) -> dict[str, Any]:
    """The object at a path, an empty one where there is none."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def error_in(value: Any) -> dict[str, Any]:
    """The error that an answer tells, as an object; some servers tell it as a text. Empty for none."""
    text = text_of(value.get("error")) if isinstance(value, dict) else ""
    return {"message": text} if text else object_at(value, "error")


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, none where it is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def content_text(value: Any) -> str:
    """The text of a content that is one, or a list of parts some of which are text."""
    return text_of(value) or "".join(text_of(part.get("text")) for part in objects_in(value))


def count_of(value: Any) -> int | None:
    """A number of tokens, None for what cannot be one."""
    return value if type(value) is int and 0 <= value <= MAX_INTEGER else None

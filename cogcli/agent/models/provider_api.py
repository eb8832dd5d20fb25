"""The parts that adapters of providers share: a provider's wire as data and functions, and the parser of its JSON.

A reply is read into records by `declarations.reading`: a member of another type counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from cogcli.agent.models.port import ModelError, ModelRequest
from cogcli.agent.models.server_events import ServerEvent
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

MAX_REPLY: Final = 4 * 1024 * 1024
_LONGEST_NAME: Final = 64
_SYSTEM: Final = ("system", "developer")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")


class ContentPart(Record):
    """A part of a message's content. `text` is missing if the part contains no text."""

    text: str


class ReportedError(Record):
    """The error that a provider reports."""

    type: str = ""
    message: str = ""
    code: int | str | None = None


class FailedAnswer(Record):
    """An answer with an error. Some servers send the error as text."""

    error: ReportedError | str | None = None


class ProviderReply(NamedTuple):
    """The reply of a provider. A count missing in the reply is None."""

    text: str
    tool_calls: tuple[Json, ...]
    finish: str
    tokens_in: int | None
    tokens_out: int | None
    model: str
    id: str


class StreamFold(Protocol):
    """Folds the events of one stream to the reply that the provider would have sent without streaming."""

    whole: bool
    """Whether the answer is complete. A stream that ends before is broken."""
    done: bool
    """Whether no event follows."""

    def apply(self, event: ServerEvent, value: object) -> str:
        """Apply an event with the JSON value of its data, and return the text that it adds. Raise ProviderFailure."""
        ...

    @property
    def value(self) -> Json:
        """The reply so far, in the form of one without streaming."""
        ...


class Outgoing(NamedTuple):
    """The data for building a request body. `own` is whether the request goes to the provider's own address."""

    request: ModelRequest
    model: str
    stream: bool
    own: bool


class ProviderApi(NamedTuple):
    """The API of one kind of provider."""

    path: str
    """The path of the endpoint, relative to the base address."""
    base_url: str
    """The provider's address. It is used unless the settings name another one."""
    auth_ref: str
    """The reference to the key for that address."""
    features: tuple[str, ...]
    optional: dict[str, str]
    """Optional members of a request body. Each maps to a regular expression that matches a server's error about it."""
    headers: Callable[[str], dict[str, str]]
    """Return the additional headers for a key. The key may be empty."""
    body: Callable[[Outgoing], Json]
    reply: Callable[[object], ProviderReply | None]
    """Return the reply in a body, or None for a body of an unknown form."""
    fold: Callable[[], StreamFold]
    """Return a new fold for one stream."""


class ProviderFailure(Exception):
    """An error that a provider reports inside a stream."""

    def __init__(self, error: ReportedError) -> None:
        super().__init__()
        self.error = error


def sent_names(tools: Iterable[Json]) -> dict[str, str]:
    """Return the unique names of tools on the wire, where at most 64 letters, digits, `_` and `-` are allowed."""
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
    """Return the text of all messages of `system` and `developer`, and the other messages. Providers require one
    of these.
    """
    text = "\n\n".join(each["content"] for each in request.messages if each["role"] in _SYSTEM)
    others = [dict(each) for each in request.messages if each["role"] not in _SYSTEM]
    return (text, others) if others else ("", [{"role": "user", "content": text}])


_LONG_COUNT: Final = re.compile(
    rb'("(?:prompt|completion|total|input|output|cache_creation_input|cache_read_input|cached|reasoning)_tokens"'
    rb"[ \t\r\n]*:[ \t\r\n]*)[0-9]{16,}(?![0-9.eE])"
)
"""A count of tokens that may be beyond 2^53, and its key."""


def parse_json(text: str | bytes) -> object:
    """Return the value of a JSON text. A count of tokens beyond 2^53 becomes null, since a valid answer may have
    one. Raise ModelError `protocol`.
    """
    try:
        return loads(text, max_bytes=MAX_REPLY)
    except InvalidJson as error:
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        counted, found = _LONG_COUNT.subn(rb"\1null", raw)
        with suppress(InvalidJson):
            if found:
                return loads(counted, max_bytes=MAX_REPLY)
        raise ModelError("protocol", f"the answer is not JSON: {error}") from error


def arguments_of(text: str) -> object:
    """Return the arguments of a call from their JSON text; text that is not JSON is returned unchanged, for the
    critic.
    """
    try:
        return parse_json(text) if text.strip() else {}
    except ModelError:
        return text


def parse_error(value: object) -> ReportedError | None:
    """Return the error in an answer, or None without one."""
    error = read_record(FailedAnswer, value).error
    if isinstance(error, str):
        error = ReportedError(message=error)
    return error if error and error.json else None


def content_text(content: str | list[ContentPart] | None) -> str:
    """Return the text of a message's `content`, which may be a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content)

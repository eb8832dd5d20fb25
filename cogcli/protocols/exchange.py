"""One request and its reply, from the view of the server (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from urllib.parse import urlsplit

import orjson

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import AttemptMade, RecordedMessage
from cogcli.declarations.reading import read_record


class ReceivedRequest(NamedTuple):
    """One request that a server received. Header names are lower case; `path` and `query` are not
    decoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """Return the value of a header, empty if it is absent. `name` is in lower case."""
        return self.headers.get(name, "")


class ServerReply(NamedTuple):
    """One reply. The body is sent in `chunks`, with `pause` seconds between them, after `delay`
    seconds.

    `length` is the announced length, by default the real one. If `raw` is set, only these bytes are
    sent, and the connection is closed."""

    status: int = 200
    headers: Mapping[str, str] = {}
    chunks: tuple[bytes, ...] = ()
    delay: float = 0.0
    pause: float = 0.0
    length: int | None = None
    raw: bytes | None = None


Responder = Callable[[ReceivedRequest], ServerReply]
"""A function that returns a server's reply to a request."""


def reply_in_turn(
    replies: Sequence[ServerReply], fill: Callable[[str], str] = lambda value: value
) -> Responder:
    """Return a server function that sends these replies in turn, then repeats the last.

    `fill` changes the values of headers."""
    numbers = count()

    def answering(seen: ReceivedRequest) -> ServerReply:
        reply = replies[min(next(numbers), len(replies) - 1)]
        headers = {name: fill(value) for name, value in reply.headers.items()}
        return reply._replace(headers=headers)

    return answering


def json_reply(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> ServerReply:
    """Return a value as a JSON reply."""
    given = {"Content-Type": "application/json", **(headers or {})}
    return ServerReply(status, given, (orjson.dumps(value),))


class ObservedExchange(NamedTuple):
    """One request and its reply, unmasked; `status` is 0 without a reply.

    `whole`: whether header values are known; a record contains only header names."""

    seen: ReceivedRequest
    status: int
    media_type: str
    reply: bytes
    whole: bool = True


def exchange_from_mock(seen: ReceivedRequest, reply: ServerReply) -> ObservedExchange:
    """Return the exchange of a request to a mock server."""
    media_type = next((v for n, v in reply.headers.items() if n.lower() == "content-type"), "")
    return ObservedExchange(seen, reply.status, media_type, b"".join(reply.chunks))


def exchange_from_record(record: Mapping[str, object]) -> ObservedExchange | None:
    """Return the exchange in the record of an attempt; None if no request was made."""
    attempt = read_record(AttemptMade, record)
    if not attempt.url:
        return None
    request = read_record(RecordedMessage, attempt.request)
    reply = read_record(RecordedMessage, attempt.reply)
    parts = urlsplit(attempt.url)
    names = {name.lower(): "" for name in request.headers} | {"content-type": request.media_type}
    seen = ReceivedRequest(
        attempt.method or "", parts.path, parts.query, names, bytes_of_body(request.body)
    )
    media_type = attempt.media_type or reply.media_type
    return ObservedExchange(
        seen, attempt.status_code or 0, media_type, bytes_of_body(reply.body), whole=False
    )


def bytes_of_body(body: object) -> bytes:
    """Return a recorded body as bytes: a string in UTF-8, another value as JSON, none as no bytes."""
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else orjson.dumps(body)

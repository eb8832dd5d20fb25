"""A request as a server sees it, and a server's reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """One request. Header names are lower case; `path` and `query` are not decoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Reply(NamedTuple):
    """One reply: the body in `chunks`, `pause` seconds before each but the first, `delay` seconds before the reply.

    `length` is the announced length, the true one by default.
    """

    status: int = 200
    headers: Mapping[str, str] = {}
    chunks: tuple[bytes, ...] = ()
    delay: float = 0.0
    pause: float = 0.0
    length: int | None = None


Answering = Callable[[Seen], Reply]
"""A server's answer to a request."""


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A value as a JSON reply."""
    import orjson

    given = {"Content-Type": "application/json", **(headers or {})}
    return Reply(status, given, (orjson.dumps(value),))

"""The end of a browser's way: a listener on loopback that receives one answer of an authorization server
(docs/reference/mcp.md#browser).

1. It listens on 127.0.0.1 alone, and until the answer is there.
2. An answer counts if its `state` is the one that was sent. Any other request gets an error page, and the wait goes on.
3. Its page does not say that the login succeeded: that is not known yet.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from secrets import compare_digest
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple

_PATH: Final = "/callback"
_MAX_HEAD: Final = 16 * 1024
_HEAD_SECONDS: Final = 10.0
_RECEIVED: Final = "cogcli has received the answer. Its terminal says whether you are logged in."
_OTHER: Final = "This is not the answer that cogcli waits for."


class RedirectAnswer(NamedTuple):
    """The answer of an authorization server. `error` is empty for a code."""

    code: str
    state: str
    iss: str | None
    error: str


class RedirectListener:
    """Listens on loopback as long as its context is open."""

    def __init__(self, port: int | None) -> None:
        self._port = port or 0
        self._state = ""
        self._answer: asyncio.Future[RedirectAnswer] | None = None
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The address that the authorization server sends the browser to."""
        return f"http://127.0.0.1:{self._port}{_PATH}"

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(
                self._answer_browser, "127.0.0.1", self._port, limit=_MAX_HEAD
            )
        except OSError as error:
            text = f"port {self._port} of this machine is not free: {error.strerror}"
            hint = "write another `port` below `login`, or none"
            raise UnusableEnvironment("config.key", text, hint=hint) from error
        self._port = self._server.sockets[0].getsockname()[1]
        self._answer = asyncio.get_running_loop().create_future()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()

    async def wait(self, state: str) -> RedirectAnswer:
        """Return the answer whose `state` is this one."""
        self._state = state
        if self._answer is None:
            raise RuntimeError("the listener is not open")
        return await self._answer

    async def _answer_browser(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(
            OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError
        ):
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            answer = self._parse_redirect(head)
            writer.write(
                _html_page(_OTHER, "400 Bad Request") if answer is None else _html_page(_RECEIVED)
            )
            await writer.drain()
            if answer is not None and self._answer is not None and not self._answer.done():
                self._answer.set_result(answer)
        writer.close()

    def _parse_redirect(self, head: bytes) -> RedirectAnswer | None:
        """Return the answer in the head of a request. None unless it is the redirect of this login."""
        method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        target = urlsplit(rest.rpartition(" ")[0])
        pairs = parse_qsl(target.query, keep_blank_values=True)
        found = dict(pairs)
        has_duplicates = len(found) != len(pairs)
        if method != "GET" or target.path != _PATH or has_duplicates:
            return None
        state = found.pop("state", "")
        if not self._state or not compare_digest(state.encode(), self._state.encode()):
            return None
        error = ": ".join(filter(None, (found.get("error"), found.get("error_description"))))
        code = found.get("code", "")
        if not error and not code:
            error = "no code"
        return RedirectAnswer(code, state, found.get("iss"), error)


def _html_page(text: str, status: str = "200 OK") -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>cogcli</title><p>{text}</p>\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body

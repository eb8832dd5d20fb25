"""A reply that is read while it comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from support.raw_server import Conversation, serving

from cogcli.base.calls import Cancellation
from cogcli.base.errors import (
    CallTimeoutError,
    ResponseMappingError,
    RuntimeErrorBase,
    TransportError,
)
from cogcli.base.http import Http, HttpRequest

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


@pytest.fixture
def http() -> Iterator[Http]:
    made = Http()
    yield made
    made.close()


def request(url: str, **members: object) -> HttpRequest:
    return HttpRequest("POST", url, network="private")._replace(**members)  # type: ignore[arg-type]


def soon(seconds: float = 30) -> float:
    return time.monotonic() + seconds


def broken(http: Http, url: str, *, seconds: float = 30) -> tuple[list[bytes], RuntimeErrorBase]:
    """The chunks that came before reading failed, and how it did."""
    chunks: list[bytes] = []
    try:
        with http.stream(request(url), soon(seconds), Cancellation()) as reply:
            chunks.extend(reply.chunks())
    except RuntimeErrorBase as error:
        return chunks, error
    raise AssertionError(chunks)


def test_chunks_come_before_the_end_and_other_exchanges_between_them(http: Http) -> None:
    further = threading.Event()

    def answer(conversation: Conversation) -> None:
        conversation.send(HEAD + b"Content-Length: 11\r\n\r\nfirst")
        further.wait(30)
        conversation.send(b"second")

    def other(conversation: Conversation) -> None:
        conversation.reply(b"{}")

    with (
        serving(answer) as server,
        serving(other) as second,
        http.stream(request(server.url), soon(), Cancellation()) as reply,
    ):
        chunks = reply.chunks()
        assert (reply.head.status, next(chunks)) == (200, b"first")
        assert http.send(request(second.url), soon(), Cancellation()).body == b"{}"
        further.set()
        assert b"".join(chunks) == b"second"


def test_a_body_beyond_the_cap_ends_with_the_chunk_that_passes_it(http: Http) -> None:
    def pour(conversation: Conversation) -> None:
        conversation.send(HEAD + b"\r\n")
        conversation.pour(b"x" * 1000)

    with serving(pour) as server:
        with (
            pytest.raises(ResponseMappingError, match="more than 5,000 bytes") as caught,
            http.stream(
                request(server.url, max_response_bytes=5000), soon(), Cancellation()
            ) as reply,
        ):
            for _ in reply.chunks():
                pass
        assert caught.value.code == "response.size"


def test_an_encoding_that_nobody_asked_for_is_refused(http: Http) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.reply(b"...", headers="Content-Encoding: gzip")

    with serving(answer) as server:
        with (
            pytest.raises(ResponseMappingError, match="encoded") as caught,
            http.stream(request(server.url), soon(), Cancellation()) as reply,
        ):
            next(reply.chunks())
        assert caught.value.code == "response.not-json"


def test_a_body_shorter_than_announced_is_a_lost_connection(http: Http) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.send(HEAD + b"Content-Length: 10\r\n\r\nhalf")
        conversation.close()

    with serving(answer) as server:
        chunks, error = broken(http, server.url)
        assert (chunks, type(error), error.left) == ([b"half"], TransportError, True)


def test_silence_between_two_chunks_ends_at_the_deadline(http: Http) -> None:
    def answer(conversation: Conversation) -> None:
        conversation.send(HEAD + b"\r\nfirst")
        conversation.hold()

    with serving(answer) as server:
        chunks, error = broken(http, server.url, seconds=0.2)
        assert (chunks, type(error), error.left) == ([b"first"], CallTimeoutError, True)


def test_leaving_early_closes_the_connection(http: Http) -> None:
    closed = threading.Event()

    def answer(conversation: Conversation) -> None:
        conversation.send(HEAD + b"\r\nfirst")
        if conversation.hold():
            closed.set()

    with serving(answer) as server:
        with http.stream(request(server.url), soon(), Cancellation()) as reply:
            assert next(reply.chunks()) == b"first"
        assert closed.wait(30)

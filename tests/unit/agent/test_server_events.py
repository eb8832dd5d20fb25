"""Server-sent events from bytes that are split anywhere."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from cogcli.agent.models.server_events import EventParser, ServerEvent

STREAM = (
    "\ufeffevent: first\r\ndata: ä € \U0001f600\r\n\r\n"
    ": a comment\n\n"
    "data: one\ndata:two\ndata\n\n"
    "id: 7\nretry: 10\nunknown: x\ndata:  kept blank\n\n"
    "event: without data\n\n"
    "data: by returns\r\revent: last\rdata: {}\r\n\n"
    "data: never finished\n"
).encode()
EVENTS = [
    ServerEvent("first", "ä € \U0001f600"),
    ServerEvent("", "one\ntwo\n"),
    ServerEvent("", " kept blank"),
    ServerEvent("", "by returns"),
    ServerEvent("last", "{}"),
]


def parsed(*chunks: bytes) -> list[ServerEvent]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_comments_fields_line_ends_and_lines_of_data() -> None:
    assert parsed(STREAM) == EVENTS


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_the_events_are_the_same_wherever_the_bytes_are_split(size: int) -> None:
    assert parsed(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == EVENTS


@given(st.lists(st.integers(0, len(STREAM))))
@examples(200)
def test_any_split_gives_the_same(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert parsed(*(STREAM[a:b] for a, b in itertools.pairwise(places))) == EVENTS


@given(st.lists(st.binary(max_size=30)))
@examples(300)
def test_any_bytes_give_events_of_text(chunks: list[bytes]) -> None:
    for event in parsed(*chunks):
        event.data.encode()
        assert "\r" not in event.data

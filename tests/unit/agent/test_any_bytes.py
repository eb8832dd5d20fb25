"""Whatever a server sends, a request ends with an answer or an error of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.models import ask, model, request, streamed
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.raw_server import Conversation, RawServer

from cogcli.agent.models.port import FINISHES, KINDS, ModelError, ModelReply

pytestmark = pytest.mark.sampled(6)


class AnyServer:
    """Answers every request with these bytes."""

    def __init__(self) -> None:
        self.data = b""
        self.media_type = "application/json"
        self.server = RawServer(self._answer)

    def _answer(self, conversation: Conversation) -> None:
        conversation.reply(self.data, headers=f"Content-Type: {self.media_type}")

    def outcomes(self, data: bytes, media_type: str) -> list[ModelReply | ModelError]:
        """What comes of these bytes for each adapter, streamed or not."""
        self.data, self.media_type = data, media_type
        found: list[ModelReply | ModelError] = []
        for adapter in ("openai", "anthropic"):
            asked = model(adapter, "m", base_url=self.server.url)
            for call in (ask, lambda *given: streamed(*given)[1]):
                try:
                    found.append(call(asked, request()))
                except ModelError as error:
                    found.append(error)
        return found


@pytest.fixture(scope="module")
def anything() -> Iterator[AnyServer]:
    made = AnyServer()
    yield made
    made.server.close()


def accepted(outcomes: list[ModelReply | ModelError]) -> None:
    for outcome in outcomes:
        json.dumps(outcome.to_payload()).encode()
        if isinstance(outcome, ModelReply):
            assert outcome.finish in FINISHES
        else:
            assert outcome.kind in KINDS


WORDS = st.sampled_from(
    ["choices", "message", "delta", "content", "tool_calls", "function", "name", "arguments", "index", "usage",
     "prompt_tokens", "type", "error", "text", "content_block", "content_block_start", "content_block_delta",
     "message_start", "message_delta", "message_stop", "input", "id", "finish_reason", "stop", "[DONE]", "partial_json"]
)  # fmt: skip
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.binary(max_size=200))
@examples(100)
def test_any_bytes(anything: AnyServer, data: bytes) -> None:
    accepted(anything.outcomes(data, "text/event-stream"))


@pytest.mark.slow
@given(st.lists(VALUES, max_size=6))
@examples(200)
def test_any_values_under_the_words_of_the_protocols(
    anything: AnyServer, values: list[Any]
) -> None:
    accepted(
        anything.outcomes(json.dumps(values[0] if values else None).encode(), "application/json")
    )
    stream = "".join(f"data: {json.dumps(value)}\n\n" for value in values).encode()
    accepted(anything.outcomes(stream, "text/event-stream"))

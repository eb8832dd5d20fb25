"""A language model that gives what a test says."""

from __future__ import annotations

from collections.abc import Generator

import orjson

from cogcli.agent.models.port import (
    Delta,
    ModelError,
    ModelInfo,
    ModelReply,
    ModelRequest,
    TokenUsage,
)
from cogcli.base.calls import Cancellation


class FakeModel:
    """Gives these outcomes, one after the other."""

    def __init__(self, *outcomes: ModelReply | ModelError, features: tuple[str, ...] = ()) -> None:
        self._outcomes = list(outcomes)
        self._features = features
        self.asked: list[ModelRequest] = []

    def describe(self) -> ModelInfo:
        return ModelInfo("fake", "m", features=self._features)

    def generate(self, request: ModelRequest, cancel: Cancellation) -> ModelReply:
        self.asked.append(request)
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    def stream(
        self, request: ModelRequest, cancel: Cancellation
    ) -> Generator[Delta, None, ModelReply]:
        reply = self.generate(request, cancel)
        for letter in reply.text:
            yield Delta(letter)
        return reply


def reply(**members: object) -> ModelReply:
    """A reply of these members, ten tokens long."""
    return text(orjson.dumps(members).decode())


def text(content: str) -> ModelReply:
    """A reply of any text."""
    return ModelReply(content, (), "stop", TokenUsage(100, 10), "m", "r")

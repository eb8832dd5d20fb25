"""Models as adapters open them, with real parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogcli.agent.context.tokenizer import estimate
from cogcli.agent.models import open_model
from cogcli.agent.models.port import Delta, LanguageModel, ModelError, ModelReply, ModelRequest
from cogcli.agent.models.settings import ModelContext, ModelSettings
from cogcli.base.calls import Cancellation
from cogcli.protocols.secrets import Secrets


def model(
    adapter: str,
    name: str,
    *,
    environ: Mapping[str, str] | None = None,
    sent: int = 0,
    **settings: Any,
) -> LanguageModel:
    """The model that these settings name."""
    context = ModelContext(
        Secrets(environ or {}, lambda secret: None), estimate, environ or {}, sent
    )
    return open_model(ModelSettings(adapter, name, **settings), context)


def request(text: str = "hello", **members: Any) -> ModelRequest:
    """A request with one message of a user."""
    messages = (
        {"role": "system", "content": "You are a desk."},
        {"role": "developer", "content": "Answer in JSON."},
        {"role": "user", "content": text},
    )
    return ModelRequest(messages, timeout_ms=members.pop("timeout_ms", 30_000), **members)


def ask(
    asked: LanguageModel, request: ModelRequest, cancel: Cancellation | None = None
) -> ModelReply:
    """The answer, not streamed."""
    return asked.generate(request, cancel or Cancellation())


def streamed(
    asked: LanguageModel, request: ModelRequest, cancel: Cancellation | None = None
) -> tuple[list[str], ModelReply]:
    """The pieces of a stream, and the answer that it returns."""
    pieces, stream = [], asked.stream(request, cancel or Cancellation())
    while True:
        try:
            delta: Delta = next(stream)
        except StopIteration as stop:
            return pieces, stop.value
        pieces.append(delta.text)


def failure(asked: LanguageModel, request: ModelRequest, *, stream: bool = False) -> ModelError:
    """The error that a request ends with."""
    try:
        answer = streamed(asked, request) if stream else ask(asked, request)
    except ModelError as error:
        return error
    raise AssertionError(f"no error, but {answer}")

"""A model that repeats recorded answers in their order (docs/reference/models.md#replay)."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from typing import Final

from cogcli.agent.models.port import (
    Delta,
    ModelError,
    ModelInfo,
    ModelOutcome,
    ModelReply,
    ModelRequest,
)
from cogcli.agent.models.settings import ModelContext, ModelSettings
from cogcli.base.calls import Cancellation
from cogcli.base.canonical import compact
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound
from cogcli.base.strict_json import InvalidJson, loads

_LIMIT: Final = 256 * 1024 * 1024


class Exchange(NamedTuple):
    """The hash of a request, and its outcome."""

    request_hash: str
    outcome: ModelOutcome

    def to_line(self) -> bytes:
        """Return the exchange as a line of a transcript file."""
        return compact({"request_hash": self.request_hash, **self.outcome.to_payload()}) + b"\n"


def open_adapter(settings: ModelSettings, context: ModelContext) -> TranscriptModel:
    """Return the model of a transcript file. Raise ProblemsFound for a malformed file."""
    exchanges = read_transcript(settings.file, settings.name)
    info = ModelInfo(
        "replay", settings.name, settings.context_tokens, True, ("stream", "tools", "json")
    )
    return TranscriptModel(exchanges[context.sent :], info)


def read_transcript(path: str, display_path: str) -> list[Exchange]:
    """Return the exchanges of a file, one per line. Raise ProblemsFound with the place of the first fault."""
    line = 0
    try:
        lines = read_regular(path, limit=_LIMIT).splitlines()
        found = []
        for line, text in enumerate(lines, 1):  # noqa: B007
            found.append(_exchange_from(loads(text)))
        return found
    except UnreadableFile as refused:
        problem = Problem(
            "yaml.io", "E", display_path, 0, 0, "", refused.message, "name a regular file"
        )
    except InvalidJson as refused:
        problem = Problem(
            refused.code, "E", display_path, line, max(refused.column, 1), "", refused.message
        )
    except (KeyError, TypeError, ValueError):
        message = (
            "is not a recorded exchange, expected {request_hash, reply} or {request_hash, error}"
        )
        problem = Problem("value.type", "E", display_path, line, 1, "", message)
    raise ProblemsFound([problem])


def _exchange_from(line: object) -> Exchange:
    """Raise KeyError, TypeError or ValueError for a line that records no exchange."""
    if type(line) is not dict:
        raise TypeError
    if "reply" in line:
        outcome = ModelOutcome(reply=ModelReply.from_payload(line["reply"]))
    else:
        outcome = ModelOutcome(error=ModelError.from_payload(line["error"]))
    return Exchange(line["request_hash"], outcome)


class TranscriptModel:
    """Answers each request with the recorded outcome of an equal one, in order."""

    def __init__(self, exchanges: Sequence[Exchange], info: ModelInfo) -> None:
        self._exchanges = exchanges
        self._info = info
        self._lock = threading.Lock()
        self._next = 0

    def describe(self) -> ModelInfo:
        return self._info

    def generate(self, request: ModelRequest, cancel: Cancellation) -> ModelReply:
        with self._lock:
            number = self._next
            if number >= len(self._exchanges):
                raise ModelError("bad_request", f"the transcript has no answer {number + 1}")
            recorded, outcome = self._exchanges[number]
            if recorded != request.request_hash:
                text = f"answer {number + 1} of the transcript is that of another request"
                raise ModelError("bad_request", text, hint=f"it was recorded for {recorded}")
            self._next += 1
        return outcome.result()

    def stream(
        self, request: ModelRequest, cancel: Cancellation
    ) -> Generator[Delta, None, ModelReply]:
        reply = self.generate(request, cancel)
        yield Delta(reply.text)
        return reply

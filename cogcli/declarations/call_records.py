"""The records of calls in a log: each attempt, the resources used, and the error that ended a call."""

from __future__ import annotations

from typing import ClassVar

from cogcli.base.errors import RuntimeErrorBase, class_of
from cogcli.declarations.field import always
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Hex, Json


class Usage(Record):
    """The resources that the calls of a step used."""

    llm_calls: Count = always(default=0)
    tool_calls: Count = always(default=0)
    tokens_in: Count = always(default=0)
    tokens_out: Count = always(default=0)


class WrittenFile(Record):
    """A file that a call wrote, in its state when the call reported it."""

    path: str
    """The path of the file, relative to the directory in which the run was started if the file is below it."""
    size_bytes: Count
    sha256: Hex


class AttemptMade(Record):
    """One attempt of a call, or a binding that was passed over (docs/reference/protocols.md#record)."""

    other_members: ClassVar[bool] = True

    binding_id: str
    service_id: str | None
    status: str
    """`success`, `failed`, `circuit_open`, `skipped` for a binding that was passed over, or `input_required` for one
    that its service left unfinished."""
    usage: Json | None = None
    """Numbers of tokens, under the names that the service uses."""
    code: str | None = None
    """The code of the attempt's error."""
    message: str | None = None
    left: bool | None = None
    """Whether the request was sent."""
    method: str | None = None
    url: str | None = None
    media_type: str | None = None
    request_bytes: Count | None = None
    response_bytes: Count | None = None
    started_at: str | None = None
    duration_ms: Count | None = None
    model: str | None = None
    finish_reason: str | None = None
    request: Json | None = None
    """`media_type`, the names of headers, and `body`."""
    reply: Json | None = None
    """`media_type` and `body`."""
    proxy: str | None = None
    batch: Json | None = None
    """In older logs: of a call that was sent in one array with others."""
    printed: str | None = None
    files: list[WrittenFile] = []
    """The files that a function wrote."""
    stderr: str | None = None
    stated_by: str | None = None
    """The person who stated the answer of a call that may have happened."""
    response_headers: dict[str, str] | None = None
    """The headers of the reply that the binding maps, by their names in lower case."""
    pages: Count | None = None
    """The pages that were read. The other members describe the last page."""
    notices: list[str] = []
    """Messages that the service sent in addition to the answer."""
    status_code: Count | None = None


class RecordedMessage(Record):
    """A request or a reply in the record of an attempt."""

    media_type: str
    headers: list[str]
    body: object = None


class FallbackUse(Record):
    """The use of fallbacks in a step with several bindings: whether one was called, and their
    order.
    """

    fallback_used: bool
    fallback_chain: list[str]


class ResultOrigin(Record):
    """The event of another run from which a step reused its result."""

    episode: str
    event: str
    at: str = ""
    """The time when the result was recorded."""


class RecordedError(Record):
    """The members of a recorded error from which the error is raised again."""

    code: str = ""
    message: str = ""
    hint: str = ""
    left: bool | None = True
    reason: str = ""
    say: str = ""


def error_from_payload(payload: Json) -> RuntimeErrorBase:
    """Return the error in an event's `error` object.

    If the code is not an error code of runs, return an InternalError with that code.
    """
    recorded = read_record(RecordedError, payload)
    code = recorded.code or "internal"
    error = class_of(code)(code, recorded.message, hint=recorded.hint, left=recorded.left)
    error.reason, error.say = recorded.reason, recorded.say
    return error


class StepError(Record):
    """The error of a step."""

    code: str
    message: str
    retryable: bool = always(default=False)
    hint: str | None = None
    reason: str | None = None
    effect: str | None = None
    say: str | None = None
    """The text of a pack for the customer."""


class RunError(Record):
    """The error of a run, and the place where it occurred."""

    code: str
    message: str
    step: str | None = always(default=None)
    capability: str | None = always(default=None)
    binding: str | None = always(default=None)
    service: str | None = always(default=None)
    retryable: bool = always(default=False)
    hint: str = always(default="")
    reason: str | None = None
    effect: str | None = None
    say: str | None = None
    """The text of a pack for the customer."""

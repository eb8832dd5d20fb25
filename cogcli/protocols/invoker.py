"""The invoker contract (docs/reference/protocols.md#invoker): one `invoke` makes one attempt. Retries, mapping and
the log belong to the callers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from cogcli.base.calls import (
    Cancellation,
    Continuation,
    PersonAtTerminal,
    ProgressNotice,
    ServiceChange,
    TakeQuestion,
    TakeSample,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cogcli.base.file_roots import Roots
    from cogcli.base.pinned_file import PinnedFile
    from cogcli.base.system import Clock
    from cogcli.protocols.pythoncall.readable_files import ReadableFiles
    from cogcli.protocols.secrets import Secrets
    from cogcli.specs.registry import Registry

INHERITED: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
)
"""The environment variables that a worker or server program gets by default."""


def inherited_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `INHERITED` that are set and not empty
    (docs/reference/protocols.md#worker, docs/reference/protocols.md#mcp-stdio)."""
    return {name: environ[name] for name in INHERITED if environ.get(name)}


class InvokerContext(NamedTuple):
    """The context that all invokers of one run share: secrets, clock, folders, environment,
    concurrency."""

    secrets: Secrets
    clock: Clock
    state_dir: str
    """The user's state directory, which contains the pins of first use. If it is empty, nothing is pinned."""
    environ: Mapping[str, str] = {}
    """The environment of the command."""
    max_workers: int = 8
    use_env_proxy: bool = False
    store_dir: str = ""
    """The folder of the project's stores; empty for none."""
    bytecode_dir: str = ""
    """The folder of bytecode for started Python programs; empty for next to their sources."""
    reads: ReadableFiles | None = None
    """The files that shipped functions may read; None for any."""
    files: frozenset[PinnedFile] = frozenset()
    """The files that the run may send. No other value refers to a file, regardless of its form."""
    write_roots: Roots = ()
    """The folders where functions write files; () for the working directory."""
    open_registry: Callable[[], Registry] | None = None
    """Opens the registry of the run, for functions that list its skills."""
    allow_hosts: tuple[str, ...] = ()
    """The public hosts that services may reach without trust."""
    note: Callable[[ServiceChange], None] | None = None
    """Receives each start and stop of a service, each page, each answered question and each request to the model, from
    any thread; None if no log records them."""
    on_question: TakeQuestion | None = None
    """Passes a question of a service to a person. None if no person can answer; then services do not offer
    questions.
    """
    person: PersonAtTerminal | None = None
    """The person at the terminal who answers questions of services during an open call. None without a person."""
    open_sampler: Callable[[], TakeSample | None] | None = None
    """Opens the configured model for services that may ask it inside a call. It returns None without a model. None if
    no service of this run may ask one.
    """
    pauses_for_input: bool = False
    """Whether a call may end with an InputRequiredError, after which it continues with a person's answer."""
    on_progress: Callable[[ProgressNotice], None] | None = None
    """Receives the progress that services report of their calls, from any thread. It must not block.
    None if no one waits for it: then no service is asked for it."""


class InvocationRequest(NamedTuple):
    """One attempt. `payload` is the invoker's private copy."""

    service: Service
    binding: Binding
    operation: str
    payload: Json
    effect: str
    idempotency_key: str
    capability_id: str
    run_id: str
    step_id: str
    attempt: int
    traceparent: str = ""
    link: str = ""
    """The link to the next page, which a reply of the service named; empty for the request itself."""
    continuation: Continuation | None = None
    """The answer to the service's previous input request; None without one."""

    @property
    def request_cap(self) -> int:
        """Return the most bytes that the request may have."""
        return self.binding.metadata.max_request_bytes

    @property
    def reply_cap(self) -> int:
        """Return the most bytes that the reply may have."""
        return self.binding.metadata.max_response_bytes

    @property
    def response_mode(self) -> str:
        """The way to read the reply: `json`, `text` or `raw`."""
        return self.binding.metadata.response_mode


class CallLimits(NamedTuple):
    """The limits of one attempt: a monotonic deadline and its cancellation.

    `seconds` limits the call alone, once it can be made. `start_seconds` limits the start of its
    server. `deadline` limits both, and the `answer_seconds` in which a person answers the server."""

    deadline: float
    cancel: Cancellation
    seconds: float | None = None
    start_seconds: float | None = None
    answer_seconds: float = 0.0

    def within(self, seconds: float | None) -> float:
        """Return the monotonic time `seconds` from now, at most `deadline` without the time for answers; that for
        None or 0."""
        end = self.deadline - self.answer_seconds
        return end if not seconds else min(end, time.monotonic() + seconds)


class CallMeta(NamedTuple):
    """The record of one attempt (docs/reference/protocols.md#record).

    `request` and `reply` are `{media_type, body}`; `request` also has the names of headers.
    pythoncall leaves everything empty but `usage`, `printed` and `files`."""

    method: str = ""
    url: str = ""
    status: int | None = None
    media_type: str = ""
    request_bytes: int | None = None
    response_bytes: int | None = None
    started_at: str = ""
    duration_ms: int | None = None
    usage: Mapping[str, int] | None = None
    model: str | None = None
    finish_reason: str | None = None
    request: Mapping[str, object] | None = None
    reply: Mapping[str, object] | None = None
    proxy: str = ""
    """The proxy of the request, without user info; empty without `use_env_proxy`."""
    printed: str = ""
    """The last 64 KiB that a function printed."""
    files: list[Json] | None = None
    """The path, size and hash of each file that a function wrote."""
    response_headers: dict[str, str] | None = None
    """The headers of the reply that the binding maps, by their names in lower case."""
    pages: int | None = None
    """The pages that the attempt read; None if the binding reads no pages."""
    notices: list[str] | None = None
    """Notices about the server: lines that are no messages, and requests that were refused."""

    def to_payload(self) -> Json:
        """Return the members of one entry of `attempts[]`, without empty ones and without `usage`, which the event
        contains. `status` becomes `status_code`, because an attempt's own `status` is success or failed.
        """
        if self == _EMPTY:  # as for most functions
            return {}
        members = self._asdict()
        members["status_code"] = members.pop("status")
        del members["usage"]
        return {name: value for name, value in members.items() if value not in ("", None)}


_EMPTY: Final = CallMeta()


class InvocationResponse(NamedTuple):
    """The result of an attempt: the JSON value that `response.*` paths read, and the record."""

    body: object
    meta: CallMeta = CallMeta()

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers of the reply that `response_headers.*` paths read."""
        return self.meta.response_headers or {}


class Invoker(Protocol):
    """Makes the attempts of one protocol. Each run has one; it is thread-safe."""

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        """Make the attempt.

        Raise a RuntimeErrorBase of docs/reference/protocols.md#failures with `left`, whether the
        request went out. For a request over a connection it also has `record`, the members of
        `CallMeta.to_payload`."""
        ...

    def close(self, grace: float) -> None:
        """Close every socket and end every child process, within `grace` seconds; may be called twice."""
        ...

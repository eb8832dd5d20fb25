"""The invoker contract (docs/reference/protocols.md#invoker): one `invoke` makes one attempt. Retries, mapping and
the log belong to the callers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cogcli.base.calls import Cancellation, ServiceNotice
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cogcli.base.file_roots import Roots
    from cogcli.base.system import Clock
    from cogcli.protocols.pythoncall.readable_files import Reads
    from cogcli.protocols.secrets import Secrets
    from cogcli.specs.registry import Registry

DEFAULT_BYTES: Final = 10 * 1024 * 1024
"""The largest request and the largest reply as JSON, where the binding sets no other limit."""

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
"""The environment variables that a worker or server program gets without being named in its service file."""


def inherited_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those of `INHERITED` that are set and not empty (docs/reference/protocols.md#worker,
    docs/reference/protocols.md#mcp-stdio)."""
    return {name: environ[name] for name in INHERITED if environ.get(name)}


class InvokerContext(NamedTuple):
    """Shared by the invokers of one run: secrets, clock, state directory, environment, calls at a time."""

    secrets: Secrets
    clock: Clock
    state_dir: str
    """The user's state directory, which holds the pins of first use. Empty: nothing is pinned."""
    environ: Mapping[str, str] = {}
    """The environment that the command was started with."""
    max_workers: int = 8
    use_env_proxy: bool = False
    store_dir: str = ""
    """Where the stores of the project are; empty for none."""
    bytecode_dir: str = ""
    """Where Python programs that are started keep bytecode; empty for next to their sources."""
    reads: Reads | None = None
    """Which files the shipped functions may read; None for any."""
    write_roots: Roots = ()
    """Where functions write files; () for the working directory."""
    open_registry: Callable[[], Registry] | None = None
    """Opens the registry of the run, for the functions that ask for its skills."""
    allow_hosts: tuple[str, ...] = ()
    """The public hosts that services reach although they are not trusted."""
    note_service: Callable[[ServiceNotice], None] | None = None
    """Takes each start and stop of a service, from any thread; None if no log takes them."""


class InvocationRequest(NamedTuple):
    """One attempt. `payload` is the invoker's own copy."""

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

    @property
    def request_cap(self) -> int:
        """The most bytes that the request may have."""
        return self.binding.metadata.max_request_bytes

    @property
    def reply_cap(self) -> int:
        """The most bytes that the reply may have."""
        return self.binding.metadata.max_response_bytes

    @property
    def response_mode(self) -> str:
        """How the reply is read: `json`, `text` or `raw`."""
        return self.binding.metadata.response_mode


class CallLimits(NamedTuple):
    """The limits of one attempt: a monotonic deadline and its cancellation.

    `seconds` bounds the call alone, from the moment it can be made; `start_seconds` bounds the start of a server before
    it. `deadline` bounds both.
    """

    deadline: float
    cancel: Cancellation
    seconds: float | None = None
    start_seconds: float | None = None

    def within(self, seconds: float | None) -> float:
        """The monotonic time `seconds` from now, at most `deadline`; `deadline` for None or 0."""
        return self.deadline if not seconds else min(self.deadline, time.monotonic() + seconds)


class CallMeta(NamedTuple):
    """The record of one attempt (docs/reference/protocols.md#record). Of headers it holds only names, under `request`.

    `request` and `reply` are `{media_type, body}`; pythoncall leaves everything empty but `usage` and `printed`.
    """

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
    request: Mapping[str, Any] | None = None
    reply: Mapping[str, Any] | None = None
    proxy: str = ""
    """The proxy that the request went through, without user info; empty without `use_env_proxy`."""
    printed: str = ""
    """The last 64 KiB that a function printed."""
    files: list[Json] | None = None
    """The files that a function wrote: path, size and hash of each."""
    notices: list[str] | None = None
    """What the server did besides answering: lines that are no messages, requests that were refused."""

    def to_payload(self) -> Json:
        """The members of one entry of `attempts[]`, without empty ones and without `usage`, which is one of the event.

        `status` becomes `status_code`: an attempt's own `status` is success or failed.
        """
        members = self._asdict()
        members["status_code"] = members.pop("status")
        del members["usage"]
        return {name: value for name, value in members.items() if value not in ("", None)}


class InvocationResponse(NamedTuple):
    """The JSON value that `response.*` paths read, and the record of the attempt."""

    body: Any
    meta: CallMeta = CallMeta()


class Invoker(Protocol):
    """One per run, thread-safe."""

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        """Make the attempt. Raises a RuntimeErrorBase of docs/reference/protocols.md#failures, with `left` set (whether
        the request went out) and, for a request over a connection, `record` (the members of `CallMeta.to_payload`)."""
        ...

    def close(self, grace: float) -> None:
        """Close every socket and end every child process, within `grace` seconds; may be called twice."""
        ...

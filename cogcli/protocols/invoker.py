"""The invoker contract (docs/reference/protocols.md#invoker): one `invoke` is one wire attempt; everything
else stays outside."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cogcli.core.calls import BatchSlot, Cancellation
from cogcli.specs.binding import Binding
from cogcli.specs.service import Service

if TYPE_CHECKING:
    from cogcli.core.ports import Clock
    from cogcli.protocols.pythoncall.readable_files import Reads
    from cogcli.protocols.secrets import Secrets

DEFAULT_BYTES: Final = 10 * 1024 * 1024
"""What a request and a reply may hold as JSON where the binding says nothing else."""


class InvokerContext(NamedTuple):
    """What the invokers of one run are given from outside."""

    secrets: Secrets
    clock: Clock
    state_dir: str
    """The user's state directory: where pins of first use live. Empty: nowhere."""
    environ: Mapping[str, str] = {}
    """The environment as the command was started with."""
    max_workers: int = 8
    use_env_proxy: bool = False
    reads: Reads | None = None
    """Which files the shipped functions may read, where the project is not trusted."""


class InvocationRequest(NamedTuple):
    """One attempt on the wire. `payload` is the invoker's own copy."""

    service: Service
    binding: Binding
    operation: str
    payload: dict[str, Any]
    effect: str
    idempotency_key: str
    capability_id: str
    run_id: str
    step_id: str
    attempt: int
    traceparent: str = ""


class CallLimits(NamedTuple):
    """What bounds an attempt: a monotonic deadline, and whether anybody still waits; and what may go out with it.

    `seconds`, where it is given, bounds the call alone, from when it can be made; `start_seconds` what has to start
    before. The deadline bounds both.
    """

    deadline: float
    cancel: Cancellation
    place: BatchSlot | None = None
    seconds: float | None = None
    start_seconds: float | None = None

    def within(self, seconds: float | None) -> float:
        """The deadline of something that may take so long from now on."""
        return self.deadline if not seconds else min(self.deadline, time.monotonic() + seconds)


class CallMeta(NamedTuple):
    """What one attempt was on the wire (docs/reference/protocols.md#record). Of headers only names are told,
    under `request`.

    `request` and `reply` are `{media_type, body}`; a protocol without a wire leaves all of it empty.
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
    """The proxy of the environment that it went through, where those are asked for; without user info."""
    batch: Mapping[str, int] | None = None
    """Where the call went out in one array with others: how many those were, and bytes of both arrays."""
    printed: str = ""
    """The last 64 KiB of what a function printed."""
    notices: list[str] | None = None
    """What the other side did besides answering: noise, demands that were refused."""

    def as_record(self) -> dict[str, Any]:
        """The members for `attempts[]`, without those that say nothing and without usage, which stands apart.

        `status` becomes `status_code`: an attempt's own `status` is success or failed.
        """
        told = self._asdict()
        told["status_code"] = told.pop("status")
        del told["usage"]
        return {name: value for name, value in told.items() if value not in ("", None)}


class InvocationResponse(NamedTuple):
    """The JSON value that `response.*` walks, and what the attempt was on the wire."""

    body: Any
    meta: CallMeta = CallMeta()


class Invoker(Protocol):
    """One per run, thread-safe."""

    def invoke(self, request: InvocationRequest, context: CallLimits) -> InvocationResponse:
        """Make the attempt. Raises RuntimeErrorBase of the contract's table, with `left` set and, where something
        went over a wire, `record` (the members of `CallMeta.as_record`)."""
        ...

    def close(self, grace: float) -> None:
        """Leave no socket and no child; may be called twice."""
        ...

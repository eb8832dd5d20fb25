"""The invoker contract (protocols.md 1): one `invoke` is one wire attempt; everything else stays outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from cogcli.specs.binding import Binding
from cogcli.specs.service import Service

DEFAULT_BYTES: Final = 10 * 1024 * 1024
"""What a request and a reply may hold as JSON where the binding says nothing else."""


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


class CallContext(NamedTuple):
    """What bounds an attempt: a monotonic deadline."""

    deadline: float


class InvocationResponse(NamedTuple):
    """The JSON value that `response.*` walks, and usage where the service reports it."""

    body: Any
    usage: Mapping[str, int] | None = None


class Invoker(Protocol):
    """One per run, thread-safe."""

    def invoke(self, request: InvocationRequest, context: CallContext) -> InvocationResponse:
        """Make the attempt. Raises RuntimeErrorBase of the contract's table, with `left` set."""
        ...

    def close(self, grace: float) -> None:
        """Leave no socket and no child; may be called twice."""
        ...

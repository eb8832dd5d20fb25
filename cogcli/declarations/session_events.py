"""The events of a session of a gateway: one record per type (docs/reference/gateway.md#events)."""

from __future__ import annotations

from typing import Final, Literal

from cogcli.declarations.event_type import EventType, Payload
from cogcli.declarations.value_types import Count, Json

SessionEnding = Literal["client", "idle", "calls", "age", "signal"]


class CallRequested(Payload):
    """A call that a client requested, before anything is decided about it. It is a step of the run."""

    event = EventType(
        "call.requested",
        "action_candidate",
        speaker="client",
        plans_step=True,
        begins=True,
        words=("tool",),
        attributes=("tool", "capability"),
    )
    step_id: str
    tool: str
    """The name of the tool in the list of the client."""
    capability: str
    input: Json
    """The arguments of the call."""
    key: str | None = None
    """The idempotency key of the client."""


class CallWitnessed(Payload):
    """A call that the host of an agent reports to have made, although no decision had allowed it."""

    event = EventType(
        "call.witnessed",
        "runtime",
        speaker="client",
        words=("tool", "decision"),
    )
    tool: str
    capability: str
    input: Json
    """The arguments of the call."""
    decision: Literal["denied", "none"]
    """`denied`: the call was denied, or waits for a person. `none`: no hook asked for a decision."""
    key: str | None = None
    """The id of the call at the host."""


class SessionEnded(Payload):
    """The end of a session: no further call of the client is accepted."""

    event = EventType("session.ended", "runtime", speaker="system", words=("reason", "calls"))
    reason: SessionEnding
    """`client`: it disconnected. `idle`, `calls`, `age`: a limit of the session. `signal`: the gateway was
    stopped."""
    calls: Count
    """The number of calls that it requested."""


PAYLOADS: Final[tuple[type[Payload], ...]] = (CallRequested, CallWitnessed, SessionEnded)

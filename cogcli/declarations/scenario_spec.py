"""Scenarios: one call of a binding, its input and its expected outputs (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.field import place
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import Words

MATCHES: Final = ("exact", "subset", "shape")
BY_DOCUMENT: Final = "spec"
"""The type of the mock server by the service's own document."""
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class CannedReply(Spec):
    """One of a mock server's fixed replies."""

    status: Annotated[int, SpecLimits(least=200, most=599)] = 200
    headers: dict[str, Any] = NOTHING
    """Printable texts."""
    body: Any = None
    """A text is sent as it is, everything else as JSON; none is empty."""
    delay_ms: Annotated[int, SpecLimits(least=0, most=60_000)] = 0


class MockServer(Spec):
    """The mock server of a service."""

    type: Words = BY_DOCUMENT
    """Of the published ones, or by the document of the service."""
    host: Words = LOOPBACK[0]
    """A loopback address."""
    port: Annotated[int, SpecLimits(least=0, most=65535)] = 0
    """0 is any free one."""
    replies: tuple[CannedReply, ...] = ()


class Scenario(Spec):
    """A scenario as declared in its file."""

    id: Words
    capability_id: Words
    binding_id: Words
    input: dict[str, Any]
    expected_output: dict[str, Any]
    expected_service_id: Words | None = None
    trace_id: Words | None = None
    match: Annotated[Words, SpecLimits(choices=MATCHES)] = "exact"
    mock_server: MockServer | None = None
    """Without it: by the service's document, or the live service."""
    file: str = place(default="")
    """The path shown to users."""

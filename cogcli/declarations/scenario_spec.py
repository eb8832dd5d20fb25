"""Scenarios: one call of a binding, its input and its expected outputs (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.field import place
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import Words
from cogcli.declarations.value_types import Json

MATCHES: Final = ("exact", "subset", "shape")
BY_DOCUMENT: Final = "spec"
"""The type of the mock server by the service's own document."""
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class CannedReply(Spec):
    """One fixed reply of a mock server."""

    status: Annotated[int, SpecLimits(minimum=200, maximum=599)] = 200
    """The status of the reply."""
    headers: Json = NOTHING
    """Printable texts by name."""
    body: Any = None
    """A text is sent unchanged, everything else as JSON.
    Default: an empty body"""
    delay_ms: Annotated[int, SpecLimits(minimum=0, maximum=60_000)] = 0
    """Milliseconds before it is sent."""


class MockServer(Spec):
    """The mock server of a service."""

    type: Words = BY_DOCUMENT
    """[Who answers](#mocks)."""
    host: Words = LOOPBACK[0]
    """A loopback address."""
    port: Annotated[int, SpecLimits(minimum=0, maximum=65535)] = 0
    """0 is any free one."""
    replies: tuple[CannedReply, ...] = ()
    """Replies in order, instead of the type's. The last one is repeated."""


class Scenario(Spec):
    """A scenario as declared in its file."""

    id: Words
    """Its name."""
    capability_id: Words
    """The capability that is called."""
    binding_id: Words
    """The binding that it is called through."""
    input: Json
    """The inputs of the call."""
    expected_output: Json
    """The outputs that the call must give."""
    expected_service_id: Words | None = None
    """The service that must answer."""
    trace_id: Words | None = None
    """The trace id of the run."""
    match: Annotated[Words, SpecLimits(choices=MATCHES)] = "exact"
    """Whether outputs must be equal, contain the expected members, or have their types."""
    mock_server: MockServer | None = None
    """A server on loopback that answers instead of the service.
    Default: by the service's document, or with `--live` the service itself"""
    file: str = place(default="")
    """The path shown to users."""

"""Bindings: how a service fulfils a capability (docs/reference/binding.md#keys)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from cogcli.base.extras import SHIPPED
from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.field import key, place
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import (
    CapabilityRef,
    Conformance,
    Headers,
    PlainId,
    ProtocolName,
    Seconds,
    ServiceRef,
    Words,
)
from cogcli.declarations.value_types import Json

MAX_BYTES: Final = 64 * 1024 * 1024
Bytes = Annotated[int, SpecLimits(minimum=1, maximum=MAX_BYTES)]
CheckedPath = Annotated[
    str,
    SpecLimits(pattern=r"[^.\s]+(?:\.[^.\s]+){0,16}", expected="OUTPUT, or OUTPUT.a.*.b below it"),
]


class BindingCheck(Spec):
    """Checks that the outputs must pass in addition to the contract of the capability."""

    path: CheckedPath
    """An output, or a path below it; `*` is each element or member."""
    op: Literal["verbatim_in", "one_of"]
    """How it is compared."""
    value: Any
    """With what: a value as in [requests](#request)."""


class BindingMetadata(Spec):
    """Settings of the calls of a binding, and descriptions for readers."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] | None = None
    """Openapi only.
    Default: that of the document, else POST"""
    timeout_seconds: Seconds | None = None
    """Limit of one attempt.
    Default: the service's, else `30`"""
    headers: Headers = NOTHING
    """Over the service's ([rules](protocols.md#headers)); `${NAME}` is a variable."""
    response_mode: Literal["json", "text", "raw"] = "json"
    """How the reply is read; openapi and mcp."""
    retry_count: Annotated[int, SpecLimits(minimum=0, maximum=10)] = 0
    """More attempts before the next binding, after a failure that
    [may be repeated](execution.md#attempts)."""
    retry_backoff_base: Annotated[float, SpecLimits(minimum=0, maximum=3600)] = 1.0
    """Seconds before the first of them."""
    retry_backoff_factor: Annotated[float, SpecLimits(minimum=1, maximum=10)] = 2.0
    """Each wait is so many times the one before."""
    max_request_bytes: Bytes = 10 * 1024 * 1024
    """10 MiB; more is `request.size`."""
    max_response_bytes: Bytes = 10 * 1024 * 1024
    """10 MiB; more is `response.size`."""
    fallback_binding_id: Annotated[Words, SpecLimits(ids="bindings")] | None = None
    """The next binding of the chain: `fallback.unknown`, `fallback.capability`, `fallback.cycle`."""
    extra: Annotated[str, SpecLimits(choices=tuple(SHIPPED))] | None = None
    """It cannot do without the libraries of this [extra](#extras)."""
    fallback_on: Literal["any", "unanswered"] = "any"
    """After which of the errors that [fall back](execution.md#errors) it is tried; `unanswered`: not
    after a reply that is not taken (`response.*`)."""
    conformance_profile: Conformance = "standard"
    """What it promises: [eligibility](#eligibility)."""
    description: str | None = None
    status: str | None = None
    """Stated for readers."""


class Binding(Spec):
    """A binding as declared in its file."""

    id: PlainId
    """[Its name](spec-files.md#ids)."""
    capability: CapabilityRef
    """What it fulfils; an unknown one is `binding.capability`."""
    service: ServiceRef
    """Who does it; an unknown one is `binding.service`."""
    protocol: ProtocolName
    """That of the service, else `binding.protocol`."""
    operation: Words
    """What is called: [by protocol](#operation)."""
    request: Annotated[Json, SpecLimits(foreign=True)] = key(
        default=NOTHING, required=True, nullable=True
    )
    """[What is asked](#request); null: nothing."""
    response: Json = key(default=NOTHING, required=True, nullable=True)
    """Output to [where it is in the reply](#response); null: nothing."""
    checks: tuple[BindingCheck, ...] = ()
    """[What the outputs have to hold](#checks)."""
    metadata: BindingMetadata = BindingMetadata()
    """[Settings of the call](#metadata)."""
    channel: str = place(default="local")
    """It follows from the place of its file."""
    layer: str = place(default="")
    file: str = place(default="")
    trusted: bool = place(default=False)
    """Whether its layer may read the environment (docs/reference/service.md#trust)."""
    distrust: str = place(default="")
    """Why its layer is not trusted; empty if there is no other reason."""

    @property
    def conformance(self) -> str:
        """Return the conformance profile that the binding promises."""
        return self.metadata.conformance_profile

    @property
    def fallback(self) -> str | None:
        """Return the binding to try next; None if the binding names none."""
        return self.metadata.fallback_binding_id

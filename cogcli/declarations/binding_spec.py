"""Bindings: how a service fulfils a capability (docs/reference/binding.md#keys)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from cogcli.base.extras import SHIPPED
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.pinned_file import MAX_FILE
from cogcli.declarations.field import key, place
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import (
    CapabilityRef,
    Conformance,
    FieldName,
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
    """The comparison operator."""
    value: Any
    """The value to compare with, as in [requests](#request)."""


ReplyPath = Annotated[
    str,
    SpecLimits(
        pattern=r"response(?:\.[^.\s]+){0,16}|response_headers\.[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}",
        expected="response.PATH or response_headers.NAME",
    ),
]


class Paging(Spec):
    """The rules for reading the pages of a reply, so that one call collects all items."""

    items: FieldName
    """The output whose list is collected; the other outputs are those of the last page."""
    link: ReplyPath | None = None
    """The path of the link to the next page in a reply, such as `response_headers.Link`."""
    cursor: ReplyPath | None = None
    """The path of the next page's cursor in a reply."""
    by: Literal["number", "offset"] | None = None
    """Pages that are counted: by their number, or by the number of items before them."""
    send: Words | None = None
    """The key of the request that receives the cursor, the number or the offset."""
    first: Annotated[int, SpecLimits(minimum=0, maximum=1_000_000)] | None = None
    """The number of the first page, or its offset.
    Default: `1`, of an offset `0`"""
    more: ReplyPath | None = None
    """Of `by`: where a reply has `true` if there are more pages.
    Default: a page that is not full is the last"""
    size: Annotated[int, SpecLimits(minimum=1, maximum=100_000)] | None = None
    """Of `by`: the items of a full page.
    Default: a page without items is the last"""
    max_pages: Annotated[int, SpecLimits(minimum=1, maximum=1000)] = 100
    """The most pages of a call; if more are left, it is `response.pages`."""
    max_items: Annotated[int, SpecLimits(minimum=1, maximum=1_000_000)] = 10_000
    """The most items after which a page is asked for; if pages are left then, it is `response.pages`."""

    @property
    def start(self) -> int:
        """Return the number of the first page, or its offset."""
        return self.first if self.first is not None else int(self.by == "number")

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the paths in a reply that show whether another page exists, and which one."""
        return tuple(each for each in (self.link, self.cursor, self.more) if each is not None)


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
    """The way of reading the reply; openapi and mcp."""
    retry_count: Annotated[int, SpecLimits(minimum=0, maximum=10)] = 0
    """More attempts before the next binding, after a failure that
    [may be repeated](execution.md#attempts)."""
    retry_backoff_base: Annotated[float, SpecLimits(minimum=0, maximum=3600)] = 1.0
    """Seconds before the first of them."""
    retry_backoff_factor: Annotated[float, SpecLimits(minimum=1, maximum=10)] = 2.0
    """Each wait is so many times the one before."""
    max_request_bytes: Annotated[int, SpecLimits(minimum=1, maximum=MAX_FILE)] = 10 * 1024 * 1024
    """10 MiB; more is `request.size`. [Files](protocols.md#files) count."""
    max_response_bytes: Bytes = 10 * 1024 * 1024
    """10 MiB; more is `response.size`."""
    fallback_binding_id: Annotated[Words, SpecLimits(ids="bindings")] | None = None
    """The next binding of the chain: `fallback.unknown`, `fallback.capability`, `fallback.cycle`."""
    extra: Annotated[str, SpecLimits(choices=tuple(SHIPPED))] | None = None
    """It cannot do without the libraries of this [extra](#extras)."""
    fallback_on: Literal["any", "unanswered"] = "any"
    """The errors after which it is tried, among those that [fall back](execution.md#errors). `unanswered` excludes
    errors in a received reply (`response.*`).
    """
    conformance_profile: Conformance = "standard"
    """The conformance that it promises: [eligibility](#eligibility)."""
    description: str | None = None
    status: str | None = None
    """Stated for readers."""


class Binding(Spec):
    """A binding as declared in its file."""

    id: PlainId
    """[Its name](spec-files.md#ids)."""
    capability: CapabilityRef
    """The capability that it implements. An unknown one is `binding.capability`."""
    service: ServiceRef
    """Who does it; an unknown one is `binding.service`."""
    protocol: ProtocolName
    """That of the service, else `binding.protocol`."""
    operation: Words
    """The operation to call, [by protocol](#operation)."""
    request: Annotated[Json, SpecLimits(foreign=True)] = key(
        default=NOTHING, required=True, nullable=True
    )
    """[The request](#request). Null: the call has none."""
    response: Json = key(default=NOTHING, required=True, nullable=True)
    """Output to [where it is in the reply](#response); null: nothing."""
    checks: tuple[BindingCheck, ...] = ()
    """[Conditions on the outputs](#checks)."""
    page: Paging | None = None
    """[All pages](#page) of the reply in one call; openapi, and only of a capability without effects."""
    metadata: BindingMetadata = BindingMetadata()
    """[Settings of the call](#metadata)."""
    channel: str = place(default="local")
    """It follows from the place of its file."""
    layer: str = place(default="")
    file: str = place(default="")
    trusted: bool = place(default=False)
    """Whether its layer may read the environment (docs/reference/service.md#trust)."""
    distrust: str = place(default="")
    """The reason why its layer is not trusted; empty if there is no special reason."""

    @property
    def conformance(self) -> str:
        """Return the conformance profile that the binding promises."""
        return self.metadata.conformance_profile

    @property
    def fallback(self) -> str | None:
        """Return the binding to try next; None if the binding names none."""
        return self.metadata.fallback_binding_id

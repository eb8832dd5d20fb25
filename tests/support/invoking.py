"""One attempt through an invoker of the registry, against a server of the test's own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fakes.surroundings import surroundings

from cogcli.base.calls import Cancellation
from cogcli.base.errors import RuntimeErrorBase
from cogcli.declarations.binding_spec import Binding, BindingMetadata
from cogcli.declarations.service_spec import Service, ServiceMetadata
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker import CallLimits, InvocationRequest, InvocationResponse, Invoker


class Caller:
    """A service of one kind and the invoker that reaches it."""

    def __init__(
        self, protocol: str, settings: dict[str, Any], environ: Mapping[str, str], **service: Any
    ) -> None:
        self.learned: list[str] = []
        self._protocol = protocol
        self.service = Service(
            id="svc", kind=protocol, settings=settings, network=service.pop("network", "private"),
            trusted=service.pop("trusted", True),
            metadata=ServiceMetadata.of(service.pop("metadata", {})), **service,
        )  # fmt: skip
        self.invoker: Invoker = PROTOCOLS[protocol].invoker(
            surroundings(environ, learn=self.learned.append)
        )

    def __call__(
        self,
        operation: str,
        payload: dict[str, Any] | None = None,
        *,
        effect: str = "none",
        seconds: float = 10,
        response: dict[str, Any] | None = None,
        trusted: bool = True,
        cancel: Cancellation | None = None,
        key: str = "run_1:s",
        **metadata: Any,
    ) -> InvocationResponse:
        """Make one attempt; the keywords left over are the binding's metadata."""
        binding = Binding(
            id="b",
            capability="c.one",
            service="svc",
            protocol=self._protocol,
            operation=operation,
            request={},
            response=response or {},
            metadata=BindingMetadata.of(metadata),
            trusted=trusted,
        )
        request = InvocationRequest(
            self.service,
            binding,
            operation,
            payload or {},
            effect,
            key,
            "c.one",
            "run_1",
            "s",
            1,
            "00-a-b-01",
        )
        context = CallLimits(time.monotonic() + seconds, cancel or Cancellation())
        return self.invoker.invoke(request, context)

    def failure(
        self, operation: str, payload: dict[str, Any] | None = None, **rest: Any
    ) -> RuntimeErrorBase:
        """The error that an attempt ends with."""
        try:
            answer = self(operation, payload, **rest)
        except RuntimeErrorBase as error:
            return error
        raise AssertionError(f"no error, but {answer}")


@contextmanager
def calling(
    protocol: str,
    url: str | None = None,
    *,
    document: str | None = None,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    auth_ref: str | None = None,
    **service: Any,
) -> Iterator[Caller]:
    """A caller for a service at a URL, described by a document where one is given."""
    settings: dict[str, Any] = {}
    if url is not None:
        settings["base_url"] = url
    if auth_ref is not None:
        settings["auth_ref"] = auth_ref
    if document is not None:
        assert folder is not None
        (folder / "document.yaml").write_text(document)
        settings["spec_ref"] = "document.yaml"
        service["root"] = str(folder)
    caller = Caller(protocol, settings, environ or {}, **service)
    try:
        yield caller
    finally:
        caller.invoker.close(0)
        caller.invoker.close(0)

"""openrpc: the keys of its services and the names of its methods (docs/reference/service.md#keys,
docs/reference/protocols.md#openrpc)."""

from __future__ import annotations

import re
from typing import Final

from cogcli.declarations.service_spec import SecretLocation, Service, Url
from cogcli.declarations.spec import Spec
from cogcli.declarations.spec_types import Words
from cogcli.specs.protocol import Grammar

METHOD_NAME: Final = re.compile(r"(?!rpc\.)[A-Za-z0-9_.:/-]{1,128}")


def _check_operation(operation: str) -> str:
    return "" if METHOD_NAME.fullmatch(operation) else "a method name, not beginning with `rpc.`"


class RpcService(Spec):
    """A JSON-RPC service."""

    url: Url | None = None
    base_url: Url | None = None
    """Its one address.
    Default: one of both is required"""
    spec_ref: Words | None = None
    """Its OpenRPC [document](#documents)."""
    auth_ref: SecretLocation | None = None
    """The reference to the [bearer token](#secrets)."""


def address_of(service: Service) -> str:
    """Return the one address of a service."""
    settings = RpcService.of(service.settings)
    return settings.url or settings.base_url or ""


GRAMMAR: Final = Grammar(
    settings=RpcService,
    addresses=("url", "base_url"),
    exclusive=True,
    unused=("method", "response_mode"),
    operation=_check_operation,
    documents=("openrpc",),
)

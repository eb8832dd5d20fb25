"""The document that checks a binding's calls, and the mock server of its service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cogcli.core.document_fault import DocumentFault
from cogcli.documents.loader import identity_of, load
from cogcli.verification.verdict import Check

if TYPE_CHECKING:
    from cogcli.specs.binding import Binding
    from cogcli.specs.service import Service
    from cogcli.verification.exchange import ObservedExchange
    from cogcli.verification.loopback_server import Answering

Judge = Callable[["ObservedExchange"], list[Check]]
"""Gives the checks of one exchange."""


def judge_of(binding: Binding, service: Service) -> Judge | None:
    """The judge of a binding's calls by its service's document; None without one. Raises DocumentFault."""
    if service.kind == "openrpc":
        return _rpc_judge(binding, service)
    return _http_judge(binding, service) if service.kind == "openapi" else None


def _http_judge(binding: Binding, service: Service) -> Judge | None:
    from cogcli.documents.openapi import openapi_of
    from cogcli.verification.exchange import judge_exchange

    document = openapi_of(service)
    if document is None:
        return None
    operation = document.operation(binding.operation, binding.metadata.get("method"))
    base = urlsplit(service.settings.get("base_url") or document.server or "").path
    return lambda exchange: judge_exchange(exchange, document, operation, base)


def _rpc_judge(binding: Binding, service: Service) -> Judge | None:
    from cogcli.documents.openrpc import openrpc_of
    from cogcli.verification.rpc_exchange import judge_exchange

    document = openrpc_of(service)
    if document is None:
        return None
    method = document.method(binding.operation)
    return lambda exchange: judge_exchange(exchange, method)


def document_server(service: Service) -> Answering | None:
    """A mock server by the service's document; None without one. Raises DocumentFault."""
    from cogcli.verification.document_mock import DocumentMock
    from cogcli.verification.rpc_mock import RpcMock

    identity = identity_of(service)
    if identity is None:
        return None
    value = load(identity)
    if isinstance(value, DocumentFault):
        raise value
    if service.kind == "openrpc":
        return RpcMock(value)
    return DocumentMock(value, urlsplit(service.settings.get("base_url") or "").path)

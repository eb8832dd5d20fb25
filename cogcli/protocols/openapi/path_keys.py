"""openapi: the keys of a request that become parts of its path (docs/reference/protocols.md#openapi)."""

from __future__ import annotations

from contextlib import suppress

from cogcli.base.api_documents.openapi import load_openapi
from cogcli.base.json_pointer import DocumentFault
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.protocols.http.url import names_in
from cogcli.specs.request_locations import place_of


def path_keys(service: Service, binding: Binding) -> frozenset[str]:
    """Return the keys of a binding's request that fill its path, by the service's document if there
    is one.

    Empty if the document, or the operation in it, cannot be used: then nothing is sent."""
    try:
        document = load_openapi(service)
        if document is None:
            return frozenset(names_in(binding.operation)) & binding.request.keys()
        operation = document.operation(binding.operation, binding.metadata.method)
    except DocumentFault:
        return frozenset()
    found = set()
    for key in binding.request:
        with suppress(DocumentFault):  # the checks report a key without a place
            if place_of(key, operation).kind == "path":
                found.add(key)
    return frozenset(found)

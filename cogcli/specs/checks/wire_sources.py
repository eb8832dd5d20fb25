"""The inputs of a verdict on the wire besides specs: the document, the lock or the source of a service."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from cogcli.core.canonical import digest
from cogcli.core.files import FileRefused, read_regular
from cogcli.specs.module_lookup import module_file
from cogcli.specs.service import Service, is_shipped

_DESCRIBED: Final = ("openapi", "openrpc")


class Matter(NamedTuple):
    """The bytes of a document, a lock or a source, and their digest."""

    data: bytes
    digest: str


def matter_of(service: Service) -> Matter | None:
    """The matter of a service, None for one without document, lock or source."""
    data = _read(service)
    return None if data is None else Matter(data, digest(data))


def _read(service: Service) -> bytes | None:
    """The bytes of a service's document, lock or sources; None without any."""
    if service.kind in _DESCRIBED:
        if "spec_ref" not in service.settings:
            return None
        from cogcli.core.document_fault import DocumentFault
        from cogcli.documents.loader import MAX_BYTES, identity_of

        try:
            identity = identity_of(service)
        except DocumentFault as fault:
            return f"{fault.message}\0{fault.hint}".encode()
        return _bytes(identity.path, MAX_BYTES) if identity else None
    if service.kind == "mcp":
        if "server" in service.settings:
            from cogcli.specs.checks.bundled_contract import source_of

            return source_of(service.settings["server"])
        from cogcli.specs.lock import MAX_BYTES, NAME

        return _bytes(os.path.join(service.root, NAME), MAX_BYTES)
    if service.module is None or not (service.trusted or is_shipped(service.module)):
        return None
    file = module_file(service.module, service.root)
    return _bytes(file, 4 * 1024 * 1024) if file else None


def document_of(service: Service) -> str:
    """The real path of a service's document or lock; empty if it has been removed."""
    from cogcli.core.document_fault import DocumentFault
    from cogcli.documents.loader import identity_of
    from cogcli.specs.lock import lock_identity

    try:
        identity = lock_identity(service.root) if service.kind == "mcp" else identity_of(service)
    except DocumentFault:
        return ""
    return os.path.realpath(identity.path) if identity else ""


def _bytes(path: str, limit: int) -> bytes:
    """A file's bytes, or the reason why it cannot be read, on which the verdict then depends."""
    try:
        return read_regular(path, limit=limit)
    except FileRefused as refused:
        return refused.message.encode()

"""What describes the operations of a service: its document, its lock or its source code, as bytes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cogcli.core.files import FileRefused, read_regular
from cogcli.specs.module_lookup import module_file
from cogcli.specs.protocol import DOCUMENT, LOCK, SOURCE
from cogcli.specs.service import Service

if TYPE_CHECKING:
    from cogcli.documents.loader import Identity


def source_bytes(service: Service, described_by: str) -> bytes | None:
    """The bytes that describe a service, or the reason why they cannot be read; None without any."""
    if described_by == LOCK:
        from cogcli.specs.lock import MAX_BYTES, NAME

        return _bytes(os.path.join(service.root, NAME), MAX_BYTES)
    if described_by == SOURCE and "server" in service.settings:
        from cogcli.protocols.mcp.bundled_contract import source_of

        return source_of(service.settings["server"])
    if described_by == SOURCE:
        file = module_file(service.module or "", service.root)
        return _bytes(file, 4 * 1024 * 1024) if file else None
    return _document_bytes(service) if described_by == DOCUMENT else None


def _document_bytes(service: Service) -> bytes | None:
    from cogcli.core.document_fault import DocumentFault
    from cogcli.documents.loader import MAX_BYTES, identity_of

    try:
        identity = identity_of(service)
    except DocumentFault as fault:
        return f"{fault.message}\0{fault.hint}".encode()
    return _bytes(identity.path, MAX_BYTES) if identity else None


def source_file(service: Service, described_by: str) -> str:
    """The real path of a service's document or lock; empty if it has been removed."""
    from cogcli.core.document_fault import DocumentFault
    from cogcli.documents.loader import identity_of
    from cogcli.specs.lock import lock_identity

    try:
        identity: Identity | None = (
            lock_identity(service.root) if described_by == LOCK else identity_of(service)
        )
    except DocumentFault:
        return ""
    return os.path.realpath(identity.path) if identity else ""


def _bytes(path: str, limit: int) -> bytes:
    """A file's bytes, or the reason why it cannot be read, on which the verdict then depends."""
    try:
        return read_regular(path, limit=limit)
    except FileRefused as refused:
        return refused.message.encode()

"""`services refresh` of a described service: its live document against the one behind `spec_ref`
(docs/reference/protocols.md#mcp-pins)."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import orjson

from cogcli.app.settings import Settings
from cogcli.core.document_fault import DocumentFault
from cogcli.core.errors import EnvironmentRefusal, ServerFaultError, ServiceResolutionError, UsageError
from cogcli.core.files import write_atomic
from cogcli.documents.changes import ContractChange
from cogcli.documents.loader import parse_document, place_of, read_document
from cogcli.protocols.invoker import InvokerContext
from cogcli.protocols.live_document import DocumentKind, live_document
from cogcli.specs.service import Service


class DocumentComparison(NamedTuple):
    """The live document of a service, the operations or methods in it, and its changes against the file."""

    value: dict[str, Any]
    names: tuple[str, ...]
    changes: tuple[ContractChange, ...]
    existed: bool
    path: str


def compare_documents(
    service: Service, kind: DocumentKind, context: InvokerContext, seconds: float
) -> DocumentComparison:
    """Fetch the document of a service and compare. Raises UsageError without `spec_ref`, ServiceResolutionError for a
    file that is no document, and what the call raises."""
    path = _path(service)
    before = _read_stored(service, path)
    now = live_document(service, context, seconds)
    names, changes = _compare(service, kind, before, now)
    return DocumentComparison(now, names, changes, before is not None, path)


def replace(settings: Settings, found: DocumentComparison) -> None:
    """Replace the file of `spec_ref` atomically. Raises EnvironmentRefusal."""
    data = orjson.dumps(found.value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    try:
        # JSON is YAML, too: whatever the file is called, it is read again as what it says.
        parse_document(data, os.path.basename(found.path))
        os.makedirs(os.path.dirname(found.path), exist_ok=True)
        write_atomic(found.path, data, mode=0o644)
    except DocumentFault as fault:
        raise ServiceResolutionError(fault.code, fault.message, hint="name it *.json in spec_ref") from fault
    except OSError as error:
        path = settings.display_path(found.path)
        raise EnvironmentRefusal(
            "env.disk", f"{path} cannot be written: {error.strerror}", hint="make the directory writable"
        ) from error


def _path(service: Service) -> str:
    try:
        path = place_of(service)
    except DocumentFault as fault:
        raise _refusal(service, fault) from fault
    if path is None:
        raise UsageError(
            "usage.value",
            f"service `{service.id}` names no document",
            expected="a service with spec_ref",
            hint="write spec_ref: NAME.json in its file; then --accept fetches it",
        )
    return path


def _read_stored(service: Service, path: str) -> dict[str, Any] | None:
    """The document in the file, None where there is no file yet."""
    if not os.path.lexists(path):
        return None
    try:
        return read_document(path)
    except DocumentFault as fault:
        raise _refusal(service, fault) from fault


def _compare(
    service: Service, kind: DocumentKind, before: dict[str, Any] | None, now: dict[str, Any]
) -> tuple[tuple[str, ...], tuple[ContractChange, ...]]:
    try:
        old = None if before is None else kind.parse(before)
    except DocumentFault as fault:
        raise _refusal(service, fault) from fault
    try:
        new = kind.parse(now)
    except DocumentFault as fault:
        text = f"service `{service.id}`: its live document: {fault.message}"
        raise ServerFaultError("call.server-error", text, hint=fault.hint, left=True) from fault
    return new.names, kind.changes(old, new)


def _refusal(service: Service, fault: DocumentFault) -> ServiceResolutionError:
    text = f"service `{service.id}`: {fault.message}"
    return ServiceResolutionError(fault.code, text, hint=fault.hint)

"""`services refresh`: compares what a service offers now with its lock or document
(docs/reference/protocols.md#mcp-pins)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping

import orjson

from cogcli.app.registry import open_registry, writing_to
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import keep_trust
from cogcli.app.settings.user_dirs import state_home
from cogcli.base.api_documents.loader import parse_document, place_of, read_document
from cogcli.base.calls import Cancellation
from cogcli.base.errors import ServerFaultError, ServiceResolutionError, UsageError
from cogcli.base.files import write_atomic
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound, list_known_words, suggestion
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker import CallLimits, InvokerContext
from cogcli.protocols.live_document import DocumentKind, NamedDocument, fetch_document
from cogcli.protocols.mcp.connect import identity
from cogcli.protocols.mcp.invoker import Mcp
from cogcli.protocols.mcp.pins import Pins, find_changed_fields, lock_path, read_locked, write_lock
from cogcli.run.launch import build_invoker_context
from cogcli.specs.eligibility import untrusted_reasons
from cogcli.specs.lock import READ_ONLY
from cogcli.specs.protocol import LOCK

SECONDS = 60.0
"""Seconds that a server may take to start and to list its tools."""
_LONGEST_SHOWN = 100
"""Characters of the name of a tool that a message shows."""


class ServiceChange(NamedTuple):
    """A tool, operation or method that was `added`, `removed` or `changed`. `fields` are its
    changed fields.

    `breaking`: whether a call that was valid may be invalid now. Any change of a locked tool is
    breaking."""

    name: str
    change: str
    fields: tuple[str, ...] = ()
    breaking: bool = True


class RefreshResult(NamedTuple):
    """The operations of a service, and the changes since it was accepted.

    `file` is the lock or the document of `spec_ref`. `known`: whether the file already described this service. `noun`
    is tool, operation or method.
    """

    service: str
    noun: str
    known: bool
    names: tuple[str, ...]
    differences: tuple[ServiceChange, ...]
    accepted: bool
    file: str

    @property
    def verdict(self) -> str:
        """Return `same`, `compatible` or `breaking`."""
        if not self.differences:
            return "same"
        return "breaking" if any(each.breaking for each in self.differences) else "compatible"


def refresh(settings: Settings, service_id: str, *, accept: bool) -> RefreshResult:
    """Compare a server's tools with its lock, or its live document with the project's. With
    `accept`, replace the lock or document.

    Raise UsageError for a service without a lock or document, ServiceResolutionError, the errors of
    the call, and UnusableEnvironment if the file cannot be written."""
    return refresh_service(settings, find_service(settings, service_id), accept=accept)


def refresh_service(
    settings: Settings,
    service: Service,
    *,
    accept: bool,
    marks: Mapping[str, bool] = NOTHING,
) -> RefreshResult:
    """Do the same as `refresh` for a service, which may be declared outside the registry. `marks` sets or removes the
    mark `read_only` of tools in the lock.

    Raise UsageError for a mark of a tool that the server does not have."""
    for reason in untrusted_reasons(service):
        hint = "trust the project: cogcli config trust"
        raise ServiceResolutionError(reason.code, reason.text, hint=hint)
    described = PROTOCOLS[service.kind].document
    if described is not None:
        return _refresh_document(settings, service, described(), accept=accept)
    _require_declared_server(service)
    before = read_locked(service.root, service.id)
    now = _list_tools(settings, service)
    _require_offered_tools(marks, now)
    found = _compare_offers(
        {tool["name"]: tool for tool in before or ()}, {tool["name"]: tool for tool in now}
    )
    if before is None:  # without a lock no call depends on the old tools
        found = tuple(difference._replace(breaking=False) for difference in found)
    lock = settings.display_path(lock_path(service.root))
    if accept:
        with keep_trust(settings) as written, writing_to(lock):
            marked = [_mark_tool(tool, marks) for tool in now]
            data = write_lock(service.root, service.id, marked, bound=settings.bound)
            written(lock_path(service.root), data)
        Pins(state_home(settings.environ)).replace(identity(service), now)
    names = tuple(tool["name"] for tool in now)
    return RefreshResult(service.id, "tool", before is not None, names, found, accept, lock)


def _list_tools(settings: Settings, service: Service) -> list[Json]:
    """Return the tools that the server of a service offers now."""
    invoker = Mcp(build_call_context(settings))
    try:
        return invoker.tools(service, CallLimits(time.monotonic() + SECONDS, Cancellation()))
    finally:
        invoker.close(5.0)


def _mark_tool(tool: Json, marks: Mapping[str, bool]) -> Json:
    name = tool["name"]
    return {**tool, READ_ONLY: marks[name]} if name in marks else tool


def _require_offered_tools(marks: Iterable[str], tools: Iterable[Json]) -> None:
    """Raise UsageError for a mark of a tool that the server does not have."""
    names = [tool["name"] for tool in tools]
    for name in marks:
        if name not in names:
            shown = [each for each in names if len(each) <= _LONGEST_SHOWN]
            hint = suggestion(name, shown) or list_known_words(shown, limit=20)
            raise UsageError(
                "usage.value", f"the server has no tool `{name[:_LONGEST_SHOWN]}`", hint=hint
            )


def _refresh_document(
    settings: Settings, service: Service, kind: DocumentKind, *, accept: bool
) -> RefreshResult:
    """Compare the live document of a service with the project's. With `accept`, replace the
    project's."""
    path = _path_of_document(service)
    before, old = _parse_project_document(service, kind, path)
    context = build_call_context(settings)
    now = context.secrets.mask_known(fetch_document(service, context, SECONDS))
    try:
        new = kind.parse(now)
    except DocumentFault as fault:
        text = f"service `{service.id}`: its live document: {fault.message}"
        raise ServerFaultError("call.server-error", text, hint=fault.hint, left=True) from fault
    changes = kind.changes(old, new)
    shown = settings.display_path(path)
    if accept and (changes or before is None):
        with keep_trust(settings) as written:
            written(path, _replace_document(path, now, shown, settings.bound))
    differences = tuple(ServiceChange(*change) for change in changes)
    return RefreshResult(
        service.id, kind.noun, before is not None, new.names, differences, accept, shown
    )


def _path_of_document(service: Service) -> str:
    """Return the path of a service's document. Raise UsageError without one, and
    ServiceResolutionError.
    """
    try:
        path = place_of(service)
    except DocumentFault as fault:
        raise _unusable_document(service, fault) from fault
    if path is None:
        raise UsageError(
            "usage.value",
            f"service `{service.id}` names no document",
            expected="a service with spec_ref",
            hint="write spec_ref: NAME.json in its file; then --accept fetches it",
        )
    return path


def _parse_project_document(
    service: Service, kind: DocumentKind, path: str
) -> tuple[Json | None, NamedDocument | None]:
    """Return the project's document and its parsed content. Both are None before the first
    `--accept`.

    Raise ServiceResolutionError.
    """
    if not os.path.lexists(path):
        return None, None
    try:
        document = read_document(path, service.root)
        return document, kind.parse(document)
    except DocumentFault as fault:
        raise _unusable_document(service, fault) from fault


def _unusable_document(service: Service, fault: DocumentFault) -> ServiceResolutionError:
    text = f"service `{service.id}`: {fault.message}"
    return ServiceResolutionError(fault.code, text, hint=fault.hint)


def _replace_document(path: str, value: Json, display_path: str, bound: str) -> bytes:
    """Replace the file of `spec_ref` atomically and return its content.

    Raise UnusableEnvironment or ServiceResolutionError."""
    data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    try:
        # JSON is also YAML, so that the file reads back under any name.
        parse_document(data, os.path.basename(path))
    except DocumentFault as fault:
        raise ServiceResolutionError(
            fault.code, fault.message, hint="name it *.json in spec_ref"
        ) from fault
    with writing_to(display_path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_atomic(path, data, mode=0o644, bound=bound)
    return data


def find_service(settings: Settings, service_id: str) -> Service:
    """Return a service by id. Raise ServiceResolutionError, or ProblemsFound if its file has
    errors."""
    catalog = open_registry(settings).everything()
    if service_id in catalog.services:
        return catalog.services[service_id]
    if file := catalog.broken.get(f"service:{service_id}"):
        raise ProblemsFound([p for p in catalog.problems if p.file == file])
    hint = suggestion(service_id, catalog.services)
    raise ServiceResolutionError(
        "service.unknown", f"there is no service `{service_id}`", hint=hint
    )


def _require_declared_server(service: Service) -> None:
    """Raise UsageError unless the service reads its tools from a server that the user declares."""
    if PROTOCOLS[service.kind].described_by(service) == LOCK:
        return
    what = (
        "comes with the package" if "server" in service.settings else f"is of kind {service.kind}"
    )
    raise UsageError(
        "usage.value",
        f"service `{service.id}` {what}",
        expected="an mcp service with a command or a url, or one with spec_ref",
    )


def build_call_context(settings: Settings) -> InvokerContext:
    """Return the context of a call outside a run. Without a log, the resolved secrets mask messages,
    locks, pins and documents."""
    return build_invoker_context(environment_of(settings), lambda secret: None)


def _compare_offers(old_offer: Json, new_offer: Json) -> tuple[ServiceChange, ...]:
    """Return the added, removed and changed members."""
    changes = []
    for name in sorted({*old_offer, *new_offer}):
        if name not in old_offer:
            changes.append(ServiceChange(name, "added"))
        elif name not in new_offer:
            changes.append(ServiceChange(name, "removed"))
        elif fields := find_changed_fields(old_offer[name], new_offer[name]):
            changes.append(ServiceChange(name, "changed", tuple(fields)))
    return tuple(changes)

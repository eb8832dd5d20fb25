"""Checks of bindings against the documents, locks and sources of their services
(docs/reference/protocols.md#wire-checks).

1. Only needed bindings are checked: for one skill's closure, the chosen ones and their fallbacks.
2. A verdict depends on the binding, its capability, its service, and the bytes of the document, the
   lock or the source. It is kept in the compiled cache under the digest of these, so that a warm
   run parses no document."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from cogcli.base.canonical import digest, digest_of
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.service_spec import Service
from cogcli.protocols import ProtocolRow
from cogcli.specs.cache import CompiledFile
from cogcli.specs.module_lookup import module_file
from cogcli.specs.protocol import DOCUMENT, LOCK, SOURCE
from cogcli.specs.service import MODULES, TABLES

if TYPE_CHECKING:
    from cogcli.declarations.binding_spec import Binding
    from cogcli.declarations.capability_spec import Capability
    from cogcli.protocols.contract_finding import ContractFinding
    from cogcli.specs.checks.context import CheckContext
    from cogcli.specs.problem_report import ProblemReport


_KIND: Final = "wire"
_MAX_LENGTH: Final = 500
_MAX_SOURCE: Final = 4 * 1024 * 1024


def check_contracts(
    protocol: ProtocolRow, context: CheckContext, name: str, bindings: Iterable[Binding]
) -> None:
    """Report contradictions between the bindings of one protocol and the descriptions of their
    services, and faults of these.

    In a whole catalog, services without bindings are checked as well."""
    catalog = context.catalog
    checks = _ContractChecks(context, protocol)
    services = (
        {} if catalog.partial else {s.id: s for s in catalog.services.values() if s.kind == name}
    )
    for binding in bindings:
        service = catalog.services.get(binding.service)
        capability = catalog.capability(binding.capability)
        if (
            service is not None
            and capability is not None
            and service.kind == binding.protocol == name
        ):
            services[service.id] = service
            checks.check(binding, capability, service)
    for service in services.values():
        checks.check_service(service)


class Source(NamedTuple):
    """The bytes of a document, a lock or a source, and their digest."""

    data: bytes
    digest: str


class _ContractChecks:
    """The checks of one catalog. A service's document, lock or source is read once."""

    def __init__(self, context: CheckContext, protocol: ProtocolRow) -> None:
        self._context = context
        self._protocol = protocol
        self._sources: dict[str, Source | None] = {}
        self._reported: set[tuple[str, ContractFinding]] = set()

    def check(self, binding: Binding, capability: Capability, service: Service) -> None:
        """Report the problems of one binding."""
        source = self._find_source(service)
        if source is None:
            return
        names = (
            f"binding:{binding.id}",
            f"capability:{binding.capability}",
            f"service:{service.id}",
        )

        def judge() -> Iterable[ContractFinding]:
            from cogcli.protocols.contract_flow import complete_findings

            found = self._protocol.contract().binding(binding, capability, service, source.data)
            return complete_findings(binding, capability, found)

        for finding in self._cached_findings(names, source, judge):
            if finding.about == "binding":
                _report_finding(
                    self._context.report(binding.file), f"binding `{binding.id}`", finding
                )
            else:
                self._report_service_finding(service, finding)

    def check_service(self, service: Service) -> None:
        """Report the problems of one service's document or lock."""
        source = self._find_source(service)
        if source is not None and self._protocol.described_by(service) in (DOCUMENT, LOCK):
            names = (f"service:{service.id}",)
            for finding in self._cached_findings(
                names, source, lambda: self._protocol.contract().service(service)
            ):
                self._report_service_finding(service, finding)

    def _report_service_finding(self, service: Service, finding: ContractFinding) -> None:
        if (service.id, finding) not in self._reported:
            self._reported.add((service.id, finding))
            report = self._context.report(service.file, service.at)
            is_document = finding.about == "document"
            document = (
                source_file(service, self._protocol.described_by(service)) if is_document else ""
            )
            if not document:
                finding = finding._replace(about="service")
            else:
                file = self._context.display_path(document, relative_to=service.file)
                self._context.documents.setdefault(file, set()).add(service.file)
                report = self._context.report(file)
            _report_finding(report, f"service `{service.id}`", finding)

    def _find_source(self, service: Service) -> Source | None:
        if service.id not in self._sources:
            data = source_bytes(service, self._protocol.described_by(service))
            self._sources[service.id] = None if data is None else Source(data, digest(data))
        return self._sources[service.id]

    def _cached_findings(
        self, names: tuple[str, ...], source: Source, judge: Callable[[], Iterable[ContractFinding]]
    ) -> Iterable[ContractFinding]:
        """Return the cached findings, else new ones, which are then cached."""
        catalog = self._context.catalog
        cache = catalog.places.cache
        if cache is None or any(name not in catalog.raw for name in names):
            return judge()
        raw = [catalog.raw[name] for name in names]
        key = digest_of([raw, source.digest])
        kept = cache.get(_KIND, key)
        if kept is None:
            found = list(judge())
            cache.keep(_KIND, key, CompiledFile({}, [[*finding] for finding in found]))
            return found
        if not kept.warnings:  # a warm run loads no checking code
            return []
        from cogcli.protocols.contract_finding import ContractFinding

        return [
            ContractFinding(code, severity, tuple(path), *rest)
            for code, severity, path, *rest in kept.warnings
        ]


def _report_finding(report: ProblemReport, subject: str, finding: ContractFinding) -> None:
    code, severity, path, message, hint, key, about, line, column = finding
    said = f"{subject}: {_one_line(message)}"
    if about == "document":
        report.add_at(code, severity, (line, column), said, hint=_one_line(hint))
    else:
        report.add(code, severity, path, said, hint=_one_line(hint), key=key)


def _one_line(text: str) -> str:
    """Return text with foreign parts as one line of at most 500 characters."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= _MAX_LENGTH else f"{plain[: _MAX_LENGTH - 1]}…"


def source_bytes(service: Service, described_by: str) -> bytes | None:
    """Return the bytes that describe a service, or the reason why they cannot be read; None without
    any."""
    if described_by == LOCK:
        from cogcli.specs.lock import MAX_BYTES, NAME

        return _bytes_or_reason(os.path.join(service.root, NAME), MAX_BYTES)
    if described_by == SOURCE:
        return _code_bytes(service)
    return _document_bytes(service) if described_by == DOCUMENT else None


def _code_bytes(service: Service) -> bytes | None:
    if "server" not in service.settings:
        return _module_bytes(service.module or "", service.root)
    modules = {module for module, _ in TABLES.get(service.settings["server"], {}).values()}
    return b"\0".join(_module_bytes(MODULES + module, "") or b"" for module in sorted(modules))


def _document_bytes(service: Service) -> bytes | None:
    from cogcli.base.api_documents import loader

    try:
        identity = loader.identity_of(service)
    except DocumentFault as fault:
        return f"{fault.message}\0{fault.hint}".encode()
    try:
        return loader.document_bytes(identity) if identity else None
    except UnreadableFile as refused:
        return refused.message.encode()


def _module_bytes(module: str, root: str) -> bytes | None:
    file = module_file(module, root)
    return _bytes_or_reason(file, _MAX_SOURCE) if file else None


def source_file(service: Service, described_by: str) -> str:
    """Return the real path of a service's document or lock; empty if it was removed."""
    from cogcli.base.api_documents.loader import identity_of
    from cogcli.specs.lock import lock_identity

    try:
        identity = lock_identity(service.root) if described_by == LOCK else identity_of(service)
    except DocumentFault:
        return ""
    return os.path.realpath(identity.path) if identity else ""


def _bytes_or_reason(path: str, limit: int) -> bytes:
    """Return a file's bytes. If it cannot be read, return the reason, so that the cached findings depend on it."""
    try:
        return read_regular(path, limit=limit)
    except UnreadableFile as refused:
        return refused.message.encode()

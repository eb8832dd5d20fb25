"""Bindings against the documents, locks and sources of their services (docs/reference/protocols.md#wire-checks).

1. Only bindings that are needed are checked: of one skill's closure the chosen ones and their fallbacks.
2. A verdict depends on the binding, its capability, its service, and the bytes of the document, the lock or the source.
   It is kept in the compiled cache under the digest of these, so that a warm run parses no document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cogcli.core.canonical import digest_of
from cogcli.specs.cache import Compiled, newest_change
from cogcli.specs.cached_positions import FilePlaces
from cogcli.specs.checks.wire_sources import Matter, document_of, matter_of

if TYPE_CHECKING:
    from cogcli.specs.binding import Binding
    from cogcli.specs.capability import Capability
    from cogcli.specs.checks.context import CheckContext
    from cogcli.specs.checks.contract_finding import ContractFinding
    from cogcli.specs.problem_report import ProblemReport
    from cogcli.specs.service import Service

_KIND: Final = "wire"
_MAX_LENGTH: Final = 500


def check_wire(context: CheckContext, bindings: Iterable[Binding]) -> dict[str, set[str]]:
    """Report the problems of these bindings on the wire, and of the documents of their services.

    In a whole catalog services without bindings are checked as well. Returns the shown files of documents with
    problems,
    each with the files of its services.
    """
    catalog = context.catalog
    wire = _ContractChecks(context)
    services = {} if catalog.partial else dict(catalog.services)
    for binding in bindings:
        service = catalog.services.get(binding.service)
        capability = catalog.capability(binding.capability)
        if service is not None and capability is not None and service.kind == binding.protocol:
            services[service.id] = service
            wire.check(binding, capability, service)
    for service in services.values():
        wire.check_service(service)
    return wire.documents


class _ContractChecks:
    """The checks of one catalog. A service's document, lock or source is read once."""

    def __init__(self, context: CheckContext) -> None:
        self._context = context
        self._matters: dict[str, Matter | None] = {}
        self._told: set[tuple[str, ContractFinding]] = set()
        self.documents: dict[str, set[str]] = {}

    def check(self, binding: Binding, capability: Capability, service: Service) -> None:
        """Report the problems of one binding."""
        matter = self._matter(service)
        if matter is None:
            return
        names = (f"binding:{binding.id}", f"capability:{binding.capability}", f"service:{service.id}")
        for finding in self._verdict(
            names, matter, lambda: _findings_of(binding, capability, service, matter)
        ):
            if finding.about == "binding":
                _report(self._context.report(binding.file), f"binding `{binding.id}`", finding)
            else:
                self._report_service_finding(service, finding)

    def check_service(self, service: Service) -> None:
        """Report the problems of one service's document or lock."""
        matter = self._matter(service)
        if matter is not None and service.kind != "pythoncall":
            names = (f"service:{service.id}",)
            for finding in self._verdict(names, matter, lambda: _service_findings(service)):
                self._report_service_finding(service, finding)

    def _report_service_finding(self, service: Service, finding: ContractFinding) -> None:
        if (service.id, finding) not in self._told:
            self._told.add((service.id, finding))
            report = self._context.report(service.file, service.at)
            document = document_of(service) if finding.about == "document" else ""
            if not document:
                finding = finding._replace(about="service")
            else:
                file = self._context.shown(document, beside=service.file)
                self.documents.setdefault(file, set()).add(service.file)
                report = self._context.report(file)
            _report(report, f"service `{service.id}`", finding)

    def _matter(self, service: Service) -> Matter | None:
        if service.id not in self._matters:
            self._matters[service.id] = matter_of(service)
        return self._matters[service.id]

    def _verdict(
        self, names: tuple[str, ...], matter: Matter, judge: Callable[[], Iterable[ContractFinding]]
    ) -> Iterable[ContractFinding]:
        """The cached findings, else new ones, which are cached."""
        catalog = self._context.catalog
        cache = catalog.places.cache if isinstance(catalog.places, FilePlaces) else None
        if cache is None or any(name not in catalog.raw for name in names):
            return judge()
        raw = [catalog.raw[name] for name in names]
        key = digest_of([raw, matter.digest, _rules_modified_at()])
        kept = cache.get(_KIND, key)
        if kept is None:
            found = list(judge())
            cache.keep(_KIND, key, Compiled({}, [[*finding] for finding in found]))
            return found
        return map(_finding, kept.warnings)


def _finding(kept: list[Any]) -> ContractFinding:
    from cogcli.specs.checks.contract_finding import ContractFinding

    code, severity, path, *rest = kept
    return ContractFinding(code, severity, tuple(path), *rest)


def _findings_of(
    binding: Binding, capability: Capability, service: Service, matter: Matter
) -> Iterable[ContractFinding]:
    from cogcli.specs.checks.contract_verdict import judge_binding

    return judge_binding(binding, capability, service, matter.data)


def _service_findings(service: Service) -> Iterable[ContractFinding]:
    from cogcli.specs.checks.contract_verdict import judge_service

    return judge_service(service)


def _report(report: ProblemReport, subject: str, finding: ContractFinding) -> None:
    code, severity, path, message, hint, key, about, line, column = finding
    said = f"{subject}: {_line(message)}"
    if about == "document":
        report.place(code, severity, (line, column), said, hint=_line(hint))
    else:
        report.add(code, severity, path, said, hint=_line(hint), key=key)


def _line(text: str) -> str:
    """Text with foreign parts as one line of at most 500 characters."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= _MAX_LENGTH else f"{plain[: _MAX_LENGTH - 1]}…"


@lru_cache(maxsize=1)
def _rules_modified_at() -> int:
    """The newest modification of the modules of these checks: after a change old verdicts are not found."""
    return newest_change("specs/checks", "schema", "documents")

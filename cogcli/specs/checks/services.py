"""Checks of services: variables, isolation, and whether their Python module exists
(docs/reference/service.md#trust, docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cogcli.core.problems import suggestion
from cogcli.specs.eligibility import secrets_of, variables_of
from cogcli.specs.module_lookup import has_function, module_file
from cogcli.specs.program_lookup import find_program_fault
from cogcli.specs.service import is_shipped, network_of
from cogcli.specs.shipped_tools import TABLES

if TYPE_CHECKING:
    from cogcli.core.problems import KeyPath
    from cogcli.specs.binding import Binding
    from cogcli.specs.checks.context import CheckContext
    from cogcli.specs.problem_report import ProblemReport
    from cogcli.specs.service import Service

SHORTEST_SECRET: Final = 8


def check_service(context: CheckContext, service: Service) -> None:
    """Report the problems of one service that depend on its layer and environment."""
    report = context.report(service.file, service.at)
    subject = f"service `{service.id}`"
    if service.kind == "pythoncall" and service.module:
        if service.isolation == "thread" and not is_shipped(service.module):
            message = f"{subject}: module `{service.module}` is not ours and runs inside this process"
            report.warn("service.isolation", ("isolation",), message, hint="write isolation: process")
        if _may_import(service) and module_file(service.module, service.root) is None:
            message = f"{subject}: module `{service.module}` is not found"
            report.need(
                "service.module", ("module",), message, hint="install it, or put it below the registry root"
            )
    server = service.settings.get("server")
    if server is not None and server not in TABLES:
        hint = suggestion(server, TABLES) or f"there is {', '.join(TABLES)}"
        report.need("service.server", ("server",), f"{subject}: no shipped server `{server}`", hint=hint)
    missing = find_program_fault(service, context.options.environ) if service.trusted else None
    if missing:
        report.warn("service.program", (missing.key,), f"{subject}: {missing.text}", hint=missing.hint)
    for key in ("base_url", "url"):
        _check_address(service, key, report, subject)
    if not context.catalog.partial:
        _check_variables(context, service, report, subject)


def _check_address(service: Service, key: str, report: ProblemReport, subject: str) -> None:
    """Report a literal IP address that may not be called; host names are checked at the call."""
    url = service.settings.get(key)
    if url is None:
        return
    from urllib.parse import urlsplit

    from cogcli.core.addresses import literal_refusal

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.port == 0:
            raise ValueError("nothing answers at port 0")
    except ValueError as error:
        report.error("service.url", (key,), f"{subject}: `{key}` is no URL: {error}")
        return
    refusal = literal_refusal(host, network_of(service))
    if refusal:
        # What is never called is not made callable by a word in the file.
        private = service.network == "public" and not literal_refusal(host, "private")
        hint = "write network: private, if it is yours" if private else ""
        if service.network == "private" and not service.trusted:
            hint = "trust the project: cogcli config trust"
        report.need("safety.scope", (key,), f"{subject}: {host} {refusal}", hint=hint)


def _check_variables(context: CheckContext, service: Service, report: ProblemReport, subject: str) -> None:
    secrets = set(secrets_of(service))
    for name in variables_of(None, service):
        if not context.options.environ.get(name):
            message = f"{subject}: environment variable `{name}` is not set"
            report.need("env.missing", _place_of(service, name), message, hint=f"export {name}=...")
        elif service.trusted and len(context.options.environ[name]) < SHORTEST_SECRET and name in secrets:
            message = f"{subject}: environment variable `{name}` has fewer than {SHORTEST_SECRET} characters"
            report.warn(
                "secret.short",
                _place_of(service, name),
                message,
                hint="such a value is masked by key name only",
            )


def _place_of(service: Service, name: str) -> KeyPath:
    """The path of a variable's name in the service."""
    for path, values in (
        (("metadata", "headers"), service.metadata.get("headers") or {}),
        (("env",), service.settings.get("env") or {}),
    ):
        for key, text in values.items():
            if f"${{{name}}}" in text:
                return (*path, key)
    return ("auth_ref",)


def check_function(context: CheckContext, binding: Binding) -> None:
    """Report a pythoncall binding whose function does not exist; a missing module is reported at the service."""
    service = context.catalog.services.get(binding.service)
    if service is None or service.kind != "pythoncall" or binding.protocol != "pythoncall":
        return
    if service.module is None or not _may_import(service):
        return
    file = module_file(service.module, service.root)
    if file is not None and not has_function(file, binding.operation, quickly=context.catalog.partial):
        message = f"binding `{binding.id}`: module `{service.module}` has no function `{binding.operation}`"
        hint = "name a top-level `def` of that module"
        context.report(binding.file).need("service.module", ("operation",), message, hint=hint)


def _may_import(service: Service) -> bool:
    """Whether the module may be imported at all: an untrusted layer may name shipped ones only."""
    return service.trusted or is_shipped(service.module or "")

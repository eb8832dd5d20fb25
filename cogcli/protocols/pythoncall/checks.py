"""pythoncall: checks that module and function exist, and run in an allowed place
(docs/reference/protocols.md#pythoncall)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from cogcli.declarations.service_spec import Service
from cogcli.specs.checks.context import CheckContext, ProtocolChecks
from cogcli.specs.module_lookup import has_function, module_file
from cogcli.specs.service import is_shipped

if TYPE_CHECKING:
    from cogcli.declarations.binding_spec import Binding
    from cogcli.specs.problem_report import ProblemReport


def check_service(context: CheckContext, service: Service) -> None:
    """Report a module that is not found, or that runs inside this process without being shipped."""
    if not service.module:
        return
    report, subject = context.report(service.file, service.at), f"service `{service.id}`"
    if service.isolation == "thread" and not is_shipped(service.module):
        message = f"{subject}: module `{service.module}` is not ours and runs inside this process"
        report.warn("service.isolation", ("isolation",), message, hint="write isolation: process")
    if _may_import(service) and module_file(service.module, service.root) is None:
        message = f"{subject}: module `{service.module}` is not found"
        hint = "install it, or put it below the registry root"
        report.add_for_run("service.module", ("module",), message, hint=hint)
    elif not is_shipped(service.module) and (service.trusted or not context.catalog.partial):
        _check_imports(context, service, report)


def _check_imports(context: CheckContext, service: Service, report: ProblemReport) -> None:
    """Report missing imports of the module, and of all modules below the root that it imports. Only the syntax is read,
    so that no code of an untrusted project runs.
    """
    from cogcli.specs.python_imports import failed_imports  # most modules are shipped

    bindings = context.catalog.bindings.values()
    operations = {binding.operation for binding in bindings if binding.service == service.id}
    base = context.catalog.places.base(service.file)
    for failed in failed_imports(
        service.module or "", service.root, operations, links=service.trusted
    ):
        where = f"{failed.file.replace(os.sep, '/').removeprefix(base)}:{failed.line}"
        message = f"service `{service.id}`: {where} imports `{failed.name}`: {failed.looked_for}"
        add = report.add_for_run if failed.certain else report.warn
        add("service.module", ("module",), message, hint=failed.hint)


def check_binding(context: CheckContext, binding: Binding, service: Service | None) -> None:
    """Report a function that does not exist. A missing module is reported at the service."""
    if service is None or service.module is None or not _may_import(service):
        return
    file = module_file(service.module, service.root)
    # Of our own modules a test holds that the quick answer is the exact one.
    search_first = context.catalog.partial or is_shipped(service.module)
    if file is not None and not has_function(file, binding.operation, search_first=search_first):
        message = f"binding `{binding.id}`: module `{service.module}` has no function `{binding.operation}`"
        hint = "name a top-level `def` of that module"
        context.report(binding.file).add_for_run(
            "service.module", ("operation",), message, hint=hint
        )


def _may_import(service: Service) -> bool:
    """Return whether the module may be imported at all: an untrusted layer may name only shipped ones."""
    return service.trusted or is_shipped(service.module or "")


CHECKS: Final = ProtocolChecks(check_service, check_binding)

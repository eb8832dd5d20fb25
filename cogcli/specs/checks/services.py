"""Checks of services: their variables, isolation and Python modules.

The rules are in docs/reference/service.md#trust and docs/reference/protocols.md#pythoncall.
"""

from __future__ import annotations

from typing import Final

from cogcli.declarations.service_spec import Service
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.eligibility import (
    path_of_variable,
    secrets_of,
    unset_variables,
    unset_variables_text,
    variables_of,
)
from cogcli.specs.layers import BUILT_IN
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.service import names_in_address, network_of
from cogcli.specs.service_variables import address_fault, lacking_variables

SHORTEST_SECRET: Final = 8


def check_services(context: CheckContext) -> None:
    """Report the problems of each service that depend on its layer and on the environment."""
    for service in context.iterate_specs(context.catalog.services):
        report = context.report(service.file).part(f"service `{service.id}`", *service.at)
        protocol = context.protocols.get(service.kind)
        if protocol is not None:
            protocol.checks().service(context, service)
        for key in ("base_url", "url"):
            # A run without trust calls none of them; the selection reports that.
            if context.catalog.distrust:
                continue
            if key in service.settings and not names_in_address(service.settings[key]):
                _check_address(service, key, report)
        # Variables of shipped services are optional.
        if not context.catalog.partial and service.layer != BUILT_IN:
            _check_variables(context, service, report)


def _check_address(service: Service, key: str, report: ProblemReport) -> None:
    """Report a literal IP address that must not be called. HostChoices names are checked when the call is made."""
    from urllib.parse import urlsplit

    from cogcli.base.addresses import literal_refusal

    try:
        parts = urlsplit(service.settings[key])
        host = parts.hostname or ""
        if parts.port == 0:
            raise ValueError("nothing answers at port 0")
    except ValueError as error:
        report.error("service.url", (key,), f"`{key}` is not a URL: {error}")
        return
    refusal = literal_refusal(host, network_of(service))
    if refusal:
        # Some addresses are never called, even with `network: private`.
        private = service.network == "public" and not literal_refusal(host, "private")
        hint = "write network: private, if it is yours" if private else ""
        if service.network == "private" and not service.trusted:
            hint = "trust the project: cogcli config trust"
        report.add_for_run("safety.scope", (key,), f"{host} {refusal}", hint=hint)


def _check_variables(context: CheckContext, service: Service, report: ProblemReport) -> None:
    secrets = set(secrets_of(service))
    lacking: list[str] = []
    if service.variables:
        lacking = lacking_variables(service, context.options.environ)
        if fault := address_fault(service):
            report.add_for_run("service.url", (), fault, hint="look at their values")
    unset = {*unset_variables(None, service, context.options.environ), *lacking}
    for name in (*variables_of(None, service), *lacking):
        value = context.options.environ.get(name)
        path = path_of_variable(service, name)
        if name in unset:
            message = unset_variables_text([name], context.options.environ)
            report.add_for_run("env.missing", path, message, hint=f"export {name}=...")
        elif service.trusted and value and len(value) < SHORTEST_SECRET and name in secrets:
            message = f"environment variable `{name}` has fewer than {SHORTEST_SECRET} characters"
            report.warn(
                "secret.short", path, message, hint="such a value is masked by key name only"
            )

"""openapi: checks that a path without a document has all its names, and that a changing method has
declared effects (docs/reference/protocols.md#openapi)."""

from __future__ import annotations

from typing import Final

from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.protocols.http.url import GRAMMAR, names_in, path_of
from cogcli.specs.checks.context import CheckContext, ProtocolChecks

CHANGING: Final = ("PUT", "PATCH", "DELETE")
"""The methods that change something on the server."""


def check_binding(context: CheckContext, binding: Binding, service: Service | None) -> None:
    """Report three faults of a binding: an operation that should be a path but is not, a path parameter
    without a value, and a method such as POST if the capability declares no effects."""
    report, subject = context.report(binding.file), f"binding `{binding.id}`"
    if service is not None and "spec_ref" not in service.settings:
        if path_of(binding.operation) is None:
            message = f"{subject}: operation `{binding.operation}`, expected a path"
            report.error("binding.operation", ("operation",), message, hint=GRAMMAR)
        for name in names_in(binding.operation):
            if name not in binding.request:
                message = f"{subject}: operation `{binding.operation}` requires `{name}`, which is not given"
                report.error(
                    "wire.parameter", ("request",), message, hint=f"add {name} to request", key=True
                )
    capability, method = (
        context.catalog.capability(binding.capability),
        binding.metadata.method,
    )
    if capability is not None and method in CHANGING and capability.effect == "unknown":
        message = (
            f"{subject}: {method} on capability `{capability.id}`, whose effects are not declared"
        )
        hint = f"declare properties.side_effects in {capability.file}"
        report.error("effects.undeclared", ("metadata", "method"), message, hint=hint)


CHECKS: Final = ProtocolChecks(binding=check_binding)

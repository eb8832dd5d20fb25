"""A toy binding sends a text."""

from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.specs.checks.context import CheckContext, ProtocolChecks


def _check_binding(context: CheckContext, binding: Binding, service: Service | None) -> None:
    if "text" not in binding.request:
        report = context.report(binding.file)
        report.error(
            "wire.parameter", ("request",), f"binding `{binding.id}`: it needs `text`", key=True
        )


CHECKS = ProtocolChecks(binding=_check_binding)

"""Checks of bindings against their capability, service and fallbacks (docs/reference/binding.md#request,
docs/reference/binding.md#response, docs/reference/binding.md#metadata)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.problems import suggestion
from cogcli.specs.capability import Capability
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.template import TemplateFault, parse_template, texts

if TYPE_CHECKING:
    from cogcli.specs.binding import Binding


def check_bindings(context: CheckContext) -> None:
    """Report the problems of each binding with the rest of the catalog."""
    for binding in context.catalog.bindings.values():
        _check_binding(context, binding)


def _check_binding(context: CheckContext, binding: Binding) -> None:
    report = context.report(binding.file)
    subject = f"binding `{binding.id}`"
    capability = context.catalog.capability(binding.capability)
    if capability is None:
        said, hint = context.absent("capability", binding.capability)
        report.error("binding.capability", ("capability",), f"{subject}: {said}", hint=hint)
    else:
        _check_request(binding, capability, report, subject)
        _check_response(binding, capability, report, subject)
    _check_service(context, binding, report, subject)
    if not context.catalog.partial:
        _check_variables(context, binding, report, subject)
    _check_fallback(context, binding, report, subject)
    protocol = context.protocols.get(binding.protocol)
    if protocol is not None:
        protocol.checks().binding(context, binding, context.catalog.services.get(binding.service))


def _check_service(context: CheckContext, binding: Binding, report: ProblemReport, subject: str) -> None:
    service = context.catalog.services.get(binding.service)
    if service is None:
        said, hint = context.absent("service", binding.service)
        report.error("binding.service", ("service",), f"{subject}: {said}", hint=hint)
        return
    if service.kind != binding.protocol:
        message = f"{subject}: protocol {binding.protocol}, service `{service.id}` is of kind {service.kind}"
        report.error("binding.protocol", ("protocol",), message, hint=f"write protocol: {service.kind}")
    names = {name.lower(): name for name in binding.metadata.get("headers") or {}}
    if "authorization" in names and "auth_ref" in service.settings:
        message = f"{subject}: an `Authorization` header beside `auth_ref` of service `{service.id}`"
        report.error("service.auth", ("metadata", "headers", names["authorization"]), message, key=True)


def _check_variables(context: CheckContext, binding: Binding, report: ProblemReport, subject: str) -> None:
    for key, text in (binding.metadata.get("headers") or {}).items():
        for name in dict.fromkeys(PLACEHOLDER.findall(text)):
            if not context.options.environ.get(name):
                message = f"{subject}: environment variable `{name}` is not set"
                report.need("env.missing", ("metadata", "headers", key), message, hint=f"export {name}=...")


def _check_request(binding: Binding, capability: Capability, report: ProblemReport, subject: str) -> None:
    for path, text in texts(binding.request, ("request",)):
        try:
            parts = parse_template(text)
        except TemplateFault:  # reported with the file's own problems
            continue
        for slot in parts:
            if isinstance(slot, str):
                continue
            field = capability.inputs.get(slot.path[0])
            place = ".".join(map(str, path))
            if field is None:
                message = f"{subject}: `{place}`: `{slot.path[0]}` is no input of `{capability.id}`"
                hint = suggestion(slot.path[0], capability.inputs)
                report.error("request.input", path, message, hint=hint)
            elif not slot.whole and slot.otherwise is None and not field.required and field.default is None:
                message = (
                    f"{subject}: `{place}`: optional input `{slot.path[0]}` inside text fails when not given"
                )
                report.warn(
                    "request.optional", path, message, hint=f"write ${{input.{'.'.join(slot.path)}:-}}"
                )


def _check_response(binding: Binding, capability: Capability, report: ProblemReport, subject: str) -> None:
    for name in binding.response:
        if name not in capability.outputs:
            message = f"{subject}: `response.{name}`: `{name}` is no output of `{capability.id}`"
            hint = suggestion(name, capability.outputs)
            report.error("response.field", ("response", name), message, hint=hint, key=True)
    for name, field in capability.outputs.items():
        if field.required and field.default is None and name not in binding.response:
            message = f"{subject}: required output `{name}` of `{capability.id}` is not mapped"
            report.error(
                "response.unmapped", ("response",), message, hint=f"add {name}: response.{name}", key=True
            )


def _check_fallback(context: CheckContext, binding: Binding, report: ProblemReport, subject: str) -> None:
    name = binding.fallback
    if name is None:
        return
    path = ("metadata", "fallback_binding_id")
    other = context.catalog.bindings.get(name)
    if other is None:
        said, hint = context.absent("binding", name)
        report.error("fallback.unknown", path, f"{subject}: fallback: {said}", hint=hint)
    elif other.capability != binding.capability:
        message = f"{subject}: fallback `{name}` binds `{other.capability}`, not `{binding.capability}`"
        report.error("fallback.capability", path, message)
    else:
        cycle = _fallback_cycle(context, binding)
        if cycle:
            report.error("fallback.cycle", path, f"{subject}: fallback cycle {' -> '.join(cycle)}")


def _fallback_cycle(context: CheckContext, binding: Binding) -> list[str]:
    """The chain of fallbacks from a binding back to itself, empty without a cycle."""
    chain = [binding.id]
    while (current := context.catalog.bindings.get(chain[-1])) and current.fallback:
        if current.fallback == binding.id:
            return [*chain, binding.id]
        if current.fallback in chain:
            return []
        chain.append(current.fallback)
    return []

"""Checks of bindings against their capability, service and fallbacks.

The rules are in docs/reference/binding.md#request, docs/reference/binding.md#response and
docs/reference/binding.md#metadata.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath, suggest_path, suggestion
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.specs.checks.absent_members import report_absent_member
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.cycles import shortest_cycle
from cogcli.specs.eligibility import unset_variables_text
from cogcli.specs.id_grammar import PLACEHOLDER
from cogcli.specs.inner_shapes import follow, shape_of
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.service_variables import service_names
from cogcli.specs.shipped_fit import explain_shipped_misfit, find_replaced_versions
from cogcli.specs.template import (
    FILE,
    TemplateFault,
    TemplateSlot,
    files_in,
    is_file_input,
    slots_of,
    texts,
)

_WHOLE: Final = 2
"""The length of the path to a value of the request."""


def check_bindings(context: CheckContext) -> None:
    """Report conflicts of each binding with its capability, its service and its document."""
    for binding in context.iterate_specs(context.catalog.bindings):
        report = context.report(binding.file).part(f"binding `{binding.id}`")
        capability = context.catalog.capability(binding.capability)
        if capability is None:
            message, hint = context.explain_absence("capability", binding.capability)
            report.error("binding.capability", ("capability",), message, hint=hint)
        else:
            before = find_replaced_versions(context.catalog, binding)
            _check_request(_RequestCheck(context, binding, capability, before, report))
            _check_response(binding, capability, before, report)
            if not explain_shipped_misfit(context.catalog, binding):  # a misfit is never called
                _check_files(binding, capability, report)
                _check_sent_files(context, binding, capability, report)
                _check_required_outputs(binding, capability, report)
                _check_page(binding, capability, report)
        _check_service(context, binding, report)
        _check_service_names(context, binding, report)
        if not context.catalog.partial:
            _check_variables(context, binding, report)
        if binding.fallback is not None:
            _check_fallback(context, binding, binding.fallback, report)
        protocol = context.protocols.get(binding.protocol)
        if protocol is not None:
            protocol.checks().binding(
                context, binding, context.catalog.services.get(binding.service)
            )


def _check_page(binding: Binding, capability: Capability, report: ProblemReport) -> None:
    """Report paging for a capability that may have effects, and a paged output that is not a list."""
    if binding.page is None:
        return
    if capability.effect != "none":
        message = f"pages of capability `{capability.id}`, which may have effects"
        hint = f"declare properties.side_effects: false in {capability.file}, or remove `page`"
        report.error("binding.page", ("page",), message, hint=hint, key=True)
    field = capability.outputs.get(binding.page.items)
    if field is not None and field.type not in ("array", "any"):
        message = f"output `{binding.page.items}` is {field.type}, pages are collected into a list"
        report.error("binding.page", ("page", "items"), message)


def _check_service(context: CheckContext, binding: Binding, report: ProblemReport) -> None:
    service = context.catalog.services.get(binding.service)
    if service is None:
        message, hint = context.explain_absence("service", binding.service)
        report.error("binding.service", ("service",), message, hint=hint)
        return
    if service.kind != binding.protocol:
        message = f"protocol {binding.protocol}, service `{service.id}` is of kind {service.kind}"
        report.error(
            "binding.protocol", ("protocol",), message, hint=f"write protocol: {service.kind}"
        )
    source = "auth" if service.keys.login is None else "login"
    taken = {each.header.lower(): source for each in service.credentials.values() if each.header}
    if service.auth_ref is not None:
        taken["authorization"] = "auth_ref"
    for name in binding.metadata.headers:
        if key := taken.get(name.lower()):
            article = "an" if name[:1].lower() in "aeiou" else "a"
            message = f"{article} `{name}` header beside `{key}` of service `{service.id}`"
            report.error("service.auth", ("metadata", "headers", name), message, key=True)


def _check_service_names(context: CheckContext, binding: Binding, report: ProblemReport) -> None:
    """Report each `service.NAME` if the service has no such variable."""
    service = context.catalog.services.get(binding.service)
    if service is None:
        return
    for path, name in service_names(binding):
        if name not in service.variables:
            message = f"`{_join_path(path)}`: `{name}` is not a variable of service `{service.id}`"
            hint = suggest_path(name, service.variables, prefix="service.")
            hint = (
                hint
                or "declare it in `variables` there, or write {$literal: ...} for this very text"
            )
            report.error("request.input", path, message, hint=hint)


def _check_variables(context: CheckContext, binding: Binding, report: ProblemReport) -> None:
    for key, text in binding.metadata.headers.items():
        for name in dict.fromkeys(PLACEHOLDER.findall(text)):
            if not context.options.environ.get(name):
                message = unset_variables_text([name], context.options.environ)
                hint = f"export {name}=..."
                report.add_for_run("env.missing", ("metadata", "headers", key), message, hint=hint)


_DROPPED: Final = "a later layer declares it with fewer fields, so this one is left out"


class _RequestCheck(NamedTuple):
    """The check of a binding's request against its capability.

    `before` are the versions of the capability that later layers replaced. A shipped binding was written for them.
    """

    context: CheckContext
    binding: Binding
    capability: Capability
    before: Sequence[Capability]
    report: ProblemReport


def _check_request(check: _RequestCheck) -> None:
    """Report undeclared inputs in a request, and inputs inside a string that may be absent."""
    expected = [
        each
        for number, declared in enumerate(check.binding.checks)
        for each in texts(declared.value, ("checks", number, "value"))
    ]
    for path, text in (*texts(check.binding.request, ("request",)), *expected):
        try:
            slots = slots_of(text)
        except TemplateFault:  # reported with the file's own problems
            continue
        for slot in slots:
            if not slot.of_service:
                _check_slot(check, slot, path)


def _check_slot(check: _RequestCheck, slot: TemplateSlot, path: KeyPath) -> None:
    name, *below = slot.path
    inputs = check.capability.inputs
    field = inputs.get(name)
    if field is not None:
        inside = follow([shape_of(field)], slot.fixed_prefix[1:], lists=True)
        report_absent_member(check.report, path, ("input", *slot.fixed_prefix), 2, inside)
        is_optional = not field.required and field.default is None
        if is_optional and not slot.is_whole_value and slot.default is None:
            _report_optional(check, slot, path)
        return
    message = f"`{_join_path(path)}`: `{name}` is not an input of `{check.capability.id}`"
    if any(name in one.inputs for one in check.before):
        check.report.warn("request.input", path, f"{message}; {_DROPPED}")
    else:
        after = "".join(f".{part}" for part in below)
        hint = suggest_path(name, inputs, prefix="input.", suffix=after)
        check.report.error("request.input", path, message, hint=hint)


def _report_optional(check: _RequestCheck, slot: TemplateSlot, path: KeyPath) -> None:
    """Report an input inside a string that may be absent."""
    if path[1] in _path_keys(check.context, check.binding):
        without = "a call without it fails, as that would be another path"
        hint = "make the input required, or give it a default"
    else:
        without = "the text is empty there if it is not given"
        hint = f"write ${{input.{'.'.join(slot.path)}:-}} to say that this is meant"
    message = f"`{_join_path(path)}`: optional input `{slot.path[0]}` inside text: {without}"
    check.report.warn("request.optional", path, message, hint=hint)


def _join_path(path: KeyPath) -> str:
    return ".".join(map(str, path))


def _path_keys(context: CheckContext, binding: Binding) -> Collection[str]:
    service, protocol = (
        context.catalog.services.get(binding.service),
        context.protocols.get(binding.protocol),
    )
    return protocol.path_keys(service, binding) if service and protocol else ()


def _check_files(binding: Binding, capability: Capability, report: ProblemReport) -> None:
    """Report the first file that a request sends if the capability has no gate that could check it."""
    for path, value in files_in(binding.request, ("request",)):
        if not (capability.safety and capability.safety.mandatory_pre_gates):
            message = f"`{_join_path(path)}` sends a file, and no gate of `{capability.id}` looks at its path"
            gate = f"{{capability: doc.path.check, on_fail: block, input: {{path: {value[FILE]}}}}}"
            hint = f"add mandatory_pre_gates: [{gate}] to its safety"
            report.error("request.template", path, message, hint=hint)
            return


def _check_sent_files(
    context: CheckContext, binding: Binding, capability: Capability, report: ProblemReport
) -> None:
    """Report file inputs where a request would send the file's path and digest instead of its content.

    A whole request value is checked with the service's document. A Python function receives path and digest.
    """
    protocol = context.protocols.get(binding.protocol)
    if protocol is None or protocol.in_process:
        return
    service = context.catalog.services.get(binding.service)
    has_document = service is not None and "spec_ref" in service.settings
    is_described = protocol.sends_files and has_document
    for path, text in texts(binding.request, ("request",)):
        if not is_file_input(text, capability.inputs) or (is_described and len(path) == _WHOLE):
            continue
        message = f"`{_join_path(path)}` of service `{binding.service}` takes no file"
        hint = "only a part of a form or a whole body is a file"
        if not protocol.sends_files:
            hint = f"send its content as text: {binding.protocol} has no files"
        elif not has_document:
            message += ", because no document describes the request"
            hint = "describe the operation: spec_ref in the service, or cogcli new binding --from-openapi FILE"
        report.error("wire.type", path, message, hint=hint)


def _check_response(
    binding: Binding,
    capability: Capability,
    replaced_versions: Sequence[Capability],
    report: ProblemReport,
) -> None:
    for name in binding.response:
        if name not in capability.outputs:
            replaced = any(name in one.outputs for one in replaced_versions)
            reason = _DROPPED if replaced else "it is left out"
            message = f"`response.{name}`: `{name}` is not an output of `{capability.id}`; {reason}"
            hint = "" if replaced else suggestion(name, capability.outputs)
            report.warn("response.field", ("response", name), message, hint=hint, key=True)


def _check_required_outputs(
    binding: Binding, capability: Capability, report: ProblemReport
) -> None:
    for name, field in capability.outputs.items():
        if field.needs_value and name not in binding.response:
            message = f"required output `{name}` of `{capability.id}` is not mapped"
            hint = f"add {name}: response.{name}"
            report.error("response.unmapped", ("response",), message, hint=hint, key=True)


def _check_fallback(
    context: CheckContext, binding: Binding, name: str, report: ProblemReport
) -> None:
    bindings, path = context.catalog.bindings, ("metadata", "fallback_binding_id")
    other = bindings.get(name)
    if other is None:
        message, hint = context.explain_absence("binding", name)
        report.error("fallback.unknown", path, f"fallback: {message}", hint=hint)
        return
    if other.capability != binding.capability:
        message = f"fallback `{name}` binds `{other.capability}`, not `{binding.capability}`"
        report.error("fallback.capability", path, message)
        return
    cycle = shortest_cycle(
        binding.id, lambda id: filter(None, [bindings[id].fallback if id in bindings else None])
    )
    if cycle:
        report.error("fallback.cycle", path, f"fallback cycle {' -> '.join(cycle)}")

"""Checks of the files that choose bindings, and of the resulting choices.

They cover the default selection (docs/reference/binding.md#default-selection), the choices of the host
(docs/reference/binding.md#host-overrides), and whether each called capability has a usable binding.
"""

from __future__ import annotations

from cogcli.base.errors import BindingResolutionError
from cogcli.base.problems import did_you_mean, suggestion
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.eligibility import place_of_variable
from cogcli.specs.host_overrides import Override
from cogcli.specs.layers import BUILT_IN
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.selection import CANDIDATE, find_binding_on
from cogcli.specs.selection_errors import usable_bindings
from cogcli.specs.skill import targets_of


def check_defaults(context: CheckContext) -> None:
    """Report defaults that are inconsistent.

    The capability or the binding is missing, they do not belong together, or the binding is a candidate.
    """
    catalog = context.catalog
    for capability, names in catalog.defaults.bindings.items():
        report, path = context.report(catalog.defaults.files[capability]), ("defaults", capability)
        if capability not in catalog.capabilities:
            if not catalog.partial:
                message, hint = context.explain_absence("capability", capability)
                report.error("policy.capability", path, message, hint=hint, key=True)
            continue
        for number, name in enumerate(names):
            place = (*path, number) if len(names) > 1 else path
            if wrong := context.explain_wrong_binding(capability, name):
                report.error("policy.binding", place, wrong[0], hint=wrong[1])
            elif catalog.bindings[name].channel == CANDIDATE:
                message = f"`{capability}`: binding `{name}` is a candidate"
                report.error(
                    "policy.binding", place, message, hint="move it to channel official or local"
                )


def check_host(context: CheckContext) -> None:
    """Report choices of the host whose capability does not exist, or whose binding is for another capability.

    The severity is R: it is an error only for a run that needs the capability.
    """
    catalog, host = context.catalog, context.catalog.host
    for capability, active in host.active.items():
        report, path = context.report(active.file), (active.key,)
        if capability not in catalog.capabilities:
            if not catalog.partial:
                message, hint = context.explain_absence("capability", capability)
                report.add_for_run("active.capability", path, message, hint=hint, key=True)
        elif wrong := context.explain_wrong_binding(capability, active.binding, context.options):
            message, hint = wrong
            known, _ = usable_bindings(
                catalog, catalog.bindings_of.get(capability, ()), context.options
            )
            meant = (did_you_mean(active.binding, known) or known)[:1]
            ways = [hint, *(f"cogcli bindings activate {capability} {id}" for id in meant)]
            report.add_for_run("active.binding", path, message, hint="\n".join(filter(None, ways)))
    for capability, override in host.overrides.items():
        _check_override(context, capability, override, _report_of(context, override))
    for capability, override in host.repeated:
        message = f"capability `{capability}` is already in override {host.overrides[capability].entry + 1}"
        report, place = _report_of(context, override), ("capabilities", override.position)
        report.error("overrides.duplicate", place, message, hint="keep one of them")


def _report_of(context: CheckContext, override: Override) -> ProblemReport:
    return context.report(override.file).part(
        f"override {override.entry + 1}", "overrides", override.entry
    )


def _check_override(
    context: CheckContext, capability: str, override: Override, report: ProblemReport
) -> None:
    catalog, code, service = context.catalog, "overrides.unresolved", override.service or ""
    if capability not in catalog.capabilities:
        if not catalog.partial:
            message, hint = context.explain_absence("capability", capability)
            report.add_for_run(code, ("capabilities", override.position), message, hint=hint)
    elif override.binding is not None:
        if wrong := context.explain_wrong_binding(capability, override.binding):
            report.add_for_run(code, ("binding",), wrong[0], hint=wrong[1])
    elif find_binding_on(catalog, capability, service) is None:
        message = f"`{capability}` has no binding on service `{service}`"
        hint = _suggest_service(context, capability, service)
        report.add_for_run(code, ("service",), message, hint=hint)


def _suggest_service(context: CheckContext, capability: str, service: str) -> str:
    """Return a hint with the services on which a capability has a binding. Empty if it has no binding."""
    catalog = context.catalog
    bindings = (catalog.bindings[id] for id in catalog.bindings_of.get(capability, ()))
    known = dict.fromkeys(b.service for b in bindings if b.channel != CANDIDATE)
    if not known:
        return ""
    listed = f"it has one on {', '.join(f'`{name}`' for name in known)}"
    return suggestion(service, known) or listed


def check_choices(context: CheckContext) -> None:
    """Report each capability without a usable binding, at the first step, gate or probe that calls it.

    The rule is in docs/reference/skill.md#step-checks.
    """
    catalog = context.catalog
    for skill in context.iterate_specs(catalog.skills):
        called: set[str] = set()
        for index, step in enumerate(skill.steps):
            for path, name in targets_of(step):
                capability = None if name.startswith(NESTED) else catalog.capability(name)
                if capability and capability.id not in called:
                    called.add(capability.id)
                    _check_usable(context, capability.id, context.step_report(skill, index), path)
    for capability in context.iterate_specs(catalog.capabilities):
        report = context.report(capability.file).part(f"capability `{capability.id}`")
        for path, gate in capability.gate_places():
            _check_usable(context, gate.capability, report, path)
        if capability.probe:
            _check_usable(context, capability.probe, report, ("probe", "capability"))


def _check_usable(
    context: CheckContext, name: str, report: ProblemReport, path: tuple[str | int, ...]
) -> None:
    capability = context.catalog.capability(name)
    found = context.selection(capability.id) if capability else None
    # A fault in the file that names a binding is reported there, once.
    if isinstance(found, BindingResolutionError) and not found.file:
        if found.code == "env.missing" and _is_shipped_for_the_host(context, found, report.file):
            return
        named = _locate_variable(context, found) if found.code == "env.missing" else ""
        report.add_for_run(found.code, path, found.message, hint=_insert_place(found.hint, named))


def _insert_place(hint: str, place: str) -> str:
    """Return a hint with the place where the variable is named, inserted before the alternatives."""
    lines = hint.split("\n") if hint else []
    after = max((n for n, line in enumerate(lines, 1) if line.startswith("export ")), default=0)
    return "\n".join([*lines[:after], *filter(None, [place]), *lines[after:]])


def _is_shipped_for_the_host(
    context: CheckContext, error: BindingResolutionError, file: str
) -> bool:
    """Return whether a shipped file lacks only a variable of a shipped service.

    A run that needs the variable reports it.
    """
    service = context.catalog.services.get(error.service_id or "")
    if context.catalog.partial or service is None or service.layer != BUILT_IN:
        return False
    return context.catalog.places.path(file).startswith(f"{service.root}/")


def _locate_variable(context: CheckContext, error: BindingResolutionError) -> str:
    """Return the place of the missing variable in the service's file; empty if unknown."""
    service = context.catalog.services.get(error.service_id or "")
    places = context.catalog.places.of(service.file) if service else None
    path = place_of_variable(service, context.options.environ) if service else None
    if service is None or places is None or path is None:
        return ""
    line, column = places.position((*service.at, *path), key=False)
    return f"named in {service.file}:{line}:{column}"

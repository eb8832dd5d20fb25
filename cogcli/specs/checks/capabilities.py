"""Checks of capabilities against each other (docs/reference/capability.md#hints,
docs/reference/capability.md#replacing)."""

from __future__ import annotations

from cogcli.core.problems import KeyPath, suggestion
from cogcli.specs.capability import Capability
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.examples import check_examples
from cogcli.specs.checks.gates import check_gates
from cogcli.specs.checks.probes import check_probe
from cogcli.specs.checks.targets import fault_of
from cogcli.specs.cognitive_hints import TYPES
from cogcli.specs.inherit import find_weakened_safety
from cogcli.specs.problem_report import ProblemReport


def check_capabilities(context: CheckContext) -> None:
    """Report the problems of each capability with the rest of the catalog."""
    for capability in context.catalog.capabilities.values():
        _check_capability(context, capability)


def _check_capability(context: CheckContext, capability: Capability) -> None:
    report = context.report(capability.file)
    subject = f"capability `{capability.id}`"
    _check_hints(capability, report, subject)
    _check_safety(capability, report, subject)
    _check_replaced(context, capability, report, subject)
    check_gates(context, capability)
    check_probe(context, capability)
    if not context.catalog.partial:
        _check_names(context, capability, report, subject)
        check_examples(capability, report, subject)


def _check_names(context: CheckContext, capability: Capability, report: ProblemReport, subject: str) -> None:
    catalog = context.catalog
    for index, alias in enumerate(capability.aliases):
        owner = catalog.aliases.get(alias)
        taken = alias in catalog.capabilities or f"capability:{alias}" in catalog.broken
        if taken or owner != capability.id or alias in capability.aliases[:index]:
            other = "an id" if taken else f"an alias of `{owner}`"
            report.error("alias.clash", ("aliases", index), f"{subject}: alias `{alias}` is already {other}")
    named: list[tuple[KeyPath, str]] = [
        (("requires", index), id) for index, id in enumerate(capability.requires)
    ]
    if capability.replacement is not None:
        named.append((("replacement",), capability.replacement))
    for path, id in named:
        if catalog.capability(id) is None and f"capability:{id}" not in catalog.broken:
            message = f"{subject}: unknown capability `{id}`"
            report.warn("capability.unknown", path, message, hint=context.near("capability", id))


def _check_hints(capability: Capability, report: ProblemReport, subject: str) -> None:
    for name, production in capability.produces.items():
        path = ("cognitive_hints", "produces", name)
        if name not in capability.outputs:
            message = f"{subject}: hints name `{name}`, which is no output"
            report.error("hints.field", path, message, hint=suggestion(name, capability.outputs), key=True)
        if production.type not in TYPES and production.target is None:
            message = f"{subject}: `{name}` of type {production.type} is not wired"
            report.warn("hints.type", (*path, "type"), message, hint=suggestion(production.type, TYPES))
        if production.target is not None:
            fault = fault_of(production.target)
            if fault:
                report.error(fault.code, (*path, "target"), f"{subject}: {fault.message}", hint=fault.hint)


def _check_safety(capability: Capability, report: ProblemReport, subject: str) -> None:
    safety, effect = capability.safety, capability.effect
    if effect == "unknown":
        place = ("properties",) if capability.properties else ("id",)
        message = f"{subject}: nothing says whether it has effects"
        report.warn(
            "effects.undeclared", place, message, hint="declare properties.side_effects: true or false"
        )
    if safety is None:
        return
    if "read_only" in safety.scope_constraints and effect != "none":
        path = ("safety", "scope_constraints", safety.scope_constraints.index("read_only"))
        message = f"{subject}: `read_only`, but its effect class is {effect}"
        report.error("safety.read-only", path, message, hint="declare properties.side_effects: false")
    if safety.declared.get("reversible") is False and effect == "effect" and not safety.requires_confirmation:
        message = f"{subject}: its effect cannot be undone and needs no confirmation"
        report.warn(
            "safety.irreversible", ("safety", "reversible"), message, hint="set requires_confirmation: true"
        )


def _check_replaced(
    context: CheckContext, capability: Capability, report: ProblemReport, subject: str
) -> None:
    """`safety.weakened`: a later layer may replace a capability, but not weaken its safety."""
    for before in context.catalog.replaced.get(capability.id, ()):
        new = capability.safety.declared if capability.safety else {}
        old = before.safety.declared if before.safety else {}
        weaker = find_weakened_safety(new, old)
        if _weaker_effect(capability.effect, before.effect):
            weaker.append(("properties", f"effect class {capability.effect}, before {before.effect}"))
        for key, said in weaker:
            path = ("properties",) if key == "properties" else ("safety", key)
            message = f"{subject}: weaker than the one it replaces in {before.file}: {said}"
            report.error("safety.weakened", path, message, hint="keep at least the replaced safety", key=True)


def _weaker_effect(new: str, old: str) -> bool:
    if old == "effect":
        return new != "effect"
    return old == "idempotent" and new == "none"

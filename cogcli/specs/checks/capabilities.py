"""Checks of capabilities against each other (docs/reference/capability.md#hints,
docs/reference/capability.md#replacing)."""

from __future__ import annotations

from cogcli.core.problems import KeyPath, suggestion
from cogcli.specs.capability import HINT_TYPES, Capability
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.examples import check_examples
from cogcli.specs.checks.gates import check_gates, check_probe
from cogcli.specs.checks.targets import target_fault
from cogcli.specs.extends import find_weakened_safety
from cogcli.specs.problem_report import ProblemReport


def check_capabilities(context: CheckContext) -> None:
    """Report the problems of each capability with the rest of the catalog."""
    for capability in context.catalog.capabilities.values():
        report = context.report(capability.file).part(f"capability `{capability.id}`")
        _check_hints(capability, report)
        _check_safety(capability, report)
        for before in context.catalog.replaced.get(capability.id, ()):
            _check_replaced(capability, before, report)
        check_gates(context, capability)
        check_probe(context, capability)
        if not context.catalog.partial:
            _check_names(context, capability, report)
            check_examples(capability, report)


def _check_names(context: CheckContext, capability: Capability, report: ProblemReport) -> None:
    catalog = context.catalog
    for index, alias in enumerate(capability.aliases):
        owner = catalog.aliases.get(alias)
        taken = alias in catalog.capabilities or f"capability:{alias}" in catalog.broken
        if taken or owner != capability.id or alias in capability.aliases[:index]:
            other = "an id" if taken else f"an alias of `{owner}`"
            report.error("alias.clash", ("aliases", index), f"alias `{alias}` is already {other}")
    named: list[tuple[KeyPath, str]] = [(("requires", n), id) for n, id in enumerate(capability.requires)]
    if capability.replacement is not None:
        named.append((("replacement",), capability.replacement))
    for path, id in named:
        if catalog.capability(id) is None and f"capability:{id}" not in catalog.broken:
            hint = context.near("capability", id)
            report.warn("capability.unknown", path, f"unknown capability `{id}`", hint=hint)


def _check_hints(capability: Capability, report: ProblemReport) -> None:
    for name, production in capability.produces.items():
        path = ("cognitive_hints", "produces", name)
        if name not in capability.outputs:
            hint = suggestion(name, capability.outputs)
            report.error("hints.field", path, f"hints name `{name}`, which is no output", hint=hint, key=True)
        if production.target is not None:
            if fault := target_fault(production.target):
                report.fault(fault, (*path, "target"))
        elif production.type not in HINT_TYPES:
            message, hint = (
                f"`{name}` of type {production.type} is not wired",
                suggestion(production.type, HINT_TYPES),
            )
            report.warn("hints.type", (*path, "type"), message, hint=hint)


def _check_safety(capability: Capability, report: ProblemReport) -> None:
    safety, effect = capability.safety, capability.effect
    if effect == "unknown":
        path = ("properties",) if capability.properties else ("id",)
        hint = "declare properties.side_effects: true or false"
        report.warn("effects.undeclared", path, "nothing says whether it has effects", hint=hint)
    if safety is None:
        return
    if "read_only" in safety.scope_constraints and effect != "none":
        place = ("safety", "scope_constraints", safety.scope_constraints.index("read_only"))
        message, hint = (
            f"`read_only`, but its effect class is {effect}",
            "declare properties.side_effects: false",
        )
        report.error("safety.read-only", place, message, hint=hint)
    if safety.declared.get("reversible") is False and effect == "effect" and not safety.requires_confirmation:
        message, hint = (
            "its effect cannot be undone and needs no confirmation",
            "set requires_confirmation: true",
        )
        report.warn("safety.irreversible", ("safety", "reversible"), message, hint=hint)


def _check_replaced(capability: Capability, before: Capability, report: ProblemReport) -> None:
    """`safety.weakened`: a later layer may replace a capability, but not weaken its safety."""
    new, old = ((each.safety.declared if each.safety else {}) for each in (capability, before))
    weaker: list[tuple[KeyPath, str]] = [
        (("safety", key), reason) for key, reason in find_weakened_safety(new, old)
    ]
    now, then = capability.effect, before.effect
    if (then == "effect" and now != "effect") or (then, now) == ("idempotent", "none"):
        weaker.append((("properties",), f"effect class {now}, before {then}"))
    for path, reason in weaker:
        message = f"weaker than the one it replaces in {before.file}: {reason}"
        report.error("safety.weakened", path, message, hint="keep at least the replaced safety", key=True)

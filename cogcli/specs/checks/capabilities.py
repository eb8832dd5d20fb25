"""Checks of capabilities against each other, and of their examples, without a call.

The rules are in docs/reference/capability.md#hints, docs/reference/capability.md#replacing and
docs/reference/capability.md#examples.
"""

from __future__ import annotations

from cogcli.base.problems import KeyPath, suggestion
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import Fields
from cogcli.specs.capability import HINT_TYPES
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.gates import check_gates, check_probe
from cogcli.specs.checks.references import find_target_fault
from cogcli.specs.examples import content_of, is_inside, with_paths
from cogcli.specs.fields import fit_values
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shipped_fit import find_weakened_keys
from cogcli.specs.unchecked import object_at, objects_at, value_at


def check_capabilities(context: CheckContext) -> None:
    """Report conflicts between each capability and the rest of the catalog."""
    for capability in context.iterate_specs(context.catalog.capabilities):
        report = context.report(capability.file).part(f"capability `{capability.id}`")
        _check_hints(capability, report)
        _check_safety(capability, report)
        for before in context.catalog.replaced.get(capability.id, ()):
            _check_replaced_capability(capability, before, report)
        check_gates(context, capability)
        check_probe(context, capability)
        if not context.catalog.partial:
            _check_aliases(context, capability, report)
            _check_references(context, capability, report)
            _check_examples(capability, report)


def _check_aliases(context: CheckContext, capability: Capability, report: ProblemReport) -> None:
    catalog = context.catalog
    for index, alias in enumerate(capability.aliases):
        owner = catalog.aliases.get(alias)
        taken = alias in catalog.capabilities or f"capability:{alias}" in catalog.broken
        if taken or owner != capability.id or alias in capability.aliases[:index]:
            other = "an id" if taken else f"an alias of `{owner}`"
            report.error("alias.clash", ("aliases", index), f"alias `{alias}` is already {other}")


def _check_references(context: CheckContext, capability: Capability, report: ProblemReport) -> None:
    catalog = context.catalog
    named: dict[KeyPath, str | None] = {
        ("requires", n): id for n, id in enumerate(capability.requires)
    }
    named["replacement",] = capability.replacement
    for path, id in named.items():
        if (
            id is not None
            and catalog.capability(id) is None
            and f"capability:{id}" not in catalog.broken
        ):
            hint = context.suggest_ids("capability", id)
            report.warn("capability.unknown", path, f"unknown capability `{id}`", hint=hint)


def _check_hints(capability: Capability, report: ProblemReport) -> None:
    for name, production in capability.produces.items():
        path = ("cognitive_hints", "produces", name)
        if name not in capability.outputs:
            hint = suggestion(name, capability.outputs)
            report.error(
                "hints.field", path, f"hints name `{name}`, which is no output", hint=hint, key=True
            )
        if production.target is not None:
            if fault := find_target_fault(production.target):
                report.fault(fault, (*path, "target"))
        elif production.type not in HINT_TYPES:
            message = f"`{name}` of type {production.type} is not wired"
            hint = suggestion(production.type, HINT_TYPES)
            report.warn("hints.type", (*path, "type"), message, hint=hint)


def _check_safety(capability: Capability, report: ProblemReport) -> None:
    safety, effect = capability.safety, capability.effect
    if effect == "unknown":
        path = ("properties",) if capability.properties.json else ("id",)
        hint = "declare properties.side_effects: true or false"
        report.warn("effects.undeclared", path, "its effects are not declared", hint=hint)
    if safety is None:
        return
    if "read_only" in safety.scope_constraints and effect != "none":
        place = ("safety", "scope_constraints", safety.scope_constraints.index("read_only"))
        message = f"`read_only`, but its effect class is {effect}"
        hint = "declare properties.side_effects: false"
        report.error("safety.read-only", place, message, hint=hint)
    if safety.reversible is False and effect == "effect" and not safety.requires_confirmation:
        message = "its effect cannot be undone and needs no confirmation"
        hint = "set requires_confirmation: true"
        report.warn("safety.irreversible", ("safety", "reversible"), message, hint=hint)


def _check_replaced_capability(
    capability: Capability, replaced: Capability, report: ProblemReport
) -> None:
    """Report `safety.weakened`: a later layer may replace a capability, but must not weaken its safety."""
    for path, reason in find_weakened_keys(capability, replaced):
        message = f"weaker than the one it replaces in {replaced.file}: {reason}"
        report.error(
            "safety.weakened", path, message, hint="keep at least the replaced safety", key=True
        )


def _check_examples(capability: Capability, report: ProblemReport) -> None:
    """Report `example.contract` for inputs and outputs of executable examples that do not fit the capability."""
    for index, example in objects_at(capability.metadata, "examples"):
        key = "inputs" if "inputs" in example else "input"
        if key not in example:
            continue
        part = report.inner(f"example {index + 1}", "metadata", "examples", index)
        _check_files(value_at(example, "files"), part)
        _check_values(
            key, with_paths(example[key], str), capability.inputs, part, requires_all=True
        )
        outputs = with_paths(value_at(example, "outputs"), str)
        if outputs is not None:
            _check_values("outputs", outputs, capability.outputs, part, requires_all=False)
        match = value_at(example, "match")
        if match not in (None, "exact", "shape"):
            message = f"match `{match}`, expected `exact` or `shape`"
            part.warn("example.contract", ("match",), message)


def _check_files(files: object, report: ProblemReport) -> None:
    """Report files of an example that could not be written."""
    if files is not None and not isinstance(files, dict):
        message = "expected an object: file names to their contents"
        report.warn("example.contract", ("files",), message)
    for name, content in object_at(files).items():
        if not is_inside(name):
            message = f"the file `{name}` is outside of the folder of the example"
            report.warn("example.contract", ("files", name), message, key=True)
        if content_of(content) is None:
            report.warn("example.contract", ("files", name), "expected a text, or `{base64: TEXT}`")


def _check_values(
    key: str, values: object, fields: Fields, report: ProblemReport, *, requires_all: bool
) -> None:
    """Report values that do not fit their fields. With `requires_all`, report missing required
    fields, too.
    """
    if not isinstance(values, dict):
        report.warn("example.contract", (key,), "expected an object of values")
        return
    for name in values:
        if name not in fields:
            message, hint = f"unknown field `{name}`", suggestion(name, fields)
            report.warn("example.contract", (key, name), message, hint=hint, key=True)
    given = (
        fields
        if requires_all
        else {name: field for name, field in fields.items() if name in values}
    )
    for violation in fit_values(given, values)[1]:
        place = (int(part) if part.isdecimal() else part for part in violation.place.split("/"))
        report.warn("example.contract", (key, *place), violation.message)

"""Checks of the gates and the probe of a capability (docs/reference/capability.md#gates)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cogcli.base.problems import suggest_path, suggestion, suggestion_hint
from cogcli.declarations.capability_spec import GATES, Capability, Gate
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.specs.checks.absent_members import report_absent_member
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.references import find_first_path
from cogcli.specs.cycles import shortest_cycle
from cogcli.specs.inner_shapes import follow, shape_of
from cogcli.specs.problem_report import ProblemReport


def check_gates(context: CheckContext, capability: Capability) -> None:
    """Report gates that do not exist, do not return `allowed`, have effects, cannot be called, or form a cycle."""
    catalog = context.catalog

    def find_gates(id: str) -> list[str]:
        found = (catalog.capability(gate.capability) for gate in catalog.capabilities[id].gates)
        return [called.id for called in found if called]

    for path, gate in capability.gate_places():
        subject = f"capability `{capability.id}`: gate `{gate.capability}`"
        report = context.report(capability.file).part(subject, *path)
        called = catalog.capability(gate.capability)
        if called is None:
            message, hint = context.explain_absence("capability", gate.capability)
            report.error("gate.unknown", (), message, hint=hint)
            continue
        _check_answer(called, report)
        _check_inputs(capability, called, gate, report, post=path[1] == GATES[1])
        cycle = shortest_cycle(capability.id, find_gates, first=[called.id])
        if cycle:
            report.error("gate.cycle", (), f"cycle {' -> '.join(cycle)}")


def _check_answer(gate_capability: Capability, report: ProblemReport) -> None:
    """Report a gate that does not return `allowed`, or that has effects."""
    if not gate_capability.answers_allowed:
        message, hint = "has no boolean output `allowed`", "a gate answers `allowed`"
        report.error("gate.allowed", (), message, hint=hint)
    if gate_capability.effect == "unknown":
        report.warn("gate.effects", (), "its effects are not declared")
    elif gate_capability.effect != "none":
        report.error(
            "gate.effects", (), f"has effect class {gate_capability.effect}, expected none"
        )


def _check_same_names(
    capability: Capability, required_inputs: Sequence[str], report: ProblemReport, *, side: str
) -> None:
    """Report the needed inputs of a gate without a mapping that are not on this side of the capability."""
    fields = capability.outputs if side == "output" else capability.inputs
    for name in required_inputs:
        if name not in fields:
            message = f"its required input `{name}` is not an {side} of `{capability.id}`"
            hint = f"map it: input: {{{name}: {side}.FIELD}}"
            report.error("gate.input", (), message, hint=hint)


def _check_inputs(
    capability: Capability,
    gate_capability: Capability,
    gate: Gate,
    report: ProblemReport,
    *,
    post: bool,
) -> None:
    """Report `gate.input` for missing inputs of a gate, and for inputs that are not fields of the capability."""
    required_inputs = [name for name, field in gate_capability.inputs.items() if field.needs_value]
    if gate.input is None:
        _check_same_names(capability, required_inputs, report, side="output" if post else "input")
        return
    sides = {"input": capability.inputs}
    if post:
        sides["output"] = capability.outputs
    for name, text in gate.input.items():
        field = gate_capability.inputs.get(name)
        if field is None:
            message, hint = (
                f"`{name}` is not an input of it",
                suggestion(name, gate_capability.inputs),
            )
            report.error("gate.input", ("input", name), message, hint=hint, key=True)
        if not (text in sides and _takes_whole_side(field)):
            _check_source(capability.id, sides, name, text, report)
    for name in required_inputs:
        if name not in gate.input:
            report.error("gate.input", ("input",), f"its required input `{name}` is not mapped")


def _takes_whole_side(field: FieldSpec | None) -> bool:
    """Return whether all inputs, or all outputs, may be given to a gate's input, as one object."""
    return field is not None and field.type in ("object", "any")


def _check_source(
    id: str, sides: Mapping[str, Fields], name: str, text: str, report: ProblemReport
) -> None:
    """Report `gate.input` if the source of a gate's input is not a field of the capability."""
    path = ("input", name)
    side, _, rest = text.partition(".")
    field, *below = rest.split(".")
    if side not in sides or not rest:
        wanted = " or ".join(f"`{known}.NAME`" for known in sides)
        message, hint = f"found `{text}`, expected {wanted}", _suggest_source(sides, text)
        report.error("gate.input", path, message, hint=hint)
    elif field not in sides[side]:
        message = f"`{field}` is not an {side} of `{id}`"
        after = text.removeprefix(f"{side}.{field}")
        hint = suggest_path(field, sides[side], prefix=f"{side}.", suffix=after)
        report.error("gate.input", path, message, hint=hint)
    else:
        inside = follow([shape_of(sides[side][field])], below, lists=True)
        report_absent_member(report, path, text.split("."), 2, inside)


def _suggest_source(sides: Mapping[str, Fields], text: str) -> str:
    """Return a hint with the fields that a string may refer to."""
    known_paths = [f"{side}.{name}" for side, fields in sides.items() for name in fields]
    inner = find_first_path(text)
    near = f"write {inner}" if inner in known_paths else suggestion(inner, known_paths)
    return suggestion_hint([known for known in known_paths if known.endswith(f".{inner}")]) or near


_GIVEN: Final = {"idempotency_key": ("string", "any"), "input": ("object", "any")}
"""The inputs of a probe, with the types that accept each."""
_ANSWERED: Final = {"happened": ("boolean", "any"), "output": ("object", "any")}


def check_probe(context: CheckContext, capability: Capability) -> None:
    """Report `probe.contract` unless the capability's probe has the required fields and no effects."""
    if not capability.probe:
        return
    subject = f"capability `{capability.id}`: probe `{capability.probe}`"
    report = context.report(capability.file).part(subject, "probe", "capability")
    probe = context.catalog.capability(capability.probe)
    faults = (
        _find_probe_faults(probe)
        if probe
        else [context.explain_absence("capability", capability.probe)]
    )
    for message, hint in faults:
        report.error("probe.contract", (), message, hint=hint)


def _find_probe_faults(probe: Capability) -> Iterator[tuple[str, str]]:
    """Yield the reasons why a capability is not a valid probe, as (message, hint)."""
    if probe.effect != "none":
        yield (
            f"has effect class {probe.effect}, expected none",
            "a probe only looks: `side_effects: false`",
        )
    if probe.safety and probe.safety.requires_confirmation:
        yield "asks a person itself", "a probe answers so that nobody has to be asked"
    yield from _find_field_faults(probe.inputs, "input", _GIVEN, required_names=tuple(_GIVEN))
    for name, field in probe.inputs.items():
        if field.needs_value and name not in _GIVEN:
            message = f"its required input `{name}` is nothing that a probe is given"
            yield message, f"it gets {' and '.join(_GIVEN)}"
    yield from _find_field_faults(probe.outputs, "output", _ANSWERED, required_names=("happened",))


def _find_field_faults(
    fields: Fields,
    side: str,
    types_by_name: Mapping[str, tuple[str, ...]],
    *,
    required_names: tuple[str, ...],
) -> Iterator[tuple[str, str]]:
    for name, types in types_by_name.items():
        field = fields.get(name)
        if field is None and name in required_names:
            hint = suggestion(name, fields) or f"declare `{name}: {{type: {types[0]}}}`"
            yield f"has no {side} `{name}`", hint
        elif field and field.type not in types:
            yield f"its {side} `{name}` is {field.type}, expected {types[0]}", ""

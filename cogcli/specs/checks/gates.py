"""Checks of safety gates (docs/reference/capability.md#gates): they exist, answer `allowed`, have no effects
and can be called."""

from __future__ import annotations

from cogcli.core.problems import KeyPath, suggestion
from cogcli.specs.capability import Capability, Gate
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.problem_report import ProblemReport


def check_gates(context: CheckContext, capability: Capability) -> None:
    """Report the problems of a capability's gates."""
    if capability.safety is None:
        return
    for phase in ("mandatory_pre_gates", "mandatory_post_gates"):
        for index, gate in enumerate(getattr(capability.safety, phase)):
            _check_gate(
                context, capability, gate, ("safety", phase, index), post=phase == "mandatory_post_gates"
            )


def gates_of(capability: Capability) -> tuple[Gate, ...]:
    """All gates of a capability, in calling order."""
    return capability.gates


def _check_gate(
    context: CheckContext, capability: Capability, gate: Gate, path: KeyPath, *, post: bool
) -> None:
    report = context.report(capability.file)
    subject = f"capability `{capability.id}`: gate `{gate.capability}`"
    asked = context.catalog.capability(gate.capability)
    if asked is None:
        said, hint = context.absent("capability", gate.capability)
        report.error("gate.unknown", path, f"{subject}: {said}", hint=hint)
        return
    allowed = asked.outputs.get("allowed")
    if allowed is None or allowed.type != "boolean":
        message = f"{subject}: has no boolean output `allowed`"
        report.error("gate.allowed", path, message, hint="a gate answers `allowed`")
    if asked.effect == "unknown":
        report.warn("gate.effects", path, f"{subject}: nothing says whether it has effects")
    elif asked.effect != "none":
        report.error("gate.effects", path, f"{subject}: has effect class {asked.effect}, expected none")
    if gate.input is None:
        _check_equal_names(capability, asked, report, path, subject, post=post)
    else:
        _check_mapping(capability, asked, gate.input, report, (*path, "input"), subject, post=post)
    cycle = _cycle(context, capability.id, asked)
    if cycle:
        report.error("gate.cycle", path, f"{subject}: cycle {' -> '.join(cycle)}")


def _check_equal_names(
    capability: Capability,
    asked: Capability,
    report: ProblemReport,
    path: KeyPath,
    subject: str,
    *,
    post: bool,
) -> None:
    have = capability.outputs if post else capability.inputs
    for name, field in asked.inputs.items():
        if field.required and field.default is None and name not in have:
            side = "output" if post else "input"
            message = f"{subject}: its required input `{name}` is no {side} of `{capability.id}`"
            report.error("gate.input", path, message, hint=f"map it: input: {{{name}: {side}.FIELD}}")


def _check_mapping(
    capability: Capability,
    asked: Capability,
    mapping: dict[str, str],
    report: ProblemReport,
    path: KeyPath,
    subject: str,
    *,
    post: bool,
) -> None:
    sides = {"input": capability.inputs, **({"output": capability.outputs} if post else {})}
    for name, text in mapping.items():
        side, _, rest = text.partition(".")
        field = rest.split(".")[0]
        if name not in asked.inputs:
            message = f"{subject}: `{name}` is no input of it"
            report.error("gate.input", (*path, name), message, hint=suggestion(name, asked.inputs), key=True)
        if side not in sides or not rest:
            wanted = " or ".join(f"`{known}.NAME`" for known in sides)
            report.error("gate.input", (*path, name), f"{subject}: found `{text}`, expected {wanted}")
        elif field not in sides[side]:
            message = f"{subject}: `{field}` is no {side} of `{capability.id}`"
            report.error("gate.input", (*path, name), message, hint=suggestion(field, sides[side]))
    for name, spec in asked.inputs.items():
        if spec.required and spec.default is None and name not in mapping:
            report.error("gate.input", path, f"{subject}: its required input `{name}` is not mapped")


def _cycle(context: CheckContext, id: str, asked: Capability) -> list[str]:
    """The path of calls from a capability over its gate back to itself, empty without a cycle."""
    way: dict[str, str] = {asked.id: id}
    queue = [asked]
    for current in queue:
        if current.id == id:
            return _way_back(way, id)
        for gate in gates_of(current):
            following = context.catalog.capability(gate.capability)
            if following and following.id not in way:
                way[following.id] = current.id
                queue.append(following)
    return []


def _way_back(way: dict[str, str], id: str) -> list[str]:
    steps = [id]
    while len(steps) == 1 or steps[-1] != id:
        steps.append(way[steps[-1]])
    return steps[::-1]

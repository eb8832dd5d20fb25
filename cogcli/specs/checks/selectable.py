"""Whether every called capability has a usable binding (docs/reference/skill.md#step-checks)."""

from __future__ import annotations

from cogcli.core.errors import BindingResolutionError
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.skill import NESTED, targets_of


def check_choices(context: CheckContext) -> None:
    """Report capabilities without a usable binding, at the first step, gate and probe that call them."""
    catalog = context.catalog
    for skill in catalog.skills.values():
        told: set[str] = set()
        for index, step in enumerate(skill.steps):
            for path, name in targets_of(step):
                capability = None if name.startswith(NESTED) else catalog.capability(name)
                if capability and capability.id not in told:
                    told.add(capability.id)
                    _check(context, capability.id, skill.file, ("steps", index, *path), f"step `{step.id}`")
    for capability in catalog.capabilities.values():
        safety = capability.safety
        for phase in ("mandatory_pre_gates", "mandatory_post_gates") if safety else ():
            for index, gate in enumerate(getattr(safety, phase)):
                asked = catalog.capability(gate.capability)
                if asked:
                    path = ("safety", phase, index)
                    _check(context, asked.id, capability.file, path, f"capability `{capability.id}`")
        probe = catalog.capability(capability.probe) if capability.probe else None
        if probe:
            path = ("probe", "capability")
            _check(context, probe.id, capability.file, path, f"capability `{capability.id}`")


def _check(context: CheckContext, id: str, file: str, path: tuple[str | int, ...], subject: str) -> None:
    found = context.selection(id)
    # What is wrong with the file that names a binding is told there, once.
    if isinstance(found, BindingResolutionError) and not found.file:
        context.report(file).need(found.code, path, f"{subject}: {found.message}", hint=found.hint)

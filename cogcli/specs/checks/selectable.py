"""Whether every called capability has a usable binding (docs/reference/skill.md#step-checks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cogcli.core.errors import BindingResolutionError
from cogcli.specs.selection import Selection
from cogcli.specs.skill import NESTED, targets_of

if TYPE_CHECKING:
    from cogcli.core.problems import Problem
    from cogcli.specs.checks.context import CheckContext


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


class Needed(NamedTuple):
    """The files that the skill of a partial catalog depends on, and the services of those that hold several."""

    files: set[str]
    services: set[str]
    shared: frozenset[str]

    def holds(self, problem: Problem) -> bool:
        """Whether a problem concerns the skill."""
        if problem.file in self.shared and problem.path.startswith("/services/"):
            return problem.path.split("/")[2] in self.services
        return problem.file in self.files


def needed_files(context: CheckContext) -> Needed:
    """The files that the skill of a partial catalog depends on: of bindings and services only the chosen ones."""
    catalog = context.catalog
    services: set[str] = set()
    files = {skill.file for skill in catalog.skills.values()} | {
        c.file for c in catalog.capabilities.values()
    }
    files |= {*catalog.defaults.files.values(), *catalog.host.files}
    found = [context.selection(id) for id in catalog.capabilities]
    failed = any(isinstance(selection, BindingResolutionError) for selection in found)
    for key, file in catalog.broken.items():
        # A binding that does not load may be why nothing could be chosen.
        if failed or not key.startswith(("binding:", "service:")):
            files.add(file)
            services.add(key.partition(":")[2])
    for selection in found:
        for link in selection.chain if isinstance(selection, Selection) else ():
            binding = catalog.bindings.get(link.binding_id)
            service = catalog.services.get(link.service_id or "")
            files |= {spec.file for spec in (binding, service) if spec}
            services.add(link.service_id or "")
            files.add(catalog.broken.get(f"binding:{link.binding_id}", ""))
            files.add(catalog.broken.get(f"service:{link.service_id}", ""))
    return Needed(files, services, catalog.host.services_files)

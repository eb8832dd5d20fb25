"""Checks of the host's choices: active bindings and overrides (docs/reference/binding.md#host-overrides).

Of severity R: an error only for a run that needs the capability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.problems import did_you_mean, suggestion
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.selection import CANDIDATE, find_binding_on

if TYPE_CHECKING:
    from cogcli.specs.host_overrides import Override


def check_host(context: CheckContext) -> None:
    """Report entries whose capability does not exist, or whose binding is none of the capability."""
    host = context.catalog.host
    for capability, active in host.active.items():
        report, path = context.report(active.file), (active.key,)
        if capability not in context.catalog.capabilities:
            if not context.catalog.partial:
                said, hint = context.absent("capability", capability)
                report.need("active.capability", path, said, hint=hint, key=True)
        elif wrong := context.misnamed(capability, active.binding):
            said, hint = wrong
            known = context.catalog.bindings_of.get(capability, ())
            meant = (did_you_mean(active.binding, known) or [*known])[:1]
            ways = [hint, *(f"cogcli bindings activate {capability} {id}" for id in meant)]
            report.need("active.binding", path, said, hint="\n".join(filter(None, ways)))
    for capability, override in host.overrides.items():
        _check_override(context, capability, override)
    for capability, override in host.repeated:
        first = host.overrides[capability].entry + 1
        said = f"override {override.entry + 1}: capability `{capability}` is already in override {first}"
        context.report(override.file).error(
            "overrides.duplicate", _place(override), said, hint="keep one of them"
        )


def _check_override(context: CheckContext, capability: str, override: Override) -> None:
    report, said = context.report(override.file), f"override {override.entry + 1}"
    entry = ("overrides", override.entry)
    if capability not in context.catalog.capabilities:
        if not context.catalog.partial:
            absent, hint = context.absent("capability", capability)
            report.need("overrides.unresolved", _place(override), f"{said}: {absent}", hint=hint)
    elif override.binding is not None:
        if wrong := context.misnamed(capability, override.binding):
            report.need("overrides.unresolved", (*entry, "binding"), f"{said}: {wrong[0]}", hint=wrong[1])
    elif find_binding_on(context.catalog, capability, override.service or "") is None:
        known = {
            binding.service: None
            for binding in map(
                context.catalog.bindings.__getitem__, context.catalog.bindings_of.get(capability, ())
            )
            if binding.channel != CANDIDATE
        }
        message = f"{said}: `{capability}` has no binding on service `{override.service}`"
        hint = suggestion(override.service or "", known)
        if known and not hint:
            hint = f"it has one on {', '.join(f'`{service}`' for service in known)}"
        report.need("overrides.unresolved", (*entry, "service"), message, hint=hint)


def _place(override: Override) -> tuple[str | int, ...]:
    return ("overrides", override.entry, "capabilities", override.position)

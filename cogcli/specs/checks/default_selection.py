"""Checks of the default selection (docs/reference/binding.md#default-selection)."""

from __future__ import annotations

from cogcli.specs.checks.context import CheckContext
from cogcli.specs.selection import CANDIDATE


def check_defaults(context: CheckContext) -> None:
    """Report defaults whose capability or binding is missing or do not belong together, or name a candidate."""
    catalog = context.catalog
    for capability, name in catalog.defaults.bindings.items():
        path = ("defaults", capability)
        report = context.report(catalog.defaults.files[capability])
        if capability not in catalog.capabilities:
            if not catalog.partial:
                said, hint = context.absent("capability", capability)
                report.error("policy.capability", path, said, hint=hint, key=True)
            continue
        binding = catalog.bindings.get(name)
        wrong = context.misnamed(capability, name)
        if wrong:
            report.error("policy.binding", path, wrong[0], hint=wrong[1])
        elif binding and binding.channel == CANDIDATE:
            message = f"`{capability}`: binding `{name}` is a candidate"
            report.error("policy.binding", path, message, hint="move it to channel official or local")

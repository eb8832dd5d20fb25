"""Checks of probes: a capability that finds out whether a call happened has the right fields and no effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cogcli.core.problems import suggestion
from cogcli.specs.capability import Capability
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.fields import Fields

_ASKED: Final = {"idempotency_key": ("string", "any"), "input": ("object", "any")}
"""The inputs given to a probe, and the types that accept each."""
_ANSWERED: Final = {"happened": ("boolean", "any"), "output": ("object", "any")}


def check_probe(context: CheckContext, capability: Capability) -> None:
    """Report the problems of a capability's probe."""
    if not capability.probe:
        return
    report = context.report(capability.file)
    subject = f"capability `{capability.id}`: probe `{capability.probe}`"
    path = ("probe", "capability")
    probe = context.catalog.capability(capability.probe)
    if probe is None:
        said, hint = context.absent("capability", capability.probe)
        report.error("probe.contract", path, f"{subject}: {said}", hint=hint)
        return
    for what, hint in _faults(probe):
        report.error("probe.contract", path, f"{subject}: {what}", hint=hint)


def _faults(probe: Capability) -> Iterator[tuple[str, str]]:
    """Why a capability cannot be a probe, as (message, hint)."""
    if probe.effect != "none":
        yield f"has effect class {probe.effect}, expected none", "a probe only looks: `side_effects: false`"
    if probe.safety and probe.safety.requires_confirmation:
        yield "asks a person itself", "a probe answers so that nobody has to be asked"
    yield from _misfits(probe.inputs, "input", _ASKED, needed=tuple(_ASKED))
    for name, field in probe.inputs.items():
        if field.required and field.default is None and name not in _ASKED:
            yield (
                f"its required input `{name}` is nothing that a probe is given",
                f"it gets {' and '.join(_ASKED)}",
            )
    yield from _misfits(probe.outputs, "output", _ANSWERED, needed=("happened",))


def _misfits(
    fields: Fields, side: str, wanted: Mapping[str, tuple[str, ...]], *, needed: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for name, types in wanted.items():
        field = fields.get(name)
        if field is None:
            if name in needed:
                yield (
                    f"has no {side} `{name}`",
                    suggestion(name, fields) or f"declare `{name}: {{type: {types[0]}}}`",
                )
        elif field.type not in types:
            yield f"its {side} `{name}` is {field.type}, expected {types[0]}", ""

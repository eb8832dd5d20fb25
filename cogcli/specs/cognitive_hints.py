"""Cognitive hints: where the outputs of a step without an `output` mapping go (docs/reference/capability.md#hints)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cogcli.specs.capability import Capability, Production

LIST_TYPES: Final = {
    "Risk": "working.risks",
    "Option": "working.options",
    "Criterion": "working.criteria",
    "Evidence": "working.evidence",
    "Entity": "working.entities",
    "Hypothesis": "working.hypotheses",
    "Uncertainty": "working.uncertainties",
    "Decision": "working.intermediate_decisions",
    "Message": "working.messages",
}
"""Of these a lone value becomes a list, and an element `v` that is no object becomes `{value: v}`."""
SINGLE_TYPES: Final = {"Summary": "output.summary"}
KEYED_TYPES: Final = ("Score", "Tradeoff", "Plan", "Artifact", "Context")
"""Stored as `working.artifacts.<field>`."""
TYPES: Final = (*LIST_TYPES, *SINGLE_TYPES, *KEYED_TYPES)


class HintWrite(NamedTuple):
    """One output on its way: its target and merge strategy; `listed` tells whether it is made a list."""

    output: str
    target: str
    strategy: str
    listed: bool


def wires(capability: Capability, *, listed: bool = False) -> Iterator[HintWrite]:
    """How a capability's outputs are wired, each of them a list where `listed`.

    An unknown type without a target of its own is not wired.
    """
    for name, production in capability.produces.items():
        target = production.target or _target(name, production.type)
        if target is not None and name in capability.outputs:
            strategy = production.merge or _strategy(capability, name, production, listed)
            yield HintWrite(name, target, strategy, production.type in LIST_TYPES)


def _target(name: str, type: str) -> str | None:
    known = LIST_TYPES.get(type) or SINGLE_TYPES.get(type)
    return known or (f"working.artifacts.{name}" if type in KEYED_TYPES else None)


def _strategy(capability: Capability, name: str, production: Production, listed: bool) -> str:
    if production.type in LIST_TYPES:
        return "append"
    keyed = production.type in KEYED_TYPES and capability.outputs[name].type == "object"
    return "deep_merge" if keyed and not listed else "replace"

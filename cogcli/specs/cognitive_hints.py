"""Cognitive hints: the targets of a step's outputs without an `output` mapping (docs/reference/capability.md#hints)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
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
"""Targets that hold lists of objects: a single value becomes a list, an element `v` that is no object `{value: v}`."""
SINGLE_TYPES: Final = {"Summary": "output.summary"}
KEYED_TYPES: Final = ("Score", "Tradeoff", "Plan", "Artifact", "Context")
"""Stored as `working.artifacts.<field>`."""
TYPES: Final = (*LIST_TYPES, *SINGLE_TYPES, *KEYED_TYPES)


class HintWrite(NamedTuple):
    """One output with its target and merge strategy; `as_list`: whether its value is put into a list."""

    output: str
    target: str
    strategy: str
    as_list: bool


def hinted_writes(capability: Capability, *, as_list: bool = False) -> Iterator[HintWrite]:
    """The writes that a capability's hints declare, each a list if `as_list`.

    An output of an unknown type without a target has none.
    """
    for name, production in capability.produces.items():
        target = production.target or _target(name, production.type)
        if target is not None and name in capability.outputs:
            strategy = production.merge or _strategy(capability, name, production, as_list)
            yield HintWrite(name, target, strategy, production.type in LIST_TYPES)


def _target(name: str, type: str) -> str | None:
    known = LIST_TYPES.get(type) or SINGLE_TYPES.get(type)
    return known or (f"working.artifacts.{name}" if type in KEYED_TYPES else None)


def _strategy(capability: Capability, name: str, production: Production, as_list: bool) -> str:
    if production.type in LIST_TYPES:
        return "append"
    keyed = production.type in KEYED_TYPES and capability.outputs[name].type == "object"
    return "deep_merge" if keyed and not as_list else "replace"

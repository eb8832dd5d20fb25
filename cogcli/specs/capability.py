"""The targets of a step's outputs if the step has no `output` mapping (docs/reference/capability.md#hints)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability

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
"""Targets that contain lists of objects. A single value becomes a list, and an element `v` that is not an object
becomes `{value: v}`.
"""
SINGLE_TYPES: Final = {"Summary": "output.summary"}
KEYED_TYPES: Final = ("Score", "Tradeoff", "Plan", "Artifact", "Context")
"""Types stored as `working.artifacts.<field>`."""
HINT_TYPES: Final = (*LIST_TYPES, *SINGLE_TYPES, *KEYED_TYPES)


class HintWrite(NamedTuple):
    """An output with the target and merge strategy of its hint. `as_list` is whether its value is wrapped in a list."""

    output: str
    target: str
    strategy: str
    as_list: bool


def hinted_writes(capability: Capability, *, as_list: bool = False) -> Iterator[HintWrite]:
    """Yield the writes that a capability's hints declare. With `as_list`, each value is a list.

    An output of an unknown type without a target has no write.
    """
    for name, production in capability.produces.items():
        target = production.target or _find_target(production.type, name)
        if target is not None and name in capability.outputs:
            is_object = capability.outputs[name].type == "object" and not as_list
            strategy = production.merge or _choose_strategy(production.type, is_object=is_object)
            yield HintWrite(name, target, strategy, production.type in LIST_TYPES)


def _find_target(type: str, output: str) -> str | None:
    if type in KEYED_TYPES:
        return f"working.artifacts.{output}"
    return LIST_TYPES.get(type) or SINGLE_TYPES.get(type)


def _choose_strategy(type: str, *, is_object: bool) -> str:
    if type in LIST_TYPES:
        return "append"
    return "deep_merge" if type in KEYED_TYPES and is_object else "replace"

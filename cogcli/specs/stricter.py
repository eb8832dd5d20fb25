"""Combines two declarations of a capability to the stricter one, for a run that resumes with changed specs.

1. Levels: the higher one. Confirmation: if either requires it. Targets and constraints: those of both.
2. Gates: those of both, the earlier declaration's first, so that they keep their positions. A gate in both with the
   same input is listed once, with the stricter `on_fail`.
3. Effects: the class that promises less.

All other members are those of the present declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.declarations.capability_spec import (
    GATES,
    STRICTNESS,
    TRUST_RANKS,
    Capability,
    Gate,
    Safety,
)

_EFFECTS: Final = ("none", "idempotent", "unknown", "effect")
_DECLARED: Final[dict[str, tuple[bool | None, bool]]] = {
    "none": (False, False),
    "idempotent": (True, True),
    "unknown": (None, False),
    "effect": (True, False),
}
"""By effect class: its `side_effects` and `idempotent` properties."""


def merge_stricter(
    present: Mapping[str, Capability], earlier: Mapping[str, Capability]
) -> dict[str, Capability]:
    """Return the present capabilities, each at least as strict as its earlier declaration."""
    return {
        id: stricter(capability, earlier[id]) if id in earlier else capability
        for id, capability in present.items()
    }


def stricter(present: Capability, earlier: Capability) -> Capability:
    """Return the present capability with the stricter members of both declarations."""
    effect = max(present.effect, earlier.effect, key=_EFFECTS.index)
    safety = stricter_safety(present.safety, earlier.safety)
    if (safety, effect) == (present.safety, present.effect):
        return present
    side_effects, idempotent = _DECLARED[effect]
    properties = present.properties.replace(side_effects=side_effects, idempotent=idempotent)
    return present.replace(safety=safety, properties=properties)


def _list_merged_gates(present: Safety, earlier: Safety, phase: str) -> list[Json]:
    """Return the gates that one of two blocks requires in a phase, as a file declares them."""
    merged = _merge_gates(getattr(present, phase), getattr(earlier, phase))
    return [_list_gate_members(gate) for gate in merged]


def stricter_safety(present: Safety | None, earlier: Safety | None) -> Safety | None:
    """Return a safety block with the requirements of both blocks, or None if neither exists."""
    if present is None or earlier is None or present == earlier:
        return present or earlier
    levels = {
        "trust_level": max(present.trust_level, earlier.trust_level, key=TRUST_RANKS.__getitem__),
        "requires_confirmation": present.requires_confirmation or earlier.requires_confirmation,
    }
    gates = {phase: _list_merged_gates(present, earlier, phase) for phase in GATES}
    lists = {
        key: list(_ordered_union(getattr(earlier, key), getattr(present, key)))
        for key in ("allowed_targets", "scope_constraints")
    }
    demands = {key: value for key, value in (lists | gates).items() if value}
    return Safety.of({**earlier.json, **present.json, **levels, **demands})


def _list_gate_members(gate: Gate) -> Json:
    """Return the members of a gate as a capability file declares them."""
    return {name: value for name, value in vars(gate).items() if value is not None}


def _merge_gates(present: tuple[Gate, ...], earlier: tuple[Gate, ...]) -> tuple[Gate, ...]:
    found: list[Gate] = list(earlier)
    for gate in present:
        key = (gate.capability, gate.input)
        same = next(
            (n for n, each in enumerate(found) if (each.capability, each.input) == key), None
        )
        if same is None:
            found.append(gate)
        else:
            on_fail = max(found[same].on_fail, gate.on_fail, key=STRICTNESS.index)
            found[same] = gate.replace(on_fail=on_fail)
    return tuple(found)


def _ordered_union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))

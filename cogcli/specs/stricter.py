"""The stricter of two declarations of one capability, for a run that resumes with changed specs.

1. Levels: the higher one. Confirmation: if either demands it. Targets and constraints: those of both.
2. Gates: those of both, the earlier declaration's first, so that they keep their positions; a gate that both name with
   the same input counts once, with the stricter `on_fail`.
3. Effects: the class that promises less.
Everything else is the present declaration's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cogcli.specs.capability import GATES, STRICTNESS, TRUST_RANKS, Capability, Gate, Safety

_EFFECTS: Final = ("none", "idempotent", "unknown", "effect")
_DECLARED: Final[dict[str, dict[str, Any]]] = {
    "none": {"side_effects": False},
    "idempotent": {"side_effects": True, "idempotent": True},
    "unknown": {},
    "effect": {"side_effects": True, "idempotent": False},
}


def stricter_of(
    present: Mapping[str, Capability], earlier: Mapping[str, Capability]
) -> dict[str, Capability]:
    """The present capabilities, each made as strict as its earlier declaration."""
    return {
        id: stricter(capability, earlier[id]) if id in earlier else capability
        for id, capability in present.items()
    }


def stricter(present: Capability, earlier: Capability) -> Capability:
    """The present capability with the stricter of both declarations."""
    effect = max(present.effect, earlier.effect, key=_EFFECTS.index)
    safety = stricter_safety(present.safety, earlier.safety)
    if (safety, effect) == (present.safety, present.effect):
        return present
    kept = {
        key: value
        for key, value in present.properties.items()
        if key not in ("side_effects", "idempotent")
    }
    return present._replace(safety=safety, properties={**kept, **_DECLARED[effect]})


def stricter_safety(present: Safety | None, earlier: Safety | None) -> Safety | None:
    """A block with the demands of both; None without either."""
    if present is None or earlier is None or present == earlier:
        return present or earlier
    joined = Safety(
        trust_level=max(present.trust_level, earlier.trust_level, key=TRUST_RANKS.__getitem__),
        requires_confirmation=present.requires_confirmation or earlier.requires_confirmation,
        mandatory_pre_gates=_gates(present.mandatory_pre_gates, earlier.mandatory_pre_gates),
        mandatory_post_gates=_gates(present.mandatory_post_gates, earlier.mandatory_post_gates),
        allowed_targets=_union(earlier.allowed_targets, present.allowed_targets),
        scope_constraints=_union(earlier.scope_constraints, present.scope_constraints),
    )
    # As a capability's file writes it.
    levels = {key: getattr(joined, key) for key in ("trust_level", "requires_confirmation")}
    lists = {key: list(getattr(joined, key)) for key in ("allowed_targets", "scope_constraints")}
    gates = {key: [_without_nulls(gate) for gate in getattr(joined, key)] for key in GATES}
    present_lists = {key: value for key, value in (lists | gates).items() if value}
    return joined._replace(
        declared={**earlier.declared, **present.declared, **levels, **present_lists}
    )


def _without_nulls(gate: Gate) -> dict[str, Any]:
    return {name: value for name, value in gate._asdict().items() if value is not None}


def _gates(present: tuple[Gate, ...], earlier: tuple[Gate, ...]) -> tuple[Gate, ...]:
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
            found[same] = gate._replace(on_fail=on_fail)
    return tuple(found)


def _union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))

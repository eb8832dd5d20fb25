"""Whether one verdict on a call permits more than another one (docs/reference/pack.md#prove). Pure."""

from __future__ import annotations

from typing import Final

from cogcli.declarations.pack_spec import Pack, PackGate
from cogcli.policy.verdict import Verdict, is_stricter

WIDER: Final = "wider"
NARROWER: Final = "narrower"
DIFFERENT: Final = "different"
"""Another gate, of which neither is easier to pass."""
RELATIONS: Final = (WIDER, NARROWER, DIFFERENT)


def compare_gates(old: PackGate, new: PackGate) -> frozenset[str]:
    """Return in which ways the new gate is easier or harder to pass. Empty if they are equal."""
    easier, harder = set[bool](), set[bool]()
    for looser, stricter in (
        (_is_no_stricter(new, old), _is_no_stricter(old, new)),
        (new.ttl_s >= old.ttl_s, new.ttl_s <= old.ttl_s),
        (new.allow_self >= old.allow_self, new.allow_self <= old.allow_self),
        (new.signed <= old.signed, new.signed >= old.signed),
    ):
        easier.add(looser)
        harder.add(stricter)
    found = {(True, True): (), (True, False): (WIDER,), (False, True): (NARROWER,)}
    return frozenset(found.get((False not in easier, False not in harder), (DIFFERENT,)))


def _is_no_stricter(gate: PackGate, other: PackGate) -> bool:
    """Return whether every approver of the other gate may also answer this one. Without roles any person may."""
    return not gate.approver_roles or (
        bool(other.approver_roles) and set(other.approver_roles) <= set(gate.approver_roles)
    )


def compare_gate_names(old_pack: Pack, old: str, new_pack: Pack, new: str) -> frozenset[str]:
    """Return the relation of a gate of one pack to a gate of another pack. Gates with different names count as
    different.
    """
    if old != new:
        return frozenset((DIFFERENT,))
    gates = (pack.policy.gate(old) or PackGate() for pack in (old_pack, new_pack))
    return compare_gates(*gates)


def compare_verdicts(old_pack: Pack, old: Verdict, new_pack: Pack, new: Verdict) -> frozenset[str]:
    """Return in which ways the new verdict on a call permits more, less or something else. Empty if they are equal."""
    if old.outcome != new.outcome:
        return frozenset((NARROWER if is_stricter(new.outcome, old.outcome) else WIDER,))
    if not (new.allows or new.asks):
        return frozenset()
    found = set()
    if set(old.obligations) - set(new.obligations):
        found.add(WIDER)
    if set(new.obligations) - set(old.obligations):
        found.add(NARROWER)
    if new.asks:
        found |= compare_gate_names(old_pack, old.gate, new_pack, new.gate)
    return frozenset(found)

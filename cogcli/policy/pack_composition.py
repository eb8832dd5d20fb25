"""Several packs of one request as one pack (docs/reference/pack.md#several). Pure.

The first pack is the primary one. The others add business blocks, rules and guardrails, with the gates that these name;
everything else of them does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cogcli.base.canonical import digest_of
from cogcli.base.errors import UsageError
from cogcli.declarations.pack_spec import BUILT_IN_GATE, Guardrails, Pack, PackGate, PolicyRule


def _join_guardrails(parts: Sequence[Guardrails]) -> Guardrails:
    return Guardrails(
        must_refuse=tuple(each for part in parts for each in part.must_refuse),
        must_escalate=tuple(each for part in parts for each in part.must_escalate),
    )


def compose(primary: Pack, others: Sequence[Pack]) -> Pack:
    """Return the primary pack with the additions of the others, and the hash of all of them. Raise UsageError if two
    packs use the same id for different things.
    """
    if not others:
        return primary
    packs = (primary, *others)
    for kind, ids in _list_ids(packs).items():
        _require_unique(kind, ids)
    guardrails = _join_guardrails([pack.policy.guardrails for pack in packs])
    policy = primary.policy.replace(
        rules=(*primary.policy.rules, *_list_added_rules(others)),
        guardrails=guardrails,
        gates=_merge_gates(packs),
    )
    blocks = tuple(block for pack in packs for block in pack.business.blocks)
    return primary.replace(
        policy=policy,
        business=primary.business.replace(blocks=blocks),
        hash=digest_of([pack.hash for pack in packs]),
        parts=tuple(pack.ref for pack in packs),
        rule_packs={rule.rule_id: pack.ref for pack in packs for rule in pack.policy.rules},
    )


def _list_added_rules(others: Sequence[Pack]) -> Iterator[PolicyRule]:
    """Yield the rules of additional packs. They may deny and require gates, but waive no gate of the primary pack."""
    for pack in others:
        for rule in pack.policy.rules:
            yield rule.replace(then=rule.then.replace(without_gate=""))


def view_additions(primary: Pack, other: Pack) -> Pack:
    """Return the primary pack with the rules and guardrails of another pack instead of its own, in the other's file. So
    the other pack's additions can be checked against the primary pack.
    """
    gates = _merge_gates((primary, other))
    policy = primary.policy.replace(
        rules=other.policy.rules, guardrails=other.policy.guardrails, gates=gates
    )
    return primary.replace(policy=policy, file=other.file)


def _list_ids(packs: Iterable[Pack]) -> dict[str, list[tuple[str, str]]]:
    """Return by kind of thing each id, with the pack that has it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for pack in packs:
        guardrails = pack.policy.guardrails
        named = {
            "rule": [rule.rule_id for rule in pack.policy.rules],
            "guardrail of must_refuse": [each.id for each in guardrails.must_refuse],
            "guardrail of must_escalate": [each.id for each in guardrails.must_escalate],
            "business block": [block.id for block in pack.business.blocks],
        }
        for kind, ids in named.items():
            found.setdefault(kind, []).extend((id, pack.ref) for id in ids)
    return found


def _require_unique(kind: str, ids: Iterable[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for id, ref in ids:
        if id in seen:
            raise _conflict_error(f"{kind} `{id}`", seen[id], ref)
        seen[id] = ref


def _merge_gates(packs: Sequence[Pack]) -> Mapping[str, PackGate]:
    """Return the gates of the first pack, and those that rules and guardrails of the others name."""
    primary, *others = packs
    gates, owners = dict(primary.policy.gates), dict.fromkeys(primary.policy.gates, primary.ref)
    for pack in others:
        for name in _named_gates(pack):
            gate = pack.policy.gates.get(name)
            if gate is None:
                continue
            if gates.setdefault(name, gate) != gate:
                raise _conflict_error(f"gate `{name}`", owners[name], pack.ref)
            owners.setdefault(name, pack.ref)
    return gates


def _named_gates(pack: Pack) -> Iterator[str]:
    guardrails = pack.policy.guardrails
    yield from dict.fromkeys(
        (
            *(rule.then.gate for rule in pack.policy.rules),
            *(each.gate for each in (*guardrails.must_refuse, *guardrails.must_escalate)),
            BUILT_IN_GATE,
        )
    )


def _conflict_error(what: str, first: str, second: str) -> UsageError:
    names = " and ".join(f"`{ref.partition('#')[0]}`" for ref in (first, second))
    return UsageError(
        "usage.value", f"{what} is in both packs {names}", hint="rename one, or leave one pack out"
    )

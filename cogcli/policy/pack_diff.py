"""The differences between the policies of two packs, member by member (docs/reference/pack.md#diff). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cogcli.base.jsonvalue import equal, with_lists
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.pack_spec import CumulativeLimit, Pack, PolicyRule
from cogcli.declarations.spec import Spec
from cogcli.declarations.value_types import Json

_TEXTS: Final = ("say",)
"""The members of guardrails and limits that are for customers alone."""


class PolicyChange(NamedTuple):
    """A part of a policy that was added, removed or changed.

    `members` maps each member that differs to its values (before, after).
    """

    kind: str
    id: str
    change: str
    members: dict[str, tuple[object, object]]

    def to_payload(self) -> Json:
        """Return the change as JSON."""
        members = {name: {"before": old, "after": new} for name, (old, new) in self.members.items()}
        return {**self._asdict(), "members": members}


def diff_packs(old: Pack, new: Pack) -> list[PolicyChange]:
    """Return the changes that affect decisions about calls, in the order of a pack's parts.

    Descriptive strings, tests and rationales are ignored.
    """
    before, after = _collect_parts(old), _collect_parts(new)
    return [change for kind in before for change in _find_changes(kind, before[kind], after[kind])]


def _collect_parts(pack: Pack) -> dict[str, dict[str, Json]]:
    """Collect by kind and id all parts that affect decisions about calls."""
    layer, decisions = pack.policy, pack.decisions
    guardrails = {
        "must_refuse": layer.guardrails.must_refuse,
        "must_escalate": layer.guardrails.must_escalate,
    }
    return {
        "rule": {rule.rule_id: _rule_members(rule) for rule in layer.rules},
        "limit": {limit.id: _limit_members(limit) for limit in layer.limits},
        "gate": {name: _list_members(gate) for name, gate in layer.gates.items()},
        "guardrail": {
            f"{kind}.{each.id}": _list_members(each) for kind, found in guardrails.items() for each in found
        },
        "permission": {role: {"allow": sorted(each.allow)} for role, each in layer.permissions.items()},
        "capability": {id: _list_members(tool) for id, tool in pack.tooling.capabilities.items()},
        "intent": {id: {"capabilities": sorted(each.capabilities)} for id, each in decisions.intents.items()},
        "decision": {
            key: {"required_evidence": list(each.required_evidence), "success": each.success}
            for key, each in decisions.decisions.items()
        },
        "setting": {
            "safety_mode": {"value": pack.meta.defaults.safety_mode},
            "budget": {"value": pack.meta.defaults.budget},
            "hosts": {"value": None if pack.tooling.hosts is None else sorted(pack.tooling.hosts)},
            "read_only_actions": {"value": layer.read_only_actions},
        },
    }  # fmt: skip


def _rule_members(rule: PolicyRule) -> Json:
    return {
        "mode": rule.mode,
        "applies_to": _list_members(rule.scope),
        "if": rule.condition,
        "verdict": rule.then.verdict,
        "gate": rule.then.gate,
        "obligations": list(rule.then.obligations),
        "args": {name: limit.json for name, limit in rule.then.limits.items()},
        "without_gate": rule.then.without_gate,
    }


def _limit_members(limit: CumulativeLimit) -> Json:
    return {**_list_members(limit), "scope": _list_members(limit.scope)}


def _list_members(part: Spec) -> Json:
    """Return the members of a part as JSON, including members with default values, without its texts."""
    return with_lists({name: each for name, each in vars(part).items() if name not in _TEXTS})


def _find_changes(
    kind: str, before: Mapping[str, Json], after: Mapping[str, Json]
) -> Iterator[PolicyChange]:
    for id in dict.fromkeys((*before, *after)):
        old, new = before.get(id, {}), after.get(id, {})
        names = dict.fromkeys((*old, *new))
        members = {
            name: (old.get(name), new.get(name))
            for name in names
            if not equal(old.get(name), new.get(name))
        }
        word = "removed" if id not in after else "added" if id not in before else "changed"
        if members:
            yield PolicyChange(kind, id, word, members)

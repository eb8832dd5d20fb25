"""Skills as tools of a pack, named `skill:ID` among its capabilities (docs/reference/pack.md#skills)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from cogcli.base.jsonvalue import Json
from cogcli.declarations.capability_spec import Capability, Properties
from cogcli.declarations.pack_spec import Pack
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.catalog import Catalog
from cogcli.specs.skill import list_targets
from cogcli.specs.unchecked import text_at, value_at


def tool_names(catalog: Catalog) -> Collection[str]:
    """Return the names that a pack may call: ids and aliases of capabilities, and `skill:ID` for skills."""
    return dict.fromkeys([*catalog.by_name, *(NESTED + id for id in catalog.skills)])


def skill_tools(
    catalog: Catalog, pack: Pack, callable_here: Mapping[str, Capability]
) -> dict[str, Capability]:
    """Return, by `skill:ID`, the contract of each skill that the pack names.

    A skill is omitted if it reaches a capability that is not in `callable_here`, which maps names to capabilities.
    """
    found = {}
    for name in _named_skills(pack):
        skill = catalog.skills.get(name.removeprefix(NESTED))
        contract = contract_of(skill, catalog.skills, callable_here) if skill else None
        if contract is not None:
            found[name] = contract
    return found


def find_tool(catalog: Catalog, name: str) -> Capability | None:
    """Return the capability with this id or alias, or the contract of a `skill:ID`. None for an unknown name."""
    skill = catalog.skills.get(name.removeprefix(NESTED)) if name.startswith(NESTED) else None
    return (
        contract_of(skill, catalog.skills, catalog.by_name) if skill else catalog.capability(name)
    )


def called_by(payload: Json) -> str:
    """Return the capability or `skill:ID` that a step called, from the payload of its closing event.

    Return an empty string if the step called nothing.
    """
    uses = text_at(payload, "uses") or ""
    return value_at(payload, "capability") or (uses if uses.startswith(NESTED) else "")


def _named_skills(pack: Pack) -> Iterator[str]:
    named = [id for each in pack.policy.permissions.values() for id in each.allow]
    named += [id for intent in pack.decisions.intents.values() for id in intent.capabilities]
    return (id for id in dict.fromkeys(named) if id.startswith(NESTED))


def contract_of(
    skill: Skill, skills: Mapping[str, Skill], callable_here: Mapping[str, Capability]
) -> Capability | None:
    """Return the contract of a skill as a capability that reaches others.

    Return None if one of those capabilities is not in `callable_here`.
    """
    reached: dict[str, Capability] = {}
    waiting, seen = list_targets(skill), {NESTED + skill.id}
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.startswith(NESTED):
            nested = skills.get(name.removeprefix(NESTED))
            if nested is None:
                return None
            waiting += list_targets(nested)
        else:
            capability = callable_here.get(name)
            if capability is None:
                return None
            reached[capability.id] = capability
            waiting += capability.asks
    if not reached:
        return None
    return Capability(
        id=NESTED + skill.id,
        version=skill.version,
        description=skill.description,
        inputs=skill.inputs,
        outputs=skill.outputs,
        properties=_combine_effects(reached),
        metadata=skill.metadata,
        name=skill.name,
        file=skill.file,
        reaches=tuple(reached[id] for id in sorted(reached)),
    )


def _combine_effects(capabilities: Mapping[str, Capability]) -> Properties:
    """Return the properties of a capability with all these effects. An unknown effect is treated as an effect."""
    effects = {capability.effect for capability in capabilities.values()}
    return Properties(
        side_effects=not effects <= {"none"}, idempotent=effects <= {"none", "idempotent"}
    )

"""The agent without a pack: a pack made here, of the skills that can run and have no effects
(docs/reference/agent-run.md#without-pack)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cogcli.agent.context.blocks import tool_text
from cogcli.agent.context.tokenizer import ESTIMATE
from cogcli.app.needs import MissingNeeds
from cogcli.app.registry import open_registry, selection_options
from cogcli.app.settings import Settings
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.pack_spec import BUILT_IN_PACK
from cogcli.declarations.value_types import Json
from cogcli.policy.budgets import DEFAULTS, flatten
from cogcli.policy.verdict import mode_under
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.skill_search import SkillAnswer, answer_for, rank
from cogcli.specs.skill_tools import contract_of

INTENT: Final = "ask"
_ROLE: Final = "assistant"


def find_skill(settings: Settings, message: str, given: Mapping[str, Any] = {}) -> SkillAnswer:
    """The skill that a message asks for, with what it lacks beside the inputs `given`; else the nearest ones."""
    return answer_for(
        message,
        given,
        read_only_tools(
            open_registry(settings).trusted_layers().everything(), selection_options(settings)
        ),
    )


def read_only_tools(catalog: Catalog, options: SelectionOptions) -> dict[str, Capability]:
    """By `skill:ID` the contract of each skill of a whole catalog that can run here and reaches nothing above
    `read_only`. What is wrong with others does not keep the agent from working."""
    needs = MissingNeeds(catalog, options)
    callable_here = {
        name: each for name, each in catalog.by_name.items() if not needs.capability(each.id)
    }
    found = {}
    for id, skill in catalog.skills.items():
        contract = (
            contract_of(skill, catalog.skills, callable_here) if not needs.skill(id) else None
        )
        if contract is not None and mode_under({}, contract) == "read_only":
            found[contract.id] = contract
    return found


def read_only_pack(
    settings: Settings, options: SelectionOptions, message: str, budget: Mapping[str, int]
) -> Json:
    """The pack, as a file would declare it: any message means its one intent, whose tools are the nearest ones to the
    message that find room."""
    tools = read_only_tools(open_registry(settings).trusted_layers().everything(), options)
    names = list(_with_room([tools[id] for id in rank(message, tools)], budget))
    return {
        "contract_meta": {"contract_version": "1.0", "issuer": "cogcli"},
        "pack_meta": {
            "pack_id": BUILT_IN_PACK,
            "pack_version": "1.0.0",
            "defaults": {"safety_mode": "read_only"},
        },
        "policy_layer": {
            "permissions": [{"role": _ROLE, "allow": sorted(names)}],
            "read_only_actions": True,
        },
        "tooling_layer": {},
        "decision_layer": {
            "intents": [
                {"id": INTENT, "risk": "read_only", "patterns": ["\\S"], "capabilities": names}
            ]
        },
        "tone_and_comms": {"agent": {"role": _ROLE}},
    }


def _with_room(tools: Iterable[Capability], budget: Mapping[str, int]) -> Iterable[str]:
    """The first of these tools, up to half of what a context holds and the cap of the bucket: tools never shrink, and
    the rest of the context wants room, too."""
    limits = {**dict(flatten(DEFAULTS)), **budget}
    room = limits["tokens.context"] // 2
    room = min(room, limits.get("buckets.tool", room))
    for tool in tools:
        room -= ESTIMATE.count(tool_text(tool))
        if room < 0:
            return
        yield tool.id

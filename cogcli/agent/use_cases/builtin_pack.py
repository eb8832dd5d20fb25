"""The built-in pack for agents without one: the runnable skills without effects
(docs/reference/agent-run.md#without-pack)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from cogcli.agent.context.blocks import tool_text
from cogcli.agent.context.buckets import bucket_limit
from cogcli.agent.context.tokenizer import ESTIMATE
from cogcli.app.needs import RequirementSearch
from cogcli.app.registry import open_registry, selection_options
from cogcli.app.settings import Settings
from cogcli.base.jsonvalue import NOTHING
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


CountTool = Callable[[Capability], int]
"""Counts the tokens of a tool's definition in a request."""


def count_block(tool: Capability) -> int:
    """Return the tokens of a tool in a context that no model reads."""
    return ESTIMATE.count(tool_text(tool))


def find_skill(settings: Settings, message: str, given: Json = NOTHING) -> SkillAnswer:
    """Return the skill for a message, with the inputs that are missing from `given`; else the nearest skills."""
    return answer_for(
        message,
        given,
        read_only_tools(
            open_registry(settings).trusted_layers().everything(), selection_options(settings)
        ),
    )


def read_only_tools(catalog: Catalog, options: SelectionOptions) -> dict[str, Capability]:
    """Return the contracts of the runnable skills of a catalog that reach only `read_only` capabilities, by
    `skill:ID`. Faults of other skills are ignored.
    """
    needs = RequirementSearch(catalog, options)
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
    settings: Settings,
    options: SelectionOptions,
    message: str,
    budget: Mapping[str, int],
    count: CountTool = count_block,
) -> Json:
    """Return the pack as its file would declare it. Any message matches its only intent, whose tools are the
    nearest ones to the message that fit, by `count`.
    """
    tools = read_only_tools(open_registry(settings).trusted_layers().everything(), options)
    names = list(_with_room([tools[id] for id in rank(message, tools)], budget, count))
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


def _with_room(
    tools: Iterable[Capability], budget: Mapping[str, int], count: CountTool
) -> Iterable[str]:
    """Return the first of these tools, up to half of a context and the cap of the bucket: tools never shrink, and
    the context needs room for other blocks.
    """
    limits = {**dict(flatten(DEFAULTS)), **budget}
    room = limits["tokens.context"] // 2
    room = min(room, bucket_limit(limits, "tool", room))
    for tool in tools:
        room -= count(tool)
        if room < 0:
            return
        yield tool.id

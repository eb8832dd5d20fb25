"""Skills as tools of a pack (docs/reference/pack.md#skills)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.specs import capability, gate, skill, step
from fakes.support_desk import pack, raw_pack

from cogcli.base.problems import Problem
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.catalog import Catalog
from cogcli.specs.shapes import check_file
from cogcli.specs.skill_tools import contract_of, find_tool, skill_tools, tool_names

READ, ASKED, PROBED = capability("c.read"), gate("c.gate"), capability("c.probe")
WRITE = capability(
    "c.write",
    effect="effect",
    safety={"mandatory_pre_gates": ["c.gate"]},
    probe={"capability": "c.probe", "input": {}},
    aliases=["c.old"],
)
ALL = {"c.old": WRITE} | {each.id: each for each in (READ, ASKED, PROBED, WRITE)}
INNER = skill(step("w", "c.old"), id="t.inner")
OUTER = skill(
    step("r", "c.read"), step("n", "skill:t.inner"), id="t.outer", inputs="a!:string", outputs="b"
)
SKILLS = {each.id: each for each in (INNER, OUTER)}


def _contract(
    of: Skill, known: dict[str, Capability] = ALL, skills: dict[str, Skill] = SKILLS
) -> Any:
    return contract_of(of, skills, known)


def test_a_contract_is_the_skills_own_and_reaches_gates_and_probes_through_nested_skills() -> None:
    contract = _contract(OUTER)
    assert (contract.id, contract.description) == ("skill:t.outer", OUTER.description)
    assert (contract.inputs, contract.outputs) == (OUTER.inputs, OUTER.outputs)
    assert [each.id for each in contract.reaches] == ["c.gate", "c.probe", "c.read", "c.write"]


@pytest.mark.parametrize("lost", ["c.read", "c.old", "c.gate", "c.probe"])
def test_there_is_none_where_one_that_it_reaches_cannot_be_called(lost: str) -> None:
    assert _contract(OUTER, {name: each for name, each in ALL.items() if name != lost}) is None


def test_there_is_none_without_the_skill_that_it_nests_or_without_any_call() -> None:
    assert _contract(OUTER, skills={"t.outer": OUTER}) is None
    assert _contract(skill(id="t.empty")) is None
    around = skill(step("n", "skill:t.around"), id="t.around")
    assert _contract(around, skills={"t.around": around}) is None


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        (["none", "none"], "none"),
        (["none", "idempotent"], "idempotent"),
        (["idempotent", "effect"], "effect"),
        (["none", "unknown"], "effect"),
    ],
)
def test_its_effects_are_those_of_all(effects: list[str], expected: str) -> None:
    known = {f"c.{n}": capability(f"c.{n}", effect=effect) for n, effect in enumerate(effects)}
    contract = _contract(skill(*[step(f"s{n}", id) for n, id in enumerate(known)]), known)
    assert contract.effect == expected


def _allowing(*names: str) -> dict[str, Any]:
    layer = raw_pack()["policy_layer"]
    return {
        "policy_layer": {**layer, "permissions": [{"role": "support_agent", "allow": [*names]}]}
    }


def test_the_tools_of_a_pack_are_the_skills_that_it_names() -> None:
    catalog = Catalog(skills=SKILLS, capabilities=ALL)
    of = pack(**_allowing("skill:t.outer", "skill:t.gone", "orders.lookup"))
    assert list(skill_tools(catalog, of, catalog.by_name)) == ["skill:t.outer"]
    assert skill_tools(catalog, pack(), catalog.by_name) == {}
    assert {"skill:t.outer", "skill:t.inner", "c.read", "c.old"} <= set(tool_names(catalog))


def test_a_tool_is_found_by_its_name() -> None:
    catalog = Catalog(skills=SKILLS, capabilities=ALL)
    assert find_tool(catalog, "skill:t.outer") == _contract(OUTER)
    assert find_tool(catalog, "c.read") is READ
    assert find_tool(catalog, "skill:t.gone") is find_tool(catalog, "t.outer") is None


def _problems(*names: str) -> list[Problem]:
    raw = {**raw_pack(), **_allowing(*names)}
    return list(check_file("pack", raw, None, "p.yaml", {}).problems)


def test_a_pack_names_a_skill_with_its_prefix() -> None:
    assert _problems("skill:text.brief", "orders.lookup") == []


@pytest.mark.parametrize(
    "name", ["skill:", "skill:text", "skill:a.b.c", "skill:Text.brief", "text", "lane:x.y"]
)
def test_any_other_name_is_told_at_its_place(name: str) -> None:
    (problem,) = _problems("orders.lookup", name)
    assert (problem.code, problem.path) == ("id.format", "/policy_layer/permissions/0/allow/1")

"""The whole registry of the guide, with its fields alone, as a later layer over ours: nothing of it is an error, and
each of its capabilities and skills runs or says what it needs (docs/reference/spec-files.md#shipped-unusable)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from registry.test_baseline import CAPABILITIES, SKILLS, field

from cogcli.app.needs import MissingRequirement, RequirementSearch
from cogcli.protocols import PROTOCOLS
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.layers import BUILT_IN, layers_for
from cogcli.specs.registry import Registry
from cogcli.specs.sample_inputs import sample_inputs
from cogcli.specs.selection import SelectionOptions

pytestmark = pytest.mark.sampled(8)

OWN = "guide"
ANSWERS: dict[str, Any] = {
    "string": "a text", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {},
}  # fmt: skip
OPTIONS = SelectionOptions()


def lay(root: Path) -> None:
    """The registry: capabilities without anything but fields, a skill of one step for each, and the skills, each of one
    step that answers with something of the right types."""
    for id, fields in CAPABILITIES.items():
        capability(root, id, fields)
        skill(root, one_step(id), id, fields)
    for id, fields in SKILLS.items():
        stand_in = f"{OWN}.{id.replace('-', '_')}"
        capability(root, stand_in, fields)
        skill(root, id, stand_in, fields)
        answers = {name: ANSWERS[type.rstrip("?")] for name, type in fields["outputs"].items()}
        binding = {
            "id": stand_in.replace(".", "_"), "capability": stand_in, "service": "official_text",
            "protocol": "pythoncall", "operation": "detect_language", "request": {"text": "A text."},
            "response": answers,
        }  # fmt: skip
        write(root / f"bindings/official/{stand_in}/own.yaml", binding)


def one_step(capability_id: str) -> str:
    """The id of the skill that calls one capability."""
    return f"{OWN}.{capability_id.replace('.', '-').replace('_', '-')}"


def capability(root: Path, id: str, fields: dict[str, dict[str, str]]) -> None:
    spec = {"id": id, "version": "1.0.0", "description": "As the guide has it.", **typed(fields)}
    write(root / f"capabilities/{id}.yaml", spec)


def skill(root: Path, id: str, uses: str, fields: dict[str, dict[str, str]]) -> None:
    domain, _, slug = id.partition(".")
    step = {
        "id": "one",
        "uses": uses,
        "input": {name: f"inputs.{name}" for name in fields["inputs"]},
        "output": {name: f"outputs.{name}" for name in fields["outputs"]},
    }
    head = {"id": id, "version": "1.0.0", "name": slug, "description": "One step."}
    spec = {**head, **typed(fields), "steps": [step]}
    write(root / f"skills/local/{domain}/{slug}/skill.yaml", spec)


def write(path: Path, spec: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(spec))


def typed(fields: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {
        side: {name: field(type) for name, type in names.items()} for side, names in fields.items()
    }


class Laid:
    """The registry as laid over ours, and what its skills need."""

    def __init__(self, root: Path) -> None:
        lay(root)
        layers = layers_for(project=str(root), project_trusted=True)
        self.registry = Registry(layers, protocols=PROTOCOLS, base=str(root))
        self.catalog: Catalog = self.registry.everything()
        self.needs = RequirementSearch(self.catalog, OPTIONS)


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Laid:
    return Laid(tmp_path_factory.mktemp("guide"))


@pytest.mark.sampled(32)
@pytest.mark.slow
def test_nothing_of_it_or_of_ours_is_an_error(laid: Laid) -> None:
    found = check(laid.catalog)
    assert [(each.file, each.message) for each in found if each.severity == "E"] == []
    files = {shadow.file for shadow in laid.catalog.shadows if shadow.layer == BUILT_IN}
    assert len(files) == len(CAPABILITIES) + len(SKILLS), "all of it replaces something of ours"


@pytest.mark.sampled(32)
@pytest.mark.slow
def test_each_skill_runs_or_says_what_it_needs_and_what_to_do(laid: Laid) -> None:
    """And what is said is what a run would be refused with: the two never differ."""
    runs = 0
    for id in laid.catalog.skills:
        needs = laid.needs.skill(id)
        refused = [each for each in check(laid.registry.reach(id)) if each.severity != "W"]
        assert bool(needs) == bool(refused), id
        assert all(need.text and need.cure for need in needs), (id, needs)
        runs += not needs
    able = [id for id in SKILLS if not laid.needs.skill(id)]
    assert able == [*SKILLS], (
        "what is shipped does not stand in the way of a skill that needs nothing of it"
    )
    assert runs >= len(SKILLS) + 40


@pytest.mark.slow
def test_what_has_less_safety_than_ours_is_never_called(laid: Laid) -> None:
    weakened = {
        each.file
        for each in check(laid.catalog)
        if each.code == "safety.weakened" and each.severity == "R"
    }
    assert len(weakened) >= 17
    for id, spec in laid.catalog.capabilities.items():
        if spec.file in weakened:
            assert laid.needs.skill(one_step(id)), id
            assert "replaced" in kinds(laid.needs.capability(id)), id


def kinds(needs: tuple[MissingRequirement, ...]) -> set[str]:
    return {need.kind for need in needs}


@pytest.mark.sampled(16)
@pytest.mark.slow
def test_what_is_said_to_run_does(project: Any, laid: Laid) -> None:
    """One skill that calls each of those in turn: what starts, and calls all of them."""
    lay(project.root)
    able = [id for id in CAPABILITIES if not laid.needs.skill(one_step(id))]
    for id in able[:: len(able) // 4]:
        inputs = sample_inputs(laid.catalog.skills[one_step(id)])
        given = [
            word for name, value in inputs.items() for word in ("-p", f"{name}:={json(value)}")
        ]
        result = project.run("run", one_step(id), *given, "--json")
        error = result.json.get("error") or {}
        assert error.get("code", "call.rejected") == "call.rejected", (id, result.out)
    name = next(iter(SKILLS))
    inputs = sample_inputs(laid.catalog.skills[name])
    given = [word for key, value in inputs.items() for word in ("-p", f"{key}:={json(value)}")]
    assert (
        project.run("run", name, *given, "-q").assert_ok().json.keys()
        == SKILLS[name]["outputs"].keys()
    )


def json(value: Any) -> str:
    return orjson.dumps(value).decode()

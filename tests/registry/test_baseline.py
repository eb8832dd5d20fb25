"""What skills written for the runner guide's registry count on is here: ids, fields, types (`baseline.json`)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cogcli.protocols import PROTOCOLS
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.fields import Fields
from cogcli.specs.layers import layers_for
from cogcli.specs.registry import Registry

BASELINE: dict[str, Any] = json.loads((Path(__file__).parent / "baseline.json").read_text(encoding="utf-8"))
CAPABILITIES: dict[str, dict[str, dict[str, str]]] = BASELINE["capabilities"]
SKILLS: dict[str, dict[str, dict[str, str]]] = BASELINE["skills"]


@cache
def shipped() -> Catalog:
    return Registry(layers_for(), protocols=PROTOCOLS, base="/").everything()


def field(type: str) -> dict[str, Any]:
    return {"type": type.rstrip("?"), "required": not type.endswith("?")}


def faults(own: dict[str, Fields], counted_on: dict[str, dict[str, str]]) -> list[str]:
    """What a caller that counts on these fields would miss."""
    found = []
    for side, names in counted_on.items():
        for name, type in names.items():
            has = own[side].get(name)
            if has is None or has.type not in (type.rstrip("?"), "any"):
                found.append(f"{side} {name}: {has.type if has else 'missing'}, counted on as {type}")
            elif side == "outputs" and not type.endswith("?") and not has.required:
                found.append(f"output {name} is optional")
    given = {name for name, type in counted_on["inputs"].items() if not type.endswith("?")}
    for name, has in own["inputs"].items():
        if has.required and has.default is None and name not in given:
            found.append(f"input {name} is required")
    return found


def test_every_capability_is_here() -> None:
    found = shipped()
    assert {id for id in CAPABILITIES if found.capability(id) is None} == set()


@pytest.mark.parametrize("id", CAPABILITIES)
def test_a_capability_takes_and_gives_the_fields(id: str) -> None:
    capability = shipped().capability(id)
    assert capability is not None
    assert faults({"inputs": capability.inputs, "outputs": capability.outputs}, CAPABILITIES[id]) == []
    surplus = {
        name
        for name, own in capability.outputs.items()
        if own.required and own.default is None and name not in CAPABILITIES[id]["outputs"]
    }
    assert not surplus, "a binding of others does not map them"


def test_every_skill_is_here() -> None:
    assert [id for id in SKILLS if id not in shipped().skills] == []


@pytest.mark.parametrize("id", SKILLS)
def test_a_skill_takes_and_gives_the_fields(id: str) -> None:
    skill = shipped().skills[id]
    assert faults({"inputs": skill.inputs, "outputs": skill.outputs}, SKILLS[id]) == []


# -- the whole registry of the guide as a later layer -----------------------------------------------------------------


@pytest.fixture(scope="module")
def layered(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The capabilities of the guide's registry over ours, with its fields alone, as careful as ours; and per
    capability a skill of one step with all of its fields."""
    root, yaml, found = tmp_path_factory.mktemp("guide"), YAML(), shipped()
    for id, fields in CAPABILITIES.items():
        own = found.raw[f"capability:{id}"]
        sides = {side: {name: field(type) for name, type in names.items()} for side, names in fields.items()}
        gates = own.get("safety", {}).get("mandatory_pre_gates", ())
        asked = {path.removeprefix("input.") for gate in gates for path in gate.get("input", {}).values()}
        sides["inputs"] |= {
            name: own["inputs"][name] for name in asked & own["inputs"].keys() - fields["inputs"].keys()
        }
        kept = {key: own[key] for key in ("properties", "safety", "probe") if own.get(key)}
        spec = {"id": id, "version": "1.0.0", "description": "As the guide has it.", **sides, **kept}
        write(yaml, root / f"capabilities/{id}.yaml", spec)
        name = id.replace(".", "-").replace("_", "-")
        step = {
            "id": "one",
            "uses": id,
            "input": {name: f"inputs.{name}" for name in fields["inputs"]},
            "output": {name: f"outputs.{name}" for name in fields["outputs"]},
        }
        skill = {"id": f"guide.{name}", "version": "1.0.0", "name": name, "description": "One step.", **sides}
        write(yaml, root / f"skills/local/guide/{name}/skill.yaml", {**skill, "steps": [step]})
    layers = layers_for(project=str(root), project_trusted=True)
    return Registry(layers, protocols=PROTOCOLS, base=str(root)).everything()


def write(yaml: YAML, path: Path, spec: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(spec, file)


@pytest.mark.slow
def test_neither_a_binding_of_ours_nor_a_skill_of_theirs_has_an_error(layered: Catalog) -> None:
    ours = {each.file for each in layered.bindings.values()}
    theirs = {each.file for each in layered.capabilities.values()}
    theirs |= {each.file for id, each in layered.skills.items() if id.startswith("guide.")}
    problems = [each for each in check(layered) if each.file in ours | theirs]
    assert [(each.file, each.message) for each in problems if each.severity == "E"] == []
    dropped = [each.message for each in problems if each.code in ("response.field", "request.input")]
    assert dropped
    assert all(message.endswith("so this one is left out") for message in dropped)

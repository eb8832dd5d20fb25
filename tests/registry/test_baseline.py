"""What skills written for the runner guide's registry count on is here: ids, fields, types (`baseline.json`)."""

from __future__ import annotations

import json
import random
from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.examples import LONG
from support.loopback_host import loopback_host

from cogcli.app.settings import Settings
from cogcli.authoring.skill_tests import find_cases, run_cases
from cogcli.authoring.verification.check_result import PASSED
from cogcli.authoring.verification.contract import write_files
from cogcli.declarations.field_spec import Fields
from cogcli.protocols import PROTOCOLS
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.examples import examples_of, with_paths
from cogcli.specs.fields import fields_from, fit_values
from cogcli.specs.layers import layers_for
from cogcli.specs.registry import Registry

pytestmark = pytest.mark.sampled(3)

BASELINE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "baseline.json").read_text(encoding="utf-8")
)
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
                found.append(
                    f"{side} {name}: {has.type if has else 'missing'}, counted on as {type}"
                )
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
    assert (
        faults({"inputs": capability.inputs, "outputs": capability.outputs}, CAPABILITIES[id]) == []
    )
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


@pytest.fixture
def guide(tmp_path: Path) -> Path:
    """A project with the capabilities of the guide's registry over ours, with its fields alone, as careful as ours; and
    per capability a skill of one step with all of its fields, and a case with the values of our example."""
    root, found = tmp_path / "guide", shipped()
    for id, fields in CAPABILITIES.items():
        own = found.raw[f"capability:{id}"]
        sides = {
            side: {name: field(type) for name, type in names.items()}
            for side, names in fields.items()
        }
        gates = own.get("safety", {}).get("mandatory_pre_gates", ())
        asked = {
            path.removeprefix("input.") for gate in gates for path in gate.get("input", {}).values()
        }
        sides["inputs"] |= {
            name: own["inputs"][name]
            for name in asked & own["inputs"].keys() - fields["inputs"].keys()
        }
        kept = {key: own[key] for key in ("properties", "safety", "probe") if own.get(key)}
        spec = {
            "id": id,
            "version": "1.0.0",
            "description": "As the guide has it.",
            **sides,
            **kept,
        }
        write(root / f"capabilities/{id}.yaml", spec)
        name = id.replace(".", "-").replace("_", "-")
        step = {
            "id": "one",
            "uses": id,
            "input": {name: f"inputs.{name}" for name in fields["inputs"]},
            "output": {name: f"outputs.{name}" for name in fields["outputs"]},
        }
        skill = {
            "id": f"guide.{name}",
            "version": "1.0.0",
            "name": name,
            "description": "One step.",
            **sides,
        }
        folder = root / f"skills/local/guide/{name}"
        write(folder / "skill.yaml", {**skill, "steps": [step]})
        write(folder / "tests/example.yaml", case(id, folder / "files"))
    return root


def case(id: str, folder: Path) -> dict[str, Any]:
    """A case with the values of the first example that the fields of the guide take, as far as these go."""
    capability, known = shipped().capability(id), CAPABILITIES[id]
    assert capability is not None
    fields = fields_from({name: field(type) for name, type in known["inputs"].items()})

    def part(values: Any, names: Container[str]) -> dict[str, Any]:
        filled = with_paths(values, lambda name: str(folder / name))
        return {name: value for name, value in filled.items() if name in names}

    example = next(
        each
        for each in examples_of(capability)
        if not fit_values(fields, part(each.inputs, fields))[1]
    )
    folder.mkdir(parents=True)
    write_files(str(folder), example.files)
    is_exact = example.match == "exact" and example.inputs.keys() <= fields.keys()
    outputs = part(example.outputs or {}, known["outputs"]) if is_exact else {}
    return {
        "inputs": part(example.inputs, fields),
        "real": [id],
        "options": {"trust_level": "privileged", "confirm": [id]},
        "expect": {"outputs": outputs, "calls": {id: 1}},
    }


def write(path: Path, spec: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(spec), encoding="utf-8")  # which is YAML, too


@pytest.mark.sampled(6)
@pytest.mark.slow
def test_neither_a_binding_of_ours_nor_a_skill_of_theirs_has_an_error(guide: Path) -> None:
    layers = layers_for(project=str(guide), project_trusted=True)
    layered = Registry(layers, protocols=PROTOCOLS, base=str(guide)).everything()
    ours = {each.file for each in layered.bindings.values()}
    theirs = {each.file for each in layered.capabilities.values()}
    theirs |= {each.file for id, each in layered.skills.items() if id.startswith("guide.")}
    problems = [each for each in check(layered) if each.file in ours | theirs]
    assert [(each.file, each.message) for each in problems if each.severity == "E"] == []
    dropped = [
        each.message for each in problems if each.code in ("response.field", "request.input")
    ]
    assert dropped
    assert all(message.endswith("so this one is left out") for message in dropped)


@pytest.mark.sampled(12)
@pytest.mark.slow
def test_each_skill_of_theirs_runs(
    guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs a model, a service of the host or the web is answered on loopback. A short run draws some."""
    with loopback_host(tmp_path) as host:
        settings, results = Settings({}, host.environ, base=str(guide)), []
        cases = find_cases(settings, ()).cases
        assert len(cases) == len(CAPABILITIES)
        for case in cases if LONG else random.sample(cases, 25):
            monkeypatch.chdir(Path(case.source.path).parents[1] / "files")
            results += run_cases(settings, [case], jobs=1).results.results
    failed = [f"{each.id}: {each.reason}" for each in results if each.status != PASSED]
    assert [text for text in failed if "cannot be kept apart from this machine" not in text] == []

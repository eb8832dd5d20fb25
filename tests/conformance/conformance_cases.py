"""Reading the case files, and writing the project of a case. `README.md` beside this says what a case looks like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from cogcli.base.yaml.reader import parse

HERE = Path(__file__).parent
REGISTRY = HERE / "registry"
KEYS = {
    "name", "rule", "inputs", "outputs", "steps", "skills", "capabilities", "bindings", "files", "input", "flags",
    "installed", "expect",
}  # fmt: skip
EXPECTED = {
    "exit", "status", "code", "message", "problems", "outputs", "state", "absent", "steps", "reads", "writes", "events",
    "calls", "ledger", "bindings", "seconds", "warnings",
}  # fmt: skip
DO = ("value", "mark", "seconds", "fail", "key", "verdict")
_TYPES = {
    "value": "any",
    "mark": "string",
    "seconds": "number",
    "fail": "integer",
    "key": "string",
    "verdict": "object",
}


class Case(NamedTuple):
    """One case: `id` is `file/name`, `raw` the mapping as written."""

    id: str
    raw: dict[str, Any]


def all_cases() -> list[Case]:
    """Every case of every file, in order. Fails for a key that no case has, and for a name standing twice."""
    cases = []
    for file in sorted((HERE / "cases").glob("*.yaml")):
        parsed = parse(file.read_bytes(), file=file.name)
        assert parsed.value is not None, parsed.problems
        for raw in parsed.value["cases"]:
            unknown = (raw.keys() - KEYS) | (raw["expect"].keys() - EXPECTED)
            assert not unknown, f"{file.name}: {raw['name']}: {unknown}"
            cases.append(Case(f"{file.stem}/{raw['name']}", raw))
    ids = [case.id for case in cases]
    assert len(ids) == len(set(ids)), [id for id in ids if ids.count(id) > 1]
    return cases


def write_project(case: Case, root: Path) -> None:
    """The specs of a case; JSON is YAML, too."""
    raw = case.raw
    main = {name: raw[name] for name in ("inputs", "outputs", "steps") if name in raw}
    for id, skill in {"case.main": main, **raw.get("skills", {})}.items():
        domain, slug = id.split(".")
        _write(root / "skills" / "local" / domain / slug / "skill.yaml", _skill(id, skill))
    for id, capability in raw.get("capabilities", {}).items():
        _write_capability(root, id, dict(capability))
    for id, binding in raw.get("bindings", {}).items():
        _write_binding(root, id, dict(binding))
    for path, content in raw.get("files", {}).items():
        _write(root / path, content)


def fields(short: dict[str, Any]) -> dict[str, Any]:
    """`{text: string!, n: {type: integer, default: 1}}`: a word is a type, `!` means required."""
    return {
        name: {"type": field.rstrip("!"), "required": field.endswith("!")}
        if isinstance(field, str)
        else field
        for name, field in short.items()
    }


def _skill(id: str, skill: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": id,
        "version": "1.0.0",
        "name": id,
        "description": f"The skill {id}.",
        "inputs": fields(skill.get("inputs", {})),
        "outputs": fields(skill.get("outputs", {})),
        "steps": skill["steps"],
    }


def _write_capability(root: Path, id: str, capability: dict[str, Any]) -> None:
    function = capability.pop("function", "do")
    inputs = fields(capability.pop("inputs", _TYPES))
    outputs = fields(capability.pop("outputs", {"value": "any"}))
    base = {"id": id, "version": "1.0.0", "description": id, "properties": {"side_effects": False}}
    _write(
        root / "capabilities" / f"{id}.yaml",
        {**base, "inputs": inputs, "outputs": outputs, **capability},
    )
    if function is not None:
        asked = {name: f"input.{name}" for name in inputs}
        answered = {name: f"response.{name}" for name in outputs}
        plain = {"capability": id, "function": function, "request": asked, "response": answered}
        _write_binding(root, id.replace(".", "_"), plain)


def _write_binding(root: Path, id: str, binding: dict[str, Any]) -> None:
    capability, channel = binding["capability"], binding.pop("channel", "local")
    spec = {
        "id": id,
        "service": "functions",
        "protocol": "pythoncall",
        "operation": binding.pop("function", "do"),
        "request": {name: f"input.{name}" for name in DO},
        "response": {"value": "response.value"},
        **binding,
    }
    _write(root / "bindings" / channel / capability / f"{id}.yaml", spec)


def _write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))

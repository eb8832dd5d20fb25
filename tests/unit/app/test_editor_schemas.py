"""Schemas for editors: each key explained, each id of the project, and the same verdict as `validate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.project import Project

from cogcli.app.editor_schemas import FOLDER
from cogcli.app.schemas import SPECS, schema
from cogcli.base.yaml.reader import parse
from cogcli.specs.shape import ListOf, MapOf, RecordShape, Shape, Text, UnionShape
from cogcli.specs.shapes import shape_of

pytestmark = pytest.mark.sampled(4)


def described(schema: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Each key of a schema, and whether there are words for it."""
    if not isinstance(schema, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}/{name}", isinstance(inner, dict) and bool(inner.get("description"))
        yield from described(inner, f"{path}/{name}")
    for name in ("items", "additionalProperties"):
        yield from described(schema.get(name), f"{path}/{name}")
    for name, inner in (*enumerate(schema.get("anyOf", ())), *schema.get("$defs", {}).items()):
        yield from described(inner, f"{path}/{name}")


@pytest.mark.parametrize("kind", SPECS)
def test_every_key_is_described(kind: str) -> None:
    found = dict(described(schema(kind), kind))
    assert found or kind == "active"  # which has ids alone
    assert [path for path, words in found.items() if not words] == []


def choices(shape: Shape, seen: set[int]) -> Iterator[tuple[str, ...]]:
    if id(shape) in seen:
        return
    seen.add(id(shape))
    if isinstance(shape, Text) and shape.choices:
        yield tuple(shape.choices)
    elif isinstance(shape, UnionShape):
        for option in shape.options:
            yield from choices(option, seen)
    elif isinstance(shape, ListOf | MapOf):
        yield from choices(shape.item if isinstance(shape, ListOf) else shape.value, seen)
    elif isinstance(shape, RecordShape):
        for key in shape.keys.values():
            yield from choices(key.shape, seen)


@pytest.mark.parametrize("kind", SPECS)
def test_every_choice_is_an_enum(kind: str) -> None:
    from cogcli.protocols import PROTOCOLS

    text = json.dumps(schema(kind))
    for words in choices(shape_of(kind, PROTOCOLS), set()):
        assert f'"enum": {json.dumps(list(words))}' in text


@pytest.fixture
def shop(project: Project) -> Project:
    """A project with a file of each kind, and the schemas of its registry."""
    project.write("cogcli.toml", "")
    project.run("new", "capability", "shop.order.read").assert_ok()
    project.write(
        "bindings/local/shop.order.read/orders.yaml",
        """
        id: orders_local
        capability: shop.order.read
        service: orders
        protocol: pythoncall
        operation: read
        request: {text: input.text}
        response: {text: response.text}
        """,
    )
    project.write("services/local/orders.yaml", "id: orders\nkind: pythoncall\nmodule: orders\n")
    project.write("orders.py", "def read(text):\n    return {'text': text}\n")
    project.write(
        "policies/official_default_selection.yaml", "defaults: {shop.order.read: orders_local}\n"
    )
    steps = (
        "  - {id: a, uses: shop.order.read, input: {text: inputs.t}, output: {text: outputs.t}}\n"
    )
    project.skill(
        "shop.show",
        steps,
        inputs="{t: {type: string, required: true}}",
        outputs="{t: {type: string}}",
    )
    nested = "  - {id: a, uses: 'skill:shop.show', input: {t: inputs.t}, output: {t: outputs.t}}\n"
    project.skill(
        "shop.outer",
        nested,
        inputs="{t: {type: string, required: true}}",
        outputs="{t: {type: string}}",
    )
    project.run("schema", "--all", "-o", FOLDER).assert_ok()
    return project


FILES = {
    "capabilities/shop.order.read.yaml": "capability",
    "bindings/local/shop.order.read/orders.yaml": "binding",
    "services/local/orders.yaml": "service",
    "policies/official_default_selection.yaml": "policy",
    "skills/local/shop/show/skill.yaml": "skill",
    "skills/local/shop/outer/skill.yaml": "skill",
}


def faults(project: Project, file: str) -> list[tuple[str, int]]:
    """The places, as JSON pointers, and lines of what the schema of a file finds in it."""
    path = project.root / file
    parsed = parse(path.read_bytes(), file=file)
    validator = Draft202012Validator(
        json.loads((project.root / FOLDER / f"{FILES[file]}.schema.json").read_bytes())
    )
    return sorted(
        (
            "".join(f"/{part}" for part in error.absolute_path),
            parsed.places.value(tuple(error.absolute_path)).line,
        )
        for error in validator.iter_errors(parsed.value)
    )


@pytest.mark.sampled(16)
def test_a_valid_project_fits_and_an_invalid_one_fails_at_the_same_place(shop: Project) -> None:
    assert shop.run("validate", "--json").assert_ok().json["counts"]["skills"]
    assert {file: faults(shop, file) for file in FILES} == {file: [] for file in FILES}
    for file, right, wrong in (
        ("skills/local/shop/show/skill.yaml", "uses: shop.order.read", "uses: shop.order.raed"),
        ("skills/local/shop/outer/skill.yaml", "skill:shop.show", "skill:shop.shwo"),
        ("skills/local/shop/show/skill.yaml", "type: string, required", "type: strnig, required"),
        ("bindings/local/shop.order.read/orders.yaml", "service: orders", "service: ordres"),
        ("capabilities/shop.order.read.yaml", "deterministic: true", "deterministic: 1"),
    ):
        text = (shop.root / file).read_text()
        assert right in text
        (shop.root / file).write_text(text.replace(right, wrong))
        problems = shop.run("validate", file, "--json").assert_exit(1).json["problems"]
        ours = {
            (problem["path"], problem["line"]) for problem in problems if problem["file"] == file
        }
        assert set(faults(shop, file)) <= ours, (file, wrong)
        assert faults(shop, file), (file, wrong)
        (shop.root / file).write_text(text)


@pytest.mark.sampled(8)
def test_ids_are_those_of_the_project_with_what_they_are(shop: Project) -> None:
    def read(name: str) -> Any:
        return json.loads((shop.root / FOLDER / f"{name}.schema.json").read_bytes())

    targets = read("skill")["$defs"]["targets"]
    said = dict(zip(targets["enum"], targets["enumDescriptions"], strict=True))
    assert said["shop.order.read"] == "Says what shop.order.read does."
    assert said["skill:shop.show"] == "The skill shop.show."
    assert {"text.content.normalize", "_router"} <= said.keys()
    assert "orders" in read("binding")["$defs"]["services"]["enum"]
    bound = read("policy")["properties"]["defaults"]["properties"]["shop.order.read"]
    one, several = bound["anyOf"]
    assert one["enum"] == several["items"]["enum"] == ["orders_local"]
    assert set(read("pack")["$defs"]["tools"]["enum"]) >= {"shop.order.read", "skill:shop.outer"}


def test_new_specs_are_known_to_the_schemas_at_once(project: Project, tmp_path: Path) -> None:
    project.write("cogcli.toml", "")
    project.run("new", "capability", "shop.item.read").assert_ok()
    known = json.loads((project.root / FOLDER / "binding.schema.json").read_bytes())["$defs"][
        "capabilities"
    ]
    assert "shop.item.read" in known["enum"]


def test_outside_a_project_schemas_take_every_id(project: Project) -> None:
    project.run("schema", "--all", "-o", "all").assert_ok()
    assert "$defs" not in json.loads((project.root / "all/binding.schema.json").read_bytes())

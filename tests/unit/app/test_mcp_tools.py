"""Skills as tools: schemas that never promise more than the skill keeps, and what a client is told of a bug."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from cogcli.app.serving.tools import ServedSkill, ToolOffer, hints_of, name_tools, tool_of
from cogcli.declarations.capability_spec import Capability, Properties
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.options import RunOptions
from cogcli.declarations.skill_spec import Skill
from cogcli.run.prepare import PreparedRun, RunRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.field_schema import schema_of
from cogcli.specs.fields import fit_values
from cogcli.specs.selection import SelectionOptions

FIELDS = {
    "text": FieldSpec(type="string", required=True, description="What to read."),
    "count": FieldSpec(type="integer", default=3),
    "kind": FieldSpec(type="string", enum=["plain", "legal"]),
    "rows": FieldSpec(type="array", items=FieldSpec(type="object")),
    "free": FieldSpec(type="any"),
    "short": FieldSpec(type="string", schema={"maxLength": 3}),
    "tree": FieldSpec(
        type="object", schema={"$ref": "#/$defs/node", "$defs": {"node": {"type": "object"}}}
    ),
    "anchored": FieldSpec(type="object", schema={"$anchor": "here", "$ref": "#"}),
}
NODE = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"$ref": "#/$defs/a~1name"},
        "default": {"$ref": "#/$defs/node"},
        "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
}
TREE = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/node",
        "$defs": {"node": NODE, "a/name": {"type": "string", "minLength": 2}}}  # fmt: skip
ITSELF = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"$ref": "#/$defs/n"}},
          "$defs": {"n": {"type": "integer", "default": {"$ref": "#"}}}}  # fmt: skip
REFERRING = {
    "tree": FieldSpec(type="object", schema=TREE),
    "trees": FieldSpec(type="array", items=FieldSpec(type="object", schema=TREE)),
    "chain": FieldSpec(type="object", schema=ITSELF),
}


def capability(properties: dict[str, Any]) -> Capability:
    return Capability(
        id="x.y",
        version="1.0.0",
        description="",
        inputs={},
        outputs={},
        properties=Properties.of(properties),
    )


def skill() -> Skill:
    return Skill(
        id="demo.greet",
        version="1.0.0",
        name="Greet",
        description="Greets.",
        inputs=FIELDS,
        outputs={"text": FieldSpec(type="string")},
        steps=(),
    )


def test_a_schema_says_what_the_fields_say() -> None:
    schema = schema_of(FIELDS)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["text"]
    assert schema["properties"]["text"] == {"type": "string", "description": "What to read."}
    assert schema["properties"]["count"] == {"type": "integer", "default": 3}
    assert schema["properties"]["free"] == {}
    assert schema["properties"]["short"] == {"type": "string", "allOf": [{"maxLength": 3}]}


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"tree": {"name": "ab", "default": {"name": "cd"}, "below": [{"name": "ef"}]}}, True),
        ({"tree": {"name": "a"}}, False),
        ({"tree": {"name": "ab", "default": {"name": "c"}}}, False),
        ({"tree": {"name": "ab", "below": [{}]}}, False),
        ({"trees": [{"name": "ab"}]}, True),
        ({"trees": [{"name": "a"}]}, False),
        ({"chain": {"next": {"next": {"n": 3}}}}, True),
        ({"chain": {"next": {"next": {"n": "x"}}}}, False),
        ({"chain": {"next": 5}}, False),
    ],
)
def test_what_a_fields_schema_defines_survives(value: dict[str, Any], fits: bool) -> None:
    schema = schema_of(REFERRING)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is fits
    assert (not fit_values(REFERRING, value)[1]) is fits
    assert schema["$defs"]["tree.node"]["required"] == ["name"]


def test_a_schema_with_anchors_of_its_own_is_left_to_the_run() -> None:
    assert schema_of(FIELDS)["properties"]["anchored"] == {"type": "object"}


@pytest.mark.parametrize(
    "value", [{"text": "a"}, {"text": "a", "count": 3.0, "rows": [{}], "free": None, "tree": {}}]
)
def test_what_the_skill_takes_fits_the_schema(value: dict[str, Any]) -> None:
    assert not fit_values(FIELDS, value)[1]
    jsonschema.validate(value, schema_of(FIELDS))


def test_names_and_closed_inputs() -> None:
    tool = tool_of(skill(), (), "demo__greet")
    assert tool["inputSchema"]["additionalProperties"] is False
    assert "additionalProperties" not in tool["outputSchema"]


LONG = "x" * 70


@pytest.mark.parametrize("ids", [
    ["demo.greet", "demo.greet-all", "a1.b_c"],
    ["a.b", "a__b", "a_.b", "a._b"],
    [f"{LONG}.{end}" for end in "abc"] + [f"{LONG}.{end}{end}" for end in "abc"],
    [f"{'y' * 31}.{'z' * 31}", f"{'y' * 32}.{'z' * 31}"],
    ["ä.b", "ö.b", "a b.c"],
])  # fmt: skip
def test_names_are_what_hosts_take_and_each_is_one_skills(ids: list[str]) -> None:
    names = name_tools(ids)
    assert list(names) == sorted(ids)
    assert len(set(names.values())) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
    assert name_tools(reversed(ids)) == names
    assert name_tools(ids, "dots") == {id: id for id in sorted(ids)}


def test_a_name_stays_as_it_is_where_it_can() -> None:
    assert name_tools(["demo.greet", "text.brief"]) == {
        "demo.greet": "demo__greet",
        "text.brief": "text__brief",
    }
    assert (
        name_tools([f"{LONG}.a"])[f"{LONG}.a"]
        == name_tools([f"{LONG}.a", "demo.greet"])[f"{LONG}.a"]
    )


def test_hints_follow_from_the_worst_effect() -> None:
    none = capability({"side_effects": False})
    idempotent = capability({"side_effects": True, "idempotent": True})
    effect, unknown = capability({"side_effects": True}), capability({})

    def hints(*capabilities: Capability) -> tuple[bool, ...]:
        found = hints_of(capabilities)
        return tuple(found[f"{name}Hint"] for name in ("readOnly", "destructive", "idempotent"))

    assert hints() == hints(none) == (True, False, True)
    assert hints(none, idempotent) == (False, True, True)
    assert hints(none, effect) == hints(unknown) == (False, True, False)


def test_a_bug_is_an_internal_error_and_nothing_more() -> None:
    anyio = pytest.importorskip("anyio")
    pytest.importorskip("mcp")
    import mcp_types

    from cogcli.app.serving.handlers import ServerListener, ToolHandlers

    class Broken:
        async def run(self, *_: Any) -> Any:
            raise ValueError("the password is swordfish")

    bugs: list[BaseException] = []
    loaded = PreparedRun(
        RunRequest("", {}, RunOptions()),
        skill(),
        Catalog(),
        {},
        {},
        SelectionOptions({}, None, {}),
        [],
    )
    offer = ToolOffer({"demo.greet": ServedSkill(tool_of(skill(), (), "demo__greet"), loaded)}, [])
    lines: list[Any] = []
    told = ServerListener(
        lambda *line: lines.append(line),
        bug=bugs.append,
        error=lambda _: None,
        warn=lambda _: None,
    )
    tools = ToolHandlers(offer, Broken(), told)  # type: ignore[arg-type]
    asked: Any = SimpleNamespace(meta=None, session=None, request=None)
    params = mcp_types.CallToolRequestParams(name="demo.greet", arguments={"text": "x"})
    result = anyio.run(tools.call, asked, params)
    assert result.is_error
    assert [block.text for block in result.content] == ["internal error"]
    assert [str(bug) for bug in bugs] == ["the password is swordfish"]
    assert lines == [("demo.greet", {"status": "error", "error": "internal"})]

"""Skills as tools: schemas that never promise more than the skill keeps, and what a client is told of a bug."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from cogcli.app.mcp_tools import Hints, hints_of, schema_of, tool_of
from cogcli.app.run_skill import Loaded, RunRequest
from cogcli.app.served_skills import Offer, Served
from cogcli.specs.capability import Capability
from cogcli.specs.catalog import Catalog
from cogcli.specs.fields import FieldSpec, fit
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.skill import Skill

FIELDS = {
    "text": FieldSpec("string", required=True, description="What to read."),
    "count": FieldSpec("integer", default=3),
    "kind": FieldSpec("string", enum=["plain", "legal"]),
    "rows": FieldSpec("array", items=FieldSpec("object")),
    "free": FieldSpec("any"),
    "short": FieldSpec("string", schema={"maxLength": 3}),
    "tree": FieldSpec("object", schema={"$ref": "#/$defs/node", "$defs": {"node": {"type": "object"}}}),
}


def capability(properties: dict[str, Any]) -> Capability:
    return Capability("x.y", "1.0.0", "", {}, {}, properties)


def skill() -> Skill:
    return Skill("demo.greet", "1.0.0", "Greet", "Greets.", FIELDS, {"text": FieldSpec("string")}, ())


def test_a_schema_says_what_the_fields_say() -> None:
    schema = schema_of(FIELDS)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["text"]
    assert schema["properties"]["text"] == {"type": "string", "description": "What to read."}
    assert schema["properties"]["count"] == {"type": "integer", "default": 3}
    assert schema["properties"]["free"] == {}
    assert schema["properties"]["short"] == {"type": "string", "allOf": [{"maxLength": 3}]}


def test_a_schema_with_references_of_its_own_is_left_to_the_run() -> None:
    assert schema_of(FIELDS)["properties"]["tree"] == {"type": "object"}


@pytest.mark.parametrize(
    "value", [{"text": "a"}, {"text": "a", "count": 3.0, "rows": [{}], "free": None, "tree": {}}]
)
def test_what_the_skill_takes_fits_the_schema(value: dict[str, Any]) -> None:
    assert not fit(FIELDS, value)[1]
    jsonschema.validate(value, schema_of(FIELDS))


def test_names_and_closed_inputs() -> None:
    assert tool_of(skill(), ()).name == "demo.greet"
    tool = tool_of(skill(), (), "underscore")
    assert tool.name == "demo__greet"
    assert tool.input_schema["additionalProperties"] is False
    assert "additionalProperties" not in tool.output_schema


def test_hints_follow_from_the_worst_effect() -> None:
    none = capability({"side_effects": False})
    idempotent = capability({"side_effects": True, "idempotent": True})
    assert hints_of([]) == hints_of([none]) == Hints(read_only=True, idempotent=True)
    assert hints_of([none, idempotent]) == Hints(read_only=False, idempotent=True)
    assert hints_of([none, capability({"side_effects": True})]) == Hints(read_only=False, idempotent=False)
    assert hints_of([capability({})]) == Hints(read_only=False, idempotent=False)


def test_a_bug_is_an_internal_error_and_nothing_more() -> None:
    anyio = pytest.importorskip("anyio")
    pytest.importorskip("mcp")
    import mcp_types

    from cogcli.app.serve_mcp import Told, Tools

    class Broken:
        async def run(self, *_: Any) -> Any:
            raise ValueError("the password is swordfish")

    bugs: list[BaseException] = []
    loaded = Loaded(skill(), Catalog(), {}, {}, SelectionOptions({}, None, {}), [])
    offer = Offer({"demo.greet": Served(tool_of(skill(), ()), loaded)}, [])
    told = Told(result=lambda *_: None, bug=bugs.append, error=lambda _: None)
    tools = Tools(offer, Broken(), RunRequest("", {}, {}, None), told)  # type: ignore[arg-type]
    asked: Any = SimpleNamespace(meta=None, session=None, request=None)
    params = mcp_types.CallToolRequestParams(name="demo.greet", arguments={"text": "x"})
    result = anyio.run(tools.call, asked, params)
    assert result.is_error
    assert [block.text for block in result.content] == ["internal error"]
    assert [str(bug) for bug in bugs] == ["the password is swordfish"]

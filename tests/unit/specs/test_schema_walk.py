"""What stands at a path of a schema: declared or not, always or sometimes there."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.base.schema.lookup import SchemaAtPath, members, schema_at
from cogcli.base.schema.validator import errors
from cogcli.base.schema.visitor import any_of
from cogcli.declarations.field_spec import FieldSpec
from cogcli.protocols.contract_flow import schema_of

NOTE: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string"},
        "parent": {"$ref": "#/$defs/Note"},
        "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "pair": {"prefixItems": [{"type": "integer"}], "items": False},
        "extra": {"type": "object", "additionalProperties": {"type": "number"}},
        "sealed": {"type": "object", "additionalProperties": False, "properties": {"a": {}}},
        "either": {
            "oneOf": [
                {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}},
                {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}},
            ]
        },
        "both": {
            "allOf": [
                {"$ref": "#/$defs/Note"},
                {"required": ["more"], "properties": {"more": {"type": "null"}}},
            ]
        },
        "silent": {"type": "object"},
    },
}
NOTES = {"$ref": "#/$defs/Note", "$defs": {"Note": NOTE}}


def found(path: str) -> SchemaAtPath | None:
    result = schema_at(NOTES, path.split("."))
    if result and isinstance(result.schema, dict):
        return result._replace(schema={k: v for k, v in result.schema.items() if k != "$defs"})
    return result


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("id", SchemaAtPath({"type": "string"})),
        ("parent.parent.id", SchemaAtPath({"type": "string"}, maybe=True)),
        ("tags.0", SchemaAtPath({"type": "string"}, maybe=True)),
        ("tags.x", None),
        ("pair.0", SchemaAtPath({"type": "integer"}, maybe=True)),
        ("pair.1", None),
        ("extra.any", SchemaAtPath({"type": "number"}, maybe=True)),
        ("sealed.b", None),
        ("id.x", None),
        ("title", SchemaAtPath(True, maybe=True, undeclared=True)),
        ("silent.x", SchemaAtPath(True, maybe=True)),
        ("both.id", SchemaAtPath({"type": "string"}, maybe=True)),
        ("both.more", SchemaAtPath({"type": "null"}, maybe=True)),
        (
            "either.x",
            SchemaAtPath({"anyOf": [{"type": "string"}, {"type": "integer"}]}, maybe=True),
        ),
    ],
)
def test_what_stands_at_a_path(path: str, expected: SchemaAtPath | None) -> None:
    assert found(path) == expected


def test_what_one_part_requires_is_there() -> None:
    schema = {"allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "string"}}}]}
    assert schema_at(schema, ["a"]) == SchemaAtPath({"type": "string"})


def test_members_add_up_over_references_and_parts() -> None:
    inside = members({**NOTE["properties"]["both"], "$defs": {"Note": NOTE}})
    assert inside.required == {"id", "more"}
    assert {"id", "more", "tags"} <= inside.properties.keys()
    assert inside.plain
    assert not inside.closed
    assert members(NOTE["properties"]["sealed"]).closed
    assert not members(NOTE["properties"]["either"]).plain


def test_schemas_with_definitions_of_one_name_join_without_clash() -> None:
    one = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "string"}}}
    other = {"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}
    joined = any_of([one, other])
    assert not errors(joined, "x")
    assert not errors(joined, 1)
    assert errors(joined, 1.5)


def test_a_field_is_a_schema_with_all_that_it_declares() -> None:
    fragment = {"minLength": 2, "$defs": {"p": {"pattern": "^a"}}, "allOf": [{"$ref": "#/$defs/p"}]}
    items = FieldSpec(type="string", enum=["ab", "b", "cc"], schema=fragment)
    schema = schema_of(FieldSpec(type="array", items=items, schema={"maxItems": 2}))
    assert not errors(schema, ["ab"])
    for broken in (["b"], ["cc"], ["x"], ["ab"] * 3, [1], "ab"):
        assert errors(schema, broken), broken
    assert schema_of(FieldSpec(type="any")) == {}

"""Short schemas that lead to very much: what reasons about them, or makes values from them, ends.

Without the bounds of the code it would take hours: `faulthandler_timeout` ends such a test.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from support.growth import assert_linear

from cogcli.base.schema.bundle import SchemaBundler
from cogcli.base.schema.containment import count_alternatives, count_parts, covers, disjoint
from cogcli.base.schema.lookup import members, schema_at
from cogcli.base.schema.sample import NoSample, sample
from cogcli.protocols.type_fit import describe_schema, find_misfit, find_misfit_as_text

pytestmark = pytest.mark.sampled(2)


def layers(count: int, make: Callable[[dict[str, str]], Any], last: Any) -> dict[str, Any]:
    """A schema of so many definitions, each made of a reference to the next."""
    names = [f"a{number}" for number in range(count + 1)]
    made = {name: make({"$ref": f"#/$defs/{after}"}) for name, after in itertools.pairwise(names)}
    return {"$ref": "#/$defs/a0", "$defs": {**made, names[-1]: last}}


TEXT = {"type": "string", "minLength": 3}
MANY = [f"p{number}" for number in range(20)]
GROWING: dict[str, Any] = {
    "many required members, again and again": layers(
        6, lambda next: {"type": "object", "required": MANY, "properties": dict.fromkeys(MANY, next)}, TEXT
    ),
    "two ways at each level": layers(13, lambda next: {"anyOf": [next, next]}, TEXT),
    "alternatives of all": {
        "allOf": [
            {"anyOf": [{"properties": {f"{i}{k}": {"minimum": k}}, "required": [f"{i}{k}"]} for k in range(6)]}
            for i in range(6)
        ]
    },
    "one of very many": {"oneOf": [{"properties": {f"p{n}": {"minimum": n}}} for n in range(200)]},
    "very many choices": {"type": "integer", "enum": [*range(3000)]},
    "very many at once": {"allOf": [{"minimum": n} for n in range(2000)]},
    "lists of lists": layers(8, lambda next: {"type": "array", "minItems": 20, "items": next}, TEXT),
    "itself twice": layers(0, lambda next: next, {"type": "object", "required": ["x", "y"],
        "properties": {key: {"$ref": "#/$defs/a0"} for key in "xy"}}),
    "different alternatives at each level": layers(
        5,
        lambda next: {
            "anyOf": [
                {"type": "object", "minProperties": n, "properties": {"x": {"allOf": [next], "minProperties": n}}}
                for n in range(30)
            ]
        },
        TEXT,
    ),
    "a long text": {"type": "string", "minLength": 10**9},
    "a wide object": {"type": "object", "minProperties": 10**8},
    "a long list, each item once": {"type": "array", "minItems": 900, "uniqueItems": True, "items": TEXT},
}  # fmt: skip
every = pytest.mark.parametrize("schema", GROWING.values(), ids=GROWING)


@pytest.mark.sampled(8)
@pytest.mark.slow
@every
@pytest.mark.parametrize("other", [{"type": "string"}, {"type": ["object", "array"]}], ids=str)
def test_comparing_ends(schema: Any, other: Any) -> None:
    for wide, narrow in ((schema, other), (other, schema)):
        covers(wide, narrow)
        disjoint(wide, narrow)
        find_misfit(wide, narrow, who="it")
        find_misfit_as_text(wide, narrow, who="it")
    assert describe_schema(schema)


@pytest.mark.slow
@every
def test_making_a_value_ends(schema: Any) -> None:
    with suppress(NoSample):
        sample(schema)


@every
def test_looking_into_a_schema_ends(schema: Any) -> None:
    for path in (["x", "x", "x", "x"], ["0", "0", "0"], ["p1", "p2", "p3", "p4"]):
        schema_at(schema, path)
    members(schema)


def test_names_of_very_many_schemas_are_found_soon() -> None:
    def bundle(count: int) -> None:
        schemas = {f"s{n}": {"a": {"b": {"type": "string"}}} for n in range(count)}
        references = [{"$ref": f"#/schemas/s{n}/a/b"} for n in range(count)]
        closed = SchemaBundler({"schemas": schemas}).bundle({"anyOf": references}, ())
        assert len(closed["$defs"]) == count

    assert_linear(bundle, 5000)


@pytest.mark.parametrize(
    ("schema", "ways"),
    [
        (True, 1), ({"type": "string"}, 1), ({"type": ["string", "null"]}, 2),
        ({"allOf": [{"anyOf": [True] * 3}] * 4}, 81), ({"oneOf": [True] * 10}, 100),
        (GROWING["two ways at each level"], 2**13), (GROWING["itself twice"], 1),
    ],
)  # fmt: skip
def test_ways_are_counted(schema: Any, ways: int) -> None:
    assert count_alternatives(schema) == ways
    assert count_parts({"enum": [1, 2, 3]}) == 5

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cogcli.base.schema.limits import faults, unsafe_reason
from cogcli.base.yaml import reader
from cogcli.protocols import PROTOCOLS
from cogcli.specs import checks
from cogcli.specs.host_layout import KIND_OF_FILE
from cogcli.specs.json_schema import schema_of
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import NumberShape, RecordKey, RecordShape, Text, clean_value
from cogcli.specs.shape_check import check_shape
from cogcli.specs.shapes import KINDS, check_file, shape_of
from cogcli.specs.template import TemplateFault, TemplateSlot, parse_template

SPECS = Path(__file__).parents[2] / "specs"
VALID = sorted((SPECS / "valid").glob("*.yaml")) + sorted((SPECS / "base").rglob("*.yaml"))
FOLDERS = {
    "skills": "skill",
    "capabilities": "capability",
    "bindings": "binding",
    "services": "service",
}


def kind_of(file: Path) -> str:
    parts = file.relative_to(SPECS).parts
    return file.name.split("-")[0] if parts[0] == "valid" else FOLDERS.get(parts[1], "policy")


def parsed(file: Path) -> dict[str, Any]:
    value = reader.parse(file.read_bytes(), file=file.name).value
    assert value is not None
    return value


@pytest.mark.parametrize("file", VALID, ids=lambda file: file.name)
def test_valid_files_also_fit_the_json_schema_of_their_kind(file: Path) -> None:
    validator = Draft202012Validator(schema_of(kind_of(file), PROTOCOLS))
    assert [error.message for error in validator.iter_errors(parsed(file))] == []


@pytest.mark.parametrize("kind", [*KINDS, "overrides", "services"])
def test_json_schemas_are_valid_and_refuse_unknown_keys(kind: str) -> None:
    schema = schema_of(kind, PROTOCOLS)
    Draft202012Validator.check_schema(schema)
    found = [
        error.validator
        for error in Draft202012Validator(schema).iter_errors({"nonsense": 1, "x-fine": 2})
    ]
    assert found.count("additionalProperties") == 1


def test_codes_of_this_room_all_have_a_case() -> None:
    """Codes told by selection alone, of the environment and of test cases are in their own tests."""
    elsewhere = {"service.unknown", "service.untrusted", "skill.not-found", "capability.not-found"}
    elsewhere |= {"config.key", "pack.unknown", "env.extra"}
    room = Path(checks.__file__).parents[1]
    written: set[str] = set()
    for source in room.rglob("*.py"):
        if source.name == "yaml_io.py":
            continue
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call):
                first = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
                named = [
                    k.value.value
                    for k in node.keywords
                    if k.arg == "code" and isinstance(k.value, ast.Constant)
                ]
                written |= {text for text in (*first, *named) if isinstance(text, str)}
    codes = {text for text in written if re.fullmatch(r"(?!test\.)[a-z]+\.[a-z]+(-[a-z]+)*", text)}
    lines = "".join(file.read_text() for file in (SPECS / "invalid").glob("*/expected.txt"))
    assert codes - elsewhere - set(re.findall(r" [EWR] (\S+)", lines)) == set()


SHAPE = RecordShape(
    {"id": RecordKey(Text(), required=True), "n": RecordKey(NumberShape(whole=True))}
)


def test_null_on_an_optional_key_is_absent_and_on_a_required_one_wrong() -> None:
    report = ProblemReport("f", None, subject="thing")
    check_shape(SHAPE, {"id": "a", "n": None}, report)
    assert report.problems == []
    check_shape(SHAPE, {"id": None}, report)
    (problem,) = report.problems
    assert problem.message == "thing: `id`: found null, expected text"


def test_cleaned_drops_authors_keys_and_nulls_and_keeps_integers() -> None:
    assert clean_value(SHAPE, {"id": "a", "x-note": 1, "n": 3.0}) == {"id": "a", "n": 3}
    assert type(clean_value(SHAPE, {"id": "a", "n": 3.0})["n"]) is int
    assert clean_value(SHAPE, {"id": "a", "n": None}) == {"id": "a"}


def test_foreign_names_are_never_ignored() -> None:
    raw = {
        "id": "a",
        "kind": "openapi",
        "base_url": "https://a.example",
        "metadata": {"headers": {"x-key": "1"}, "x-note": 2},
        "x-mine": 3,
    }
    assert check_file("service", raw, None, "f", PROTOCOLS).raw == {
        "id": "a",
        "kind": "openapi",
        "base_url": "https://a.example",
        "metadata": {"headers": {"x-key": "1"}},
    }


def test_every_kind_has_a_table() -> None:
    assert all(shape_of(kind, PROTOCOLS) for kind in (*KINDS, *KIND_OF_FILE.values()))


@pytest.mark.parametrize(
    "pattern",
    ["^[a-z]+$", "a{2,5}", "(ab)?c*", "(foo|bar)+", r"\d{3}-\d+", "(a{3})+", "[^x]*", r"\bword\b"],
)
def test_patterns_that_take_linear_time_are_fine(pattern: str) -> None:
    assert unsafe_reason(pattern) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*",
        "(?=a)",
        "(?<!a)b",
        r"(a)\1",
        "(?P<x>a)(?P=x)",
        "((a?)b)*",
        "(a{1,3}){9}",
        "(",
    ],
)
def test_patterns_that_may_not_take_linear_time_are_refused(pattern: str) -> None:
    assert unsafe_reason(pattern)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a" * 200_000, "longer than 10,000 characters"),
        ("|".join("a" * n for n in range(1, 300)), "longer than 10,000 characters"),
        ("(" * 3000 + "a" + ")" * 3000, "nested too deeply"),
    ],
    ids=["long", "many ways", "deep"],
)
def test_a_pattern_is_bounded_before_it_is_parsed(pattern: str, reason: str) -> None:
    assert unsafe_reason(pattern) == reason


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("input.a.b", (TemplateSlot(("a", "b"), True),)),
        ("${input.a}", (TemplateSlot(("a",), True),)),
        ("x ${input.a} y", ("x ", TemplateSlot(("a",), False), " y")),
        ("${input.a:-}", (TemplateSlot(("a",), False, ""),)),
        ("${input.a:-b:-c}", (TemplateSlot(("a",), False, "b:-c"),)),
        ("$${input.a}", ("${", "input.a}")),
        ("costs $5", ("costs $5",)),
        ("my input.a", ("my input.a",)),
        ("", ("",)),
    ],
)
def test_templates_are_texts_and_slots(text: str, parts: tuple[str | TemplateSlot, ...]) -> None:
    found = [literal if slot is None else slot for literal, slot in parse_template(text)]
    assert tuple(found) == parts


NO_TEMPLATES = (
    "${", "${}", "${input}", "${input.}", "${inputs.a}", "${input.a${input.b}}", "x ${input.a", "input.", "inputs.a",
    "input.a..b",
)  # fmt: skip


@pytest.mark.parametrize("text", NO_TEMPLATES)
def test_what_looks_like_a_template_and_is_none_is_refused(text: str) -> None:
    with pytest.raises(TemplateFault):
        parse_template(text)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "#"}, "leads back here"),
        (
            {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}},
            "leads back here",
        ),
        ({"$ref": "#/$defs/b"}, "no such subschema"),
        ({"$ref": "#/x", "x": {"pattern": "(a+)+"}}, "no such subschema"),
        ({"$ref": "#name"}, "inside the fragment"),
        ({"properties": {"a": {"$id": "https://example.org"}}}, "$id"),
        (
            {
                "$ref": "#/$defs/d0",
                "$defs": {
                    **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(20)},
                    "d20": {},
                },
            },
            "apply to one value",
        ),
    ],
)
def test_references_in_fragments_lead_somewhere_and_end(schema: Any, reason: str) -> None:
    ((_, said),) = faults(schema)
    assert reason in said


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"below": {"$ref": "#"}}},
        {"$defs": {"a/b": {"type": "string"}}, "items": {"$ref": "#/$defs/a~1b"}},
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {"minLength": 1}}},
        True,
        {"anyOf": [True, False]},
    ],
)
def test_references_that_go_into_the_value_may_recur(schema: Any) -> None:
    assert faults(schema) == []

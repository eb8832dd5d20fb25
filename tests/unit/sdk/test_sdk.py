"""What functions may import of us (docs/reference/sdk.md)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cogcli import sdk
from cogcli.base.files import read_regular
from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.protocols import PROTOCOLS
from cogcli.sdk import Refused
from cogcli.specs import spec_reader
from cogcli.specs.layers import layers_for
from cogcli.specs.registry import Registry

pytestmark = pytest.mark.sampled(4)

REFERENCE = Path(__file__).parents[3] / "docs/reference/sdk.md"


def refusal(call: Callable[..., Any], *args: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*args)
    return caught.value


def test_importing_it_loads_no_library_and_little_of_ours() -> None:
    code = "import sys, cogcli.sdk; print(*sorted(name for name in sys.modules if name.startswith('cogcli')))\n"
    heavy_ones = {"pydantic", "ruamel", "jsonschema", "orjson", "httpx", "rich", "typer", "mcp"}
    code += f"print(*({heavy_ones!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours, heavy = done.stdout.split("\n")[:2]
    assert ours.split() == [
        "cogcli",
        "cogcli.base",
        "cogcli.base.credential_names",
        "cogcli.base.errors",
        "cogcli.base.host_access",
        "cogcli.base.named_tuple",
        "cogcli.base.refusal",
        "cogcli.base.text_places",
        "cogcli.base.wall",
        "cogcli.base.wall.limits",
        "cogcli.sdk",
    ]
    assert heavy == ""


def test_each_name_of_it_is_on_its_page() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    assert not [name for name in sdk.__all__ if name not in page]


# -- expressions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values", "value"),
    [
        ("row.total > 100", {"row": {"total": 120}}, True),
        ("total", {"total": 7}, 7),
        ("rows[1].a", {"rows": [{"a": 1}, {"a": 2}]}, 2),
        ("name == 'x' and len(tags) == 2", {"name": "x", "tags": [1, 2]}, True),
        ("a is null", {"a": None}, True),
        ("'y' in inputs", {"inputs": ["y"]}, True),
    ],
)
def test_expressions_are_those_of_steps_over_named_values(
    text: str, values: dict[str, Any], value: Any
) -> None:
    assert sdk.evaluate(text, values) == value


def test_an_expression_is_read_once_for_many_records_and_a_name_without_a_value_is_missing() -> (
    None
):
    value_of = sdk.compile_expression("b is null or b > 1", ["a", "b"])
    assert [value_of(record) for record in ({"a": 1}, {"b": 2}, {"b": 1}, {"b": None})] == [
        True,
        True,
        False,
        True,
    ]
    assert (
        refusal(sdk.compile_expression("b > 1", ["b"]), {"a": 1}).hint
        == "compare with `is null` first"
    )


@pytest.mark.parametrize(
    "text", ["", "a +", "c", "__import__('os')", "a.b.c()", "lambda: a", "a" * 3000]
)
def test_what_is_no_expression_over_these_names_is_bad_data(text: str) -> None:
    assert refusal(sdk.compile_expression, text, ["a"]).reason == "bad-data"


@pytest.mark.parametrize("values", [{"a": "text"}, {"a": {}}, {"a": [1]}])
def test_what_cannot_be_evaluated_is_bad_data(values: dict[str, Any]) -> None:
    assert refusal(sdk.evaluate, "a > 1", values).reason == "bad-data"


# -- schemas ----------------------------------------------------------------------------------------------------------


def test_breaches_have_a_place_and_what_fits_has_none() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
    }
    assert sdk.schema_errors(schema, {"a": [1, 2]}) == []
    ((place, message),) = sdk.schema_errors(schema, {"a": [1, "x"]})
    assert place == "a/1"
    assert "integer" in message


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "no-such-type"}, "bad-data"),
        ({"minLength": -1}, "bad-data"),
        ({"$ref": "https://example.invalid/other"}, "bad-data"),
        ({"$ref": "#/nowhere"}, "bad-data"),
        ([], "bad-data"),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any, reason: str) -> None:
    assert refusal(sdk.schema_errors, schema, {}).reason == reason


def test_a_check_that_would_take_too_long_is_refused() -> None:
    schema = {"items": {"allOf": [{"not": {"const": number}} for number in range(500)]}}
    assert refusal(sdk.schema_errors, schema, list(range(100_000))).reason == "too-large"


# -- the catalog ------------------------------------------------------------------------------------------------------


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Path]:
    """A run's registry of the shipped layer and one of a test's own."""
    folder = tmp_path / "skills/local/own/hello"
    folder.mkdir(parents=True)
    (folder / "skill.yaml").write_text(GOOD.replace("own.new", "own.hello"))
    layers = layers_for(project=str(tmp_path), project_trusted=False)
    token = ACCESS.set(
        HostAccess(lambda: Registry(layers, protocols=PROTOCOLS, base=str(tmp_path)))
    )
    yield tmp_path
    ACCESS.reset(token)


GOOD = """
id: own.new
version: "1.0.0"
name: New
description: Says what a text says, in short.
inputs: {text: {type: string, required: true, description: the text}, most: {type: integer, default: 2}}
outputs: {summary: {type: string, required: true}}
metadata: {tags: [short, 7], use_cases: [shorten a text]}
steps:
  - id: shorten
    uses: text.content.summarize
    input: {text: inputs.text, max_sentences: inputs.most}
    output: {summary: outputs.summary}
"""


def test_skills_are_listed_with_what_they_take_and_give(registry: Path) -> None:
    found = {skill.id: skill for skill in sdk.skills()}
    assert {"text.brief", "own.hello"} <= found.keys()
    assert list(found) == sorted(found)
    own = found["own.hello"]
    assert (own.name, own.description) == ("New", "Says what a text says, in short.")
    assert own.inputs["text"] == sdk.CatalogField("string", True, "the text", False)
    assert own.inputs["most"] == sdk.CatalogField("integer", False, "", True)
    assert own.outputs["summary"].required
    assert (own.tags, own.use_cases, own.channel) == (("short",), ("shorten a text",), "local")
    assert own.calls == ("text.content.summarize",)


def test_capabilities_are_listed_too(registry: Path) -> None:
    found = {one.id: one for one in sdk.capabilities()}
    assert found["text.content.summarize"].inputs["text"].type == "string"


@pytest.mark.parametrize(
    ("ask", "folder"), [(sdk.skills, "skills"), (sdk.capabilities, "capabilities")]
)
def test_files_of_another_kind_are_not_read(
    registry: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Any], folder: str
) -> None:
    read: list[str] = []

    def read_and_note(path: str, limit: int) -> bytes:
        read.append(path)
        return read_regular(path, limit=limit)

    monkeypatch.setattr(spec_reader, "read_regular", read_and_note)
    found = {item.id for item in ask()}
    assert len(read) == len(found)
    assert all(f"/{folder}/" in path for path in read)
    everything = Registry(
        layers_for(project=str(registry), project_trusted=False),
        protocols=PROTOCOLS,
        base=str(registry),
    ).everything()
    assert found == getattr(everything, folder).keys()


def test_the_text_of_a_skill_is_checked_against_the_registry_and_nothing_is_written(
    registry: Path,
) -> None:
    before = sorted(registry.rglob("*"))
    assert [each for each in sdk.skill_problems(GOOD) if each.severity == "E"] == []
    wrong = sdk.skill_problems(GOOD.replace("text.content.summarize", "text.content.sumarize"))
    assert [(each.code, each.line, each.severity) for each in wrong] == [("step.uses", 11, "E")]
    assert "text.content.summarize" in wrong[0].hint
    assert sorted(registry.rglob("*")) == before


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "text", ["", "nothing", "- a\n- b\n", "id: [", "id: own.new\nsteps: 7\n", "\ud800", "a\0b"]
)
def test_what_is_no_skill_has_errors(registry: Path, text: str) -> None:
    assert any(each.severity == "E" for each in sdk.skill_problems(text))


def test_a_skill_that_replaces_another_is_checked_in_its_place(registry: Path) -> None:
    assert [
        each.code
        for each in sdk.skill_problems(GOOD.replace("own.new", "own.hello"))
        if each.severity == "E"
    ] == []


@pytest.mark.parametrize("ask", [sdk.skills, sdk.capabilities, lambda: sdk.skill_problems(GOOD)])
def test_without_a_registry_that_is_said(ask: Callable[[], Any]) -> None:
    assert refusal(ask).reason == "unsupported"

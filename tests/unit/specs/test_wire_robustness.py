"""Documents, locks and sources with random wounds: bindings on them give problems or none, never an exception."""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from cogcli.base.yaml import reader
from cogcli.protocols import PROTOCOLS
from cogcli.specs.checks import check
from cogcli.specs.layers import Layer
from cogcli.specs.lock import digest_of_tool
from cogcli.specs.registry import Registry

pytestmark = pytest.mark.sampled(4)

INVALID = Path(__file__).parents[2] / "specs" / "invalid"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e300, "", "x", "a\nb", "object", [], {}, ["a"], {"a": 1}, [[]], [{}], "(",
    {"$ref": "#/components/schemas/Note"}, {"$ref": "#/nowhere"}, {"$ref": 1}, {"type": {"a": 1}},
    {"type": ["string", 5]}, {"type": "array", "items": {"type": "object"}}, {"anyOf": [{}, {"type": "string"}]},
    {"allOf": [{"$ref": "#/components/schemas/Note"}]}, {"required": [1, None]}, {"pattern": "(a+)+"}, {"const": None},
    {"enum": []}, {"enum": [{}, 1]}, {"minimum": "1"}, {"items": 5}, {"properties": {"id": 3}},
)  # fmt: skip
KEYS = (
    "type", "items", "schema", "properties", "required", "$ref", "in", "name", "content", "responses", "parameters",
    "requestBody", "security", "additionalProperties", "anyOf", "allOf", "not", "nullable", "enum", "style", "explode",
    "params", "result", "prefixItems", "minimum", "minItems", "servers", "200", "default", "deprecated", "oneOf",
)  # fmt: skip


ROUNDS = 20


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from places(item, (*path, key))


def wounded(value: Any, dice: random.Random) -> Any:
    result = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 2, 4))):
        all_places = [*places(result)]
        if not all_places:
            break
        *above, last = dice.choice(all_places)
        holder: Any = result
        for key in above:
            holder = holder[key]
        if dice.random() < 0.6:
            holder[last] = copy.deepcopy(dice.choice(VALUES))
        elif isinstance(holder, dict) and dice.random() < 0.6:
            holder[dice.choice(KEYS)] = copy.deepcopy(dice.choice(VALUES))
        else:
            holder.pop(last)
    return result


def resealed(lock: Any) -> Any:
    """A lock whose digests are right, whatever stands in its tools."""
    for tool in lock["services"]["clock"]["tools"]:
        if isinstance(tool, dict):
            tool["sha256"] = digest_of_tool(tool)
    return lock


def problems(root: Path) -> list[Any]:
    found = check(
        Registry([Layer("case", str(root), True)], protocols=PROTOCOLS, base=str(root)).everything()
    )
    for problem in found:
        assert problem.line > 0, problem
        assert "\n" not in problem.message + problem.hint, problem
    return found


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["jsonschema", "jsonschema-rs"])
@pytest.mark.parametrize(
    ("case", "file"),
    [
        ("wire-openapi", "docs/notes.yaml"),
        ("wire-openrpc", "docs/maths.yaml"),
        ("wire-mcp", "cogcli.lock.json"),
    ],
)
def test_no_document_can_crash_the_checks(
    case: str, file: str, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGCLI_SCHEMA_ENGINE", engine)
    root = tmp_path / "case"
    shutil.copytree(INVALID / case, root)
    value = reader.parse((root / file).read_bytes(), file=file).value
    dice = random.Random(case)
    for _ in range(ROUNDS):
        damaged = (
            wounded(value["services"]["clock"]["tools"], dice)
            if "services" in value
            else wounded(value, dice)
        )
        if isinstance(damaged, list):
            damaged = resealed({**value, "services": {"clock": {"tools": damaged}}})
        (root / file).write_bytes(orjson.dumps(damaged))
        problems(root)


@pytest.mark.parametrize(
    "source",
    [b"", b"\xff\x00", b"def cut(", b"def cut(*, a, **b): ...", b"async def cut(a: 'list[int' = 1): ...", b"cut = 1",
     b"def cut(a: 5 | None, b: x.y, c: list[1][2]): ...", b"class cut: ...", b"(" * 5000],
    ids=repr,
)  # fmt: skip
def test_no_source_can_crash_the_checks(source: bytes, tmp_path: Path) -> None:
    root = tmp_path / "case"
    shutil.copytree(INVALID / "wire-python", root)
    (root / "tools" / "parts.py").write_bytes(source)
    problems(root)

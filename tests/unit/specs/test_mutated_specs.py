"""Valid specs with random wounds: whatever is written, there are problems or none, never an exception."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.examples import LONG

from cogcli.base.yaml import reader
from cogcli.protocols import PROTOCOLS
from cogcli.specs.checks import check
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry

pytestmark = pytest.mark.sampled(4)

SPECS = Path(__file__).parents[2] / "specs"
BASE = Layer("base", str(SPECS / "base"), True)
VALUES = (
    None, True, 0, -1, 1.5, 3.0, 1e300, "", "x", "a.b", "vars.x", "inputs.", "skill:t.s", "_router", "working.risks",
    "outputs.out", "${input.x", [], {}, ["a"], {"a": 1}, {"$literal": 1}, {"$literal": 1, "b": 2}, [[]], [{}],
    {"x-a": 1}, "é\u2028", "a" * 300, {"type": "array", "items": {"type": "object"}},
)  # fmt: skip
KEYS = (
    "id", "type", "items", "schema", "default", "config", "foreach", "while", "router", "scatter", "condition", "input",
    "output", "uses", "x-a", "$literal", "enum", "safety", "extends", "aliases", "mandatory_pre_gates", "depends_on",
    "otherwise", "cognitive_hints", "produces", "",
)  # fmt: skip


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


def wounded(value: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    result = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 2, 4))):
        all_places = list(places(result))
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


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.parametrize(
    "file", sorted((SPECS / "valid").glob("*.yaml")), ids=lambda file: file.name
)
def test_no_spec_can_crash_the_checks(file: Path) -> None:
    dice = random.Random(file.name)
    value = reader.parse(file.read_bytes(), file=file.name).value
    assert value is not None
    for _ in range(80 if LONG else 16):
        data = orjson.dumps(wounded(value, dice))
        catalog = Registry([BASE], protocols=PROTOCOLS, base=str(SPECS)).files(
            [str(file)], contents={str(file): data}
        )
        for problem in check(catalog):
            assert problem.line > 0, problem
            assert "\n" not in problem.message + problem.hint, problem

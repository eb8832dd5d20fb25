"""A key of a spec file is one field of its class: it is read, checked with place and hint, described in the schema for
editors and in the reference by code that does not name it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest

from cogcli.base.yaml.reader import parse
from cogcli.declarations.service_spec import Service
from cogcli.declarations.spec import SpecLimits
from cogcli.protocols import PROTOCOLS
from cogcli.specs import service_shape
from cogcli.specs.json_schema import schema_of
from cogcli.specs.shapes import check_file


class ToyService(Service):
    """A service with a key more."""

    colour: Annotated[int, SpecLimits(minimum=1, maximum=3)] | None = None
    """The colour of its edge in a drawing.
    Default: that of its kind"""


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_shape, "Service", ToyService)


def problems(text: str) -> list[tuple[str, int, int, str, str]]:
    parsed = parse(text.encode(), file="s.yaml")
    checked = check_file("service", parsed.value, parsed.places, "s.yaml", PROTOCOLS)
    return [(p.code, p.line, p.column, p.message, p.hint) for p in checked.problems]


HEAD = "id: s\nkind: pythoncall\nmodule: m\n"


def test_it_is_checked_with_its_place_and_a_hint() -> None:
    assert problems(f"{HEAD}colour: 2\n") == []
    assert problems(f"{HEAD}colour: null\n") == []
    (high,) = problems(f"{HEAD}colour: 4\n")
    assert high == (
        "value.range",
        4,
        9,
        "service `s`: `colour`: found number 4, expected a whole number from 1 to 3",
        "",
    )
    (misspelt,) = problems(f"{HEAD}color: 2\n")
    assert misspelt[:3] == ("key.unknown", 4, 1)
    assert "colour" in misspelt[4]


def test_it_is_read() -> None:
    assert ToyService.of({"id": "s", "kind": "k", "colour": 3}).colour == 3
    assert ToyService.of({"id": "s", "kind": "k"}).colour is None


def test_it_is_in_the_schema_for_editors_and_in_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "tooling")
    tables = import_module("generate_key_tables")
    colour = schema_of("service", PROTOCOLS)["properties"]["colour"]
    assert colour == {"type": ["integer", "null"], "minimum": 1, "maximum": 3}
    alone = tables.Table("", frozenset(), frozenset())
    row = "| `colour` | integer, 1 to 3 | that of its kind | the colour of its edge in a drawing |"
    assert row in tables.write_table(ToyService, alone).splitlines()


def test_a_value_is_frozen_and_knows_its_names() -> None:
    service = ToyService(id="s", kind="k", colour=1)
    assert service.replace(colour=2).colour == 2
    with pytest.raises(TypeError, match="has no color"):
        service.replace(color=2)
    with pytest.raises(TypeError, match="needs kind"):
        ToyService(id="s")  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="frozen"):
        service.colour = 3  # type: ignore[misc]

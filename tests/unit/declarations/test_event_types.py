"""The table of event types is whole, and nothing beside it lists event types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sources import PACKAGE, modules_with

from cogcli.declarations.envelope import PHASES, row_of
from cogcli.declarations.event_table import EVENT_TYPES
from cogcli.declarations.events import UNKNOWN
from cogcli.state.reducer import REDUCERS

pytestmark = pytest.mark.sampled(6)


def test_every_type_has_a_phase_of_the_format() -> None:
    assert {row.phase for row in EVENT_TYPES.values()} <= {"", *PHASES}


def test_a_type_is_reduced_where_the_reducer_knows_it() -> None:
    assert {name for name, row in EVENT_TYPES.items() if row.reduced} == {"run.started", *REDUCERS}


def test_a_type_without_a_row_is_unknown_and_no_column_of_it_holds() -> None:
    assert row_of("toy.noted") is row_of(None) is row_of([]) is UNKNOWN
    assert not any(value for name, value in UNKNOWN._asdict().items() if name != "words")


def test_only_the_reducers_list_event_types() -> None:
    listing = "|".join(map(re.escape, EVENT_TYPES))
    others = [
        path
        for path in modules_with(f"[\"']({listing})[\"']")
        if path != PACKAGE / "state/reducer.py"
    ]
    assert [place for path in others for place in _lists_of_event_types(path)] == [], "ask the row"


def _lists_of_event_types(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            named = [part.value for part in parts if isinstance(part, ast.Constant)]
            if sum(name in EVENT_TYPES for name in named) > 1:
                yield f"{path}:{node.lineno}"

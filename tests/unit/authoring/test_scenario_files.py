"""Scenario files are read strictly: what is unknown, missing or of another kind is named with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cogcli.authoring.verification.named_mocks import STAND_INS
from cogcli.authoring.verification.scenario import files_in, read_scenario
from cogcli.base.errors import UsageError
from cogcli.declarations.scenario_spec import Scenario

WHOLE: dict[str, Any] = {
    "id": "notes.read",
    "capability_id": "note.item.read",
    "binding_id": "notes",
    "input": {"id": "n-1"},
    "expected_output": {"text": "hi"},
}


def read_as(tmp_path: Path, value: Any) -> Scenario:
    file = tmp_path / "s.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))
    return read_scenario(str(file), "s.json", STAND_INS)


def test_a_scenario_needs_five_fields(tmp_path: Path) -> None:
    found = read_as(tmp_path, WHOLE)
    assert (found.id, found.match, found.mock_server, found.file) == (
        "notes.read",
        "exact",
        None,
        "s.json",
    )
    for name in WHOLE:
        with pytest.raises(UsageError) as caught:
            read_as(tmp_path, {k: v for k, v in WHOLE.items() if k != name})
        assert (caught.value.code, name in caught.value.message) == ("input.missing", True)


def test_a_mock_server_has_defaults(tmp_path: Path) -> None:
    found = read_as(
        tmp_path, {**WHOLE, "mock_server": {"replies": [{}, {"body": None, "delay_ms": 5}]}}
    )
    assert found.mock_server is not None
    assert found.mock_server.type == "spec"
    assert (found.mock_server.host, found.mock_server.port) == ("127.0.0.1", 0)
    assert [reply.status for reply in found.mock_server.replies] == [200, 200]
    typed = read_as(tmp_path, {**WHOLE, "mock_server": {"type": "agent_route", "port": 8765}})
    assert typed.mock_server is not None
    assert (typed.mock_server.type, typed.mock_server.port) == ("agent_route", 8765)


WRONG: dict[str, tuple[str, Any]] = {
    "unknown field": ("input.unknown", {**WHOLE, "expected_ouput": {}}),
    "unknown mock field": ("input.unknown", {**WHOLE, "mock_server": {"hots": "127.0.0.1"}}),
    "unknown reply field": (
        "input.unknown",
        {**WHOLE, "mock_server": {"replies": [{"code": 200}]}},
    ),
    "input no object": ("input.type", {**WHOLE, "input": []}),
    "id no text": ("input.type", {**WHOLE, "id": 7}),
    "empty id": ("input.type", {**WHOLE, "id": ""}),
    "no object": ("input.type", [1]),
    "match": ("input.enum", {**WHOLE, "match": "exakt"}),
    "mock type": ("input.enum", {**WHOLE, "mock_server": {"type": "spce"}}),
    "not loopback": ("input.enum", {**WHOLE, "mock_server": {"host": "0.0.0.0"}}),
    "port": ("input.type", {**WHOLE, "mock_server": {"port": 70000}}),
    "port no integer": ("input.type", {**WHOLE, "mock_server": {"port": 1.5}}),
    "port a boolean": ("input.type", {**WHOLE, "mock_server": {"port": True}}),
    "status": ("input.type", {**WHOLE, "mock_server": {"replies": [{"status": 99}]}}),
    "delay": ("input.type", {**WHOLE, "mock_server": {"replies": [{"delay_ms": -1}]}}),
    "header value": (
        "input.type",
        {**WHOLE, "mock_server": {"replies": [{"headers": {"A": "x\r\nB: y"}}]}},
    ),
    "not JSON": ("input.json", '{"id": "a",}'),
    "key twice": ("input.json", '{"id": "a", "id": "b"}'),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(tmp_path: Path, name: str) -> None:
    code, value = WRONG[name]
    with pytest.raises(UsageError) as caught:
        read_as(tmp_path, value)
    assert (caught.value.code, caught.value.exit_code) == (code, 2)


def test_a_slip_is_placed_and_what_was_meant_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_as(tmp_path, {**WHOLE, "expected_ouput": {}})
    error = caught.value
    assert (error.file, error.line, error.column) == ("s.json", 11, 3)
    assert error.hint == "did you mean `expected_output`?"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_scenario(str(tmp_path / "no.json"), "no.json", ())
    assert caught.value.code == "input.file"


def test_only_json_files_count(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.yaml", ".hidden.json"):
        (tmp_path / name).write_text("{}")
    assert [Path(path).name for path in files_in(str(tmp_path))] == ["a.json", "b.json"]
    assert files_in(str(tmp_path / "nowhere")) == []

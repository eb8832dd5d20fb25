"""The payload models say exactly what the constructors of events write."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample

from cogcli.episode.layout import CHECKPOINT, FILES
from cogcli.episode.log_reader import EventLog
from cogcli.episode.schemas import SCHEMAS
from cogcli.events import build
from cogcli.events.payloads import problem_of
from cogcli.events.types import EVENT_TYPES

TOOLING = Path(__file__).parents[3] / "tooling"
SAMPLES: dict[Any, Any] = {"payload": {"reason": "retry", "attempt": 2, "wait_ms": 0}}


def drafts() -> list[Any]:
    """One event of every constructor."""
    made = []
    for name, constructor in inspect.getmembers(build, inspect.isfunction):
        if name == "of_turn":
            continue  # the events of an agent's turn: tests/unit/cognition looks at a whole run
        if name.startswith("_") or constructor.__module__ != build.__name__:
            continue
        given = {
            parameter.name: _value(name, parameter)
            for parameter in inspect.signature(constructor).parameters.values()
            if parameter.default is inspect.Parameter.empty
        }
        made.append(constructor(**given))
    return made


def _value(constructor: str, parameter: inspect.Parameter) -> Any:
    known = {
        "ending": "done", "status": "ok", "status_reason": None, "error": None, "required_missing": [], "seed": 0,
        "step_records": [], "steps": [], "skill": {"id": "a.b", "version": None}, "metrics": {},
        "dropped_bytes": 1, "attempts": [],
    }  # fmt: skip
    if parameter.name == "payload":
        return {
            "step_started": {"uses": "a.b.c"},
            "call_retried": {"reason": "retry", "attempt": 2, "wait_ms": 0},
            "gate_decided": {"decision": "allow", "enforced": True},
            "policy_decided": {"decision": "allow", "enforced": True},
        }.get(constructor, {})
    if parameter.name in known:
        return known[parameter.name]
    return {"str": "x", "int": 1}.get(parameter.annotation, {})


@pytest.mark.parametrize("draft", drafts(), ids=lambda draft: draft.event_type)
def test_what_a_constructor_writes_fits_its_model(draft: Any) -> None:
    assert problem_of(draft.event_type, draft.payload) is None
    assert EVENT_TYPES[draft.event_type].phase == draft.phase


def test_every_event_of_a_run_fits_its_model(tmp_path: Path) -> None:
    for _, event in EventLog(sample.sealed_episode(tmp_path)):
        assert event.event_type is not None
        assert problem_of(event.event_type, event.payload) is None


@pytest.mark.parametrize(
    ("payload", "told"),
    [({}, "payload.step_id"), ({"step_id": "a", "output": {}, "z": 1}, "`z`"), ("text", "payload"),
     ({"step_id": 1, "output": {}}, "payload.step_id")],
)  # fmt: skip
def test_a_problem_names_its_place(payload: Any, told: str) -> None:
    problem = problem_of("step.answered", payload)
    assert problem is not None
    assert told in problem


def test_free_keys_are_free() -> None:
    assert problem_of("step.answered", {"step_id": "a", "output": {}, "x-own": 1}) is None


@pytest.mark.slow
def test_the_generated_schemas_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, TOOLING / "generate_schemas.py", "--check"], check=False)
    assert done.returncode == 0


@pytest.mark.slow
def test_schemas_are_for_files_of_an_episode_and_but_for_reading_state_refuse_other_keys() -> None:
    import jsonschema

    for name, schema in SCHEMAS.items():
        assert any(file.startswith(f"{name.removesuffix('-written')}.") for file in (*FILES, CHECKPOINT))
        jsonschema.Draft202012Validator.check_schema(schema())
        assert schema()["additionalProperties"] is (name == "state")


def test_the_way_of_a_run_imports_no_model_library(tmp_path: Path) -> None:
    code = (
        "import sys, json, pathlib; sys.path.insert(0, sys.argv[2]); import sample_episode as s;"
        "from cogcli.episode.listing.episode_row import read_row;"
        "d = s.sealed_episode(pathlib.Path(sys.argv[1])); read_row(d);"
        "print(json.dumps([m for m in ('pydantic', 'rich', 'httpx', 'jsonschema', 'ruamel') if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)],
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == []

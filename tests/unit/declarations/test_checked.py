"""Foreign payloads against the records of events."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from cogcli.declarations.checked import adapter_of, problem_of
from cogcli.declarations.event_table import EVENT_TYPES, PAYLOADS
from cogcli.declarations.events import RunTerminated
from cogcli.declarations.field import fields_of
from cogcli.declarations.quick_check import certainly_fits


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ({}, "payload.step_id: Field required"),
        ({"step_id": "a", "output": {}, "z": 1}, "payload: unknown key `z`"),
        ("text", "payload: Input should be a valid dictionary"),
        ({"step_id": 1, "output": {}}, "payload.step_id: Input should be a valid string"),
    ],
)
def test_a_problem_has_its_place(payload: Any, problem: str) -> None:
    assert problem_of("step.answered", payload) == problem


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("call.retried", {"step_id": "a", "attempt": -1, "reason": "retry", "wait_ms": 0}),
        ("call.retried", {"step_id": "a", "attempt": "1", "reason": "retry", "wait_ms": 0}),
        ("call.retried", {"step_id": "a", "attempt": True, "reason": "retry", "wait_ms": 0}),
        ("step.started", {"step_id": "a", "uses": "b", "step_status": "done"}),
        ("run.state_projection", {"status": "good", "outcomes": {}, "links": {}}),
    ],
)
def test_numbers_and_words_are_checked_strictly(event_type: str, payload: Any) -> None:
    assert problem_of(event_type, payload) is not None


def test_a_merge_strategy_is_one_of_the_table() -> None:
    written = {"target": "vars.a", "strategy": "sideways", "value": 1}
    payload = {"step_id": "a", "step_status": "done", "result_status": "ok", "writes": [written]}
    problem = problem_of("step.completed", payload)
    assert problem == "payload.writes.0.strategy: `sideways` is not a merge strategy"


def test_keys_of_others_are_free() -> None:
    assert problem_of("step.answered", {"step_id": "a", "output": {}, "x-own": 1}) is None


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.event.name)
def test_a_schema_can_be_written_of_each_payload(payload: type[Any]) -> None:
    schema = adapter_of(payload).json_schema()
    assert schema["title"] == payload.__name__
    assert payload.event is EVENT_TYPES[payload.event.name]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.event.name)
def test_the_quick_check_refuses_what_the_precise_one_refuses(payload: type[Any]) -> None:
    """What only the precise check allows are keys `x-...`, and values with a pattern."""
    adapter = adapter_of(payload)
    names = [field.name for field in fields_of(payload)]
    for name in (*names, "unknown", "x-own"):
        for value in SAMPLES:
            for given in ({name: value}, {**_valid(payload), name: value}):
                fits = _fits(adapter, given)
                if certainly_fits(payload, given) is not fits:
                    assert fits
                    assert "'x-" in repr(given)


SAMPLES: list[Any] = [None, True, 0, -1, 1.5, "", "done", [], ["a"], [{}], {}, {"a": 1}, {"x-a": 1}]


def _fits(adapter: TypeAdapter[Any], given: Any) -> bool:
    try:
        adapter.validate_python(given)
    except ValidationError:
        return False
    return True


def _valid(payload: type[Any]) -> dict[str, Any]:
    """Return a payload with as many members that fit as can be drawn from the samples."""
    adapter = adapter_of(payload)
    valid: dict[str, Any] = {}
    for field in fields_of(payload):
        for value in SAMPLES:
            try:
                adapter.validate_python({**valid, field.name: value})
            except ValidationError as error:
                if any(each["loc"][:1] == (field.name,) for each in error.errors()):
                    continue
            valid[field.name] = value
            break
    return valid


def test_what_a_record_writes_passes_its_check() -> None:
    end = RunTerminated(
        status="ok", status_reason=None, outputs={}, error=None, required_missing=[]
    )
    assert problem_of("run.terminated", end.json) is None

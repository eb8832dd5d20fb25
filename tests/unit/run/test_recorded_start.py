"""The first event of a log is checked whole before a run continues from it."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.declarations.options import RunOptions
from cogcli.declarations.run_start import RecordedStart
from cogcli.run.recorded_start import find_recorded_problem

MEMBER = {"binding_id": "b", "service_id": "s", "protocol": "mcp", "timeout_seconds": 1.0}
START: dict[str, Any] = {
    "task": "t",
    "seed": 1,
    "using": "skill",
    "skill": {"id": "a.b", "version": "1.0.0"},
    "inputs": {},
    "frame": {},
    "options": {},
    "tags": {},
    "pins": {"specs": {"skill:a.b": "sha256:0"}, "variables": {"s": {"HOST": "h"}}},
    "selection": {"c.d": {"members": [MEMBER]}},
    "parent_run_id": None,
}
AGENT = {
    "request": {"message": "hi"},
    "fetched": {"edges": [], "memories": [], "snapshot_ref": ""},
    "mode": "fast",
    "timeout_s": 60.0,
}
MODEL = {"adapter": "scripted", "name": "talk.yaml"}


def of_agent(agent: dict[str, Any], model: dict[str, Any] | None) -> dict[str, Any]:
    return START | {"agent": agent, "pins": {"model": model} if model else {}}


def test_a_whole_start_has_no_problem_and_typed_parts() -> None:
    assert find_recorded_problem("run.started", START) is None
    start = RecordedStart.of(START)
    assert start.selection["c.d"].members[0].retry_count == 0
    assert (start.pins.variables, start.agent, start.policy) == ({"s": {"HOST": "h"}}, None, None)
    assert find_recorded_problem("run.started", of_agent(AGENT, MODEL)) is None


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (START | {"pins": {"specs": {"a": 1}}}, "payload.pins.specs.a: "),
        (START | {"selection": {"c.d": {"members": [{}]}}}, "payload.selection.c.d.members.0."),
        (
            START | {"selection": {"c.d": {"members": [MEMBER | {"retry_count": -1}]}}},
            "payload.selection.c.d.members.0.retry_count: ",
        ),
        (START | {"policy": {"packs": ""}}, "payload.policy: unknown key `packs`"),
        (START | {"options": {"max_workers": 0}}, "payload.options.max_workers: "),
        (of_agent(AGENT | {"timeout_s": 0}, MODEL), "payload.agent.timeout_s: "),
        (of_agent(AGENT, None), "payload: pins.model is missing"),
        (
            of_agent(AGENT | {"mode": None}, MODEL),
            "payload: agent.mode and agent.timeout_s are missing",
        ),
    ],
)
def test_a_part_of_another_type_is_a_problem_with_its_place(
    payload: dict[str, Any], problem: str
) -> None:
    found = find_recorded_problem("run.started", payload)
    assert found is not None
    assert found.startswith(problem)


def test_further_members_are_left_open_where_other_versions_have_them() -> None:
    assert find_recorded_problem("run.started", START | {"pins": {"other": 1}}) is None
    assert RunOptions().max_workers > 0

"""How a plan is put together from a log, rule by rule (docs/reference/episode.md#plan-projection)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.declarations.envelope import Event
from cogcli.episode.plan_projection import PlanProjection, project_plan_state


def event(
    phase: str, payload: Any, *, at: int = 0, agent: str | None = None, run: str | None = None
) -> Event:
    return Event(
        None,
        f"e{at}",
        f"2024-01-15T10:30:{at:02}Z",
        "ep_a",
        run,
        None,
        phase,
        None,
        payload,
        agent_id=agent,
    )


def plan(payload: Any, *more: Event, **rest: Any) -> dict[str, Any]:
    return project_plan_state([event("plan", payload, at=1, **rest), *more])


def evidence(step_id: str, status: Any, phase: str = "act") -> Event:
    return event(phase, {"step_id": step_id, "step_status": status}, at=9)


RECORD = {"id": "a", "kind": "act", "description": "Do it", "status": "pending"}


def statuses(document: dict[str, Any]) -> list[str]:
    return [step["status"] for step in document["steps"]]


def test_without_a_plan_event_there_are_no_steps() -> None:
    assert project_plan_state([event("act", {"step_id": "a", "step_status": "done"})]) == {
        "steps": []
    }


def test_the_latest_plan_starts_afresh() -> None:
    first, second = (
        event("plan", {"steps": ["act:one"]}, at=1),
        event("plan", {"steps": ["act:two"]}, at=3),
    )
    document = project_plan_state([first, evidence("step-1", "done"), second])
    assert [step["description"] for step in document["steps"]] == ["two"]
    assert statuses(document) == ["pending"]
    assert document["updated_at"] == "2024-01-15T10:30:03Z"


@pytest.mark.parametrize("payload", [None, [], "plan", 3])
def test_a_plan_event_whose_payload_is_no_object_counts_as_none(payload: Any) -> None:
    assert project_plan_state([event("plan", payload)]) == {"steps": []}
    document = project_plan_state(
        [event("plan", {"steps": ["act:one"]}), event("plan", payload, at=2)]
    )
    assert len(document["steps"]) == 1


@pytest.mark.parametrize(
    ("payload", "agent", "source"),
    [({"source": "planner.minimal"}, "x", "planner.minimal"), ({}, "direction", "direction"), ({}, None, "system"),
     ({"source": ""}, None, "system"), ({"source": 3}, "x", "x")],
)  # fmt: skip
def test_the_source_is_the_payloads_else_the_agent_else_the_system(
    payload: dict[str, Any], agent: str | None, source: str
) -> None:
    assert plan(payload, agent=agent)["source"] == source


def test_records_win_over_labels_even_when_there_are_none() -> None:
    assert plan({"step_records": [], "steps": ["act:one"]})["steps"] == []
    assert plan({"step_records": None, "steps": ["act:one"]})["steps"] != []


def test_records_that_are_no_objects_are_passed_over_and_counted() -> None:
    document = plan({"step_records": ["x", {"kind": "act", "description": "d"}, RECORD]})
    assert [step["id"] for step in document["steps"]] == ["step-2", "a"]


def test_optional_members_stand_only_where_they_were_given() -> None:
    record = {
        **RECORD,
        "rationale": "why",
        "depends_on": ["b"],
        "inputs": {},
        "outputs": {"n": 1},
        "x-own": 5,
        "odd": 1,
    }
    [step] = plan({"step_records": [record]})["steps"]
    assert list(step) == [
        "id",
        "kind",
        "description",
        "status",
        "rationale",
        "depends_on",
        "inputs",
        "outputs",
        "x-own",
    ]
    [bare] = plan({"step_records": [RECORD]})["steps"]
    assert list(bare) == ["id", "kind", "description", "status"]
    assert "rationale" not in plan({"step_records": [RECORD]})


@pytest.mark.parametrize(
    ("label", "kind", "description"),
    [("detect:Read it", "detect", "Read it"), ("act:a:b", "act", "a:b"), ("no colon", "plan", "no colon"),
     ("novel:thing", "plan", "thing"), ("detect", "plan", "detect"), (":x", "plan", "x"), ("Detect:x", "plan", "x")],
)  # fmt: skip
def test_labels_are_split_at_the_first_colon(label: str, kind: str, description: str) -> None:
    [step] = plan({"steps": [label]})["steps"]
    assert step == {"id": "step-1", "kind": kind, "description": description, "status": "pending"}


def test_labels_that_are_no_text_are_passed_over_but_counted() -> None:
    assert [step["id"] for step in plan({"steps": ["act:a", 3, None, "act:b"]})["steps"]] == [
        "step-1",
        "step-4",
    ]


def test_the_last_evidence_wins() -> None:
    assert statuses(
        plan({"step_records": [RECORD]}, evidence("a", "running"), evidence("a", "done"))
    ) == ["done"]


def test_a_step_without_evidence_keeps_its_status() -> None:
    assert statuses(plan({"step_records": [{**RECORD, "status": "skipped"}]})) == ["skipped"]


@pytest.mark.parametrize(
    "more",
    [
        evidence("unknown", "done"),
        evidence("a", "done", phase="reflect"),
        event("act", {"step_id": "a"}, at=9),
        event("act", {"step_status": "done"}, at=9),
        event("act", None, at=9),
        evidence("a", "finished"),
        evidence("a", 3),
    ],
)
def test_what_is_no_evidence_changes_nothing(more: Event) -> None:
    assert statuses(plan({"step_records": [{**RECORD, "status": "running"}]}, more)) == ["running"]


def test_evidence_before_the_plan_does_not_count() -> None:
    document = project_plan_state(
        [evidence("a", "done"), event("plan", {"step_records": [RECORD]}, at=10)]
    )
    assert statuses(document) == ["pending"]


def test_evidence_for_a_repeated_id_goes_to_the_first() -> None:
    assert statuses(plan({"step_records": [RECORD, RECORD]}, evidence("a", "done"))) == [
        "done",
        "pending",
    ]


@pytest.mark.parametrize(
    "record", [{**RECORD, "status": "novel"}, {**RECORD, "status": None}, {**RECORD, "status": 1}]
)
def test_a_status_outside_the_vocabulary_reads_pending(record: dict[str, Any]) -> None:
    assert statuses(plan({"step_records": [record]})) == ["pending"]


def test_every_repair_is_told() -> None:
    told: list[str] = []
    projection = PlanProjection(told.append)
    records = ["x", {"kind": "novel", "status": "odd", "description": "d"}, RECORD, RECORD]
    projection.apply(event("plan", {"step_records": records}))
    projection.apply(evidence("a", "finished"))
    assert len(told) == 6
    clean: list[str] = []
    projection = PlanProjection(clean.append)
    projection.apply(event("plan", {"step_records": [RECORD]}))
    projection.apply(evidence("a", "done"))
    assert clean == []

from __future__ import annotations

import pytest
from fakes.sink import event_of

from cogcli.events import build
from cogcli.events.envelope import PHASES, Draft, from_json, to_json


def line(draft: Draft) -> dict[str, object]:
    return to_json(event_of(draft, 3, "0" * 26, "2026-01-01T00:00:00.000000Z"))


def test_keys_stand_in_the_order_of_the_format_and_absent_ones_are_left_out() -> None:
    assert list(line(build.run_aborting("run_1", reason="r", signal="SIGINT"))) == [
        "seq", "id", "timestamp", "episode_id", "run_id", "trace_id", "phase", "event_type", "agent_id", "payload",
        "evidence_ids", "prev",
    ]  # fmt: skip


def test_an_event_survives_its_line() -> None:
    draft = build.step_finished(
        "run_1",
        "s",
        ending="done",
        speaker="b",
        payload={"a": 1},
        metrics={"duration_ms": 1},
        caused_by="ev_1",
    )
    event = event_of(draft, 3, "0" * 26, "2026-01-01T00:00:00.000000Z")
    assert from_json(to_json(event)) == event._replace(evidence_ids=[]) or from_json(to_json(event)) == event


@pytest.mark.parametrize(
    ("ending", "event_type", "status", "result"),
    [
        ("done", "step.completed", "done", "ok"),
        ("failed", "step.failed", "failed", "error"),
        ("skipped", "step.skipped", "skipped", "skipped"),
        ("degraded", "step.degraded", "skipped", "skipped"),
        ("vetoed", "step.vetoed", "vetoed", "vetoed"),
    ],
)
def test_endings_decide_type_and_both_statuses(
    ending: str, event_type: str, status: str, result: str
) -> None:
    draft = build.step_finished("run_1", "s", ending=ending, speaker="b", payload={}, metrics=None)
    assert (draft.event_type, draft.payload["step_status"], draft.payload["result_status"]) == (
        event_type,
        status,
        result,
    )


def test_every_draft_has_a_phase_of_the_vocabulary() -> None:
    drafts = [
        build.run_paused("run_1", reason="r"),
        build.run_aborting("run_1", reason="r", signal="SIGINT"),
        build.step_started("run_1", "s", speaker="b", payload={}),
        build.step_answered("run_1", "s", output={}, attempts=[], speaker="b"),
        build.call_retried("run_1", "s", payload={}, speaker="b"),
        build.gate_decided("run_1", "s", payload={}, speaker="b"),
        build.plan_created("run_1", rationale="", step_records=[], steps=[]),
        build.state_projection("run_1", status="ok", outcomes={}, links={}, sha256="", size_bytes=0),
    ]
    assert {draft.phase for draft in drafts} <= set(PHASES)

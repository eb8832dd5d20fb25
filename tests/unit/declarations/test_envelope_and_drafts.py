from __future__ import annotations

from fakes.sink import event_of

from cogcli.declarations.envelope import Draft, draft_of, from_json, to_json
from cogcli.declarations.events import RunAborting, StepCompleted


def line(draft: Draft) -> dict[str, object]:
    return to_json(event_of(draft, 3, "0" * 26, "2026-01-01T00:00:00.000000Z"))


def test_keys_stand_in_the_order_of_the_format_and_absent_ones_are_left_out() -> None:
    assert list(line(draft_of(RunAborting(reason="r", signal="SIGINT"), "run_1"))) == [
        "seq", "id", "timestamp", "episode_id", "run_id", "trace_id", "phase", "event_type", "agent_id", "payload",
        "evidence_ids", "prev",
    ]  # fmt: skip


def test_an_event_survives_its_line() -> None:
    draft = draft_of(
        StepCompleted(step_id="s", uses="a.b"),
        "run_1",
        step_id="s",
        speaker="b",
        metrics={"duration_ms": 1},
        caused_by="ev_1",
    )
    event = event_of(draft, 3, "0" * 26, "2026-01-01T00:00:00.000000Z")
    assert (
        from_json(to_json(event)) == event._replace(evidence_ids=[])
        or from_json(to_json(event)) == event
    )


def test_type_phase_and_speaker_are_those_of_the_payload_unless_given() -> None:
    payload = RunAborting(reason="r", signal="SIGINT")
    draft = draft_of(payload, "run_1")
    assert (draft.event_type, draft.phase, draft.agent_id) == ("run.aborting", "runtime", "system")
    given = draft_of(payload, "run_1", phase="act", speaker="b")
    assert (given.phase, given.agent_id) == ("act", "b")

"""`state.json` is a pure fold over the log, and the same at any later date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sample_episode as sample
from hypothesis import given, settings
from hypothesis import strategies as st

from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.events import RunStarted, RunTerminated
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import Projection, project, project_bytes
from cogcli.episode.seal import persist_pending, seal
from cogcli.state.execution import snapshot
from cogcli.state.reducer import rebuild

STATE_KEYS = (
    "version", "state_schema_version", "episode", "goal", "beliefs", "plan", "memory", "outcomes", "links",
    "x-cognitive",
)  # fmt: skip
"""The keys of `state.json`, in order."""


def events_of(directory: Path) -> list[Event]:
    return [event for _, event in EventLog(directory)]


def projected(directory: Path) -> dict[str, Any]:
    return project(events_of(directory))


def test_the_document_has_the_seeds_keys_in_order(tmp_path: Path) -> None:
    assert tuple(projected(sample.sealed_episode(tmp_path))) == STATE_KEYS


def test_the_projection_of_a_sealed_log_is_its_state_document(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    assert project_bytes(events_of(directory)) == (directory / "state.json").read_bytes()


def test_projection_events_change_nothing(tmp_path: Path) -> None:
    events = events_of(sample.sealed_episode(tmp_path))
    assert events[-1].event_type == "run.state_projection"
    assert to_bytes(project(events)) == to_bytes(project(events[:-1]))


@given(st.integers(1, 8))
@settings(max_examples=8)
def test_every_prefix_projects_and_projecting_is_repeatable(length: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        events = events_of(sample.sealed_episode(Path(folder)))[:length]
    assert to_bytes(project(events)) == to_bytes(project(events))


def test_an_action_bears_the_timestamp_of_its_event(tmp_path: Path) -> None:
    directory = sample.sealed_episode(tmp_path)
    acts = [
        event.timestamp for event in events_of(directory) if event.event_type == "step.completed"
    ]
    assert [action["timestamp"] for action in projected(directory)["outcomes"]["actions"]] == acts


def test_the_start_is_that_of_the_start_event_even_after_a_pause(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    first = sample.started(journal)
    persist_pending(journal)
    journal.append(sample.raw_event(sample.RUN, "run.resumed", "runtime", {"reason": "approved"}))
    sample.terminated(journal)
    seal(journal)
    journal.close()
    assert projected(journal.directory)["episode"]["started_at"] == first.timestamp


def test_a_run_without_an_end_is_pending_and_links_neither_summary_nor_manifest(
    tmp_path: Path,
) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    persist_pending(journal)
    journal.close()
    document = projected(journal.directory)
    assert document["outcomes"]["status"] == "pending"
    assert document["links"] == {"events": "events.jsonl", "learn": "learn.jsonl"}
    assert document["outcomes"]["outputs"] == {}
    assert document["outcomes"]["error"] is None


def test_a_terminal_run_links_everything(tmp_path: Path) -> None:
    assert projected(sample.sealed_episode(tmp_path))["links"] == {
        "events": "events.jsonl",
        "learn": "learn.jsonl",
        "summary": "summary.json",
        "manifest": "manifest.json",
    }


@pytest.mark.parametrize("word", ["novel", "", None, 3])
def test_an_outcome_outside_the_vocabulary_reads_error(word: Any) -> None:
    told: list[str] = []
    projection = Projection(told.append)
    projection.apply(foreign("start", {"task": "t"}))
    projection.apply(foreign("terminate", {"status": word}))
    assert projection.result()["outcomes"]["status"] == "error"
    assert len(told) == 1


def foreign(phase: str, payload: Any, **rest: Any) -> Event:
    return Event(
        None, "x", "2024-01-15T10:30:00Z", "ep_a", None, None, phase, None, payload, **rest
    )


def test_beliefs_come_from_three_phases_and_are_clamped() -> None:
    beliefs = [{"statement": "s", "confidence": 7}, {"statement": "t", "confidence": -1}, {"statement": "u"},
               {"confidence": 1}, "x", {"statement": "v", "confidence": True}]  # fmt: skip
    document = project(
        [
            foreign("start", {}),
            *(foreign(phase, {"beliefs": beliefs}, agent_id="a") for phase in ("interpret", "act")),
        ]
    )
    assert [(b["statement"], b["confidence"], b["provenance"]) for b in document["beliefs"]] == [
        ("s", 1, "a"),
        ("t", 0, "a"),
    ]


def test_hypotheses_of_working_memory_are_beliefs_of_the_step_that_wrote_them(
    tmp_path: Path,
) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("a", "act", "A"), ("b", "act", "B"))
    first = [
        {"statement": "one", "confidence": 0.5, "provenance": "forged"},
        {"statement": "no confidence"},
    ]
    sample.ended(journal, "a", None, writes=[sample.written("working.hypotheses", first)])
    second = [{"statement": "two", "confidence": 0.25}]
    later = sample.ended(
        journal, "b", None, writes=[sample.written("working.hypotheses", second, "append")]
    )
    journal.close()
    beliefs = projected(journal.directory)["beliefs"]
    assert [(b["statement"], b["provenance"]) for b in beliefs] == [("one", "a"), ("two", "b")]
    assert beliefs[1]["timestamp"] == later.timestamp


def test_facts_are_the_small_values_of_targets_with_their_last_writer(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("a", "act", "A"), ("b", "act", "B"))
    sample.ended(
        journal,
        "a",
        None,
        writes=[
            sample.written("vars.z", 1),
            sample.written("vars.big", "x" * 1023),
            sample.written("working.artifacts.deep.inner", 1),
            sample.written("working.entities", []),
            sample.written("outputs.o", 1),
        ],
    )
    sample.ended(
        journal,
        "b",
        None,
        writes=[
            sample.written("vars.z", 2),
            sample.written("working.artifacts.deep", {"other": 1}),
        ],
    )
    journal.append(
        sample.raw_event(
            sample.RUN, "memory.kept", "memory", {"facts": [{"key": "a", "value": None}]}
        )
    )
    journal.close()
    facts = projected(journal.directory)["memory"]["facts"]
    assert [(fact["key"], fact["value"], fact["provenance"]) for fact in facts] == [
        ("vars.z", 2, "b"),
        ("working.artifacts.deep", {"other": 1}, "b"),
        ("a", None, "system"),
    ]


def test_notes_make_the_scratchpad_and_no_notes_make_none(tmp_path: Path) -> None:
    assert (
        projected(sample.sealed_episode(tmp_path))["memory"]["scratchpad"]
        == "3 breaking changes found"
    )
    assert "scratchpad" not in project([foreign("start", {})])["memory"]


def nested_run(tmp_path: Path) -> Path:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("outer", "act", "Nested"))
    intent = sample.began(
        journal, "outer", binding=None, capability=None, service=None, uses="skill:a.b"
    )
    journal.append(
        draft_of(
            RunStarted(
                using="runner",
                task="inner",
                skill={"id": "a.b", "version": "1.0.0"},
                inputs={},
                frame={},
                options={},
                seed=0,
                tags={},
                pins={},
                selection={},
                parent_run_id=sample.RUN,
            ),
            sample.CHILD,
            step_id="outer",
        )
    )
    inner = sample.began(journal, "outer/step", run_id=sample.CHILD)
    writes = [sample.written("vars.child", 1)]
    sample.ended(
        journal,
        "outer/step",
        inner,
        run_id=sample.CHILD,
        output={},
        writes=writes,
        result_artifacts=["x"],
    )
    journal.append(
        draft_of(
            RunTerminated(
                status="ok",
                status_reason=None,
                outputs={"child": 1},
                error=None,
                required_missing=[],
            ),
            sample.CHILD,
            step_id="outer",
        )
    )
    sample.ended(journal, "outer", intent, uses="skill:a.b", capability=None, tool=None, output={})
    sample.terminated(journal)
    seal(journal)
    journal.close()
    return journal.directory


def test_of_nested_runs_only_actions_count(tmp_path: Path) -> None:
    document = projected(nested_run(tmp_path))
    assert [action["step_id"] for action in document["outcomes"]["actions"]] == [
        "outer/step",
        "outer",
    ]
    assert document["memory"]["facts"] == []
    assert document["outcomes"]["artifacts"] == []
    assert document["outcomes"]["outputs"] == {"notes": "three features"}
    assert [step["id"] for step in document["plan"]["steps"]] == ["outer"]
    assert [step["step_id"] for step in document["x-cognitive"]["trace"]["steps"]] == ["outer"]


def test_rebuilding_gives_every_run_its_state(tmp_path: Path) -> None:
    directory = nested_run(tmp_path)
    states = rebuild(events_of(directory))
    assert states.root.run_id == sample.RUN
    assert list(states.children) == [sample.CHILD]
    assert states.children[sample.CHILD].vars == {"child": 1}
    assert snapshot(rebuild(events_of(directory)).root) == projected(directory)["x-cognitive"]
    with pytest.raises(ValueError, match="no run"):
        rebuild([])


def test_the_error_names_the_step_where_it_went_wrong(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("a", "act", "A"))
    sample.ended(
        journal, "a", None, ending="failed", error={"code": "call.timeout", "message": "late"}
    )
    sample.terminated(journal, "error", error={"code": "call.timeout", "message": "late"})
    journal.close()
    assert projected(journal.directory)["outcomes"]["error"] == {
        "code": "call.timeout",
        "message": "late",
        "step": "a",
    }


def test_excerpts_are_json_cut_at_200_characters(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.planned(journal, ("a", "act", "A"))
    sample.ended(journal, "a", sample.began(journal, "a"), output={"text": "é" * 300})
    journal.close()
    [action] = projected(journal.directory)["outcomes"]["actions"]
    assert action["output_excerpt"] == '{"text":"' + "é" * 191


def test_a_payload_the_reducer_cannot_take_changes_nothing_and_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    projection = Projection(told.append)
    start = sample.raw_event(sample.RUN, "run.started", "start", {"task": "t"})
    for draft in (start, sample.raw_event(sample.RUN, "step.completed", "act", {"writes": 5})):
        projection.apply(
            Event(
                0,
                "x",
                "2024-01-15T10:30:00Z",
                "ep_a",
                draft.run_id,
                None,
                draft.phase,
                draft.event_type,
                draft.payload,
            )
        )
    assert len(told) == 1
    assert projection.result()["x-cognitive"]["trace"]["steps"] == []

"""Every report of another tool's log tells the steps, actions, statuses and times that its projection has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import foreign_tool as tool

from cogcli.declarations.call_records import RunError, StepError
from cogcli.declarations.envelope import Event
from cogcli.declarations.reading import read_record
from cogcli.episode.foreign_log import events_of_state, for_reports
from cogcli.episode.history import History, history_of
from cogcli.episode.log_reader import EventLog
from cogcli.episode.projection import project
from cogcli.report import table, timeline
from cogcli.report.compare import compare, read_side
from cogcli.report.history_graph import graph_of
from cogcli.report.lineage import Lineage, targets
from cogcli.report.styled_text import UNICODE, plain_text
from cogcli.report.trace_export import trace_spans
from cogcli.report.tree import footer, tree

GOLDENS = Path(__file__).resolve().parents[2] / "episodes"


def events_of(lines: list[dict[str, Any]]) -> list[Event]:
    return [
        event for _, event in EventLog("".join(json.dumps(line) + "\n" for line in lines).encode())
    ]


def folded(events: list[Event]) -> History:
    log = for_reports(events)
    result = history_of(log.events)
    result.actions = log.actions
    return result


def statuses(rows: list[dict[str, Any]], name: str = "id") -> list[tuple[str, str]]:
    return [(row[name], row["status"]) for row in rows]


LOGS = {
    "records": events_of(tool.release_notes()),
    "labels": events_of(tool.labelled()),
    "paused": events_of(tool.paused()),
    **{
        name: [e for _, e in EventLog(GOLDENS / name)]
        for name in ("foreign-labels", "foreign-replanned", "seed-example")
    },
}


def same_as_projected(events: list[Event]) -> None:
    document = project(events)
    steps = statuses(document["plan"]["steps"])
    seen = folded(events)
    assert statuses(table.rows(seen), "step_id") == steps
    assert statuses([node._asdict() for node in graph_of(seen).nodes]) == steps
    assert set(statuses(timeline.rows(seen), "step_id")) <= set(steps)
    assert seen.actions == document["outcomes"]["actions"]
    assert seen.ms == document["outcomes"]["metrics"]["duration_ms"]
    assert seen.root is not None
    error = document["outcomes"]["error"]
    assert seen.root.error == (None if error is None else read_record(RunError, error))
    if seen.root.ended_at:
        assert seen.root.status == document["outcomes"]["status"]
    drawn = "\n".join(plain_text(line) for line in tree(seen, UNICODE, status="ok", width=None))
    assert all(step.rpartition("/")[2] in drawn for step, _ in steps)
    side = read_side("a", "ok", for_reports(events).events)
    assert compare(side, read_side("b", "ok", for_reports(events).events)).is_same
    assert [(step.id, step.status) for step in side.run.own] == steps
    trace_spans(for_reports(events).events)


@pytest.mark.parametrize("name", LOGS)
def test_reports_have_what_the_projection_has(name: str) -> None:
    same_as_projected(LOGS[name])


IDS = st.sampled_from(["step-1", "step-2", "a", "b/c", "other"])
STATUSES = st.sampled_from(
    ["pending", "running", "done", "skipped", "failed", "vetoed", "finished", 7]
)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"id": IDS}, optional={"status": STATUSES, "kind": st.sampled_from(["act", "x"])}
    ),
    max_size=3,
    unique_by=lambda record: record["id"],
)
PLANS = st.one_of(
    st.fixed_dictionaries(
        {"steps": st.lists(st.sampled_from(["act:Do", "plain", "odd:one", 7]), max_size=3)}
    ),
    st.fixed_dictionaries({"step_records": RECORDS}),
    st.just("none"),
)
WORDS = st.sampled_from(["ok", "error", "novel"])
ACTS = st.fixed_dictionaries(
    {},
    optional={
        "step_id": IDS, "step_status": STATUSES, "tool": st.just("t"), "action_id": st.just("x"), "outcome": WORDS,
        "message": st.just("m"), "error": st.sampled_from(["e", {"code": "c"}]), "duration_ms": st.integers(0, 9000),
        "result_artifacts": st.just(["a.md", 7]), "result_status": WORDS,
    },
)  # fmt: skip
METRICS = st.sampled_from(
    [
        None,
        {"duration_ms": 250},
        {"duration_ms": 1e300},
        {"started_at": tool.at(1), "completed_at": tool.at(3)},
        {"started_at": "never", "completed_at": 7},
    ]
)
STORIES = st.lists(
    st.one_of(
        st.tuples(st.just("plan"), PLANS, st.none()),
        st.tuples(st.just("act"), ACTS, METRICS),
        st.tuples(st.just("reflect"), ACTS, METRICS),
        st.tuples(st.just("start"), st.fixed_dictionaries({"task": st.just("t")}), st.none()),
        st.tuples(
            st.just("terminate"),
            st.fixed_dictionaries(
                {}, optional={"status": WORDS, "outcome": WORDS, "message": st.just("m")}
            ),
            METRICS,
        ),
    ),
    max_size=12,
)


@given(STORIES, st.booleans())
def test_whatever_the_log_reports_have_what_the_projection_has(
    story: list[tuple[str, Any, Any]], begun: bool
) -> None:
    lines = [tool.event(0, 0, "ep_x", "start" if begun else "observe", {"task": "t"})]
    for number, (phase, payload, metrics) in enumerate(story, 1):
        more = {} if metrics is None else {"metrics": metrics}
        lines.append(tool.event(number, number, "ep_x", phase, payload, **more))
    same_as_projected(events_of(lines))


# -- what a report adds ------------------------------------------------------------------------------------------------


def test_a_step_whose_end_alone_is_told_began_as_its_metrics_say() -> None:
    rows = {row["step_id"]: row for row in table.rows(folded(LOGS["records"]))}
    assert (rows["step_1"]["started_at"], rows["step_1"]["ms"]) == (tool.at(1.25), 150)
    assert (rows["step_2"]["started_at"], rows["step_2"]["ms"]) == (tool.at(1.5), 2500)
    assert (rows["step_3"]["started_at"], rows["step_3"]["ms"]) == (None, None)
    bars = {row["step_id"]: row for row in timeline.rows(folded(LOGS["records"]))}
    assert (bars["step_2"]["start_ms"], bars["step_2"]["ms"]) == (1500, 2500)


def test_a_duration_alone_leads_back_to_the_beginning() -> None:
    lines = [
        tool.event(1, 0, "e", "start", {}),
        tool.event(2, 0, "e", "plan", {"steps": ["act:x"]}),
        tool.event(
            3, 2, "e", "act", {"step_id": "step-1", "step_status": "done", "duration_ms": 1500}
        ),
    ]
    row = table.rows(folded(events_of(lines)))[0]
    assert (row["started_at"], row["ms"]) == ("2024-01-15T10:30:00.500000Z", 1500)


def test_between_running_and_done_lies_the_time() -> None:
    lines = [
        tool.event(1, 0, "e", "start", {}),
        tool.event(2, 0, "e", "plan", {"steps": ["act:x"]}),
        tool.event(3, 2, "e", "act", {"step_id": "step-1", "step_status": "running"}),
        tool.event(4, 5, "e", "act", {"step_id": "step-1", "step_status": "done"}),
    ]
    assert table.rows(folded(events_of(lines)))[0]["ms"] == 3000


def test_a_run_lasts_to_its_end_not_to_the_last_line() -> None:
    assert folded(LOGS["labels"]).ms == 10_000
    assert project(LOGS["labels"])["outcomes"]["metrics"]["duration_ms"] == 10_000


def test_words_of_its_own_are_read_where_the_seeds_are_absent() -> None:
    document = project(LOGS["labels"])
    assert document["outcomes"]["status"] == "error"
    assert document["outcomes"]["error"] == {"message": "could not write", "step": "step-4"}
    assert [action.get("result_status") for action in document["outcomes"]["actions"]] == [
        None, "ok", "ok", None, "error",
    ]  # fmt: skip
    root = folded(LOGS["labels"]).root
    assert root is not None
    assert root.steps["step-4"].error == read_record(StepError, {"message": "no room"})


def test_the_seeds_words_count_before_others() -> None:
    lines = [
        tool.event(1, 0, "e", "start", {}),
        tool.event(2, 1, "e", "act", {"tool": "t", "result_status": "error", "outcome": "ok"}),
        tool.event(
            3, 2, "e", "terminate", {"status": "ok", "outcome": "error", "message": "all is well"}
        ),
    ]
    outcomes = project(events_of(lines))["outcomes"]
    assert (outcomes["status"], outcomes["error"], outcomes["actions"][0]["result_status"]) == (
        "ok",
        None,
        "error",
    )


def test_the_tree_shows_actions_below_their_step_and_those_of_none_last() -> None:
    lines = [
        plain_text(line).rstrip()
        for line in tree(folded(LOGS["labels"]), UNICODE, status="error", width=None)
    ]
    assert [line.split()[1] for line in lines if line.strip()[0] in "✓✗·"][1:] == [
        "step-1", "thinker", "reader", "step-2", "step-4", "writer", "shell", "stray",
    ]  # fmt: skip
    assert plain_text(footer(folded(LOGS["labels"]), UNICODE)).startswith("5 actions")
    assert not any("None" in line for line in lines)


def test_what_a_step_made_is_what_it_wrote() -> None:
    events = list(for_reports(LOGS["records"]).events)
    found = targets(history_of(events), Lineage(events))
    assert [(target.name, [write.step for write in target.writes]) for target in found] == [
        ("working.artifacts.release_notes.md", ["step_2"])
    ]


def test_a_log_of_ours_is_left_as_it_is_and_read_one_by_one() -> None:
    ours = [event for _, event in EventLog(GOLDENS / "finished")]
    read: list[int] = []
    log = for_reports(read.append(n) or event for n, event in enumerate(ours))  # type: ignore[func-returns-value]
    assert read == [0]
    assert list(log.events) == ours
    assert log.actions == []


# -- a state alone -----------------------------------------------------------------------------------------------------


def test_a_state_without_its_log_has_its_steps_actions_and_outcome() -> None:
    state = project(LOGS["labels"])
    events = events_of_state(state)
    same_as_projected(events)
    again = project(events)
    assert again["plan"]["steps"] == state["plan"]["steps"]
    assert [a["id"] for a in again["outcomes"]["actions"]] == [
        a["id"] for a in state["outcomes"]["actions"]
    ]
    assert again["outcomes"]["status"] == "error"
    assert again["goal"] == state["goal"]


@pytest.mark.parametrize(
    "state", [{}, {"plan": [], "outcomes": 7}, {"plan": {"steps": 7}, "goal": None}]
)
def test_a_state_that_is_none_gives_a_log_all_the_same(state: dict[str, Any]) -> None:
    same_as_projected(events_of_state(state))

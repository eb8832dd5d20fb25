"""Which step wrote what, who read it, what was never written, and why."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.risk_review import DECLARED, Log, risk_review

from cogcli.episode.history import history_of
from cogcli.report.lineage import (
    NOTHING,
    DeclaredPlaces,
    Lineage,
    declared_places,
    lineage,
    overlap,
    rows,
    targets,
)
from cogcli.report.styled_text import ASCII, UNICODE, plain_text, width
from cogcli.report.why import explainable_places, find_cause_chains, why_lines


def shown(
    events: list[Any], declared: DeclaredPlaces = DECLARED, columns: int | None = 88
) -> list[str]:
    found = targets(history_of(events), Lineage(events), declared)
    return [plain_text(line) for line in lineage(found, UNICODE, width=columns)]


def told(
    reference: str, events: list[Any] | None = None, declared: DeclaredPlaces = DECLARED
) -> list[str]:
    log = risk_review() if events is None else events
    return [
        plain_text(line)
        for line in why_lines(
            find_cause_chains(reference, history_of(log), Lineage(log), declared), UNICODE
        )
    ]


def test_writers_readers_and_what_was_never_written() -> None:
    assert shown(risk_review()) == [
        "vars.html         written by fetch                     read by clean",
        "vars.text         written by clean                     read by risks, entities",
        "working.risks     written by risks (append, 7 items)   read by score",
        "working.entities  written by entities (3 items)        read by score",
        "vars.score        never written: score failed",
        "outputs.report    never written: report was skipped    required ✗",
    ]


def test_without_declarations_only_missing_outputs_are_known_as_never_written() -> None:
    assert (
        shown(risk_review(), NOTHING)[-1].split()
        == "outputs.report never written: no step wrote it required ✗".split()
    )


def test_no_row_exceeds_the_width() -> None:
    found = targets(history_of(risk_review()), Lineage(risk_review()), DECLARED)
    for columns in range(20, 100):
        assert all(width(line) <= columns for line in lineage(found, UNICODE, width=columns))


def test_rows_hold_the_same_for_programs() -> None:
    found = rows(targets(history_of(risk_review()), Lineage(risk_review()), DECLARED))
    assert found[2] == {
        "target": "working.risks", "written_by": ["risks (append, 7 items)"], "never": None, "read_by": ["score"],
        "required": None,
    }  # fmt: skip
    assert (found[-1]["never"], found[-1]["required"]) == (
        "never written: report was skipped",
        True,
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("vars.a", "vars.a", True), ("vars.a.b", "vars.a", True), ("vars.a", "vars.a.b", True),
        ("vars.a[0]", "vars.a", True), ("vars.ab", "vars.a", False), ("vars.a", "working.a", False),
    ],
)  # fmt: skip
def test_places_overlap_by_whole_names(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is expected


def test_a_missing_output_leads_back_to_what_the_failed_step_was_given() -> None:
    assert told("outputs.report") == [
        "outputs.report ← report (skipped) ← score (failed) ← working.entities ← entities"
    ]


def test_a_value_leads_back_to_the_inputs_of_the_run() -> None:
    assert told("working.risks") == [
        "working.risks ← risks ← vars.text ← clean ← vars.html ← fetch ← inputs.url"
    ]


def test_several_causes_stand_side_by_side_and_each_is_led_on_once() -> None:
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
    log.ended(1, "left", 1, [("vars.l", "overwrite", 1)], ["inputs.x"])
    log.ended(2, "right", 1, [("vars.r", "overwrite", 1)], ["inputs.x"])
    log.ended(3, "join", 1, [("outputs.j", "overwrite", 1)], ["vars.l", "vars.r"])
    assert told("outputs.j", log.events, NOTHING) == [
        "outputs.j ← join ← vars.l, vars.r",
        "vars.l ← left ← inputs.x",
        "vars.r ← right ← inputs.x",
    ]


def test_a_value_that_was_overwritten_later_is_told_as_it_was_when_it_was_read() -> None:
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
    log.ended(1, "first", 1, [("vars.x", "overwrite", 1)], [])
    log.ended(2, "second", 1, [("vars.y", "overwrite", 1)], ["vars.x"])
    log.ended(3, "third", 1, [("vars.x", "overwrite", 2)], ["vars.y"])
    assert told("vars.y", log.events, NOTHING) == ["vars.y ← second ← vars.x ← first"]
    assert told("vars.x", log.events, NOTHING) == ["vars.x ← third ← vars.y ← second ← vars.x"]


def test_everybody_who_appended_is_a_cause() -> None:
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
    log.ended(1, "a", 1, [("working.notes", "append", [1])], ["inputs.x"])
    log.ended(2, "b", 1, [("working.notes", "append", [2])], ["inputs.x"])
    assert told("working.notes", log.events, NOTHING) == ["working.notes ← a, b ← inputs.x"]


def test_a_place_that_nobody_declares_was_never_written() -> None:
    assert told("outputs.other") == ["outputs.other ← never written"]


def test_the_name_of_a_loop_is_told_as_of_the_loop() -> None:
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
    log.ended(1, "each", 1, [("outputs.all", "overwrite", [1])], ["inputs.list", "item.name", "n"])
    for place in ("item.name", "item", "n"):
        assert told(place, log.events, NOTHING) == [f"{place} ← the loop of each"]
    assert told("outputs.all", log.events, NOTHING)[1:] == [
        "item.name ← the loop of each",
        "n ← the loop of each",
    ]


def test_what_can_be_asked_about_is_every_target_and_every_place_read() -> None:
    log = risk_review()
    assert {"inputs.url", "vars.html", "outputs.report"} <= set(
        explainable_places(Lineage(log), targets(history_of(log), Lineage(log), DECLARED))
    )


def test_arrows_are_ascii_where_they_must_be() -> None:
    log = risk_review()
    (line,) = why_lines(
        find_cause_chains("vars.html", history_of(log), Lineage(log), DECLARED), ASCII
    )
    assert plain_text(line) == "vars.html <- fetch <- inputs.url"


def test_what_a_skill_declares_is_read_from_the_specs_of_the_episode() -> None:
    spec = {
        "steps": [
            {"id": "a", "uses": "x.y", "output": {"text": "outputs.text"}},
            {"id": "b", "uses": "x.y"},
        ],
        "outputs": {"text": {"type": "string", "required": True}, "more": {"type": "string"}},
    }
    document = {"specs": {"skill:a.b": {"spec": spec}}}
    assert declared_places(document, "a.b") == DeclaredPlaces(
        {"a": ["outputs.text"], "b": []}, frozenset(["text"])
    )
    for odd in (None, [], {"specs": 3}, {"specs": {"skill:a.b": {"spec": {"steps": 1}}}}):
        assert declared_places(odd, "a.b") == NOTHING


def test_payloads_of_any_shape_are_survived() -> None:
    log = Log()
    for payload in (
        {},
        {"step_id": 3},
        {"step_id": "a", "step_status": 1, "writes": [3, {}], "reads": "x"},
    ):
        log.add(0, "step.completed", "act", payload)
    log.events.append(log.events[0]._replace(payload=[]))  # type: ignore[arg-type]
    assert shown(log.events, NOTHING) == []

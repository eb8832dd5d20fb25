"""What is different between two episodes, and what is not."""

from __future__ import annotations

from typing import Any

from fakes.risk_review import Log, risk_review

from cogcli.declarations.envelope import Event
from cogcli.report.compare import ComparedEpisode, compare, comparison_object, lines, read_side
from cogcli.report.styled_text import UNICODE, plain_text, width


def summary_run(*, binding: str, fails: bool, ms: int, max_words: Any = 60) -> list[Event]:
    """`text.summarize` as in the screens: three steps, the second may fail."""
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "text.summarize", "version": "1.2.0"},
                                        "inputs": {"max_words": max_words}})  # fmt: skip
    names = ("clean", "summarize", "verify")
    log.add(
        0,
        "plan.created",
        "plan",
        {"step_records": [{"id": name, "depends_on": []} for name in names]},
    )
    log.ended(1, "clean", 18, [], [])
    begun = {
        "step_id": "summarize",
        "step_status": "running",
        "uses": "text.content.summarize",
        "binding": binding,
    }
    log.add(1, "step.started", "act", begun)
    if fails:
        log.add(
            2,
            "step.failed",
            "act",
            {"step_id": "summarize", "step_status": "failed", "error": {"code": "x.y"}},
        )
        log.add(
            2,
            "step.skipped",
            "act",
            {"step_id": "verify", "step_status": "skipped", "reason": "dependency"},
        )
    else:
        log.ended(2, "summarize", 18, [], [])
        log.ended(3, "verify", 18, [], [])
    outputs = (
        {}
        if fails
        else {"summary": "Release 1.2 adds CSV export and fixes the login loop", "word_count": 10}
    )
    end = {"status": "error" if fails else "ok", "outputs": outputs}
    log.add(ms, "run.terminated", "terminate", end, metrics={"duration_ms": ms})
    return log.events


GOOD = read_side("ep_a", "ok", summary_run(binding="openapi_summarizer_v1", fails=False, ms=2070))
BAD = read_side("ep_b", "error", summary_run(binding="openapi_summarizer", fails=True, ms=1250))


def shown(columns: int | None = None) -> list[str]:
    return [plain_text(line) for line in lines(compare(GOOD, BAD), UNICODE, width=columns)]


def test_status_bindings_steps_and_outputs_are_told() -> None:
    assert shown() == [
        "text.summarize 1.2.0    ok → error    2.07s → 1.25s",
        "  bindings  text.content.summarize  openapi_summarizer_v1 → openapi_summarizer",
        "  steps     = clean   ~ summarize done → failed   ~ verify done → skipped",
        '  outputs   - summary "Release 1.2 adds …"   - word_count 10',
    ]


def test_no_row_exceeds_the_width_and_differing_steps_come_first() -> None:
    for columns in range(20, 100):
        assert all(
            width(line) <= columns for line in lines(compare(GOOD, BAD), UNICODE, width=columns)
        )
    assert "~ summarize done → failed" in shown(60)[2]


def test_an_episode_does_not_differ_from_itself_nor_by_time() -> None:
    later = read_side(
        "ep_c", "ok", summary_run(binding="openapi_summarizer_v1", fails=False, ms=9000)
    )
    assert compare(GOOD, later).is_same
    assert not compare(GOOD, BAD).is_same
    assert (
        plain_text(lines(compare(GOOD, later), UNICODE, width=None)[-1])
        == "  nothing differs but ids and times"
    )


def test_true_is_not_one() -> None:
    one, other = (
        read_side("ep_a", "ok", summary_run(binding="b", fails=False, ms=1, max_words=value))
        for value in (1, True)
    )
    assert not compare(one, other).is_same
    assert "  inputs    ~ max_words 1 → true" in [
        plain_text(line) for line in lines(compare(one, other), UNICODE, width=None)
    ]


def test_a_step_that_gave_something_else_is_told_as_such() -> None:
    events = summary_run(binding="openapi_summarizer_v1", fails=False, ms=2070)
    changed = [
        event._replace(payload={**event.payload, "output": {"n": 2}}) if event.payload.get("step_id") == "clean"
        else event for event in events
    ]  # fmt: skip
    difference = compare(GOOD, read_side("ep_c", "ok", changed))
    assert "~ clean other output" in plain_text(lines(difference, UNICODE, width=None)[1])
    assert comparison_object(difference)["steps"] == [
        {"name": "clean", "change": "changed", "before": "done", "after": "done", "what": "output"}
    ]


def test_other_skills_and_empty_logs_can_be_compared() -> None:
    other = read_side("ep_c", "error", risk_review())
    assert "text.summarize 1.2.0 → risk.review 0.4.1" in plain_text(
        lines(compare(GOOD, other), UNICODE, width=None)[0]
    )
    nothing = read_side("ep_d", "interrupted", [])
    assert (
        plain_text(lines(compare(nothing, nothing), UNICODE, width=None)[0])
        == "no skill    interrupted    ? → ?"
    )


def test_programs_get_what_differs_by_area() -> None:
    body = comparison_object(compare(GOOD, BAD))
    assert (body["same"], body["status"], body["episodes"]) == (
        False,
        ["ok", "error"],
        ["ep_a", "ep_b"],
    )
    assert body["bindings"] == [
        {"name": "text.content.summarize", "change": "changed", "before": "openapi_summarizer_v1",
         "after": "openapi_summarizer"}
    ]  # fmt: skip
    assert [change["change"] for change in body["outputs"]] == ["removed", "removed"]
    assert body["inputs"] == []


def test_results_taken_over_are_no_difference_in_inputs_or_bindings() -> None:
    def side(*, reused: bool) -> ComparedEpisode:
        log = Log()
        log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
        if not reused:
            begun = {
                "step_id": "s",
                "step_status": "running",
                "uses": "c.d",
                "binding": "x",
                "input": {"a": 1},
            }
            log.add(1, "step.started", "act", begun)
        done = {"step_id": "s", "step_status": "done", "uses": "c.d", "output": {"b": 2}}
        log.add(
            2,
            "step.completed",
            "act",
            done | ({"reused_from": {"episode": "ep_a"}} if reused else {}),
        )
        return read_side("ep_a", "ok", log.events)

    assert compare(side(reused=False), side(reused=True)).is_same
    assert compare(side(reused=True), side(reused=False)).is_same

"""Logs, traces and budgets: what lines and events state, folded; what is unknown stays unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.growth import assert_linear

from cogcli.api import Project
from cogcli.official.budget import estimate_budget
from cogcli.official.logs import MAX_LOG_CHARACTERS, parse_log
from cogcli.official.trace import analyze_trace, checksum, monitor_trace
from cogcli.sdk import Refused

ROOT = Path(__file__).parents[3]


def refused(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(Refused) as found:
        call(*args, **kwargs)
    return found.value.reason


def only(text: str) -> dict[str, Any]:
    found: Any = parse_log(text)
    assert (len(found["events"]), found["skipped"]) == (1, 0), found
    event: dict[str, Any] = found["events"][0]
    return event


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "2026-03-01T10:00:00Z INFO started",
            {"time": "2026-03-01T10:00:00Z", "level": "info", "message": "started"},
        ),
        (
            "2026-03-01 10:00:00 [WARN] db: slow",
            {"level": "warning", "source": "db", "message": "slow"},
        ),
        ("[2026-03-01 10:00:00] no level here", {"format": "iso", "message": "no level here"}),
        ("2026-03-01T12:00:00+02:00 ERROR x", {"time": "2026-03-01T10:00:00Z", "level": "error"}),
        ("2026-03-01 10:00 - app - CRITICAL - down", {"level": "critical", "message": "down"}),
        ("2026-03-01 10:00:00 - app - error - down", {"level": "error", "message": "down"}),
        ("2026-03-01 10:00:00 | app | warning | slow", {"level": "warning", "message": "slow"}),
        (
            "2026-03-01 10:00:00 sync failed, 3 errors: ERROR left",
            {"level": "error", "message": "left"},
        ),
        (
            "Mar  1 10:00:07 h sshd[12]: error: no key",
            {"source": "sshd", "host": "h", "level": "error"},
        ),
        ("Mar  1 10:00:07 h cron: job done", {"message": "job done", "time": "Mar  1 10:00:07"}),
        (
            "<3>1 2026-03-01T10:00:00Z h app 7 - - lost",
            {"level": "error", "source": "app", "message": "lost"},
        ),
        (
            '10.0.0.1 - - [01/Mar/2026:10:00:00 +0100] "GET /a HTTP/1.1" 503 12',
            {
                "level": "error",
                "time": "2026-03-01T09:00:00Z",
                "fields": {"status": 503, "bytes": 12},
            },
        ),
        (
            '{"ts": "2026-03-01T10:00:00", "lvl": "warn", "msg": "m", "n": 3}',
            {"level": "warning", "fields": {"n": 3}},
        ),
        ('{"msg": "untimed"}', {"message": "untimed", "format": "json"}),
    ],
)
def test_a_line_of_a_known_form_is_an_event(line: str, expected: dict[str, Any]) -> None:
    event = only(line)
    assert {name: event.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "line",
    [
        "hello",
        "2026-13-01 10:00:00 x",
        "Foo 31 10:00:00 h a: b",
        "{not json}",
        '{"n": NaN}',
        '{"n": 1e999}',
        "[1]",
        "1.2.3",
    ],
)
def test_a_line_in_no_form_is_skipped_and_counted(line: str) -> None:
    found = parse_log(line)
    assert (found["events"], found["skipped"]) == ([], 1)


@pytest.mark.parametrize(
    "said",
    [
        "no error was found",
        "status half-installed libgpg-error-dev:amd64 <none> 1.46-1",
        "status installed git-error:all 0.9",
        "opened /var/log/ERROR.txt",
        "GET /fatal/reports",
        "panic-free since 1.2",
    ],
)
@pytest.mark.parametrize("head", ["Mar  1 10:00:07 h cron: ", "2026-03-01 10:00:07 "])
def test_a_level_is_not_read_out_of_a_sentence_or_a_name(head: str, said: str) -> None:
    event = only(head + said)
    assert (event.get("level"), event["message"]) == (None, said)


def test_a_traceback_alone_is_an_event_of_its_own() -> None:
    event = only("Traceback (most recent call last):\n  File 'a', line 1\nKeyError: 'x'")
    assert (event["level"], event["exception"], event["exception_message"]) == (
        "error",
        "KeyError",
        "'x'",
    )


def test_after_a_traceback_the_next_line_is_read_as_itself() -> None:
    found: Any = parse_log(
        "2026-03-01 10:00:00 x\nTraceback (most recent call last):\n  a\nValueError\n2026-03-01 10:00:01 y"
    )
    assert [event["message"] for event in found["events"]] == ["x", "y"]


def test_frames_of_other_languages_belong_to_their_event() -> None:
    event = only("2026-03-01 10:00:00 ERROR a: b\n\tat x.y(Z.java:3)\nCaused by: q\n\tat p")
    assert event["detail"].count("\n") == 2


@pytest.fixture(scope="module")
def run_events(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    runs = tmp_path_factory.mktemp("runs")
    run = Project(ROOT, runs_dir=runs).run(
        "text.brief", {"text": "The harbour opens at six. Ships wait in the bay."}
    )
    lines = (run.episode.directory / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def lines(minute: int, count: int, level: str, text: str = "m") -> str:
    return "".join(f"2026-03-01 10:{minute:02}:{n:02} {level} {text} {n}\n" for n in range(count))


def test_a_burst_is_a_window_of_many_errors() -> None:
    log = lines(0, 4, "INFO") + lines(6, 1, "ERROR") + lines(31, 9, "ERROR", "card")
    found: Any = parse_log(log, window_minutes=5)
    assert [(w["start"][-5:], w["events"], w["errors"], w["burst"]) for w in found["timeline"]] == [
        ("10:00", 4, 0, False),
        ("10:05", 1, 1, False),
        ("10:30", 9, 9, True),
    ]
    assert found["first_fault"]["message"] == "m 0"
    assert [(fault["text"], fault["count"], fault["severity"]) for fault in found["faults"]] == [
        ("card 0", 9, "medium"),
        ("m 0", 1, "medium"),
    ]


def test_the_first_fault_is_the_earliest_not_the_first_line() -> None:
    found: Any = parse_log(lines(9, 1, "ERROR", "late") + lines(1, 1, "ERROR", "early"))
    assert found["first_fault"]["message"] == "early 0"
    assert parse_log(lines(1, 2, "INFO"))["first_fault"] == {}


def test_events_beyond_the_limit_are_counted() -> None:
    found: Any = parse_log(lines(0, 9, "INFO"), max_events=2)
    assert (len(found["events"]), found["truncated"], found["counts"]["events"]) == (2, True, 9)


PARTS = st.sampled_from(
    ["2026-03-01 10:00:00 ERROR a: b", "Mar  1 10:00:07 h c: d", '{"msg": "x"}', "Traceback (most recent call last):",
     "  in", "ValueError: x", "noise", "", "<5>Mar  1 10:00:07 h c: d", "\x00", "\u202e", '{"level": 3, "time": 7}']
)  # fmt: skip


@given(st.lists(PARTS, max_size=15))
def test_every_line_is_an_event_part_of_one_or_skipped(parts: list[str]) -> None:
    found: Any = parse_log("\n".join(parts))
    details = sum(len(event.get("detail", "").splitlines()) for event in found["events"])
    alone = sum(event["format"] == "traceback" for event in found["events"])
    assert len(found["events"]) - alone + details + found["skipped"] >= sum(
        1 for part in parts if part.strip("\x00")
    )
    assert json.dumps(found) == json.dumps(parse_log("\n".join(parts)))
    assert [event["line"] for event in found["events"]] == sorted(
        event["line"] for event in found["events"]
    )


@pytest.mark.sampled(32)
@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    ["x\n", "a", "[", "2026-03-01 10:00:00 ", "Mar  1 10:00:07 h c: d\n", "\tx\n", '"', "<1"],
)
def test_a_log_of_eight_mebi_is_read(part: str) -> None:
    assert_linear(lambda size: parse_log(part * (size // len(part))), MAX_LOG_CHARACTERS)


def test_a_longer_log_or_no_window_is_refused() -> None:
    assert refused(parse_log, "x" * (MAX_LOG_CHARACTERS + 1)) == "too-large"
    assert refused(parse_log, "x", window_minutes=0) == "bad-data"


EVENTS = st.lists(
    st.one_of(
        st.builds(
            lambda kind, step, ms: {
                "event_type": kind,
                "step_id": step,
                "payload": {"latency_ms": ms},
                "run_id": "r",
            },
            st.sampled_from(
                ["step.started", "step.completed", "step.failed", "call.retried", "step.vetoed"]
            ),
            st.sampled_from("abc"),
            st.integers(0, 99),
        ),
        st.sampled_from(
            [
                {"type": "assumption", "text": "the sea is calm"},
                {
                    "event_type": "gate.decided",
                    "step_id": "a",
                    "payload": {"decision": "veto", "gate": "g"},
                },
                {"event_type": "x", "payload": {"confidence": 0.5, "alternatives": ["p", "q"]}},
                {
                    "event_type": "plan.created",
                    "payload": {"step_records": [{"id": "b", "depends_on": ["a"]}]},
                },
                3,
                None,
                {},
            ]
        ),
    ),
    max_size=20,
)


@settings(max_examples=80)
@given(EVENTS, st.integers(0, 20))
def test_folding_in_parts_gives_the_same_state(events: list[object], cut: int) -> None:
    whole: Any = analyze_trace("g", list(events), trace_session_id="s")
    first: Any = analyze_trace("g", events[:cut], trace_session_id="s")
    second: Any = analyze_trace("g", events[cut:], trace_state=first["updated_trace_state"])
    for name in (
        "updated_trace_state",
        "state_checksum",
        "decision_graph",
        "summary",
        "risk_candidates",
    ):
        assert second[name] == whole[name]
    assert whole["state_checksum"] == checksum(json.loads(json.dumps(whole["updated_trace_state"])))


def test_what_events_state_is_handed_on_as_it_is() -> None:
    found: Any = analyze_trace(
        "g",
        [
            {"type": "assumption", "text": "the sea is calm"},
            {
                "event_type": "x",
                "step_id": "a",
                "payload": {"confidence": 0.5, "alternatives": ["p", "q"]},
            },
            {"event_type": "x", "payload": {"confidence": 0.7}},
            {"event_type": "x", "payload": {"confidence": 7}},
        ],
    )
    assert found["assumptions"] == [{"event": 0, "statement": "the sea is calm"}]
    assert found["alternative_paths"] == [{"event": 1, "step": "a", "paths": ["p", "q"]}]
    assert found["confidence"] == 0.6


def test_without_a_stated_confidence_there_is_none() -> None:
    assert "confidence" not in analyze_trace(
        "g", [{"event_type": "step.completed", "step_id": "a"}]
    )


def test_a_session_is_given_shared_or_made_of_the_content() -> None:
    assert analyze_trace("g", [{"run_id": "r"}], trace_session_id="s")["trace_session_id"] == "s"
    assert analyze_trace("g", [3, {"run_id": "r", "trace_id": "t"}])["trace_session_id"] == "t"
    made = analyze_trace("g", [])["trace_session_id"]
    assert (
        made
        == analyze_trace("g", [])["trace_session_id"]
        != analyze_trace("h", [])["trace_session_id"]
    )


def test_replace_forgets_the_earlier_state() -> None:
    state: Any = analyze_trace("g", [{"event_type": "x"}])["updated_trace_state"]
    after: Any = analyze_trace("g", [], trace_state=state, state_mode="replace")[
        "updated_trace_state"
    ]
    assert after["events"] == 0


STATE: Any = analyze_trace("g", [])["updated_trace_state"]


def test_only_the_views_wanted_are_given() -> None:
    found = analyze_trace("g", [], output_views=["summary"])
    assert {"decision_graph", "assumptions"}.isdisjoint(found)
    assert "summary" in found


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"state_mode": "guess"}, "unsupported"),
        ({"mode": "deep"}, "unsupported"),
        ({"output_views": ["thoughts"]}, "unsupported"),
        ({"trace_state": {"version": "0"}}, "unsupported"),
        ({"trace_state": {"version": "1", "steps": 3}}, "unsupported"),
        ({"trace_state": STATE | {"steps": {"a": {}}}}, "unsupported"),
        ({"trace_state": STATE | {"events": "many"}}, "unsupported"),
        ({"thresholds": {"max_moods": 3}}, "bad-data"),
        ({"thresholds": {"max_failed": "many"}}, "bad-data"),
    ],
)
def test_what_is_not_known_is_refused(options: dict[str, Any], reason: str) -> None:
    assert refused(analyze_trace, "g", [{}], **options) == reason


def test_the_events_of_an_episode_are_read(run_events: list[Any]) -> None:
    found: Any = analyze_trace("brief", run_events)
    steps = found["updated_trace_state"]["steps"]
    assert {step["status"] for step in steps.values()} == {"done"}
    assert steps["summarize"]["uses"] == "text.content.summarize"
    assert {"from": "normalize", "to": "summarize"} in found["decision_graph"]["edges"]
    assert found["trace_session_id"] == run_events[0]["trace_id"]
    assert found["risk_candidates"] == []
    monitored = monitor_trace(found["updated_trace_state"])
    assert (monitored["status"], monitored["metrics"]["steps"]) == ("ok", len(steps))  # type: ignore[index]


@pytest.mark.parametrize(
    ("trace", "thresholds", "status", "flags"),
    [
        ({"steps": [{"status": "done", "latency_ms": 5}]}, {}, "ok", []),
        ({"steps": [{"status": "failed"}]}, {}, "warning", ["failed"]),
        ({"steps": [{"status": "failed"}]}, {"max_failed": 1}, "warning", ["failed"]),
        ({"steps": [{"status": "failed"}]}, {"max_failed": 0}, "alert", ["failed"]),
        ({"steps": {"a": {"status": "running"}}}, {}, "warning", ["open"]),
        ({"metrics": {"elapsed_ms": 90, "step_count": 2}}, {"max_elapsed_ms": 80}, "alert", []),
        (
            {"steps": {"a": {"status": "done", "retries": 2}}},
            {"max_retries": 2},
            "warning",
            ["retries"],
        ),
    ],
)
def test_a_status_follows_the_figures(
    trace: Any, thresholds: Any, status: str, flags: list[str]
) -> None:
    found = monitor_trace(trace, thresholds)
    assert (found["status"], found["risk_flags"]) == (status, flags)


@pytest.mark.parametrize("trace", [{}, {"steps": []}, {"steps": 3, "metrics": {"note": "x"}}])
def test_a_trace_without_figures_is_refused(trace: Any) -> None:
    assert refused(monitor_trace, trace) == "no-evidence"


COSTS = st.lists(st.one_of(st.none(), st.integers(0, 1000)), min_size=1, max_size=8)


@given(COSTS)
def test_the_cost_is_the_sum_of_what_is_known(costs: list[int | None]) -> None:
    plan = {
        "steps": [
            {"id": str(n), **({} if cost is None else {"cost": cost})}
            for n, cost in enumerate(costs)
        ]
    }
    known = [cost for cost in costs if cost is not None]
    if not known:
        assert refused(estimate_budget, plan) == "no-evidence"
        return
    found: Any = estimate_budget(plan, {"max_cost": sum(known)})
    assert found["estimated_cost"] == sum(known)
    unknown = [entry["step"] for entry in found["unknown"] if entry["figure"] == "cost"]
    assert unknown == [str(n) for n, cost in enumerate(costs) if cost is None]
    assert found.get("within_budget") is (True if len(known) == len(costs) else None)
    if sum(known):
        assert estimate_budget(plan, {"max_cost": sum(known) - 1})["within_budget"] is False


def timed(*steps: tuple[str, int, list[str] | None]) -> dict[str, Any]:
    entries = [
        {"id": s, "cost": 1, "duration_ms": ms, **({} if d is None else {"depends_on": d})}
        for s, ms, d in steps
    ]
    return {"steps": entries}


@pytest.mark.parametrize(
    ("plan", "duration"),
    [
        (timed(("a", 3, None), ("b", 4, None)), 7),
        (timed(("a", 3, []), ("b", 4, [])), 4),
        (timed(("a", 3, []), ("b", 4, []), ("c", 5, ["a"])), 8),
        (timed(("c", 5, ["a"]), ("a", 3, []), ("b", 9, [])), 9),
    ],
)
def test_a_plan_takes_its_longest_path(plan: Any, duration: int) -> None:
    assert estimate_budget(plan)["estimated_duration_ms"] == duration


def test_own_episodes_say_how_long_a_step_takes() -> None:
    history = [
        {"event_type": "step.completed", "payload": {"uses": "a.b", "latency_ms": ms}}
        for ms in (5, 900, 7)
    ]
    plan = {"steps": [{"id": "x", "uses": "a.b", "cost": 1}], "history": history}
    assert estimate_budget(plan)["estimated_duration_ms"] == 7


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ({}, "no-evidence"),
        ({"steps": []}, "no-evidence"),
        ({"steps": [3]}, "bad-data"),
        ({"steps": [{"cost": 1}, 3]}, "bad-data"),
        ({"steps": [{"cost": -1}]}, "bad-data"),
        ({"steps": [{"cost": "much"}]}, "bad-data"),
        ({"steps": [{"cost": 10**400}]}, "bad-data"),
        ({"steps": [{"id": "a", "cost": 1}, {"id": "a", "cost": 1}]}, "bad-data"),
        (timed(("a", 1, ["b"]), ("b", 1, ["a"])), "bad-data"),
        (timed(("a", 1, ["nowhere"])), "bad-data"),
    ],
)
def test_a_plan_that_cannot_be_added_up_is_refused(plan: Any, reason: str) -> None:
    assert refused(estimate_budget, plan) == reason


LOG = Path("/var/log/dpkg.log")


@pytest.mark.skipif(not LOG.is_file(), reason=f"no {LOG} here")
def test_a_log_of_a_real_machine_is_read() -> None:
    found: Any = parse_log(LOG.read_text(encoding="utf-8", errors="replace")[:1_000_000])
    assert found["counts"]["formats"].keys() == {"iso"}
    assert found["skipped"] == 0

"""A log as spans: what they are called, where they hang, when they were, what they keep to themselves."""

from __future__ import annotations

import json
from typing import Any

from fakes.risk_review import Log, risk_review

from cogcli.base.canonical import span_of
from cogcli.declarations.envelope import Event
from cogcli.episode.log_reader import event_of
from cogcli.report.chrome import assign_lanes, chrome
from cogcli.report.otlp import otlp
from cogcli.report.trace_export import trace_spans
from cogcli.report.trace_spans import Trace, TraceSpan

START = 1795215480000000
"""The start of the log in microseconds: 2026-11-20T22:58:00Z."""


def called(
    attempts: list[dict[str, Any]], *, tool: str = "openapi:notes", repeats: int = 0
) -> Trace:
    """The trace of one step that made these attempts between 100 and 900 ms."""
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
    log.add(
        100,
        "step.started",
        "act",
        {"step_id": "s", "step_status": "running", "uses": "x.y"},
        step_id="s",
    )
    for number in range(repeats):
        payload = {"step_id": "s", "attempt": number + 2, "reason": "repeat", "wait_ms": 50}
        log.add(400 + number, "call.retried", "act", payload, step_id="s")
    closing = {
        "step_id": "s",
        "step_status": "done",
        "uses": "x.y",
        "tool": tool,
        "attempts": attempts,
    }
    log.add(900, "step.completed", "act", closing, step_id="s")
    return trace_spans(log.events)


def named(trace: Trace) -> dict[str, TraceSpan]:
    return {span.name: span for span in trace.spans}


def test_runs_and_steps_are_spans_that_hang_where_they_ran() -> None:
    spans = named(trace_spans(risk_review()))
    root, risks = spans["invoke_workflow risk.review"], spans["execute_tool skill:analysis.risks"]
    assert root.parent == ""
    assert risks.parent == root.id
    assert spans["invoke_workflow analysis.risks"].parent == risks.id
    assert spans["execute_tool x.y"].parent == spans["invoke_workflow analysis.risks"].id
    assert (root.start, root.end) == (START, START + 2_270_000)
    assert risks.end - risks.start == 1_630_000


def test_ids_follow_from_the_opening_event_and_the_trace_id_stays() -> None:
    trace = trace_spans(risk_review())
    assert trace.id == "91be07d4" * 4
    assert "cogcli.trace.label" not in trace.resource
    assert trace.spans[0].id == span_of("ev_0")


def test_a_trace_id_of_the_callers_is_hashed_and_told() -> None:
    events = [event._replace(trace_id="deploy-7") for event in risk_review()]
    trace = trace_spans(events)
    assert len(trace.id) == 32
    assert trace.resource["cogcli.trace.label"] == "deploy-7"


def test_what_failed_says_with_which_code_and_keeps_the_message() -> None:
    failed = named(trace_spans(risk_review()))["execute_tool analysis.risk.score"]
    assert failed.error == failed.attributes["error.type"] == "call.rejected"
    assert failed.message == ""
    assert named(trace_spans(risk_review(), io=True))[
        "execute_tool analysis.risk.score"
    ].message.startswith("HTTP 422")


def test_a_step_that_never_began_is_a_moment_of_its_run() -> None:
    (moment,) = trace_spans(risk_review()).spans[0].moments
    assert moment.name == "step.skipped"
    assert moment.attributes == {"cogcli.step.id": "report", "cogcli.reason": "dependency"}


def test_payloads_leave_only_when_asked() -> None:
    events = risk_review()
    assert "example.com" not in json.dumps(otlp(trace_spans(events)))
    assert "example.com" in json.dumps(otlp(trace_spans(events, io=True)))


def test_spans_that_are_open_at_the_end_say_so() -> None:
    trace = trace_spans(risk_review(until=10))
    by_name = named(trace)
    assert by_name["execute_tool text.entity.extract"].attributes["cogcli.incomplete"] is True
    assert by_name["invoke_workflow risk.review"].attributes["cogcli.outcome"] == "pending"
    assert {span.end for span in trace.spans if "cogcli.incomplete" in span.attributes} == {
        START + 440_000
    }


def test_a_step_that_is_taken_up_again_is_two_spans() -> None:
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
    log.began(10, "fetch", [])
    log.add(
        20, "step.started", "act", {"step_id": "other", "step_status": "running", "uses": "o.o"}
    )
    log.add(5000, "run.resumed", "runtime", {"reason": "resume"})
    log.began(5010, "fetch", [])
    log.ended(5020, "fetch", 10, [], [])
    first, other, second = trace_spans(log.events).spans[1:]
    assert [s.attributes.get("cogcli.incomplete") for s in (first, other, second)] == [
        True,
        True,
        None,
    ]
    assert first.end == START + 20_000
    assert second.start == START + 5_010_000


def test_an_http_attempt_is_a_client_span_within_its_step() -> None:
    told = {
        "binding_id": "b", "service_id": "notes", "status": "success", "method": "POST", "status_code": 200,
        "url": "https://user:pw@notes.example:8443/api/v1/notes?secret=1", "duration_ms": 120,
        "started_at": "2026-11-20T22:58:00.300000Z",
    }  # fmt: skip
    step, attempt = called([told]).spans[1:]
    assert attempt.name == "POST /api/v1/notes"
    assert (attempt.kind, attempt.parent, attempt.id) == (3, step.id, span_of("ev_1", 1))
    assert (attempt.start, attempt.end) == (START + 300_000, START + 420_000)
    assert attempt.attributes["http.request.method"] == "POST"
    assert attempt.attributes["http.response.status_code"] == 200
    assert attempt.attributes["server.address"] == "notes.example"
    assert attempt.attributes["server.port"] == 8443
    assert "secret" not in str(attempt.attributes)


def test_attempts_without_times_stand_between_their_intents() -> None:
    bare = {"service_id": "notes", "method": "POST", "url": "http://h/x"}
    made = [
        {**bare, "status": "failed", "code": "call.timeout", "message": "no"},
        {**bare, "status": "success"},
    ]
    first, second = called(made, repeats=1).spans[2:]
    assert (first.start, first.end) == (START + 100_000, START + 350_000)
    assert (second.start, second.end) == (START + 400_000, START + 900_000)
    assert first.error == "call.timeout"
    assert second.id == span_of("ev_1", 2)


def test_an_attempt_never_leaves_its_step() -> None:
    told = {
        "method": "GET",
        "url": "http://h/",
        "started_at": "2020-01-01T00:00:00Z",
        "duration_ms": 10**9,
    }
    step, attempt = called([told]).spans[1:]
    assert (attempt.start, attempt.end) == (step.start, step.start)


def test_a_remote_call_is_named_by_its_method() -> None:
    request = {"media_type": "application/json", "body": {"jsonrpc": "2.0", "method": "add"}}
    rpc = {"service_id": "calc", "method": "POST", "url": "http://h/rpc", "request": request}
    attempt = called([rpc], tool="openrpc:calc").spans[-1]
    assert attempt.name == "add"
    assert attempt.attributes["rpc.system.name"] == "jsonrpc"
    assert attempt.attributes["http.request.method"] == "POST"
    step, attempt = called(
        [{"service_id": "clock", "method": "tools/call"}], tool="mcp:clock"
    ).spans[1:]
    assert attempt.name == "tools/call"
    assert (
        attempt.attributes["mcp.method.name"] == step.attributes["mcp.method.name"] == "tools/call"
    )


def test_an_attempt_that_used_a_model_is_a_chat() -> None:
    usage = {"prompt_tokens": 412, "completion_tokens": 63}
    told = {"service_id": "m", "method": "POST", "url": "http://h/v1", "usage": usage, "model": "small-1",
            "finish_reason": "stop"}  # fmt: skip
    attempt = called([told]).spans[-1]
    assert attempt.name == "chat small-1"
    assert attempt.attributes["gen_ai.usage.input_tokens"] == 412
    assert attempt.attributes["gen_ai.usage.output_tokens"] == 63
    assert attempt.attributes["gen_ai.response.finish_reasons"] == ["stop"]


def test_a_call_in_process_has_no_attempts_of_its_own() -> None:
    assert len(called([{"service_id": "f", "status": "success"}], tool="pythoncall:f").spans) == 2


def test_gates_stand_at_the_step_that_they_guard() -> None:
    log = Log()
    log.add(0, "run.started", "start", {"skill": {"id": "a.b"}})
    log.began(1, "fetch@pre0", [])
    log.ended(2, "fetch@pre0", 1, [], [])
    decided = {"decision": "allow", "gate": "g.g", "enforced": True, "reason": "told by data"}
    log.add(2, "gate.decided", "governance", decided, step_id="fetch@pre0")
    log.began(3, "fetch", [])
    log.began(4, "fetch@post0", [])
    log.add(5, "gate.decided", "governance", decided, step_id="fetch@post0")
    root, before, step, after = trace_spans(log.events).spans
    assert (before.parent, step.parent, after.parent) == (root.id, root.id, step.id)
    told = {
        "cogcli.step.id": "fetch@pre0",
        "cogcli.decision": "allow",
        "cogcli.gate": "g.g",
        "cogcli.enforced": True,
    }
    assert [moment.attributes for moment in root.moments] == [told]


def test_a_log_that_names_every_event_alike_still_gives_a_tree() -> None:
    trace = trace_spans([event._replace(id="ev", timestamp="never") for event in risk_review()])
    assert len({span.id for span in trace.spans}) == len(trace.spans)
    assert all(span.parent != span.id for span in trace.spans)


def test_hostile_members_are_passed_over() -> None:
    odd: list[Any] = [None, 7, "x", [], {"a": {}}, True, -1, 10**400]
    for value in odd:
        payload = dict.fromkeys(
            ("skill", "step_id", "step_status", "attempts", "usage", "error", "tool", "wait_ms", "pins", "uses",
             "parent_run_id", "reason", "output", "input"), value
        )  # fmt: skip
        events = [
            event_of(Event(0, value, value, value, value, value, phase, type, payload, value, metrics=value)._asdict())
            for phase, type in (("start", "run.started"), ("act", "step.completed"), ("act", "call.retried"),
                                ("governance", "gate.decided"), ("terminate", value), ("reason", "layer.completed"))
        ]  # fmt: skip
        made = {"step_id": "s", "step_status": "done", "attempts": [dict.fromkeys(payload, value) | {
            "method": "GET", "url": value, "usage": {"input_tokens": value}, "status_code": value,
            "started_at": value, "duration_ms": value}]}  # fmt: skip
        events.append(
            Event(1, "e", "2024-01-01T00:00:00Z", "ep", "r", "t", "act", "step.completed", made)
        )
        for io in (False, True):
            trace = trace_spans(events, io=io)
            json.dumps(otlp(trace), allow_nan=False)
            json.dumps(chrome(trace), allow_nan=False)


def test_overlapping_steps_lie_on_lanes_of_their_own() -> None:
    trace = trace_spans(risk_review())
    lanes = assign_lanes(trace.spans)
    by_name = {name: lanes[span.id] for name, span in named(trace).items()}
    assert by_name["invoke_workflow risk.review"] == by_name["execute_tool web.page.fetch"] == 0
    assert (
        by_name["execute_tool skill:analysis.risks"] != by_name["execute_tool text.entity.extract"]
    )


def test_on_a_lane_only_what_is_inside_overlaps() -> None:
    spans = [TraceSpan(str(n), "", str(n), n % 7, {}) for n in range(60)]
    for number, span in enumerate(spans):
        span.close(span.start + number % 11)
    lanes = assign_lanes(spans)
    for one in spans:
        for other in spans:
            if one is not other and lanes[one.id] == lanes[other.id]:
                assert one.end <= other.start or other.end <= one.start


def test_complete_events_are_in_microseconds() -> None:
    events = chrome(trace_spans(risk_review()))["traceEvents"]
    fetch = next(e for e in events if e["name"] == "execute_tool web.page.fetch")
    assert (fetch["ph"], fetch["ts"], fetch["dur"]) == ("X", START, 412_000)


def test_the_same_events_give_the_same_bytes() -> None:
    assert json.dumps(otlp(trace_spans(risk_review()))) == json.dumps(
        otlp(trace_spans(iter(risk_review())))
    )

"""`trace EP --format otlp|chrome`, read back by the libraries of those who define the formats."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(8)

EPISODES = Path(__file__).resolve().parents[1] / "episodes"
GOLDENS = sorted(folder.name for folder in EPISODES.iterdir() if (folder / "events.jsonl").exists())


def read_otlp(text: str) -> Any:
    """What the official readers make of a line; both refuse what the format does not know."""
    json_format = pytest.importorskip("google.protobuf.json_format")
    trace_pb2 = pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    proto_json = pytest.importorskip("opentelemetry.proto_json.trace.v1.trace")
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    assert len(proto_json.TracesData.from_json(text).resource_spans) == 1
    plain = json.loads(text)
    for span in spans_of(plain):
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in span:
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.Parse(json.dumps(plain), trace_pb2.TracesData(), ignore_unknown_fields=False)


def spans_of(otlp: dict[str, Any]) -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = otlp["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return spans


def check_tree(message: Any) -> None:
    """One trace, one root, every parent known, no time turned round."""
    spans = message.resource_spans[0].scope_spans[0].spans
    ids = {span.span_id for span in spans}
    assert len(ids) == len(spans) > 0
    assert {len(span.span_id) for span in spans} == {8}
    assert {len(span.trace_id) for span in spans} == {16}
    assert [span.name for span in spans if not span.parent_span_id] == [spans[0].name]
    for span in spans:
        assert not span.parent_span_id or span.parent_span_id in ids
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano


def check_chrome(text: str) -> None:
    events = json.loads(text)["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert complete
    for event in complete:
        assert type(event["ts"]) is int
        assert type(event["dur"]) is int
        assert event["dur"] >= 0
    named = {
        event["tid"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert {event["tid"] for event in complete} <= named


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", GOLDENS)
def test_every_kept_episode_is_read_by_the_official_readers(project: Project, case: str) -> None:
    for more in ((), ("--io",)):
        first = project.run("trace", str(EPISODES / case), "--format", "otlp", *more).assert_ok()
        check_tree(read_otlp(first.out))
    again = project.run("trace", str(EPISODES / case), "--format", "otlp", "--io").assert_ok()
    assert again.out_bytes == first.out_bytes
    check_chrome(project.run("trace", str(EPISODES / case), "--format", "chrome").assert_ok().out)


def test_fresh_runs_are_read_too(demo: Project) -> None:
    demo.skill(
        "demo.many",
        """
        - id: each
          uses: demo.text.upper
          input: {text: vars.item}
          output: {text: vars.texts}
          config: {foreach: {items: "[inputs.text, inputs.text]", max_parallel: 2}}
        - id: out
          uses: skill:demo.greet
          input: {text: inputs.text}
          output: {text: outputs.text}
        """.replace("vars.item", "item"),
        inputs="{text: {type: string, required: true}}",
        outputs="{text: {type: string, required: true}}",
    )
    for skill, code in (("demo.greet", 0), ("demo.review", 1), ("demo.many", 0)):
        demo.run("run", skill, "-p", "text=sensitive", "--trace-id", f"run:{skill}").assert_exit(
            code
        )
        told = demo.run("trace", "@last", "--format", "otlp").assert_ok()
        message = read_otlp(told.out)
        check_tree(message)
        assert "sensitive" not in told.out
        assert f"run:{skill}" in told.out
        statuses = {span.status.code for span in message.resource_spans[0].scope_spans[0].spans}
        assert (2 in statuses) == (code == 1)
        check_chrome(demo.run("trace", "@last", "--format", "chrome").assert_ok().out)


@pytest.mark.parametrize("name", ["allowed", "needs-finance", "refused"])
def test_the_turns_of_an_agent_are_read_too(desk: Project, name: str) -> None:
    desk.run("agent", "invoke", f"requests/{name}.json")
    for more in ((), ("--io",)):
        message = read_otlp(desk.run("trace", "--format", "otlp", *more).assert_ok().out)
        check_tree(message)
        names = [span.name for span in message.resource_spans[0].scope_spans[0].spans]
        assert {
            "cogcli.turn 1",
            "cogcli.layer goals",
            "cogcli.compiler",
            "cogcli.stage evidence",
        } <= set(names)
    check_chrome(desk.run("trace", "--format", "chrome").assert_ok().out)


def test_an_export_is_of_a_whole_episode(demo: Project) -> None:
    demo.run("run", "demo.greet", "-p", "text=x").assert_ok()
    demo.run("trace", "@last", "--format", "otlp", "--step", "first").assert_exit(2)
    demo.run("trace", "@last", "--format", "chrome", "--view", "table").assert_exit(2)
    demo.run("trace", "demo.greet", "-p", "text=x", "--format", "otlp").assert_exit(2)
    envelope = demo.run("trace", "@last", "--format", "otlp", "--json").assert_ok().json
    assert spans_of(envelope["trace"]["export"])[0]["name"] == "invoke_workflow demo.greet"


def test_a_service_was_sent_the_span_that_the_export_holds(project: Project) -> None:
    seen: list[str] = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers["traceparent"])
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b'{"text": "done"}'
            self.send_response(200 if len(seen) > 1 else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/api"
        project.write(
            "services/local/notes.yaml",
            f"id: notes\nkind: openapi\nnetwork: private\nbase_url: {url}\n",
        )
        project.capability("demo.note.write", "unused")
        project.write(
            "bindings/local/demo.note.write/demo_note_write.yaml",
            "id: notes_write\ncapability: demo.note.write\nservice: notes\nprotocol: openapi\noperation: notes\n"
            "request: {text: input.text}\nresponse: {text: response.text}\n"
            "metadata: {retry_count: 1, retry_backoff_base: 0}\n",
        )
        project.skill(
            "demo.note",
            "- {id: write, uses: demo.note.write, input: {text: inputs.text}, output: {text: outputs.text}}",
            inputs="{text: {type: string, required: true}}",
            outputs="{text: {type: string, required: true}}",
        )
        project.run("run", "demo.note", "-p", "text=hi").assert_ok()
        server.shutdown()
    told = project.run("trace", "@last", "--format", "otlp").assert_ok()
    check_tree(read_otlp(told.out))
    attempts = [span for span in spans_of(json.loads(told.out)) if span["kind"] == 3]
    assert [f"00-{span['traceId']}-{span['spanId']}-01" for span in attempts] == seen
    assert [span["name"] for span in attempts] == ["POST /api/notes"] * 2
    assert [span.get("status") for span in attempts] == [{"code": 2}, None]

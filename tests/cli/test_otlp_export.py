"""Finished runs are sent to a collector that the user names (docs/reference/protocols.md#export)."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

pytestmark = pytest.mark.sampled(4)

GREET = ("run", "demo.greet", "-p", "text=hi")


def read_protobuf(data: bytes) -> Any:
    """A request in protobuf, as the object of OTLP/JSON."""
    message = ExportTraceServiceRequest()
    message.ParseFromString(data)
    found = MessageToDict(message, use_integers_for_enums=True)
    for span in found["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = b64decode(span[name]).hex()
    return found


class Collector(ThreadingHTTPServer):
    """A collector on loopback that keeps what it gets, and whether the newest episode was sealed by then."""

    def __init__(self, runs_dir: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.runs_dir = runs_dir
        self.got: list[tuple[str, str, Any]] = []
        self.sealed: list[bool] = []
        self.status = 200
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Those of the newest trace."""
        spans: list[dict[str, Any]] = self.got[-1][2]["resourceSpans"][0]["scopeSpans"][0]["spans"]
        return spans


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers["Content-Type"]
        body = json.loads(data) if kind == "application/json" else read_protobuf(data)
        self.server.got.append((self.path, kind, body))
        self.server.headers.append(dict(self.headers))
        newest = max(self.server.runs_dir.glob("ep_*"))
        self.server.sealed.append((newest / "manifest.json").exists())
        self.send_response(self.server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector(demo: Any) -> Iterator[Collector]:
    server = Collector(demo.root / ".cogcli/episodes")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_finished_run_is_sent_once_it_is_sealed(demo: Any, collector: Collector) -> None:
    result = demo.run(*GREET, env={"COGCLI_OTLP_ENDPOINT": collector.url}).assert_ok()
    ((path, kind, _),) = collector.got
    assert (path, kind, collector.sealed) == ("/v1/traces", "application/json", [True])
    exported = demo.run("trace", "@last", "--format", "otlp").json
    assert collector.got[0][2] == exported
    assert "hi" not in json.dumps(exported["resourceSpans"])
    assert result.err.count("export.failed") == 0


def test_the_users_own_file_names_it_and_a_project_cannot(demo: Any, collector: Collector) -> None:
    user = demo.home / ".config/cogcli/config.toml"
    user.parent.mkdir(parents=True, exist_ok=True)
    user.write_text(f'[export]\notlp = "{collector.url}/v1/traces"\n')
    demo.run(*GREET).assert_ok()
    assert [path for path, _, _ in collector.got] == ["/v1/traces"]
    user.unlink()
    demo.write("cogcli.toml", f'[export]\notlp = "{collector.url}"\n')
    refused = demo.run(*GREET, "--json").assert_exit(3).json["error"]
    assert (refused["code"], refused["file"], refused["line"]) == ("config.key", "cogcli.toml", 2)
    assert len(collector.got) == 1


@pytest.mark.parametrize("how", ["away", "status"])
def test_a_collector_that_does_not_take_it_costs_one_warning(
    demo: Any, collector: Collector, how: str
) -> None:
    collector.status = 503
    url = collector.url if how == "status" else "http://127.0.0.1:1"
    result = demo.run(*GREET, "--json", env={"COGCLI_OTLP_ENDPOINT": url}).assert_ok()
    (warning,) = [each for each in result.json["warnings"] if each["code"] == "export.failed"]
    assert f"cogcli trace {demo.episode.name} --push {url}" in warning["message"]
    demo.run("verify", "@last").assert_ok()
    demo.run("trace", "@last", "--push", url).assert_exit(6)
    collector.status = 200
    demo.run("trace", "@last", "--push", collector.url).assert_ok()
    assert collector.spans[0]["name"]


def test_the_standard_variables_name_a_collector_for_a_push_alone(
    demo: Any, collector: Collector
) -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20t0ken,x-team=harbour",
        "OTEL_SERVICE_NAME": "nightly",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test,service.name=other",
    }
    demo.run(*GREET, env=variables).assert_ok()
    assert collector.got == []
    demo.run("trace", "@last", "--push", "env", env=variables).assert_ok()
    protobuf = {**variables, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
    demo.run("trace", "@last", "--push", "env", env=protobuf).assert_ok()
    demo.run("trace", "@last", "--push", collector.url, env=variables).assert_ok()
    (path, kind, as_json), (_, other_kind, as_protobuf), _ = collector.got
    assert (path, kind, other_kind) == ("/v1/traces", "application/json", "application/x-protobuf")
    assert as_protobuf == as_json
    resource = {
        each["key"]: each["value"]["stringValue"]
        for each in as_json["resourceSpans"][0]["resource"]["attributes"]
    }
    assert (resource["service.name"], resource["deployment.environment"]) == ("nightly", "test")
    sent = [each.get("authorization") for each in collector.headers]
    assert sent == ["Bearer t0ken", "Bearer t0ken", None]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
            "OTEL_EXPORTER_OTLP_HEADERS": "t0ken",
        },
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
        },
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector"},
    ],
)
def test_a_variable_without_a_valid_value_sends_nothing(
    demo: Any, variables: dict[str, str]
) -> None:
    demo.run(*GREET).assert_ok()
    refused = demo.run("trace", "@last", "--push", "env", env=variables).assert_exit(2)
    assert "t0ken" not in refused.err


def test_a_run_that_waits_is_sent_when_it_has_ended(demo: Any, collector: Collector) -> None:
    file = demo.root / "capabilities/demo.text.upper.yaml"
    file.write_text(file.read_text() + "safety: {requires_confirmation: true}\n")
    env = {"COGCLI_OTLP_ENDPOINT": collector.url}
    demo.run(*GREET, env=env).assert_exit(5)
    assert collector.got == []
    while demo.run("resume", "@last", "--approve", "demo.text.upper", env=env).code == 5:
        assert collector.got == []
    assert len(collector.got) == 1


@pytest.mark.parametrize("url", ["ftp://x", "", "collector:4318", "http://user:word@host"])
def test_an_address_that_is_none_is_refused(demo: Any, url: str) -> None:
    demo.run(*GREET).assert_ok()
    refused = demo.run("trace", "@last", "--push", url).assert_exit(2)
    assert "word" not in refused.err
    demo.run("trace", "demo.greet", "--push", "http://127.0.0.1:1").assert_exit(2)


def test_the_command_that_sends_later_is_quoted(demo: Any) -> None:
    url = "http://127.0.0.1:1/$(id)"
    result = demo.run(*GREET, "--json", env={"COGCLI_OTLP_ENDPOINT": url}).assert_ok()
    assert [
        each["message"] for each in result.json["warnings"] if f"--push '{url}'" in each["message"]
    ]


def test_what_was_asked_of_a_model_is_a_span_of_its_own(desk: Any, tmp_path: Path) -> None:
    model = "scripted:models/loops.yaml"
    desk.run("agent", "invoke", "requests/loops.json", "--model", model).assert_exit(4)
    spans = desk.run("trace", "@last", "--format", "otlp").json["resourceSpans"][0]["scopeSpans"][
        0
    ]["spans"]
    chats = [
        {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}
        for span in spans
        if span["name"].startswith("chat")
    ]
    assert len(chats) == 4
    summary = json.loads((desk.episode / "summary.json").read_text())
    for name, word in (("tokens_in", "input"), ("tokens_out", "output")):
        counted = sum(int(chat[f"gen_ai.usage.{word}_tokens"]) for chat in chats)
        assert counted == summary["metrics"][name]
    assert {chat["gen_ai.operation.name"] for chat in chats} == {"chat"}


@pytest.mark.parametrize("url", ["http://h:99999", "http://h:0", "h:4318"])
def test_an_address_that_can_be_none_is_told_before_anything_runs(demo: Any, url: str) -> None:
    refused = demo.run(*GREET, "--json", env={"COGCLI_OTLP_ENDPOINT": url}).assert_exit(2)
    assert refused.json["error"]["code"] == "usage.value"
    assert not demo.episodes
    user = demo.home / ".config/cogcli/config.toml"
    user.parent.mkdir(parents=True)
    user.write_text(f'[export]\notlp = "{url}"\n')
    assert demo.run(*GREET, "--json").assert_exit(3).json["error"]["code"] == "config.key"
    assert not demo.episodes

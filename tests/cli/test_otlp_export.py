"""Finished runs are sent to a collector that the user names (docs/reference/protocols.md#export)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(2)

GREET = ("run", "demo.greet", "-p", "text=hi")


class Collector(ThreadingHTTPServer):
    """A collector on loopback that keeps what it gets, and whether the newest episode was sealed by then."""

    def __init__(self, runs_dir: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.runs_dir = runs_dir
        self.got: list[tuple[str, str, Any]] = []
        self.sealed: list[bool] = []
        self.status = 200

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
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, self.headers["Content-Type"], body))
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

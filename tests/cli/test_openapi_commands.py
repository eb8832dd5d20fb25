"""`openapi verify-bindings`, `verify-invoker`, `verify-errors` through the installed command."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.sampled(12)

SHIPPED = Path(__file__).parents[2] / "tooling/openapi_scenarios"
VERIFY = ("openapi", "verify-bindings")
TIDES = """\
openapi: 3.1.0
info: {title: Tides, version: "1"}
paths:
  /tides/{harbour}:
    parameters: [{name: harbour, in: path, required: true, schema: {type: string}}]
    post:
      operationId: predict
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [day]
              properties: {day: {type: string, minLength: 3}}
      responses:
        "200":
          description: ok
          content:
            application/json:
              schema:
                type: object
                required: [heights]
                properties: {heights: {type: array, items: {type: number}}, token: {type: string}}
              example: {heights: [1.5, 2]}
"""
CANARY = "canary-9d2f7a61c3"


@pytest.fixture
def project(project: Any) -> Any:
    """Kept episodes stay below the test's own directory."""
    project.env["TMPDIR"] = str(project.home)
    return project


class Tides:
    """A project whose one capability is bound to a service with a document."""

    def __init__(self, project: Any) -> None:
        self.project = project
        project.write(
            "services/local/tides.yaml",
            """
            id: tides
            kind: openapi
            base_url: https://tides.example/v2
            spec_ref: docs/tides.yaml
            auth_ref: TIDES_TOKEN
            metadata: {headers: {X-Client: "harbour-${TIDES_CLIENT}"}}
            """,
        )
        project.write("docs/tides.yaml", TIDES)
        project.write(
            "capabilities/tide.day.predict.yaml",
            """
            id: tide.day.predict
            version: "1.0.0"
            description: Predicts.
            inputs:
              harbour: {type: string, required: true}
              day: {type: string, required: true, schema: {minLength: 3}}
            outputs: {heights: {type: array, required: true}, token: {type: string}}
            properties: {side_effects: false}
            """,
        )
        self.bind()

    def bind(self, **changes: str) -> None:
        """The binding, some of its keys changed."""
        keys = {
            "request": "{path.harbour: input.harbour, day: input.day}",
            "response": "{heights: response.heights, token: response.token}",
            "operation": "predict",
            **changes,
        }
        text = "".join(f"{key}: {value}\n" for key, value in keys.items())
        self.project.write(
            "bindings/local/tide.day.predict/tides.yaml",
            f"id: tides\ncapability: tide.day.predict\nservice: tides\nprotocol: openapi\n{text}".encode(),
        )

    def scenario(self, name: str = "tides", **changes: Any) -> str:
        """A scenario file, some of its fields changed; its path."""
        value = {
            "id": name,
            "capability_id": "tide.day.predict",
            "binding_id": "tides",
            "input": {"harbour": "Norvik", "day": "monday"},
            "expected_output": {"heights": [1.5, 2]},
            **changes,
        }
        path = f"tooling/openapi_scenarios/{name}.json"
        self.project.write(path, json.dumps(value).encode())
        return path

    def verify(self, *arguments: str, code: int = 0, env: dict[str, str] | None = None) -> Any:
        """The verdicts of one command."""
        result = self.project.run(*VERIFY, *arguments, "--json", env=env).assert_exit(code)
        assert result.json["exit_code"] == code
        return result.json["scenarios"]


@pytest.fixture
def tides(project: Any) -> Tides:
    return Tides(project)


@pytest.mark.sampled(24)
def test_every_shipped_scenario_passes_against_its_mock_server(project: Any) -> None:
    body = project.run(*VERIFY, "--all", "--json").assert_ok().json
    verdicts = {verdict["id"]: verdict for verdict in body["scenarios"]}
    assert set(verdicts) == {path.stem for path in SHIPPED.glob("*.json")}
    assert len(verdicts) >= 8
    assert all(verdict["passed"] is True for verdict in verdicts.values())
    assert verdicts["data.schema.validate.mock"]["outputs"]["valid"] is False
    assert [check["name"] for check in verdicts["note.item.read.mock"]["checks"]] == [
        "request matches the operation",
        "status 200 is declared",
        "reply matches its schema",
        "outputs equal expected_output",
    ]
    assert not project.episodes


def test_without_a_choice_the_list_is_told(tides: Tides) -> None:
    tides.scenario()
    result = tides.project.run(*VERIFY).assert_exit(2)
    assert "scenarios in tooling/openapi_scenarios:\n          tides\n" in result.err
    tides.project.run(*VERIFY, "--all", "--scenario", "tides").assert_exit(2)


def test_a_scenario_is_named_by_file_or_as_the_list_does(tides: Tides) -> None:
    path = tides.scenario()
    tides.scenario("other", input={})
    for named in (path, "tides", "tides.json"):
        assert [v["id"] for v in tides.verify("--scenario", named)] == ["tides"]
    result = tides.project.run(*VERIFY, "--scenario", "tidse").assert_exit(2)
    assert "did you mean `tides`?" in result.err


def test_a_bad_scenario_file_is_a_usage_error_at_its_place(tides: Tides) -> None:
    tides.scenario(expected_ouput={})
    result = tides.project.run(*VERIFY, "--all", "--json").assert_exit(2)
    error = result.json["error"]
    assert (error["code"], error["file"], error["line"]) == (
        "input.unknown", "tooling/openapi_scenarios/tides.json", 1,
    )  # fmt: skip


def test_the_request_is_made_as_the_document_says(tides: Tides) -> None:
    tides.scenario()
    (verdict,) = tides.verify("--all")
    assert [(c["name"], c["detail"]) for c in verdict["checks"]] == [
        ("request matches the operation", "POST /v2/tides/Norvik"),
        ("request body matches its schema", ""),
        ("status 200 is declared", ""),
        ("reply matches its schema", ""),
        ("outputs equal expected_output", ""),
    ]


def failing(tides: Tides, **changes: Any) -> Any:
    tides.scenario(**changes)
    (verdict,) = tides.verify("--all", code=1)
    assert verdict["passed"] is False
    return verdict


def test_a_reply_that_breaks_its_schema_is_framed(tides: Tides) -> None:
    reply = {"body": {"heights": [1.5, "high"], "token": "hunter2-hunter2"}}
    tides.scenario(mock_server={"replies": [reply]})
    screen = tides.project.run(*VERIFY, "--all").assert_exit(1).out
    assert "heights.1: " in screen
    lines = screen.splitlines()
    marked = next(n for n, line in enumerate(lines) if line.strip(" |^") == "" and "^" in line)
    start = lines[marked].index("^")
    assert lines[marked - 1][start : start + lines[marked].count("^")] == '"high"'
    assert "hunter2" not in screen
    assert "0 passed, 1 failed" in screen


def test_an_undeclared_status_and_other_outputs_are_told(tides: Tides) -> None:
    verdict = failing(tides, mock_server={"replies": [{"status": 201, "body": {"heights": [9]}}]})
    failed = {check["name"]: check["detail"] for check in verdict["checks"] if not check["passed"]}
    assert failed == {
        "status 201 is declared": "declared: 200",
        "outputs equal expected_output": '- "heights.0": 1.5   + "heights.0": 9   - "heights.1": 2',
    }


@pytest.mark.sampled(24)
def test_a_refused_call_tells_why(tides: Tides) -> None:
    verdict = failing(
        tides, mock_server={"replies": [{"status": 422, "body": {"message": "no such harbour"}}]}
    )
    assert verdict["code"] == "call.rejected"
    assert "no such harbour" in verdict["reason"] + verdict["checks"][-1]["detail"]


def test_a_request_that_the_document_refuses_fails(tides: Tides) -> None:
    tides.project.write("docs/tides.yaml", TIDES.replace("minLength: 3", "minLength: 9"))
    verdict = failing(tides)
    failed = {check["name"]: check["detail"] for check in verdict["checks"] if not check["passed"]}
    assert "which the service rejects" in failed["static checks"]
    assert "/body/day" in failed["request body matches its schema"]
    assert "HTTP 422" in failed["outputs equal expected_output"]


def test_matching_may_be_by_subset_or_shape(tides: Tides) -> None:
    reply = {"replies": [{"body": {"heights": [7, 8, 9], "token": "x"}}]}
    tides.scenario(mock_server=reply, match="shape", expected_output={"heights": [0]})
    assert tides.verify("--all")[0]["passed"]
    tides.scenario(mock_server=reply, match="subset", expected_output={"heights": [7, 8, 9]})
    assert tides.verify("--all")[0]["passed"]


def test_what_a_scenario_names_has_to_be_there(tides: Tides) -> None:
    assert (
        "no binding `tidse`; did you mean `tides`?" in failing(tides, binding_id="tidse")["reason"]
    )
    assert "no capability" in failing(tides, capability_id="tide.day.predicted")["reason"]
    assert "found tides" in failing(tides, expected_service_id="sea")["reason"]
    assert "input.contract" in failing(tides, input={"harbour": "Norvik"})["checks"][-1]["detail"]


def test_a_static_error_keeps_the_call_from_being_made(tides: Tides) -> None:
    tides.bind(response="{token: response.token}")
    verdict = failing(tides)
    assert verdict["checks"][0]["name"] == "static checks"
    assert verdict["checks"][0]["detail"].startswith("response.unmapped: bindings/local/")
    assert len(verdict["checks"]) == 1


def test_the_curl_line_names_variables_and_a_failed_episode_is_kept(tides: Tides) -> None:
    verdict = failing(tides, expected_output={}, input={"harbour": "o'hara", "day": "monday"})
    words = shlex.split(verdict["curl"])
    assert words[:2] == ["curl", "https://tides.example/v2/tides/o%27hara"]
    assert "x-client: harbour-$TIDES_CLIENT" in words
    assert "authorization: Bearer $TIDES_TOKEN" in words
    assert json.loads(words[words.index("-d") + 1]) == {"day": "monday"}
    assert "test-TIDES" not in json.dumps(verdict)
    assert Path(verdict["episode"]).is_relative_to(tides.project.env["TMPDIR"])
    tides.project.run("verify", verdict["episode"]).assert_ok()
    tides.project.run("trace", verdict["episode"]).assert_ok()
    assert not tides.project.episodes


def test_gates_and_confirmation_do_not_stand_in_the_way(tides: Tides) -> None:
    path = tides.project.root / "capabilities/tide.day.predict.yaml"
    path.write_text(
        path.read_text().replace("{side_effects: false}", "{side_effects: true}")
        + "safety: {trust_level: privileged, requires_confirmation: true}\n"
    )
    tides.scenario()
    assert tides.verify("--all")[0]["passed"]


@pytest.mark.sampled(24)
def test_the_fallback_of_a_binding_is_not_asked(tides: Tides) -> None:
    tides.project.write(
        "bindings/local/tide.day.predict/spare.yaml",
        b"id: spare\ncapability: tide.day.predict\nservice: spare\nprotocol: pythoncall\noperation: f\n"
        b"request: {}\nresponse: {heights: response.heights}\n",
    )
    tides.project.write(
        "services/local/spare.yaml", "id: spare\nkind: pythoncall\nmodule: spare_tides\n"
    )
    tides.project.write("spare_tides.py", "def f():\n    return {'heights': [1.5, 2]}\n")
    tides.bind(metadata="{fallback_binding_id: spare}")
    assert failing(tides, mock_server={"replies": [{"status": 503}]})["code"] == "call.overloaded"


def test_reports_stand_beside_the_answer(tides: Tides) -> None:
    tides.scenario("good")
    tides.scenario("poor", expected_output={"heights": []})
    flags = ("junit:j.xml", "md:m.md", "json:e.json", "github")
    result = tides.project.run(
        *VERIFY, "--all", *(word for flag in flags for word in ("--report", flag)),
        env={"GITHUB_STEP_SUMMARY": str(tides.project.root / "summary.md")},
    ).assert_exit(1)  # fmt: skip
    assert (
        "::error title=cogcli (verify.failed),file=tooling/openapi_scenarios/poor.json"
        in result.err
    )
    root = ET.parse(tides.project.root / "j.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("10", "1")
    failure = next(root.iter("failure"))
    assert failure.get("message") == '+ "heights.0": 1.5   + "heights.1": 2'
    assert (
        json.loads((tides.project.root / "e.json").read_text())["scenarios"][1]["passed"] is False
    )
    assert "| failed | poor |" in (tides.project.root / "m.md").read_text()
    assert (tides.project.root / "summary.md").read_text() == (
        tides.project.root / "m.md"
    ).read_text()
    tides.project.run(*VERIFY, "--all", "--report", "sarif:s.sarif").assert_exit(2)


def test_bindings_without_a_scenario_are_named_and_fail_nothing(tides: Tides) -> None:
    tides.scenario("good")
    tides.project.write(
        "bindings/local/tide.day.predict/other.yaml",
        b"id: other\ncapability: tide.day.predict\nservice: tides\nprotocol: openapi\noperation: predict\n"
        b"request: {path.harbour: input.harbour, day: input.day}\nresponse: {heights: response.heights}\n",
    )
    flags = ("--report", "junit:j.xml", "--report", "md:m.md")
    result = tides.project.run(*VERIFY, "--all", *flags).assert_ok()
    assert "without a scenario: other\n" in result.out
    (noted,) = ET.parse(tides.project.root / "j.xml").getroot().iter("system-out")
    assert noted.text == "without a scenario"
    assert "Without a scenario: other." in (tides.project.root / "m.md").read_text()
    assert tides.project.run(*VERIFY, "--all", "--json").json["without_scenario"] == ["other"]
    assert tides.project.run(*VERIFY, "--scenario", "good", "--json").json["without_scenario"] == []


def test_many_bindings_without_a_scenario_are_counted(tides: Tides) -> None:
    tides.scenario("good")
    for number in range(23):
        tides.project.write(
            f"bindings/local/tide.day.predict/other{number:02}.yaml",
            f"id: other{number:02}\ncapability: tide.day.predict\nservice: tides\nprotocol: openapi\n"
            "operation: predict\nrequest: {path.harbour: input.harbour, day: input.day}\n"
            "response: {heights: response.heights}\n",
        )
    shown = tides.project.run(*VERIFY, "--all").assert_ok().out
    assert "other19 and 3 more\n" in shown
    assert "other20" not in shown
    assert len(tides.project.run(*VERIFY, "--all", "--json").json["without_scenario"]) == 23


def test_a_scenario_of_another_protocol_is_told(tides: Tides) -> None:
    tides.scenario()
    (verdict,) = tides.verify(
        "--all", "--protocol", "openrpc", "--scenarios-dir", "tooling/openapi_scenarios", code=1
    )
    assert "say --protocol openapi" in verdict["reason"]


def test_a_service_without_a_document_is_only_called_live(tides: Tides) -> None:
    service = tides.project.root / "services/local/tides.yaml"
    service.write_text(service.read_text().replace("spec_ref: docs/tides.yaml\n", ""))
    tides.bind(operation="tides/x", request="{day: input.day}")
    tides.scenario()
    (verdict,) = tides.verify("--all", code=3)
    assert (verdict["passed"], verdict["reason"]) == (None, "live (add --live)")
    done = tides.project.run(*VERIFY, "--all").assert_exit(3)
    assert "skipped: live (add --live)" in done.out
    assert "error[check.nothing]: nothing was checked" in done.err


# -- against a server that others made --------------------------------------------------------------------------------


@contextmanager
def notes_server() -> Iterator[str]:
    """The shipped document of notes, served by connexion, which validates requests and its own answers."""
    import uvicorn
    from connexion import AsyncApp
    from connexion.resolver import Resolver

    notes = {"n-1": {"id": "n-1", "text": "Tugs bring them in.", "lang": "en"}}

    async def get_note(id: str, lang: str = "en") -> Any:
        return notes.get(id, ({"message": f"no note {id}"}, 404))

    async def delete_note(id: str) -> Any:
        notes.pop(id, None)
        return None, 204

    async def other(**_: Any) -> Any:
        return [], 200

    functions = {"getNote": get_note, "deleteNote": delete_note}
    app = AsyncApp("notes", specification_dir=str(SHIPPED / "registry/documents"))
    app.add_api(
        "notes.yaml", base_path="/api", strict_validation=True, validate_responses=True,
        resolver=Resolver(lambda name: functions.get(name, other)),
    )  # fmt: skip
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/api"
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.sampled(24)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_live_scenarios_run_against_a_server_that_others_made(project: Any) -> None:
    service = (SHIPPED / "registry/services/mock/notes_mock.yaml").read_text()
    with notes_server() as url:
        project.write(
            "services/local/notes_mock.yaml",
            service.replace("http://127.0.0.1:8792/api", url).encode(),
        )
        project.write("cogcli.toml", "")
        shutil.copytree(SHIPPED / "registry/documents", project.root / "documents")
        live = (*VERIFY, "--live", "--scenario", "note.item.read.live")
        missing = project.run(*live).assert_exit(1)
        assert "✗ the service answers " in missing.out
        assert "`NOTES_TOKEN` is not set" in missing.out
        secret = {"NOTES_TOKEN": CANARY}
        good = project.run(*live, "--json", env=secret).assert_ok()
        (verdict,) = good.json["scenarios"]
        assert verdict["outputs"] == {"text": "Tugs bring them in.", "lang": "en"}
        assert "request matches the operation" in [check["name"] for check in verdict["checks"]]
        scenario = json.loads((SHIPPED / "note.item.read.live.json").read_text())
        scenario["input"]["id"] = "n-2"
        project.write("absent.json", json.dumps(scenario).encode())
        poor = project.run(*VERIFY, "--live", "--scenario", "absent.json", "--scenarios-dir", str(SHIPPED),
                           "--json", env=secret).assert_exit(1)  # fmt: skip
        (verdict,) = poor.json["scenarios"]
        assert verdict["code"] == "call.rejected"
        assert CANARY not in good.out + good.err + poor.out + poor.err


def test_scenarios_of_openrpc_follow_its_document(project: Any) -> None:
    body = project.run(*VERIFY, "--all", "--protocol", "openrpc", "--json").assert_ok().json
    checks = {v["id"]: [check["name"] for check in v["checks"]] for v in body["scenarios"]}
    assert checks["tide.window.find.mock"] == [
        "request matches the method",
        "parameters match their schemas",
        "the answer has a result",
        "result matches its schema",
        "outputs equal expected_output",
    ]
    assert "the notification is taken" in checks["tide.height.report.mock"]


def test_a_result_that_breaks_its_schema_is_framed(project: Any) -> None:
    folder = project.root / "tooling/openrpc_scenarios"
    shutil.copytree(SHIPPED.parent / "openrpc_scenarios", folder)
    scenario = json.loads((folder / "tide.height.predict.mock.json").read_text())
    answer = {"jsonrpc": "2.0", "id": 1, "result": [1.5, "high"]}
    scenario["mock_server"] = {"replies": [{"body": answer}]}
    project.write("poor.json", json.dumps(scenario).encode())
    result = project.run(*VERIFY, "--protocol", "openrpc", "--scenario", "poor.json",
                         "--scenarios-dir", str(folder)).assert_exit(1)  # fmt: skip
    assert '1 | [1.5, "high"]' in result.out
    assert "result matches its schema" in result.out


def test_shipped_tools_need_no_server_and_others_are_called_live(project: Any) -> None:
    mcp = (*VERIFY, "--all", "--protocol", "mcp", "--json")
    verdicts = {v["id"]: v for v in project.run(*mcp).assert_ok().json["scenarios"]}
    assert verdicts["text.content.normalize.shipped"]["passed"] is True
    assert verdicts["time.zone.convert.live"]["reason"] == "live (add --live)"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    live = project.run(*mcp, "--live", env={"PATH": path}).assert_ok().json["scenarios"]
    assert {v["id"]: v["passed"] for v in live} == dict.fromkeys(verdicts, True)


# -- our own rules ----------------------------------------------------------------------------------------------------


def test_every_rule_of_the_invoker_holds(project: Any) -> None:
    body = project.run("openapi", "verify-invoker", "--json").assert_ok().json
    named = {verdict["id"] for verdict in body["scenarios"]}
    assert named >= set(
        "method.default method.get timeout.binding timeout.service timeout.default timeout.drip headers.service"
        " headers.merge headers.env mode.json mode.text mode.raw mode.not-json mode.empty status.500 redirect"
        " size.reply gzip.bomb retry.after retry.effect path.encoding address proxy content-json".split()
    )
    assert all(verdict["passed"] for verdict in body["scenarios"])


@pytest.mark.parametrize("protocol", ["openrpc", "mcp"])
def test_every_rule_of_the_other_invokers_holds(project: Any, protocol: str) -> None:
    flags = ("--protocol", protocol, "--report", "md:m.md")
    result = project.run("openapi", "verify-invoker", *flags, "--json").assert_ok()
    assert len(result.json["scenarios"]) >= 18
    assert all(verdict["passed"] for verdict in result.json["scenarios"])
    assert "| failed |" not in (project.root / "m.md").read_text()


@pytest.mark.sampled(3)
def test_every_row_of_the_failure_model_is_provoked(project: Any) -> None:
    result = project.installed(
        "openapi", "verify-errors", "--report", "junit:e.xml", stdin_closed=True
    )
    result.assert_ok()
    assert " failed" not in result.out
    root = ET.parse(project.root / "e.xml").getroot()
    assert int(root.get("tests", "0")) >= 90
    assert root.get("failures") == "0"

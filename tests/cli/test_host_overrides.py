"""Host overrides through the installed command: they decide, are trusted with the project, and pinned with the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)

ACTIVE = ".agent-skills/active_bindings.json"
SERVICES = ".agent-skills/services.yaml"
GREET = ("run", "demo.greet", "-p", "text=hi")
LOUD = """
id: loud
capability: demo.text.upper
service: loud
protocol: pythoncall
operation: loud
request: {text: input.text}
response: {text: response.text}
"""


@pytest.fixture
def host(demo: Any) -> Any:
    """The demo project with a binding and a service of this host, chosen for one capability."""
    demo.write(".agent-skills/bindings/local/demo.text.upper/loud.yaml", LOUD)
    demo.write(
        SERVICES,
        "services:\n  loud: {kind: pythoncall, module: loud_services, isolation: thread}\n",
    )
    demo.write(
        "loud_services.py",
        "def loud(text: str) -> dict[str, str]:\n    return {'text': text + '!'}\n",
    )
    demo.write(ACTIVE, '{"demo.text.upper": "loud"}\n')
    return demo


def started(episode: Path) -> Any:
    return json.loads((episode / "events.jsonl").read_text().splitlines()[0])["payload"]


def test_the_active_binding_of_this_host_is_called_and_recorded(host: Any) -> None:
    assert host.run(*GREET).assert_ok().json == {"text": "hi!!"}
    selection = started(host.episode)["selection"]["demo.text.upper"]
    assert (selection["selection_source"], selection["primary_binding_id"]) == ("active", "loud")
    assert {"rule": "active", "binding_id": "loud", "chosen": True, "reason": f"named in {ACTIVE}"} in selection[
        "considered"
    ]  # fmt: skip
    assert host.run(*GREET, "--bind", "demo.text.upper=demo_text_upper").assert_ok().json == {
        "text": "HI"
    }


def test_an_override_by_service_and_one_that_only_prefers(host: Any) -> None:
    (host.root / ACTIVE).unlink()
    entry = "overrides:\n  - capabilities: [demo.text.upper]\n    service: loud\n"
    host.write(".agent-skills/overrides.yaml", entry)
    assert host.run(*GREET).assert_ok().json == {"text": "hi!!"}
    host.write(
        SERVICES,
        "services:\n  loud: {kind: openapi, base_url: 'https://a.example', auth_ref: NO_TOKEN}\n",
    )
    assert "overrides.yaml" in host.run(*GREET).assert_exit(3).err
    host.write(".agent-skills/overrides.yaml", entry + "    mode: prefer\n")
    host.write(
        "policies/official_default_selection.yaml", "defaults: {demo.text.upper: demo_text_upper}\n"
    )
    assert host.run(*GREET).assert_ok().json == {"text": "HI"}


def test_trust_ends_when_the_services_of_the_host_are_edited(host: Any) -> None:
    del host.env["COGCLI_TRUST_PROJECT"]
    assert "service.untrusted" in host.run(*GREET).assert_exit(3).err
    host.run("config", "trust").assert_ok()
    host.run(*GREET).assert_ok()
    host.write(ACTIVE, '{"demo.text.upper": "demo_text_upper"}\n')
    assert f"changed {ACTIVE}" in host.run(*GREET).assert_exit(3).err
    host.run("config", "trust", "--yes").assert_ok()
    host.write(
        SERVICES, (host.root / SERVICES).read_text() + "  more: {kind: mcp, command: touch}\n"
    )
    assert "service.untrusted" in host.run(*GREET).assert_exit(3).err
    (host.root / "services/local/demo.yaml").rename(host.root.parent / "demo.yaml")
    (host.root / "services/local/demo.yaml").symlink_to(host.root.parent / "demo.yaml")
    host.run("config", "trust", "--yes").assert_ok()
    host.run(*GREET).assert_ok()
    real = host.root.parent / "demo.yaml"
    real.write_text(real.read_text() + "network: private\n")
    assert "service.untrusted" in host.run(*GREET).assert_exit(3).err


def test_services_behind_a_linked_folder_are_part_of_what_is_trusted(host: Any) -> None:
    del host.env["COGCLI_TRUST_PROJECT"]
    elsewhere = host.root.parent / "elsewhere"
    (host.root / "services/local").rename(elsewhere)
    (host.root / "services/local").symlink_to(elsewhere)
    host.run("config", "trust").assert_ok()
    host.run(*GREET).assert_ok()
    (elsewhere / "demo.yaml").write_text("id: demo\nkind: pythoncall\nmodule: demo_services\n")
    assert "service.untrusted" in host.run(*GREET).assert_exit(3).err


@pytest.fixture
def paused(host: Any) -> Any:
    """A run that waits for a person, with the binding of this host chosen."""
    file = host.root / "capabilities/demo.text.upper.yaml"
    file.write_text(file.read_text() + "safety: {requires_confirmation: true}\n")
    host.run(*GREET).assert_exit(5)
    return host


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        (ACTIVE, '{"demo.text.upper": "demo_text_upper"}\n', "`active:demo.text.upper`"),
        (ACTIVE, "{}\n", "`active:demo.text.upper`"),
        (SERVICES, "services:\n  loud: {kind: pythoncall, module: demo_services}\n", "`service:loud`"),
        (".agent-skills/overrides.yaml", "overrides: [{capabilities: [demo.text.upper], service: demo}]\n",
         "`override:demo.text.upper`"),
        (".agent-skills/bindings/local/demo.text.upper/new.yaml", LOUD.replace("id: loud", "id: new"), "`binding:new`"),
    ],
)  # fmt: skip
def test_a_run_does_not_go_on_past_a_changed_choice(
    paused: Any, path: str, text: str, named: str
) -> None:
    paused.write(path, text)
    refused = paused.run("resume", "@last", "--approve", "demo.text.upper").assert_exit(3)
    assert "resume.changed-specs" in refused.err
    assert named in refused.err


@pytest.fixture
def passed_over(demo: Any) -> Any:
    """A run that waits for a person; its first choice could not be called, for want of a variable."""
    file = demo.root / "capabilities/demo.text.upper.yaml"
    file.write_text(file.read_text() + "safety: {requires_confirmation: true}\n")
    demo.write("docs/web.json", WEB)
    demo.write(
        "services/local/web.yaml",
        "id: web\nkind: openapi\nbase_url: https://a.example\nspec_ref: docs/web.json\n"
        'metadata: {headers: {X-Key: "${WEB_KEY}"}}\n',
    )
    demo.write(
        "bindings/local/demo.text.upper/web.yaml",
        "id: web_upper\ncapability: demo.text.upper\nservice: web\nprotocol: openapi\noperation: upper\n"
        "request: {text: input.text}\nresponse: {text: response.text}\n"
        "metadata: {fallback_binding_id: demo_text_upper}\n",
    )
    demo.write(
        "policies/official_default_selection.yaml", "defaults: {demo.text.upper: web_upper}\n"
    )
    demo.run(*GREET).assert_exit(5)
    return demo


WEB = json.dumps(
    {
        "openapi": "3.1.0",
        "paths": {
            "/upper": {
                "post": {
                    "operationId": "upper",
                    "requestBody": {"content": {"application/json": {"schema": {
                        "type": "object", "properties": {"text": {"type": "string"}}}}}},
                    "responses": {"200": {"content": {"application/json": {"schema": {
                        "type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}}}}},
                }
            }
        },
    }
)  # fmt: skip


def test_what_was_chosen_when_a_run_began_stays_chosen(passed_over: Any) -> None:
    done = passed_over.run(
        "resume", "@last", "--approve", "demo.text.upper", env={"WEB_KEY": "sesame-open"}
    )
    done.assert_exit(5)  # its second step asks, too
    lines = (passed_over.episode / "events.jsonl").read_text().splitlines()
    tried = [
        (attempt["binding_id"], attempt["status"])
        for line in lines
        for attempt in json.loads(line)["payload"].get("attempts", [])
    ]
    assert ("web_upper", "skipped") in tried
    assert ("demo_text_upper", "success") in tried
    assert ("web_upper", "failed") not in tried


def test_a_services_changed_document_is_a_changed_spec(passed_over: Any) -> None:
    passed_over.write("docs/web.json", WEB + "\n")
    refused = passed_over.run("resume", "@last", "--approve", "demo.text.upper").assert_exit(3)
    assert "resume.changed-specs" in refused.err
    assert "`document:web`" in refused.err


def test_choices_for_other_capabilities_are_no_change_of_a_run(paused: Any) -> None:
    paused.write(ACTIVE, '{"demo.text.score": "demo_text_score", "demo.text.upper": "loud"}\n')
    paused.run("resume", "@last", "--approve", "demo.text.upper").assert_exit(5)
    paused.write(ACTIVE, '{"demo.text.upper": "demo_text_upper"}\n')
    allowed = ("--approve", "demo.text.upper", "--allow-changed-specs")
    assert paused.run("resume", "@last", *allowed).code in (0, 5)


def test_a_replay_asks_for_no_choice(host: Any) -> None:
    host.run(*GREET).assert_ok()
    (host.root / ACTIVE).write_text('{"demo.text.upper": "demo_text_upper"}\n')
    host.run("replay", "@last").assert_ok()


def test_settings_tell_what_the_host_overrides(host: Any) -> None:
    shown = host.run("config", "show", "--origin").assert_ok().out
    assert "host  .agent-skills  trusted  bindings services.yaml active_bindings.json\n" in shown


@pytest.mark.sampled(16)
def test_doctor_counts_problems_of_host_overrides_where_they_belong(host: Any) -> None:
    def details(name: str) -> list[str]:
        return next(
            c["details"] for c in host.run("doctor", "--json").json["checks"] if c["name"] == name
        )

    host.write(ACTIVE, '{"demo.text.upper": "lod"}\n')
    assert f"{ACTIVE}:1:21" in details("bindings")
    host.write(SERVICES, "services:\n  loud: {kind: pythoncall, modul: x}\n")
    assert f"{SERVICES}:2:28" in details("services")


def test_a_choice_in_a_project_that_is_not_trusted_is_written_with_a_warning(project: Any) -> None:
    project.write("cogcli.toml", "")
    words = ("bindings", "activate", "text.content.summarize", "python_text_content_summarize_lead")
    assert "warning" not in project.run(*words).assert_ok().err
    del project.env["COGCLI_TRUST_PROJECT"]
    done = project.run(*words).assert_ok()
    assert done.err.count("warning[service.untrusted]") == 1
    assert done.err.endswith("next: cogcli config trust\n")

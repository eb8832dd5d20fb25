"""A person logs in, runs use the login, and its tokens are in no file but the store
(docs/reference/mcp.md#logins)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.oauth_server import MARK, Desk, guarded_server
from support.pages import blocks
from support.project import COGCLI

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[2] / "docs/how-to/log-in-to-services.md"
BROWSER = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20).read()"


@pytest.fixture
def desk() -> Iterator[Desk]:
    with guarded_server() as desk:
        yield desk


@pytest.fixture
def desktop(project: Any, desk: Desk, tmp_path: Path) -> Any:
    """A project with a service that wants a login, and a browser that agrees to everything."""
    browser = tmp_path / "browser.py"
    browser.write_text(BROWSER)
    project.env["BROWSER"] = f"{sys.executable} {browser} %s"
    project.write(
        "services/local/sums.yaml",
        f"id: sums\nkind: mcp\nurl: {desk.resource}\nnetwork: private\nlogin: {{}}\n",
    )
    number = "{type: number, required: true}"
    project.write(
        "capabilities/demo.number.add.yaml",
        'id: demo.number.add\nversion: "1.0.0"\ndescription: Adds.\n'
        f"inputs:\n  a: {number}\n  b: {number}\noutputs:\n  sum: {number}\n"
        "properties: {side_effects: false}\n",
    )
    project.write(
        "bindings/local/demo.number.add/sums.yaml",
        "id: sums_add\ncapability: demo.number.add\nservice: sums\nprotocol: mcp\noperation: add\n"
        "request: {a: input.a, b: input.b}\nresponse: {sum: response.sum}\n",
    )
    project.skill(
        "demo.add",
        "- {id: add, uses: demo.number.add, input: {a: inputs.a, b: 40}, output: {sum: outputs.sum}}",
        inputs=f"{{a: {number}}}",
        outputs=f"{{sum: {number}}}",
    )
    return project


def holders(*folders: Path) -> list[Path]:
    """The files that hold a secret of the server."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [path for path in files if MARK.encode() in path.read_bytes()]


@pytest.mark.sampled(6)
def test_a_login_serves_runs_until_it_is_ended(desktop: Any, desk: Desk) -> None:
    before = desktop.run("run", "demo.add", "-p", "a=2", "--json").assert_exit(3)
    assert before.json["error"]["code"] == "service.login"
    assert "cogcli services login sums" in before.err
    assert not desktop.run("services", "show", "sums", "--json").json["spec"]["login"]["logged_in"]
    assert not list(desktop.root.glob(".cogcli/episodes/ep_*")), "the run began"
    checks = desktop.run("doctor", "--json").json["checks"]
    (found,) = [
        each for each in checks if each["name"] == "sums" and "logged in" in each["message"]
    ]
    assert (found["status"], found["fix"]) == ("error", "cogcli services login sums")

    login = desktop.started("services", "login", "sums").assert_ok()
    assert "logged in as ada@example.org" in login.out
    assert MARK not in login.out + login.err
    shown = desktop.run("services", "show", "sums", "--json").assert_ok().json["spec"]["login"]
    assert (shown["logged_in"], shown["user"]) == (True, "ada@example.org")
    checks = desktop.run("doctor", "--json").json["checks"]
    assert ("ok", "logged in") in {(each["status"], each["message"]) for each in checks}

    for expired in (False, True):
        if expired:
            desk.expire()
        ran = desktop.started("run", "demo.add", "-p", "a=2", "--json", "-v").assert_ok()
        assert ran.json["outputs"] == {"sum": 42}
        assert MARK not in ran.out + ran.err
    desktop.run("trace", "@last", "--io", "--json").assert_ok()
    desktop.run("report", "@last", "-o", "report.html").assert_ok()
    kept = holders(desktop.root, desktop.home)
    assert [path.parent.name for path in kept] == ["logins"]
    assert desktop.root not in kept[0].parents

    ended = desktop.run("services", "logout", "sums").assert_ok()
    assert "the server has revoked the tokens" in ended.out
    assert not desk.tokens
    assert holders(desktop.root, desktop.home) == []
    again = desktop.run("services", "logout", "sums").assert_ok()
    assert "there was no login" in again.out
    desktop.run("run", "demo.add", "-p", "a=2").assert_exit(3)


@pytest.mark.sampled(3)
def test_the_printed_command_adds_the_scopes_that_a_call_lacks(desktop: Any, desk: Desk) -> None:
    desktop.started("services", "login", "sums").assert_ok()
    desk.wanted_scope = "notes:write"
    refused = desktop.run("run", "demo.add", "-p", "a=2", "--json").assert_exit(3)
    assert refused.json["error"]["code"] == "service.login"
    command = "cogcli services login sums --scope notes --scope notes:write"
    assert command in refused.err
    assert len(desk.scopes) == 1, "a run asks for nothing"
    login = desktop.started(*command.split()[1:], "--json").assert_ok()
    assert login.json["login"]["scope"] == "notes notes:write"
    ran = desktop.run("run", "demo.add", "-p", "a=2", "--json").assert_ok()
    assert ran.json["outputs"] == {"sum": 42}
    wrong = desktop.run("services", "login", "sums", "--scope", "a b", "--json").assert_exit(2)
    assert wrong.json["error"]["code"] == "usage.value"


@pytest.mark.sampled(6)
def test_a_login_that_fails_shows_no_traceback(desktop: Any, desk: Desk) -> None:
    desk.iss = "https://id.example.org"
    failed = desktop.started("services", "login", "sums").assert_exit(3)
    assert "another authorization server" in failed.err
    assert "Traceback" not in failed.out + failed.err


@pytest.mark.sampled(3)
def test_a_resume_says_a_missing_login_before_it_records_an_answer(desktop: Any) -> None:
    capability = desktop.root / "capabilities/demo.number.add.yaml"
    capability.write_text(capability.read_text() + "safety: {requires_confirmation: true}\n")
    desktop.started("services", "login", "sums").assert_ok()
    desktop.run("run", "demo.add", "-p", "a=2").assert_exit(5)
    desktop.run("services", "logout", "sums").assert_ok()
    before = (desktop.episode / "events.jsonl").read_bytes()
    approve = ("resume", "@last", "--approve", "demo.number.add", "--json")
    refused = desktop.run(*approve).assert_exit(3)
    assert refused.json["error"]["code"] == "service.login"
    assert "cogcli services login sums" in refused.err
    assert (desktop.episode / "events.jsonl").read_bytes() == before
    desktop.started("services", "login", "sums").assert_ok()
    done = desktop.started(*approve).assert_ok()
    assert done.json["outputs"] == {"sum": 42}
    desktop.run("run", "demo.add", "-p", "a=2").assert_exit(5)
    desktop.run("services", "logout", "sums").assert_ok()
    desktop.run("resume", "@last", "--reject", "demo.number.add").assert_exit(4)


PACK = """
contract_meta: {contract_version: '1.0'}
pack_meta: {pack_id: sums, pack_version: 1.0.0, defaults: {safety_mode: network}}
policy_layer: {permissions: [{role: clerk, allow: [demo.number.add]}]}
tooling_layer: {capabilities: {demo.number.add: {approval_mode: network}}}
decision_layer:
  intents:
    - {id: add, phrases: [add], risk: network, capabilities: [demo.number.add], templates: [add]}
  task_templates:
    - {id: add, reply: Added.,
       steps: [{id: add, uses: demo.number.add, input: {a: 2, b: 40}, output: {sum: outputs.sum}}]}
tone_and_comms: {agent: {role: clerk}}
"""


def test_an_agent_with_a_pack_says_a_missing_login_before_its_run(desktop: Any) -> None:
    desktop.write("packs/sums/1.0.0.yaml", PACK)
    words = ("agent", "invoke", "--pack", "sums@1.0.0", "--intent", "add", "--message", "add")
    refused = desktop.run(*words, "--json").assert_exit(3)
    assert refused.json["error"]["code"] == "service.login"
    assert "cogcli services login sums" in refused.err
    assert not list(desktop.root.glob(".cogcli/episodes/ep_*")), "the run began"


@pytest.mark.sampled(6)
def test_the_guide_is_followed(desktop: Any, desk: Desk) -> None:
    services = [block for block in blocks(GUIDE) if block.named == "services/local/notes.yaml"]
    assert len(services) == 2, "for a person, and without one"
    for block in services:
        desktop.write(block.named, block.text)
        desktop.run("validate", block.named).assert_ok()
    here = services[0].text.replace("https://notes.example/mcp", desk.resource)
    desktop.write("services/local/notes.yaml", f"{here}network: private\n")
    login = desktop.started("services", "login", "notes").assert_ok()
    assert "logged in as ada@example.org" in login.out
    assert "ada@example.org" in desktop.run("services", "show", "notes").assert_ok().out
    desktop.run("services", "logout", "notes").assert_ok()


@pytest.mark.sampled(6)
def test_ctrl_c_ends_the_wait_for_a_browser(desktop: Any) -> None:
    process = subprocess.Popen(
        [COGCLI, "services", "login", "sums", "--no-browser"], cwd=desktop.root, env=desktop.env,
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    while "response_type=code" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert holders(desktop.home) == []


@pytest.mark.sampled(6)
def test_a_project_that_is_not_trusted_uses_no_login(desktop: Any, desk: Desk) -> None:
    desktop.started("services", "login", "sums").assert_ok()
    asked = len(desk.requests)
    untrusted = {"COGCLI_TRUST_PROJECT": ""}
    for words in (("services", "login", "sums"), ("run", "demo.add", "-p", "a=2")):
        refused = desktop.run(*words, "--json", env=untrusted).assert_exit(3)
        assert refused.json["error"]["code"] in ("service.untrusted", "binding.ineligible")
        assert "config trust" in refused.out
    assert len(desk.requests) == asked


def test_a_service_without_a_login_is_a_usage_error(desktop: Any) -> None:
    refused = desktop.run("services", "login", "official_text", "--json").assert_exit(2)
    assert refused.json["error"]["code"] == "usage.value"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ("auth_ref: TOKEN\nlogin: {}", "service.auth"),
        ("metadata: {headers: {Authorization: '${A}'}}\nlogin: {}", "service.auth"),
        ("login: {grant: client_credentials}", "service.auth"),
        ("login: {client_secret: SECRET}", "service.auth"),
        ("login: {issuer: '{host}'}", "service.url"),
        ("login: {client_id: my-client}", "secret.literal"),
        ("login: {signing_key: '-----BEGIN PRIVATE KEY-----'}", "secret.literal"),
        ("login: {client_id: A, issuer: 'https://a.example', signing_key: K}", "service.auth"),
        ("login: {signing_algorithm: ES256}", "service.auth"),
        ("login: {client_id: A, client_metadata_url: 'https://a.example/x'}", "service.auth"),
        ("login: {client_metadata_url: 'http://a.example/x'}", "service.url"),
        ("login: {client_metadata_url: 'https://a.example/'}", "service.url"),
        ("login: {endpoints: {authorize: /a, token: /t}}", "service.auth"),
        ("login: {client_id: A, endpoints: {token: /t}}", "service.auth"),
        (
            "login: {endpoints: {authorize: /a, token: 'https://b.example/t', register: /r}}",
            "service.auth",
        ),
        ("login: {client_id: A, endpoints: {authorize: //b.example/a, token: /t}}", "service.url"),
        (
            "login: {client_id: A, endpoints: {authorize: /a, token: 'http://b.example/t'}}",
            "service.url",
        ),
        (
            "login: {client_id: A, endpoints: {authorize: /a, token: 'https://u@b.example/t'}}",
            "service.url",
        ),
        ("login: {client_id: A, endpoints: {authorize: '/a?key=x', token: /t}}", "service.url"),
    ],
)
def test_a_login_that_cannot_work_is_an_error_of_its_file(
    project: Any, keys: str, code: str
) -> None:
    project.write("cogcli.toml", "")
    project.write(
        "services/local/sums.yaml", f"id: sums\nkind: mcp\nurl: https://a.example/mcp\n{keys}\n"
    )
    found = project.run("validate", "--json").assert_exit(1).json
    assert code in {problem["code"] for problem in found["problems"]}


@pytest.mark.sampled(6)
def test_a_damaged_login_is_forgotten(desktop: Any) -> None:
    desktop.started("services", "login", "sums").assert_ok()
    (kept,) = holders(desktop.home)
    os.truncate(kept, 10)
    refused = desktop.run("run", "demo.add", "-p", "a=2").assert_exit(3)
    assert "cogcli services logout sums --forget" in refused.err
    shown = desktop.run("services", "show", "sums", "--json").assert_ok().json["spec"]["login"]
    assert not shown["logged_in"]
    desktop.run("services", "logout", "sums", "--forget").assert_ok()
    assert not kept.exists()

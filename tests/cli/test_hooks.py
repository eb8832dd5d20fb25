"""Hooks: programs of the settings that get a message about a run (docs/reference/execution.md#hooks)."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.loopback_servers import reply, served
from support.pages import blocks
from support.project import Project

from cogcli import api
from cogcli.episode.schemas import SCHEMAS

pytestmark = pytest.mark.sampled(12)

ROOT = Path(__file__).parents[2]
DESK = ROOT / "docs/examples/support-desk"
UNDER = ("--pack", "support-desk@4.0.0", "--intent", "support.refund", "--user", "cust_7", "-q")
REFUND = ("run", "support.refund", "-p", "order_id=ord_881", *UNDER)
GREET = ("run", "demo.greet", "-p", "text=hi")
REVIEW = ("run", "demo.review", "-p", "text=hi")
KEEP = """\
import json, os, sys
with open({file!r}, "a") as file:
    print(json.dumps({{"message": json.load(sys.stdin), "env": dict(os.environ), "args": sys.argv[1:],
                      "cwd": os.getcwd()}}), file=file)
"""


class Hook:
    """A program that keeps its messages in a file."""

    def __init__(self, project: Project, folder: Path) -> None:
        self.file = project.home / "messages.jsonl"
        self.script = folder / "keep.py"
        folder.mkdir(parents=True, exist_ok=True)
        self.script.write_text(KEEP.format(file=str(self.file)))

    def command(self, *words: str) -> str:
        return json.dumps([sys.executable, "keep.py", *words])

    @property
    def got(self) -> list[dict[str, Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return list(map(json.loads, lines))

    @property
    def names(self) -> list[str]:
        return [each["message"]["hook"] for each in self.got]


def of_user(project: Project, text: str) -> Path:
    """Write the user's settings, and return their folder."""
    folder = project.home / ".config/cogcli"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)
    return folder


def of_user_for_all(project: Project) -> Hook:
    hook = Hook(project, project.home / ".config/cogcli")
    lines = [f"{name} = {hook.command(name)}" for name in ("on_pause", "on_failure", "on_end")]
    of_user(project, "\n".join(["[hooks]", *lines]))
    return hook


@pytest.fixture
def desk(project: Project) -> Project:
    ignored = shutil.ignore_patterns("__pycache__", ".cogcli")
    shutil.copytree(DESK, project.root, dirs_exist_ok=True, ignore=ignored)
    return project


def test_a_pause_is_sent_once_and_the_end_once(desk: Project) -> None:
    hook = of_user_for_all(desk)
    desk.run(*REFUND).assert_exit(5)
    (sent,) = hook.got
    message = sent["message"]
    jsonschema.validate(message, SCHEMAS["hook"]())
    assert (message["hook"], message["status"], message["exit_code"]) == ("on_pause", "pending", 5)
    (request,) = message["requests"]
    assert (request["action"], request["gate"], request["roles"]) == (
        "payments.refund", "GATE_FINANCE_APPROVAL", ["finance"],
    )  # fmt: skip
    deciding = {each["name"]: each["text"] for each in request["arguments"] if each["decides"]}
    assert deciding == {"order_id": "ord_881", "amount": "240.0"}
    assert request["approve"].startswith(f"cogcli approvals approve {request['approval_id']}")
    assert Path(message["directory"]).name == message["episode_id"] == desk.episode.name
    desk.run("resume", "@last").assert_exit(5)
    assert hook.names == ["on_pause"]
    desk.run("approvals", "approve", "@last", "--by", "ann:finance").assert_ok()
    assert hook.names == ["on_pause"]
    desk.run("resume", "@last").assert_ok()
    assert hook.names == ["on_pause", "on_end"]
    desk.run("resume", "@last").assert_exit(2)
    desk.run("replay", "@last").assert_ok()
    desk.run("verify", "@last").assert_ok()
    assert hook.names == ["on_pause", "on_end"]


def test_a_new_request_of_a_resumed_run_is_sent(desk: Project) -> None:
    """The approval comes after the request has expired: the run asks again."""
    hook = of_user_for_all(desk)
    start = {"COGCLI_FAKE_CLOCK": "1800000000"}
    desk.run(*REFUND, env=start).assert_exit(5)
    late = {"COGCLI_FAKE_CLOCK": str(1_800_000_000 + 400 * 86_400)}
    desk.run("resume", "@last", "--approve", "payments.refund", "--by", "ann:finance", env=late)
    first, second = (each["message"]["requests"][0]["approval_id"] for each in hook.got)
    assert first != second


def test_a_failure_is_sent_before_the_end_with_its_recorded_error(demo: Project) -> None:
    hook = of_user_for_all(demo)
    demo.run(*GREET, "--tag", "night=7").assert_ok()
    assert hook.names == ["on_end"]
    assert (hook.got[0]["message"]["error"], hook.got[0]["message"]["tags"]) == (
        None,
        {"night": "7"},
    )
    failed = demo.run(*REVIEW, "--json")
    assert hook.names == ["on_end", "on_failure", "on_end"]
    message = hook.got[1]["message"]
    assert message["exit_code"] == failed.code
    assert message["error"]["code"] == failed.json["error"]["code"]
    assert message["error"]["step"] == failed.json["error"]["step"]
    demo.run("rerun", "@last")
    assert hook.names[3:] == ["on_failure", "on_end"]


def test_a_hook_gets_no_secrets_and_starts_no_hooks(demo: Project) -> None:
    hook = of_user_for_all(demo)
    secret = {"DEMO_API_KEY": "sk-live-93jd83jd93jd", "COGCLI_MAX_WORKERS": "2"}
    demo.run(*GREET, env=secret).assert_ok()
    environ = hook.got[0]["env"]
    assert environ["COGCLI_HOOK"] == "on_end"
    assert not secret.keys() & environ.keys()
    assert Path(hook.got[0]["cwd"]) == demo.home / ".config/cogcli"
    demo.run(*GREET, env={"COGCLI_HOOK": "on_end"}).assert_ok()
    assert len(hook.got) == 1


def test_only_the_settings_of_a_trusted_project_declare_hooks(demo: Project) -> None:
    del demo.env["COGCLI_TRUST_PROJECT"]
    hook = Hook(demo, demo.root)
    line = 'on_end = ["./keep.py"]'
    hook.script.write_text(f"#!{sys.executable}\n{hook.script.read_text()}")
    hook.script.chmod(0o755)
    demo.write("cogcli.toml", f"[hooks]\n{line}\n")
    brief = ("run", "text.brief", "-p", "text=hello")
    demo.run(*brief).assert_ok()
    assert hook.got == []
    demo.run("config", "trust", "--yes").assert_ok()
    demo.run(*brief).assert_ok()
    assert Path(hook.got[0]["cwd"]) == demo.root
    hook.script.write_text(f"{hook.script.read_text()}\n# changed")
    demo.run(*brief).assert_ok()
    assert len(hook.got) == 1  # the script is among the accepted files
    assert "changed keep.py" in demo.run("config", "show", "trust").out


def test_a_foreign_project_offers_no_program_to_a_hook_of_the_user(demo: Project) -> None:
    hook = Hook(demo, demo.root)
    hook.script.chmod(0o755)
    of_user(demo, f"[hooks]\non_end = {hook.command()}\non_failure = ['./keep.py']\n")
    result = demo.run(*REVIEW, "--json", env={"PATH": f".:{demo.env['PATH']}"})
    texts = [each["message"] for each in result.json["warnings"] if each["code"] == "hook.failed"]
    assert len(texts) == 2
    assert "`hooks.on_failure`" in texts[0]
    assert "config.toml:3)" in texts[0]
    assert "`./keep.py` is not found" in texts[0]
    assert hook.got == []


def test_a_schedule_that_runs_quietly_learns_of_a_failed_hook(demo: Project) -> None:
    of_user(demo, "[hooks]\non_end = ['./none']\n")
    assert demo.run(*GREET, "-q").assert_ok().err.startswith("warning[hook.failed]: ")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["sh", "-c", "echo no such list >&2; exit 3"], "ended with 3: no such list"),
        (["sh", "-c", "sleep 600 & echo $! > child; sleep 600"], "took longer than 0.5 s"),
        (["./none"], "is not found"),
        (["sh", "-c", "kill -9 $$"], "ended with -9"),
    ],
)
def test_a_hook_that_fails_is_a_warning(demo: Project, command: list[str], says: str) -> None:
    folder = of_user(demo, f"[hooks]\non_end = {json.dumps(command)}\ntimeout_s = 0.5\n")
    result = demo.run(*GREET, "--json").assert_ok()
    (warning,) = [each for each in result.json["warnings"] if each["code"] == "hook.failed"]
    assert "config.toml:2): " in warning["message"]
    assert says in warning["message"]
    child = folder / "child"
    if child.exists():
        number = int(child.read_text())
        while Path(f"/proc/{number}").exists() and _is_alive(number):
            time.sleep(0.01)


def test_a_hook_that_fails_is_a_warning_of_the_interface_for_python(demo: Project) -> None:
    of_user(demo, "[hooks]\non_end = ['./none']\n")
    opened = api.Project(demo.root, environ=demo.env)
    (warning,) = opened.run("text.brief", {"text": "hi"}).warnings
    assert warning["code"] == "hook.failed"
    assert "`./none` is not found" in warning["message"]


def _is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("value", ["'notify'", "['a', 3]", "['']", "['a\\u0000b']"])
def test_a_command_is_a_list_of_words(demo: Project, value: str) -> None:
    value = value.replace("'", '"')
    demo.write("cogcli.toml", f"[hooks]\non_end = {value}\n")
    error = demo.run(*GREET, "--json").assert_exit(3).json["error"]
    assert (error["code"], error["line"]) == ("config.key", 2)


def test_lines_of_a_batch_and_test_cases_call_no_hooks(demo: Project) -> None:
    hook = of_user_for_all(demo)
    demo.write("in.jsonl", '{"text": "a"}\n')
    demo.run("run", "demo.greet", "--batch", "in.jsonl", "-o", "out.jsonl").assert_ok()
    demo.write(
        "skills/local/demo/greet/tests/cases.yaml",
        """
        cases:
          - description: greets
            inputs: {text: hi}
            stubs: {demo.text.upper: [{output: {text: HI}}, {output: {text: HI}}]}
            expect: {outputs: {text: HI}}
        """,
    )
    demo.run("test", "demo.greet").assert_ok()
    assert hook.got == []


def test_the_programs_of_the_guide(desk: Project) -> None:
    """With a mail program and a webhook of this test."""
    page = ROOT / "docs/how-to/hooks.md"
    settings, mail, chat = (each for each in blocks(page) if each.language in ("toml", "python"))
    folder = of_user(desk, settings.text)
    for name, block in (("mail.py", mail), ("chat.py", chat)):
        (folder / name).write_text(block.text)
        (folder / name).chmod(0o755)
    program = desk.home / "bin/sendmail"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncat > "{desk.home}/sent"\n')
    program.chmod(0o755)
    path = os.pathsep.join(
        [str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    desk.env["PATH"] = path
    posted: list[dict[str, str]] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        posted.append(json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
        reply()(handler)

    with served(answer) as address:
        (folder / "chat.url").write_text(f"{address}\n")
        waits = desk.run(*REFUND, "--json").assert_exit(5)
        desk.run("approvals", "reject", "@last", "--by", "ann:finance", "--resume").assert_exit(4)
    assert [each for each in waits.json["warnings"] if each["code"] == "hook.failed"] == []
    letter = (desk.home / "sent").read_text()
    assert "To: ops@example.com" in letter
    assert "amount =3D 240.0" in letter or "amount = 240.0" in letter
    assert "cogcli approvals approve ap_" in letter
    assert posted[0]["text"].startswith("support.refund failed: safety.rejected ")

"""`gateway hook`: calls that the host of an agent makes itself, decided and recorded
(docs/reference/hosts.md).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gateway_client import events_of
from support.hook_host import HookHost

from cogcli.gateway.hook_wire import SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no sockets of files")


@pytest.fixture
def host(project: Any) -> Iterator[HookHost]:
    """Claude Code in a project, with one tool that is marked read-only. Its server is ended."""
    project.write("cogcli.toml", "")
    project.run("gateway", "mark", "claude-code", "--read-only", "Read").assert_ok()
    host = HookHost(project)
    yield host
    if host.folder.exists() and list(host.folder.glob("*.sock")):
        host.end()


def approve_all(project: Any, verb: str = "approve") -> None:
    """A person's answer to each open request."""
    found = project.run("approvals", "ls", "--json").assert_ok().json["approvals"]
    assert found
    project.run("approvals", verb, *(each["approval_id"] for each in found)).assert_ok()


def test_the_calls_of_a_host_are_one_governed_run(host: HookHost) -> None:
    project = host.project
    assert host.ask("Read", "t1", file_path="a")[0] == "allow"
    host.tell("Read", "t1", {"content": "hi"}, file_path="a")
    decision, reason = host.ask("Bash", "t2", "--hold", "0", command="ls")
    assert decision == "deny"
    assert "cogcli approvals approve ap_" in reason
    approve_all(project)
    assert host.ask("Bash", "t3", "--hold", "0", command="ls")[0] == "allow"
    host.tell("Bash", "t3", {"stdout": "a"}, command="ls")
    assert host.ask("Write", "t4", "--hold", "0", file_path="a")[0] == "deny"
    approve_all(project, "reject")
    assert "safety.rejected" in host.ask("Write", "t4", "--hold", "0", file_path="a")[1]
    host.end()

    events = events_of(project.episode)
    called = [event["payload"] for event in events if event["event_type"] == "call.requested"]
    assert [each["capability"] for each in called] == ["host.read", "host.bash", "host.write"]
    assert called[0]["input"]["arguments"] == {"file_path": "a"}
    closed = {
        event["step_id"]: event for event in events if event["event_type"] == "step.completed"
    }
    assert set(closed) >= {"c1", "c2"}
    status = project.run("gateway", "status", "--json").assert_ok().json["sessions"][0]
    assert (status["session"], status["calls"], status["done"], status["denied"]) == (
        "claude-code.s1",
        3,
        2,
        1,
    )
    project.run("verify", "@last").assert_ok()
    project.run("replay", "@last").assert_ok()


def test_a_call_whose_end_is_not_reported_is_in_doubt(host: HookHost) -> None:
    project = host.project
    assert host.ask("Bash", "t1", "--hold", "0", command="ls")[0] == "deny"
    approve_all(project)
    assert host.ask("Bash", "t1", "--hold", "0", command="ls")[0] == "allow"
    assert host.ask("Read", "t2", file_path="a")[0] == "allow"  # the session continues
    host.end()
    status = project.run("gateway", "status", "--json").assert_ok().json["sessions"][0]
    assert (status["status"], status["in_doubt"]) == ("pending", 1)
    again = project.run("resume", "@last", "--in-doubt", "rerun").assert_ok()
    assert "only the host of the agent can make this call" in again.err
    project.run("verify", "@last").assert_ok()


def test_a_session_survives_the_kill_of_its_server(host: HookHost) -> None:
    project = host.project
    assert host.ask("Read", "t1", file_path="a")[0] == "allow"
    first = project.episode
    pid = _server_of(host)
    os.kill(pid, signal.SIGKILL)
    host.wait_for_end()
    # The project of a session stays what it was, wherever the agent is now.
    elsewhere = project.root.parent / "elsewhere"
    elsewhere.mkdir()
    project.root, inside = elsewhere, project.root
    assert host.ask("Read", "t2", file_path="b")[0] == "allow"
    project.root = inside
    host.end()
    started = next(
        event["payload"]["gateway"]
        for episode in first.parent.iterdir()
        if episode.name != first.name and episode.name.startswith("ep_")
        for event in events_of(episode)[:1]
    )
    assert started["continues"] == first.name
    for episode in (first.name, "@last"):
        project.run("verify", episode).assert_ok()


def _server_of(host: HookHost) -> int:
    """The process at the other end of the socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        before = Path.cwd()
        os.chdir(host.folder)
        try:
            connection.connect(f"claude-code.{host.session}.sock")
        finally:
            os.chdir(before)
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(packed[:4], sys.byteorder)


def test_two_hooks_at_once_share_one_server(host: HookHost) -> None:
    inputs = [
        host.event("PreToolUse", tool_name="Read", tool_input={"file_path": n}, tool_use_id=f"t{n}")
        for n in range(4)
    ]
    processes = [host.start(data) for data in inputs]
    assert [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    host.end()
    events = events_of(host.project.episode)
    assert sum(event["event_type"] == "call.requested" for event in events) == 4


def test_a_pack_decides_and_what_a_hook_cannot_do_is_denied(host: HookHost) -> None:
    host.project.write("packs/desk/1.0.0.yaml", PACK)
    flags = ("--pack", "desk@1.0.0", "--intent", "help", "--user", "ada")
    assert host.ask("Bash", "t1", *flags, command="ls")[0] == "allow"
    decision, reason = host.ask("Bash", "t2", *flags, command="rm")
    assert decision == "deny"
    assert "no_rm" in reason
    assert "obligation `mask:response`" in host.ask("Read", "t3", *flags, command="a")[1]
    assert "permission_denied" in host.ask("Write", "t4", *flags, command="a")[1]
    assert "other flags" in host.ask("Bash", "t5", command="ls")[1]
    host.end()
    host.project.run("verify", "@last").assert_ok()


PACK = """
contract_meta: {contract_version: "1.0"}
pack_meta: {pack_id: desk, pack_version: 1.0.0, defaults: {safety_mode: destructive}}
policy_layer:
  permissions: [{role: clerk, allow: [host.bash, host.read]}]
  rules:
    - {rule_id: no_rm, mode: enforce, if: {"==": [{var: args.arguments.command}, rm]}, then: {verdict: deny}}
    - rule_id: masked
      mode: enforce
      if: {"==": [{var: args.tool}, Read]}
      then: {verdict: allow, obligations: ["mask:response"]}
tooling_layer: {capabilities: {host.bash: {}, host.read: {}}}
decision_layer:
  intents: [{id: help, phrases: [help], risk: destructive, capabilities: [host.bash, host.read]}]
tone_and_comms: {agent: {role: clerk}}
"""


def test_a_denied_call_that_ran_is_an_alarm_of_verify(host: HookHost) -> None:
    assert host.ask("Bash", "t1", "--hold", "0", command="ls")[0] == "deny"
    host.tell("Bash", "t1", {"stdout": "a"}, command="ls")
    host.end()
    found = host.project.run("verify", "@last").assert_exit(1)
    assert "a call of `Bash` was denied, but ran" in found.out
    host.project.run("replay", "@last").assert_ok()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SECONDS)
def test_a_fault_is_a_denial_in_the_words_of_the_host(name: str, project: Any) -> None:
    host = HookHost(project)
    for data, flags in (
        (b"", ()),
        (b'{"session_id": "s1"', ()),
        (b"[" * 100_000, ()),
        (b'{"a": 1}', ()),
        (b'{"a": 1}', ("--pack",)),
        (b'{"a": 1}', ("--wrong", "x")),
    ):
        code, answer, err = host.run(data, *flags, host=name)
        assert code == (0 if name == "copilot" else 2)
        assert "deny" in json.dumps(answer)
        assert err.startswith("cogcli denied this call: ")
    assert not list(host.folder.glob("*.sock"))


def test_a_fault_of_the_session_is_a_denial(host: HookHost) -> None:
    reason = host.ask("Read", "t1", "--pack", "none@1.0.0", "--intent", "help", file_path="a")[1]
    assert "pack" in reason
    code, _, err = host.run(host.event("PreToolUse", tool_name="Read", tool_use_id="t2"))
    assert (code, "`tool_input`" in err) == (2, True) or "other flags" in err
    host.end()
    host.run(b"{}", host="nothing")
    found = subprocess.run(
        [sys.executable, "-m", "cogcli", "gateway", "hook", "nothing"],
        capture_output=True, check=False, env=host.project.env, cwd=host.project.root,
    )  # fmt: skip
    assert found.returncode == 2


def test_a_folder_that_others_can_enter_is_not_used(project: Any) -> None:
    host = HookHost(project)
    host.folder.mkdir(parents=True)
    host.folder.chmod(0o755)
    assert "is not a folder of this user alone" in host.ask("Read", "t1", file_path="a")[1]


@pytest.mark.skipif(
    sys.platform == "win32" or os.getuid() != 0, reason="only root can be another user"
)
def test_a_process_of_another_user_gets_no_answer(host: HookHost) -> None:
    assert host.ask("Read", "t1", file_path="a")[0] == "allow"
    path = host.folder / "claude-code.s1.sock"
    host.folder.chmod(0o755)
    path.chmod(0o777)
    with socket.socket(socket.AF_UNIX) as connection:
        child = os.fork()
        if not child:
            try:
                os.chdir(host.folder)
                os.setuid(65534)
                connection.connect(path.name)
                connection.settimeout(30)
                os._exit(0 if connection.recv(1) == b"" else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    host.folder.chmod(0o700)

"""The configuration of hosts: what is written, what it does when cogcli does not start, and what `doctor` finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cogcli.app.settings import Settings
from cogcli.app.settings.trust_needs import HOST_FILES
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.gateway.hosts import HOSTS
from cogcli.gateway.hosts_config import (
    CONFIGS,
    build_config,
    commands_in,
    hook_command,
    merge_config,
    read_config,
    write_config,
)
from cogcli.gateway.hosts_doctor import VERSIONS, check_host, has_fault
from cogcli.gateway.hosts_server import (
    SERVER_FILES,
    build_server,
    format_document,
    write_server_file,
)

NAMES = sorted(HOSTS)
posix = pytest.mark.skipif(sys.platform == "win32", reason="hosts start a shell")


def settings_in(folder: Path, **environ: str) -> Settings:
    (folder / "cogcli.toml").touch()
    return Settings({}, {"HOME": str(folder / "home"), "PATH": "", **environ}, base=str(folder))


@posix
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("program", ["", "#!/bin/sh\nkill -9 $$\n", "#!/bin/sh\nexit 1\n"])
def test_a_hook_that_does_not_run_denies(name: str, program: str, tmp_path: Path) -> None:
    if program:
        (tmp_path / "cogcli").write_text(program)
        (tmp_path / "cogcli").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", hook_command(HOSTS[name], ["--hold", "0"])],
        input=b"{}", capture_output=True, check=False, env={"PATH": str(tmp_path)},
    )  # fmt: skip
    if name == "copilot":
        assert json.loads(done.stdout)["permissionDecision"] == "deny"
        assert done.returncode == 0
    else:
        assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("name", NAMES)
def test_hooks_are_merged_and_nothing_else_changes(name: str, tmp_path: Path) -> None:
    host, settings = HOSTS[name], settings_in(tmp_path)
    event = CONFIGS[name].events[0]
    other = {"command": "other"}
    path = tmp_path / CONFIGS[name].file
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"model": "m", "hooks": {event: [other], "Other": [other]}}))
    for flags in ([], ["--pack", "desk@1.0.0", "--intent", "help"]):
        assert write_config(settings, host, flags) == str(path)
        written = json.loads(path.read_text())
        assert written["model"] == "m"
        assert written["hooks"]["Other"] == [other]
        assert len(written["hooks"][event]) == 2
        assert written["hooks"][event][0] == other
        assert hook_command(host, flags) in commands_in(written["hooks"][event][1])
    assert merge_config(host, written, flags) == written
    assert set(build_config(host, [])["hooks"]) == set(CONFIGS[name].events)
    assert set(CONFIGS[name].decides) <= set(host.events) >= set(CONFIGS[name].events)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}', "// a\n{}"]
)
def test_a_file_that_cannot_be_read_is_left_alone(text: str, tmp_path: Path) -> None:
    host, settings = HOSTS["claude-code"], settings_in(tmp_path)
    path = tmp_path / CONFIGS[host.name].file
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(UnusableEnvironment) as caught:
        write_config(settings, host, [])
    assert caught.value.code == "gateway.file"
    assert path.read_text() == text
    assert has_fault(list(check_host(settings, host)))
    path.unlink()
    assert read_config(host, str(tmp_path)) is None


def host_program(folder: Path, name: str, version: str) -> dict[str, str]:
    """Variables with which the host and cogcli are in PATH."""
    for program, text in ((VERSIONS[name].program, f"echo host {version}"), ("cogcli", "")):
        (folder / program).write_text(f"#!/bin/sh\n{text}\n")
        (folder / program).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}/bin"}


@posix
@pytest.mark.parametrize("name", NAMES)
def test_doctor_finds_nothing_to_correct_after_config(name: str, tmp_path: Path) -> None:
    host = HOSTS[name]
    newest = max(VERSIONS[name].hooks, VERSIONS[name].switch)
    settings = settings_in(tmp_path, **host_program(tmp_path, name, newest))
    before = list(check_host(settings, host))
    assert has_fault(before)
    assert f"cogcli gateway config {name} --write" in {line.next for line in before}
    write_config(settings, host, [])
    lines = list(check_host(settings, host))
    assert not has_fault(lines), lines
    assert any(line.state == "open" for line in lines)
    old = settings_in(tmp_path, **host_program(tmp_path, name, "0.0.1"))
    assert has_fault(list(check_host(old, host)))
    unnamed = settings_in(tmp_path, **host_program(tmp_path, name, ""))
    assert has_fault(list(check_host(unnamed, host)))


@pytest.mark.parametrize("name", SERVER_FILES)
def test_config_names_the_gateway_as_a_server_and_keeps_all_else(name: str, tmp_path: Path) -> None:
    host, settings = HOSTS[name], settings_in(tmp_path)
    required = {"tools": ["*"]} if name == "copilot" else {}
    own = {"command": "cogcli", "args": ["gateway", "serve", "--hold", "5"], **required}
    path = Path(write_server_file(settings, host, ["--hold", "5"]))
    assert json.loads(path.read_text()) == {"mcpServers": {"cogcli": own}}
    other = {"command": "x", "args": []}
    path.write_text(json.dumps({"theme": "dark", "mcpServers": {"git": other, "cogcli": other}}))
    write_server_file(settings, host, [])
    written = json.loads(path.read_text())
    words = ["gateway", "serve"]
    if SERVER_FILES[name] in HOST_FILES:
        words += ["--from", SERVER_FILES[name]]
    assert written["theme"] == "dark"
    entry = {"command": "cogcli", "args": words, **required}
    assert written["mcpServers"] == {"git": other, "cogcli": entry}


def test_two_hosts_that_share_a_file_share_the_entry(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    for name in ("copilot", "claude-code"):
        path = Path(write_server_file(settings, HOSTS[name], []))
    assert path.name == ".mcp.json"
    own = {"command": "cogcli", "args": ["gateway", "serve"], "tools": ["*"]}
    assert json.loads(path.read_text()) == {"mcpServers": {"cogcli": own}}
    remote = {"url": "https://h.example/mcp", "headers": {}}
    path.write_text(json.dumps({"mcpServers": {"cogcli": remote}}))
    write_server_file(settings, HOSTS["copilot"], [])
    assert json.loads(path.read_text()) == {"mcpServers": {"cogcli": own}}


def test_a_file_that_config_cannot_read_or_write_is_left_alone(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    path = tmp_path / SERVER_FILES["claude-code"]
    for content in ("{", "[]", '{"mcpServers": []}'):
        path.write_text(content)
        with pytest.raises(CogcliError) as caught:
            write_server_file(settings, HOSTS["claude-code"], [])
        assert caught.value.code == "gateway.file"
        assert path.read_text() == content
    assert set(SERVER_FILES) | {"codex"} == set(HOSTS)


CODEX_TABLE = '[mcp_servers.cogcli]\ncommand = "cogcli"\nargs = ["gateway", "serve"]\n'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "# mine\nmodel = 'm'  # kept\r\n",
        '[mcp_servers.git]\ncommand = "x"',
        '[a]\nb = """\n[c]\n"""\n',
    ],
)
def test_a_table_is_added_to_the_file_of_codex_and_no_byte_changes(
    content: str, tmp_path: Path
) -> None:
    settings, path = settings_in(tmp_path), tmp_path / ".codex/config.toml"
    path.parent.mkdir()
    if content:
        path.write_bytes(content.encode())
    for _ in range(2):
        assert write_server_file(settings, HOSTS["codex"], []) == str(path)
        written = path.read_bytes().decode()
        assert written.startswith(content)
        assert written.endswith(CODEX_TABLE)
        assert written.count("[mcp_servers.cogcli]") == 1
    assert format_document(build_server(settings, HOSTS["codex"], [])) == CODEX_TABLE


@pytest.mark.parametrize(
    "content",
    [
        b"a = ",
        b"\xff",
        b"mcp_servers = 1",
        b"mcp_servers = {git = {command = 'x'}}",
        b"[[mcp_servers]]",
        b"[mcp_servers.cogcli]\ncommand = 'other'",
        b"[" * 5000,
    ],
)
def test_a_file_of_codex_that_cannot_be_extended_is_left_alone(
    content: bytes, tmp_path: Path
) -> None:
    settings, path = settings_in(tmp_path), tmp_path / ".codex/config.toml"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(UnusableEnvironment) as caught:
        write_server_file(settings, HOSTS["codex"], [])
    assert caught.value.code == "gateway.file"
    assert "cogcli gateway config codex --server" in caught.value.hint
    assert path.read_bytes() == content


@posix
def test_a_file_of_a_host_keeps_its_permissions(tmp_path: Path) -> None:
    settings, path = settings_in(tmp_path), tmp_path / CONFIGS["gemini-cli"].file
    write_config(settings, HOSTS["gemini-cli"], [])
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o600)
    write_server_file(settings, HOSTS["gemini-cli"], [])
    assert path.stat().st_mode & 0o777 == 0o600


@posix
def test_no_folder_is_made_outside_the_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    settings = settings_in(project)
    (project / ".codex").symlink_to(tmp_path / "outside")
    with pytest.raises(CogcliError) as caught:
        write_server_file(settings, HOSTS["codex"], [])
    assert caught.value.code == "project.link"
    assert not (tmp_path / "outside").exists()


def claude(hook: dict[str, Any], **entry: Any) -> dict[str, Any]:
    command = "cogcli gateway hook claude-code || exit 2"
    whole = {"command": command, "onFailure": "block", "timeout": 60} | hook
    hooks = {event: [{"hooks": [whole], **entry}] for event in CONFIGS["claude-code"].events}
    return {"hooks": hooks}


@posix
@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (claude({}), ""),
        (claude({"command": "cogcli gateway hook claude-code"}), "does not deny if cogcli"),
        (claude({"onFailure": "allow"}), "`onFailure` is not `block`"),
        (claude({"timeout": 30}), "time limit"),
        (claude({"timeout": True}), "time limit"),
        (claude({}, matcher="Bash"), "leaves tools out"),
        ({**claude({}), "disableAllHooks": True}, "turns all hooks off"),
        ({"hooks": {}}, "has no hook for PreToolUse"),
    ],
)
def test_doctor_names_what_fails_open(document: Any, fault: str, tmp_path: Path) -> None:
    host = HOSTS["claude-code"]
    settings = settings_in(tmp_path, **host_program(tmp_path, host.name, "2.1.300"))
    path = tmp_path / CONFIGS[host.name].file
    path.parent.mkdir()
    path.write_text(json.dumps(document))
    found = [line.text for line in check_host(settings, host) if line.state == "fault"]
    assert any(fault in text for text in found) if fault else not found

"""What holds for every command: streams, envelopes, exit codes, quiet readers, no traceback."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.slow_run import slow_run

from cogcli.base.errors import FAILURE_OF
from cogcli.cli.app import COMMANDS
from cogcli.cli.typer_app import load

pytestmark = pytest.mark.sampled(8)

COGCLI = str(Path(sys.executable).parent / "cogcli")
ENVELOPE = ["schema", "command", "status", "exit_code", "warnings", "error"]
GREET = ("run", "demo.greet", "-p", "text=hi")

SUCCESSES: dict[str, tuple[str, ...]] = {
    "run": GREET,
    "run --plan": (*GREET, "--plan"),
    "trace EP": ("trace",),
    "trace SKILL": ("trace", "demo.greet", "-p", "text=hi"),
    "trace --view timeline": ("trace", "--view", "timeline"),
    "trace --view lineage": ("trace", "--view", "lineage"),
    "trace --why": ("trace", "--why", "outputs.text"),
    "trace --follow": ("trace", "--follow", "-q"),
    "trace --format mermaid": ("trace", "--format", "mermaid"),
    "diff": ("diff", "@last", "@last"),
    "report": ("report", "@last", "-o", "page.html"),
    "graph SKILL": ("graph", "demo.review"),
    "graph EP": ("graph", "@last"),
    "gc --dry-run": ("gc", "--keep", "0", "--dry-run"),
    "gc --yes": ("gc", "--keep", "0", "--yes"),
    "gc --pin": ("gc", "--pin", "@last"),
    "state show": ("state", "show"),
    "state show --path": ("state", "show", "--path", "episode.id"),
    "state show --check": ("state", "show", "--check"),
    "ls": ("ls",),
    "episodes archive": ("episodes", "archive", "@last"),
    "episodes extract": ("episodes", "extract", "@last"),
    "verify": ("verify",),
    "validate": ("validate",),
    "doctor": ("doctor",),
    "openapi verify-bindings": (
        "openapi",
        "verify-bindings",
        "--scenario",
        "data.schema.validate.mock",
    ),
    "openapi verify-invoker": ("openapi", "verify-invoker"),
    "skills ls": ("skills", "ls"),
    "skills show": ("skills", "show", "demo.greet"),
    "skills search": ("skills", "search", "demo"),
    "skills explain": ("skills", "explain", "demo.greet"),
    "capabilities ls": ("capabilities", "ls"),
    "capabilities show": ("capabilities", "show", "demo.text.upper"),
    "capabilities search": ("capabilities", "search", "demo"),
    "capabilities explain": ("capabilities", "explain", "demo.text.upper"),
    "bindings ls": ("bindings", "ls"),
    "bindings show": ("bindings", "show", "demo_text_upper"),
    "bindings search": ("bindings", "search", "demo"),
    "bindings explain": ("bindings", "explain", "demo.text.upper"),
    "bindings activate": ("bindings", "activate", "demo.text.upper", "demo_text_upper"),
    "services ls": ("services", "ls"),
    "services show": ("services", "show", "demo"),
    "services search": ("services", "search", "demo"),
    "services explain": ("services", "explain", "demo"),
    "skills export": ("skills", "export", "demo.greet", "--to", "out"),
    "new project": ("new", "project", "fresh"),
    "new skill": ("new", "skill", "demo.fresh"),
    "new capability": ("new", "capability", "demo.fresh"),
    "schema": ("schema",),
    "schema NAME": ("schema", "result"),
    "config show": ("config", "show"),
    "config trust": ("config", "trust"),
    "completion show": ("completion", "show", "bash"),
    "completion install": ("completion", "install", "fish"),
    "help": ("help", "inputs"),
    "explain": ("explain", "ref.unwritten"),
    "home": (),
    "--version": ("--version",),
}
FAILURES: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "unknown command": (2, "usage.command", ("rnu",)),
    "unknown flag": (2, "usage.flag", ("ls", "--al")),
    "bad value": (2, "usage.value", ("ls", "--limit", "many")),
    "unknown skill": (2, "skill.not-found", ("run", "demo.gret")),
    "missing input": (2, "input.missing", ("run", "demo.greet")),
    "unknown input": (2, "input.unknown", (*GREET, "-p", "txt=x")),
    "wrong type": (2, "input.type", (*GREET, "-p", "times=many")),
    "not JSON": (2, "input.json", ("run", "demo.greet", "--input", "{text: hi}")),
    "no file": (2, "input.file", ("run", "demo.greet", "--input-file", "nothing.json")),
    "a directory": (2, "input.file", ("run", "demo.greet", "--input-file", "skills")),
    "empty stdin": (2, "input.empty", ("run", "demo.greet", "--input", "-")),
    "bad trace id": (2, "usage.value", (*GREET, "--trace-id", "../../x")),
    "no registry": (2, "registry.missing", ("--registry", "nowhere", "skills", "ls")),
    "unknown episode": (2, "episode.unknown", ("trace", "ep_01ARZ3NDEKTSV4RRFFQ69G5FAV")),
    "path as episode": (2, "episode.unknown", ("state", "show", "../../etc")),
    "absent path": (1, "path.absent", ("state", "show", "--path", "outcome")),
    "failed step": (1, "call.server-error", ("run", "demo.review", "-p", "text=x")),
    "unwritable runs directory": (3, "env.runs-dir", (*GREET, "--runs-dir", "/dev/null/x")),
    "no such place": (2, "usage.value", ("trace", "--why", "outputs.txt")),
    "format of another view": (
        2,
        "usage.value",
        ("trace", "--view", "timeline", "--format", "dot"),
    ),
    "nothing to compare": (2, "episode.unknown", ("diff",)),
    "run to compare": (2, "usage.value", ("diff", "@last")),
    "neither skill nor episode": (2, "episode.unknown", ("graph", "demo.gret")),
    "nothing said of what may go": (2, "usage.value", ("gc",)),
    "nobody to ask": (2, "usage.flag", ("gc", "--keep", "0")),
    "no age": (2, "usage.value", ("gc", "--older-than", "soon")),
    "no code": (2, "usage.value", ("explain", "no.code")),
    "no topic": (2, "usage.value", ("help", "nothing")),
    "no shell": (2, "usage.value", ("completion", "show", "tcsh")),
    "no schema": (2, "usage.value", ("schema", "skil")),
    "unknown capability": (3, "capability.not-found", ("bindings", "explain", "demo.text.uper")),
    "unknown binding": (2, "usage.value", ("bindings", "show", "nobody")),
    "unknown service": (2, "usage.value", ("services", "explain", "nobody")),
    "no such choice": (
        3,
        "binding.ineligible",
        ("bindings", "activate", "demo.text.upper", "nobody"),
    ),
    "no scenario said": (2, "usage.flag", ("openapi", "verify-bindings")),
    "no such scenario": (2, "input.file", ("openapi", "verify-bindings", "--scenario", "no.such")),
    "no setting": (2, "usage.value", ("config", "show", "max_worker")),
    "no document": (2, "usage.flag", ("new", "binding", "demo.fresh")),
    "no scenario of this": (2, "usage.value", ("new", "scenario", "demo_text_upper")),
    "nowhere to export to": (2, "usage.flag", ("skills", "export", "demo.greet")),
    "nothing to import": (
        2,
        "usage.value",
        ("skills", "import", "nowhere", "--capability", "demo.text.upper"),
    ),
    "a server's frames": (2, "usage.flag", ("serve", "mcp")),
    "open to others": (2, "usage.flag", ("serve", "mcp", "--http", "0.0.0.0:0")),
    "no such -C": (2, "usage.value", ("-C", "nowhere", "ls")),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", SUCCESSES)
def test_success_is_one_envelope(demo: Any, name: str) -> None:
    demo.run(*GREET).assert_ok()
    result = demo.run(*SUCCESSES[name], "--json").assert_ok()
    body = result.json
    assert list(body)[:6] == ENVELOPE
    assert (body["status"], body["exit_code"], body["error"]) == ("ok", 0, None)
    assert result.out.count("\n") == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAILURES)
def test_failure_is_one_envelope_with_the_process_exit_code(demo: Any, name: str) -> None:
    code, error, command = FAILURES[name]
    demo.run(*GREET).assert_ok()
    before = demo.episodes
    result = demo.run(*command, "--json").assert_exit(code)
    body = result.json
    assert list(body)[:6] == ENVELOPE
    assert body["exit_code"] == code
    assert body["status"] == "error"
    assert body["error"]["code"] == error
    assert body["error"]["message"]
    assert error in result.err
    if code != 1:
        assert demo.episodes == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAILURES)
def test_commands_that_errors_print_are_commands(demo: Any, name: str) -> None:
    from cogcli.cli.typer_app import parse

    demo.run(*GREET).assert_ok()
    body = demo.run(*FAILURES[name][2], "--json").json
    for line in body["error"]["next"]:
        words = shlex.split(line)
        assert words[0] == "cogcli"
        parse(words[1:])


def test_a_misspelt_skill_is_corrected(demo: Any) -> None:
    assert "did you mean `demo.greet`" in demo.run("run", "demo.gret").assert_exit(2).err


def test_every_code_has_a_page(demo: Any) -> None:
    pages = demo.run("explain", "--list", "--json").assert_ok().json["explanation"]
    assert set(FAILURE_OF) <= set(pages)


def test_run_answers_with_its_outputs_and_nothing_else(demo: Any) -> None:
    result = demo.run(*GREET).assert_ok()
    assert result.out == '{\n  "text": "HI"\n}\n'
    assert demo.run(*GREET, "-q").assert_ok().err == ""


def test_a_failed_run_answers_with_nothing(demo: Any) -> None:
    result = demo.run("run", "demo.review", "-p", "text=x").assert_exit(1)
    assert result.out == ""
    assert "error[call.server-error]" in result.err


def test_the_trace_id_leads_back_to_the_run(demo: Any) -> None:
    demo.run(*GREET, "--trace-id", "trace-001").assert_ok()
    result = demo.run("trace", "--trace-id", "trace-001").assert_ok()
    assert "vars.text → outputs.text" in result.out
    assert (
        demo.run("state", "show", "trace-001", "--path", "outcomes.status").assert_ok().out
        == "ok\n"
    )


def test_a_trace_id_that_is_not_the_episodes_is_refused(demo: Any) -> None:
    demo.run(*GREET, "--trace-id", "trace-001").assert_ok()
    demo.run("trace", "@last", "--trace-id", "trace-002").assert_exit(2)


def test_run_flags_beside_an_episode_are_refused(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    assert "usage.flag" in demo.run("trace", "@last", "-p", "a=b").assert_exit(2).err


def test_all_problems_are_told_together(demo: Any) -> None:
    body = demo.run(
        "run", "demo.greet", "-p", "txt=x", "-p", "times=many", "--tag", "nonsense", "--json"
    ).json
    codes = [problem["code"] for problem in body["problems"]]
    assert sorted(codes) == ["input.missing", "input.type", "input.unknown", "usage.value"]
    assert demo.episodes == []


def test_piped_state_is_the_file_itself(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    assert (
        demo.run("state", "show").assert_ok().out_bytes
        == (demo.episode / "state.json").read_bytes()
    )
    assert (
        demo.run("state", "show", "--project").out_bytes
        == (demo.episode / "state.json").read_bytes()
    )


def test_an_absent_path_leaves_stdout_empty_unless_there_is_a_default(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    assert demo.run("state", "show", "--path", "outcome.status").assert_exit(1).out == ""
    assert (
        demo.run("state", "show", "--path", "outcome.status", "--default", "none").assert_ok().out
        == "none\n"
    )
    assert demo.run("state", "show", "--path", "outcomes.error").assert_ok().out == "null\n"


def test_an_altered_episode_is_told_by_file_and_line(demo: Any) -> None:
    demo.run(*GREET).assert_ok()
    log = demo.episode / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"HI"', b'"HO"', 1))
    result = demo.run("verify").assert_exit(1)
    assert "events.jsonl:" in result.out
    demo.run("state", "show", "--check").assert_exit(1)


def test_a_log_of_one_event_is_told_in_the_singular(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=x").assert_ok()
    log = demo.episode / "events.jsonl"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    told = demo.run("state", "show", "--check").assert_exit(1)
    assert "its 1 event projects" in told.out + told.err


def test_pasting_a_global_flag_after_the_error_keeps_it(demo: Any) -> None:
    body = (
        demo.run("run", "demo.review", "-p", "text=x", "--runs-dir", "else where", "--json")
        .assert_exit(1)
        .json
    )
    line, again = body["error"]["next"]
    demo.run(*shlex.split(line)[1:]).assert_ok()
    demo.run(*shlex.split(again)[1:]).assert_exit(1)


def test_start_as_if_in_another_directory(demo: Any) -> None:
    demo.write("deep/er/notes.md", "hello")
    result = demo.run(
        "-C", "deep/er", "run", "demo.greet", "-p", "text=@notes.md", "-q"
    ).assert_ok()
    assert result.json == {"text": "HELLO"}
    assert len(demo.episodes) == 1


def test_an_empty_directory_has_its_episodes_in_the_users_state(demo: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = demo.run("-C", str(tmp_path / "empty"), "config", "show", "runs_dir").assert_ok()
    assert result.out.strip() == str(demo.home / ".local/state/cogcli/episodes")
    assert "project.none" in demo.run("-C", str(tmp_path / "empty"), "validate").assert_exit(3).err


def test_no_escape_character_reaches_a_terminal_or_an_envelope(demo: Any) -> None:
    evil = "\x1b]0;pwn\x07\x1b[2J\x9b31m\u202e"
    demo.run(
        "run", "demo.greet", "-p", f"text={evil}", "--goal", evil, "--tag", f"a={evil}"
    ).assert_ok()
    terminal = {"COGCLI_FORCE_TTY": "100", "NO_COLOR": "1"}
    for command in (
        ("trace",), ("trace", "--io"), ("trace", "--view", "events", "--full"), ("ls",), ("state", "show"),
        ("state", "show", "--path", "goal.task"), ("trace", "--json"), ("state", "show", "--json"), ("ls", "--json"),
        ("run", "demo.greet", "-p", f"text={evil}"), ("run", evil), ("trace", evil), (evil,), (f"--{evil}",),
    ):  # fmt: skip
        result = demo.run(*command, env=terminal)
        for text in (result.out, result.err):
            assert not set("\x1b\x07\x9b\u202e") & set(text), (command, text)


def test_a_c_locale_gets_ascii_signs(demo: Any) -> None:
    demo.run("run", "demo.review", "-p", "text=hi")
    result = demo.run("trace", env={"LC_ALL": "C", "COGCLI_FORCE_TTY": "80"}).assert_ok()
    assert result.out.isascii()
    assert "FAIL score" in result.out


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "--list"),
        ("trace", "--view", "events", "--full"),
        ("state", "show"),
        ("schema", "events"),
        ("ls",),
    ],
)
def test_a_reader_that_stops_early_is_no_error(demo: Any, command: tuple[str, ...]) -> None:
    demo.run(*GREET).assert_ok()
    line = f"{shlex.join([COGCLI, *command])} | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=demo.root,
        env=demo.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("0\n")
    assert done.stderr == ""


def test_a_run_whose_reader_is_gone_keeps_its_code(demo: Any) -> None:
    for command, code in ((GREET, "0"), (("run", "demo.review", "-p", "text=x"), "1")):
        line = f"{shlex.join([COGCLI, *command, '-q', '--json'])} | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=demo.root,
            env=demo.env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{code}\n"
        assert "Traceback" not in done.stderr
    assert len(demo.episodes) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_a_full_disk_behind_stdout_is_told(demo: Any, json_too: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([COGCLI, "skills", "ls", *json_too], cwd=demo.root, env=demo.env, stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
    assert done.returncode == 3
    assert "env.disk" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_hang_and_break_nothing(demo: Any, closed: str) -> None:
    line = f"{shlex.join([COGCLI, *GREET])} {closed}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=demo.root,
        env=demo.env,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    demo.run("verify").assert_ok()


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "openapi verify-errors"])
def test_every_command_ends_with_stdin_closed(demo: Any, name: str) -> None:
    """All but one, which takes seconds, and ends so where each of its rows is looked at."""
    demo.run(*GREET).assert_ok()
    command = load(name)
    words = name.split() + ["demo.greet"] * sum(param.required for param in command.params)
    # The server's thread that reads from it ends with the process alone.
    run = demo.installed if name in ("serve mcp", "gateway serve") else demo.run
    # What is shipped has checks of its own; here they would take most of the time.
    env = {"COGCLI_BUILTIN": "0"} if name.startswith("registry ") else {}
    done = run(*words, stdin_closed=True, env=env)
    assert done.code in command.declared.exits, done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_a_run_as_aborted_and_verified(project: Any, name: str, code: int) -> None:
    process = slow_run(project)
    process.send_signal(getattr(signal, name))
    if name == "SIGINT":
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == b""
    assert b"stopping, up to 5s for running calls" in err
    assert project.run("state", "show", "--path", "outcomes.status").out == "aborted\n"
    project.run("verify").assert_ok()


def test_a_killed_run_is_shown_as_interrupted(project: Any) -> None:
    process = slow_run(project)
    assert project.run("ls", "--format", "jsonl").assert_ok().json["status"] == "running"
    process.kill()
    process.communicate()
    assert (
        json.loads(project.run("ls", "--json").assert_ok().out)["episodes"][0]["status"]
        == "interrupted"
    )
    assert "interrupted, not finalised" in project.run("trace").assert_ok().out
    assert project.run("state", "show", "--path", "outcomes.status").assert_ok().out == "pending\n"
    project.run("verify").assert_ok()


def test_an_unexpected_exception_is_a_bug_without_traceback_or_values(demo: Any) -> None:
    secret = "sentinel-4711"
    env = {"PYTHONPATH": str(demo.home), "COGCLI_SENTINEL": secret}
    (demo.home / "sitecustomize.py").write_text(
        "import importlib, sys\n"
        "class Break:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'cogcli.app.episodes':\n"
        "            raise ZeroDivisionError('sentinel-4711')\n"
        "sys.meta_path.insert(0, Break())\n"
    )
    result = demo.installed("ls", "--json", env=env).assert_exit(70)
    assert "bug[internal]: ZeroDivisionError in cli/commands/ls.py:" in result.err
    assert result.json["error"]["code"] == "internal"
    (saved,) = (demo.home / ".local/state/cogcli/crashes").iterdir()
    assert secret not in saved.read_text() + result.out + result.err
    assert os.stat(saved).st_mode & 0o077 == 0
    assert "Traceback" in demo.installed("ls", "--debug", env=env).err

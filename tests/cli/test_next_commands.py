"""Every command that is printed after a failure runs as it is printed (docs/reference/command-line.md#next)."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from test_contract import FAILURES
from test_next_steps import LOOK, MEANT

from cogcli.app.explain import pages
from cogcli.base.errors import FAILURE_OF, UsageError
from cogcli.cli.typer_app import parse

pytestmark = pytest.mark.sampled(8)

ENDS_OF_RUNS = {0, 1, 4, 5, 6, 130}
GOLDENS = Path(__file__).parent / "goldens"
INVALID = Path(__file__).parents[1] / "specs/invalid"


def printed(screen: str) -> Iterator[str]:
    """The commands behind `next:` on a screen."""
    inside = False
    for line in screen.splitlines():
        inside = line.startswith("next: ") or (inside and line.startswith("      "))
        if inside:
            yield line[6:]


def copied(project: Any) -> Any:
    """A project with the same files, that may be changed."""
    number = sum(1 for _ in project.root.parent.iterdir())
    place = project.root.parent / f"copy-{number}"
    copytree(project.root, place, symlinks=True)
    twin = copy.copy(project)
    twin.root = place
    return twin


def hold(project: Any, *command: str, input: str | None = None, code: str = "") -> list[str]:
    """Run a command that fails, and each command that it prints in a copy of what it left; they are handed back."""
    failed = project.run(*command, "--json", input=input, env={"COGCLI_FORCE_TTY": "100"})
    assert failed.code not in (0, 70), failed.err
    error = failed.json["error"] or {"code": "aborted", "next": []}
    assert not code or error["code"] == code, failed.err
    commands = list(dict.fromkeys([*error["next"], *printed(failed.err)]))
    assert commands or code == "path.absent", failed.err
    for text in commands:
        _hold_one(copied(project), text, error["code"])
    return commands


def _hold_one(project: Any, text: str, code: str) -> None:
    assert not set("…<>|") & set(text), f"{text}: this is no command"
    tool, *words = shlex.split(text)
    assert tool == "cogcli", text
    if words[0] == "run":
        words.append("-q")
    again = project.run(*words)
    said = f"{text} (after {code}): exit {again.code}\n{again.err}"
    assert again.code not in (2, 70), said
    assert (
        f"error[{code}]" not in again.err
        or FAILURE_OF.get(code) is None
        or again.code in ENDS_OF_RUNS
    ), said
    if words[0] in ("rerun", "resume", "trace", "replay"):
        assert again.code in ENDS_OF_RUNS, said


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAILURES)
def test_what_a_failure_of_a_command_prints_runs(demo: Any, name: str) -> None:
    demo.run("run", "demo.greet", "-p", "text=hi", "-q").assert_ok()
    if name == "nothing to compare":
        demo.run("gc", "--keep", "0", "--yes", "-q").assert_ok()
    hold(demo, *FAILURES[name][2], code=FAILURES[name][1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", [*MEANT, *LOOK], ids=" ".join)
def test_what_a_slip_prints_runs(demo: Any, command: tuple[str, ...]) -> None:
    demo.write("a.json", '{"text": "x"}')
    hold(demo, *command)


SOURCE = """
import os
import signal
import time

def upper(text: str) -> dict[str, object]:
    return {"text": text.upper()}

def fail(text: str) -> dict[str, object]:
    raise ValueError("no luck with " + text)

def picky(text: str) -> dict[str, object]:
    if text == "b":
        raise ValueError("not b")
    return {"text": text}

def halt(text: str) -> dict[str, object]:
    return stop(text) if text == "b" else {"text": text}

def tire(text: str) -> dict[str, object]:
    return {"text": text * 2} if len(text) < 4 else fail(text)

def number(text: str) -> dict[str, object]:
    return {"text": 7}

def slow(text: str) -> dict[str, object]:
    time.sleep(0.4)
    return {"text": text}

def stop(text: str) -> dict[str, object]:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    raise ValueError("cut short")

def gate(text: str) -> dict[str, object]:
    return {"allowed": False}
"""
EFFECT = "properties: {side_effects: true, idempotent: false}\n"
CAPABILITIES = {
    "upper": "",
    "fail": "",
    "number": "",
    "slow": "",
    "stop": "",
    "picky": "",
    "halt": "",
    "tire": "",
    "pays": EFFECT,
    "sent": EFFECT,
    "late": EFFECT,
    "asks": "safety: {requires_confirmation: true}\n",
    "high": "safety: {trust_level: elevated}\n",
    "gated": "safety: {mandatory_pre_gates: [{capability: t.x.gate, on_fail: block}]}\n",
    "risky": EFFECT + "safety: {requires_confirmation: true}\n",
}
FUNCTIONS = {
    "pays": "picky",
    "sent": "upper",
    "late": "slow",
    "asks": "upper",
    "high": "upper",
    "gated": "upper",
    "risky": "upper",
}
KEEP = "{id: keep, uses: t.x.upper, input: {text: inputs.text}, output: {text: vars.kept}}"
WRITE = KEEP.replace("vars.kept", "outputs.text")


def step(uses: str, more: str = "", id: str = "second") -> str:
    return f"{{id: {id}, uses: {uses}, input: {{text: inputs.text}}, output: {{text: outputs.text}}{more}}}"


LOOP = "{id: second, uses: t.x.fail, input: {text: item}, output: {}, config: {foreach: {items: [a, b]}}}"
TARGETS = "config: {scatter: {capabilities: [t.x.upper, t.x.fail]}}"
SCATTER = f"{{id: second, input: {{text: inputs.text}}, output: {{}}, {TARGETS}}}"
PICKY = LOOP.replace("t.x.fail", "t.x.picky")
AFTER_IT = WRITE.replace("inputs.text}", "inputs.text}, config: {depends_on: [second]}")
ROUNDS = "{while: {condition: len(vars.kept) < 99}, merge_strategy: replace}"
TIRE = f"{{id: second, uses: t.x.tire, input: {{text: vars.kept}}, output: {{text: vars.kept}}, config: {ROUNDS}}}"
FAIL, SHORT, AGAIN = step("t.x.fail"), ", config: {timeout_seconds: 0.05}", "--from second"
RUNS: dict[str, tuple[str, list[str], tuple[str, ...], str]] = {
    "the first step fails": ("call.server-error", [FAIL], (), ""),
    "a later step fails": ("call.server-error", [KEEP, FAIL], (), AGAIN),
    "an item of a loop": ("call.server-error", [WRITE, LOOP], (), AGAIN),
    "some items of a loop": ("call.server-error", [WRITE, PICKY], (), "rerun @last --failed-items"),
    "some items of the first step": ("call.server-error", [PICKY, AFTER_IT], (), "rerun @last --failed-items"),
    "items with effects": (
        "call.server-error", [WRITE, LOOP.replace("fail", "pays")], (), "rerun @last --failed-items --plan",
    ),
    "a loop that was cut short": ("aborted", [WRITE, LOOP.replace("fail", "halt")], (), AGAIN),
    "rounds": ("call.server-error", [KEEP, TIRE, WRITE.replace("keep", "last")], (), AGAIN),
    "a target": ("call.server-error", [WRITE, SCATTER], (), AGAIN),
    "a nested step": ("call.server-error", [KEEP, step("skill:t.inner")], (), f"{AGAIN} --plan"),
    "going on": ("call.server-error", [KEEP, FAIL], ("--keep-going",), AGAIN),
    "with flags": ("call.server-error", [KEEP, FAIL], ("--runs-dir", "a b"), f"{AGAIN} --runs-dir 'a b'"),
    "an answer of another type": ("response.type", [KEEP, step("t.x.number")], (), AGAIN),
    "no output": ("outputs.missing", [KEEP, step("t.x.upper", ", config: {condition: 'inputs.text == 1'}")], (), AGAIN),
    "an expression": ("expr.type", [KEEP, step("t.x.upper", ", config: {condition: 'inputs.text < 3'}")], (), AGAIN),
    "a step that is late": ("step.timeout", [KEEP, step("t.x.slow", SHORT)], (), AGAIN),
    "a run that is late": ("run.timeout", [KEEP, step("t.x.slow")], ("--timeout", "0.1"), AGAIN),
    "no trust": ("safety.trust", [KEEP, step("t.x.high")], (), AGAIN),
    "a gate": ("safety.gate", [KEEP, step("t.x.gated")], (), AGAIN),
    "a person is asked": ("safety.confirmation", [KEEP, step("t.x.asks")], (), "resume"),
    "confirmed": (
        "call.server-error", [step("t.x.asks", id="first"), FAIL.replace("outputs.text", "vars.b")],
        ("--confirm", "t.x.asks"), f"{AGAIN} --confirm t.x.asks",
    ),
    "an effect in doubt": ("effect.in-doubt", [KEEP, step("t.x.late", SHORT)], (), "resume"),
    "a secret": ("call.server-error", [KEEP, FAIL], ("-p", "api_key=s3cr3t-4711"), ""),
    "Ctrl-C": ("aborted", [KEEP, step("t.x.stop")], (), AGAIN),
    "Ctrl-C at once": ("aborted", [step("t.x.stop")], (), "cogcli rerun @last"),
}  # fmt: skip


def ends(project: Any, steps: list[str]) -> Any:
    """A project with a skill of these steps, and one to nest, which has an effect and then fails."""
    project.services(SOURCE)
    for name, extra in CAPABILITIES.items():
        properties = "" if "properties" in extra else "properties: {side_effects: false}\n"
        project.capability(f"t.x.{name}", FUNCTIONS.get(name, name))
        file = project.root / f"capabilities/t.x.{name}.yaml"
        own = file.read_text().replace("properties: {side_effects: false}\n", properties)
        file.write_text(own + extra)
    allowed = "{allowed: {type: boolean, required: true}}"
    project.capability("t.x.gate", "gate", outputs=allowed, response="{allowed: response.allowed}")
    text = "{text: {type: string, required: true}}"
    sent = "{id: sent, uses: t.x.sent, input: {text: inputs.text}, output: {text: vars.sent}}"
    inner = "\n".join(f"- {each}" for each in (sent, step("t.x.fail")))
    project.skill("t.inner", inner, inputs=text, outputs=text)
    inputs = "{text: {type: string, required: true}, api_key: {type: string}}"
    project.skill("t.ends", "\n".join(f"- {each}" for each in steps), inputs=inputs, outputs=text)
    return project


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_that_ended_badly_prints_runs(project: Any, name: str) -> None:
    code, steps, flags, wanted = RUNS[name]
    commands = hold(ends(project, steps), "run", "t.ends", "-p", "text=hi", *flags, code=code)
    if wanted:
        assert any(wanted in command for command in commands), commands
    else:
        assert not any(" rerun " in command for command in commands), commands


@pytest.mark.parametrize(
    ("steps", "flags"),
    [
        ([WRITE, PICKY], "--failed-items"),
        ([KEEP, TIRE, WRITE.replace("keep", "last")], "--from second"),
        ([WRITE, SCATTER], "--from second"),
        ([WRITE, LOOP], "--from second"),
    ],
)
def test_a_page_names_the_rerun_that_keeps_what_is_done(
    project: Any, steps: list[str], flags: str
) -> None:
    ends(project, steps).run("run", "t.ends", "-p", "text=hi", "-q").assert_exit(1)
    page = project.run("report", "-o", "-").out
    assert f"cogcli rerun {project.episode.name[:15]} {flags}<" in page


AFTER: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "resume of a sealed run": ("episode.sealed", (), ("resume", "@last")),
    "a rerun with effects": ("rerun.effects", (step("t.x.sent"),), ("rerun", "@last")),
    "a rerun from nowhere": ("step.unknown", (), ("rerun", "@last", "--from", "keap")),
    "a step that is not there": ("usage.value", (), ("trace", "@last", "--step", "keap")),
    "another trace": ("usage.value", (), ("trace", "@last", "--trace-id", "t-1")),
    "no such approval": ("episode.unknown-approval", (step("t.x.asks"),), ("resume", "@last", "--approve", "t.x.ask")),
    "an output that is there": ("output.exists", (), ("trace", "@last", "-o", "demo_services.py")),
    "an altered log": ("", (), ("verify", "@last")),
    "a replay that differs": ("", (), ("replay", "@last")),
    "problems": ("", (), ("validate",)),
    "no project": ("project.none", (), ("validate", "-C", "..")),
    "no project to trust": ("project.none", (), ("config", "trust", "..")),
    "no terminal to talk at": ("usage.flag", (), ("agent", "chat")),
    "no runs directory": ("doctor.found", (), ("doctor", "--runs-dir", "demo_services.py")),
    "no such pack": ("pack.unknown", (), ("run", "t.ends", "--pack", "none", "--intent", "a", "-p", "text=a")),
    "no such proposal": ("memory.unknown", (), ("memory", "reject", "mp_0000000000000000")),
    "no such session": ("session.unknown", (), ("agent", "sessions", "show", "nothing")),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", AFTER)
def test_what_a_command_about_a_run_prints_runs(project: Any, name: str) -> None:
    code, steps, command = AFTER[name]
    ends(project, [WRITE, *(each.replace("outputs.text", "vars.b") for each in steps)])
    ran = project.run("run", "t.ends", "-p", "text=hi", "-q")
    assert ran.code in (0, 5), ran.err
    log = project.episode / "events.jsonl"
    if name == "an altered log":
        log.write_bytes(log.read_bytes().replace(b'"HI"', b'"HO"'))
    elif name == "a replay that differs":
        source = project.root / "demo_services.py"
        source.write_text(source.read_text().replace("text.upper()", "text.lower()"))
        skill = project.root / "skills/local/t/ends/skill.yaml"
        skill.write_text(skill.read_text().replace("outputs.text", "outputs.texd"))
    elif name == "problems":
        project.skill("t.ends", f"- {FAIL.replace('t.x.fail', 't.x.fial')}")
    hold(project, *command, code=code)


@pytest.mark.parametrize("request_of", ["needs-finance", "refused", "escalates"])
def test_what_a_run_of_an_agent_prints_runs(desk: Any, request_of: str) -> None:
    hold(desk, "agent", "invoke", f"requests/{request_of}.json")


def test_every_code_that_an_error_can_have_is_explained() -> None:
    listed = (
        line.split()[2]
        for path in INVALID.glob("*/expected.txt")
        for line in path.read_text().splitlines()
    )
    assert not {*FAILURE_OF, *listed} - pages().keys()


def test_every_command_of_a_screen_is_one() -> None:
    for path in sorted(GOLDENS.glob("*.txt")):
        for text in printed(path.read_text(encoding="utf-8")):
            for one in text.split("   \N{MIDDLE DOT}   "):
                tool, *words = shlex.split(one)
                assert tool == "cogcli", (path.name, one)
                try:
                    parse(words)
                except UsageError as error:
                    raise AssertionError(f"{path.name}: {one}: {error.message}") from None

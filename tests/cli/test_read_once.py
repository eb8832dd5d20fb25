"""A run reads its closure once: what was checked is what is pinned is what runs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(12)

SCRIPT = """
import json, os, sys

opened = []
def note(name, arguments):
    if name == "open" and isinstance(arguments[0], str) and arguments[0].endswith((".yaml", ".yml")):
        opened.append(os.path.realpath(arguments[0]))
sys.addaudithook(note)
from cogcli.cli import main
code = main.run(sys.argv[1:])
print(json.dumps([code, opened]), file=sys.stderr)
"""


def specs_read(project: Any, *words: str) -> tuple[int, list[str]]:
    """The exit code of a command, and the spec files that it opened, as often as it did."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words, "-q"],
        cwd=project.root, env=project.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    code, opened = json.loads(done.stderr.splitlines()[-1])
    return code, opened


@pytest.fixture
def ran(project: Any) -> Any:
    project.demo()
    project.run("run", "demo.greet", "-p", "text=hello", "-q").assert_ok()
    return project


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        (("run", "demo.greet", "-p", "text=hello"), 0),
        (("run", "demo.greet", "--plan", "-p", "text=hello"), 0),
        (("run", "demo.greet", "-p", "txt=hello"), 2),
        (("run", "demo.greet", "--plan"), 2),
        (("trace", "demo.greet", "-p", "text=hello"), 0),
        (("rerun", "@last"), 0),
    ],
)
def test_a_run_opens_each_spec_file_once(ran: Any, words: tuple[str, ...], exit_code: int) -> None:
    code, opened = specs_read(ran, *words)
    assert code == exit_code
    assert any(name.endswith("skill.yaml") for name in opened)
    assert {name for name in opened if opened.count(name) > 1} == set()


@pytest.mark.parametrize("change", ["", "# changed\n"])
def test_a_resumed_run_opens_each_spec_file_once(ran: Any, change: str) -> None:
    ran.capability(
        "demo.asks", "upper", extra="safety: {trust_level: standard, requires_confirmation: true}\n"
    )
    step = "- {id: a, uses: demo.asks, input: {text: {$literal: x}}, output: {text: vars.a}}"
    skill = ran.skill("demo.waits", step)
    ran.run("run", "demo.waits", "-q").assert_exit(5)
    skill.write_text(skill.read_text() + change)
    flags = ("--approve", "demo.asks", "--by", "me", "--allow-changed-specs")
    code, opened = specs_read(ran, "resume", "@last", *flags)
    assert code == 0
    assert opened
    assert {name for name in opened if opened.count(name) > 1} == set()

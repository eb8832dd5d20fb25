"""Words of agent-skills are answered with the command that runs, and `.agent-skills/` without a project
is told (docs/how-to/come-from-agent-skills.md#words)."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(10)

WORDS = [
    ("list", "skills ls"),
    ("list capabilities", "capabilities ls"),
    ("list skills --domain demo", "skills ls --domain demo"),
    ("describe demo.greet", "skills show demo.greet"),
    ("describe demo.text.upper", "capabilities show demo.text.upper"),
    ("describe", "skills ls"),
    ("discover 'two words'", "skills search 'two words'"),
    (
        "activate demo.text.upper demo_text_upper",
        "bindings activate demo.text.upper demo_text_upper",
    ),
    ("activate", "bindings ls"),
    ("explain-capability demo.text.upper", "bindings explain demo.text.upper"),
    ("explain-capability", "capabilities ls"),
    ("mcp-serve", "serve mcp"),
    ("mcp-serve --port 8000 --host-root .", "-C . serve mcp"),
    ("list --host-root .", "-C . skills ls"),
    ("--host-root . list", "-C . skills ls"),
    ("run demo.greet -p text=x --host-root .", "-C . run demo.greet -p text=x"),
    ("run demo.greet -p text=x --host-root=.", "-C . run demo.greet -p text=x"),
    ("skills list", "skills ls"),
    ("skills describe demo.greet", "skills show demo.greet"),
    ("bindings list", "bindings ls"),
    ("python cli/main.py run demo.greet -p text=x", "run demo.greet -p text=x"),
    ("cli/main.py describe demo.greet", "skills show demo.greet"),
    ("../agent-skill-registry/tools/validate_registry.py", "validate"),
    ("tooling/compute_runtime_stats.py", "registry stats"),
    ("generate_catalog", "registry catalog"),
    (
        "tooling/verify_smoke_capabilities.py --report-file smoke.json",
        "registry smoke --report json:smoke.json",
    ),
]
NOT_RUN = ("serve mcp", "registry smoke")
"""One serves until its client goes, the other calls all that there is: that they parse is enough."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("typed", "meant"), WORDS)
def test_a_word_of_that_tool_is_answered_with_a_command_that_runs(
    demo: Any, typed: str, meant: str
) -> None:
    refused = demo.run(*shlex.split(typed), "--json").assert_exit(2).json["error"]
    assert refused["code"] in ("usage.command", "usage.flag")
    (line,) = refused["next"]
    words = [word for word in shlex.split(line) if word != "--json"]
    assert words == ["cogcli", *shlex.split(meant)]
    if any(each in line for each in NOT_RUN):
        demo.run(*words[1:], "--help").assert_ok()
    else:
        demo.run(*words[1:]).assert_ok()


def test_a_secret_is_not_printed_again(demo: Any) -> None:
    refused = demo.run("mcp-serve", "-p", "password=hunter2").assert_exit(2)
    assert "hunter2" not in refused.err
    assert "next: cogcli serve mcp" in refused.err


def test_words_that_are_no_ones_are_answered_as_before(demo: Any) -> None:
    refused = demo.run("lsit", "--json").assert_exit(2).json["error"]
    assert refused["next"] == ["cogcli ls --json", "cogcli help commands"]


@pytest.fixture
def host(project: Any) -> Any:
    """A directory with host overrides and no project."""
    project.write(".agent-skills/active_bindings.json", "{}\n")
    return project


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    "command", ["skills ls", "doctor", "bindings explain text.content.normalize", "config show"]
)
def test_host_overrides_without_a_project_are_told(host: Any, command: str) -> None:
    told = host.run(*command.split())
    assert (
        "warning[project.none]: `.agent-skills/` has no effect: it counts only in a project"
        in told.err
    )
    assert "cogcli new project ." in told.err
    assert "project.none" in [
        each["code"] for each in host.run(*command.split(), "--json").json["warnings"]
    ]


def test_what_is_printed_makes_them_count(host: Any) -> None:
    assert "has no effect" in host.run("validate").assert_exit(3).err
    host.run("new", "project", ".").assert_ok()
    assert "has no effect" not in host.run("skills", "ls").assert_ok().err


def test_nothing_is_said_where_there_is_nothing_to_say(host: Any) -> None:
    assert "has no effect" not in host.run("ls").assert_ok().err
    host.run("skills", "ls", "-q").assert_ok()
    (host.root / ".agent-skills/active_bindings.json").unlink()
    assert "has no effect" not in host.run("skills", "ls").assert_ok().err

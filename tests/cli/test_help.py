"""Help for a first hour: a home screen of ten lines, texts that fit 80 columns, and words of other tools
(docs/reference/command-line.md#help)."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from cogcli.cli.app import COMMANDS, COMMON, GROUPS, TOPICS, first_words
from cogcli.cli.command_help import WIDTH, commands_text, help_text
from cogcli.cli.home import HOME
from cogcli.cli.typer_app import load, parse, usage

GROUP_NAMES = sorted({name.rsplit(" ", 1)[0] for name in COMMANDS if " " in name})


@pytest.mark.parametrize("words", [*COMMANDS, *GROUP_NAMES], ids=str)
def test_no_line_of_help_is_wider_than_a_terminal(words: str) -> None:
    assert [line for line in help_text(words).splitlines() if len(line) > WIDTH] == []


def test_no_topic_is_wider_than_a_terminal(demo: Any) -> None:
    for topic in TOPICS:
        text = demo.run("help", topic).assert_ok().out
        assert [line for line in text.splitlines() if len(line) > WIDTH] == []


def test_the_home_screen_has_a_line_for_each_of_ten_common_commands() -> None:
    lines = [line for line in HOME.splitlines() if line.startswith("  cogcli ")]
    assert len(lines) == len(COMMON) == 10
    for words in COMMON:
        name = re.sub(r" \[?[A-Z].*", "", words)
        assert name in COMMANDS
        (line,) = [line for line in lines if line.startswith(f"  cogcli {words}  ")]
        assert line.partition(words)[2].strip() == COMMON[words]
    assert "cogcli help commands" in HOME


def test_the_command_that_the_home_screen_proposes_runs(demo: Any) -> None:
    demo.write("README.md", "The harbour opens at six. Ships wait in the bay.\n")
    (line,) = [line for line in HOME.splitlines() if line.startswith("Try ")]
    demo.run(*shlex.split(line)[2:]).assert_ok()


def test_the_topic_of_commands_names_each_with_what_it_does(demo: Any) -> None:
    text = demo.run("help", "commands").assert_ok().out
    assert text == commands_text()
    listed = re.findall(r"^  (\S+(?: \S+)*)  ", text, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert sorted(word for words in GROUPS.values() for word in words) == sorted(first_words())
    one_line = " ".join(text.split())
    assert all(summary in one_line for _, summary in COMMANDS.values())


@pytest.mark.parametrize("words", COMMANDS, ids=str)
def test_a_long_example_can_be_pasted(words: str) -> None:
    shown = help_text(words).replace(" \\\n      ", " ")
    for line, why in load(words).declared.examples_of(words):
        assert f"\n  {line}" in shown
        assert why in " ".join(shown.split())


HABITS = [
    ("init", "new project ."),
    ("init shop", "new project shop"),
    ("log", "ls"),
    ("log @last", "trace @last"),
    ("show", "trace"),
    ("show @last", "trace @last"),
    ("show demo.greet", "skills show demo.greet"),
    ("show demo.text.upper", "capabilities show demo.text.upper"),
    ("show skills demo.greet", "skills show demo.greet"),
    ("version", "--version"),
    ("history", "ls"),
    ("exec demo.greet -p text=hi", "run demo.greet -p text=hi"),
    ("check", "validate"),
    ("ls -n 3", "ls --limit 3"),
    ("skills search text -n 3", "skills search text --limit 3"),
    ("run demo.greet --text hi", "run demo.greet -p text=hi"),
    ("run demo.greet --text=hi --times 3", "run demo.greet -p text=hi -p times=3"),
    ("run demo.greet text=hi", "run demo.greet -p text=hi"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("typed", "meant"), HABITS)
def test_a_word_of_habit_is_answered_with_the_command_that_runs(
    demo: Any, typed: str, meant: str
) -> None:
    demo.run("run", "demo.greet", "-p", "text=x", "-q").assert_ok()
    refused = demo.run(*shlex.split(typed)).assert_exit(2)
    assert f"next: cogcli {meant}\n" in refused.err
    parse(shlex.split(meant))
    if not meant.startswith(("new", "--version")):
        demo.run(*shlex.split(meant)).assert_ok()


@pytest.mark.parametrize(
    "typed", ["run demo.greet --password hunter2", "run demo.greet --api-key=hunter2"]
)
def test_a_secret_that_was_typed_as_a_flag_is_not_printed_again(demo: Any, typed: str) -> None:
    assert "hunter2" not in demo.run(*typed.split()).assert_exit(2).err


def test_a_near_miss_of_a_flag_is_no_input(demo: Any) -> None:
    refused = demo.run("run", "demo.greet", "--inptu", "x").assert_exit(2).err
    assert "did you mean `--input`?" in refused
    assert "-p inptu" not in refused


def test_an_unexpected_word_is_called_so(demo: Any) -> None:
    assert "unexpected argument `b`" in demo.run("run", "demo.greet", "b").assert_exit(2).err
    assert usage(load("run")) == "SKILL"

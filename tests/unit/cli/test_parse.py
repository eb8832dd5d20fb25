"""Arguments by the table."""

from __future__ import annotations

import pytest

from cogcli.cli.parse import parse
from cogcli.cli.table import BY_NAME, COMMANDS, GLOBAL_FLAGS, GROUPS, RUN_FLAGS
from cogcli.core.errors import UsageError


def refused(*argv: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(list(argv))
    return caught.value


@pytest.mark.parametrize("argv", [("--json", "ls", "-q"), ("ls", "--json", "-q"), ("-q", "ls", "--json")])
def test_global_flags_stand_before_and_after_the_command(argv: tuple[str, ...]) -> None:
    arguments = parse(list(argv))
    assert arguments.command is BY_NAME["ls"]
    assert arguments.on("--json")
    assert arguments.on("--quiet")


@pytest.mark.parametrize("argv", [("--runs-dir", "x"), ("--runs-dir=x",)])
def test_a_value_follows_its_flag_or_an_equals_sign(argv: tuple[str, ...]) -> None:
    assert parse([*argv, "ls"]).text("--runs-dir") == "x"


@pytest.mark.parametrize("argv", [("-p", "a=b"), ("-pa=b",)])
def test_a_short_flag_takes_its_value_either_way(argv: tuple[str, ...]) -> None:
    assert parse(["run", "x.y", *argv]).many("-p") == ["a=b"]


def test_switches_may_be_written_together() -> None:
    arguments = parse(["ls", "-qv"])
    assert arguments.on("--quiet")
    assert arguments.on("--verbose")


def test_repeatable_flags_keep_their_order() -> None:
    assert parse(["run", "x.y", "-p", "a=1", "--tag", "t=1", "-p", "b=2"]).many("-p") == ["a=1", "b=2"]


def test_after_two_dashes_everything_is_a_word() -> None:
    assert parse(["verify", "--", "--json", "-x"]).words == ["--json", "-x"]


def test_a_lone_dash_and_a_negative_looking_value_are_values() -> None:
    assert parse(["run", "x.y", "--input", "-"]).text("--input") == "-"
    assert parse(["run", "x.y", "--goal", "-5 degrees"]).text("--goal") == "-5 degrees"


def test_a_bare_group_is_no_error() -> None:
    assert parse(["state"]).group == "state"


@pytest.mark.parametrize(
    ("argv", "code", "hint"),
    [
        (["rnu"], "usage.command", "`run`"),
        (["state", "shwo"], "usage.command", "`show`"),
        (["text.summarize"], "usage.command", "cogcli run text.summarize"),
        (["run", "x.y", "--inptu", "{}"], "usage.flag", "`--input`"),
        (["--input", "{}", "run", "x.y"], "usage.flag", "run --input"),
        (["run", "x.y", "--trust-level", "elevatd"], "usage.value", "`elevated`"),
        (["run", "x.y", "--goal", "a", "--goal", "b"], "usage.flag", "keep one"),
    ],
)
def test_a_near_miss_names_what_may_have_been_meant(argv: list[str], code: str, hint: str) -> None:
    error = refused(*argv)
    assert error.code == code
    assert hint in error.hint


@pytest.mark.parametrize(
    "argv",
    [
        ["run"],
        ["run", "a.b", "c.d"],
        ["run", "a.b", "--input"],
        ["run", "a.b", "--input", "--json"],
        ["run", "a.b", "--json=yes"],
        ["run", "a.b", "--max-workers", "0"],
        ["run", "a.b", "--max-workers", "257"],
        ["run", "a.b", "--max-workers", "1_0"],
        ["run", "a.b", "--max-workers", "٣"],
        ["run", "a.b", "--timeout", "nan"],
        ["run", "a.b", "--timeout", "0"],
        ["run", "a.b", "--timeout", "1e400"],
        ["run", "a.b", "--seed", "1.5"],
    ],
)
def test_a_value_that_does_not_fit_is_refused(argv: list[str]) -> None:
    assert refused(*argv).code == "usage.value"


def test_numbers_come_as_numbers() -> None:
    arguments = parse(["run", "a.b", "--timeout", "1.5", "--max-workers", "4"])
    assert arguments.number("--timeout") == 1.5
    assert arguments.integer("--max-workers", 8) == 4


def test_every_example_of_the_help_parses() -> None:
    for command in COMMANDS:
        assert len(command.examples) == 3, command.name
        commands = []
        for line, _ in command.examples:
            words = line.split(" | ")[0].split(" > ")[0].split()
            assert words[0] == "cogcli"
            commands.append(parse(words[1:]).command)
        assert commands[0] is command
        assert commands.count(command) >= 2, command.name  # one may be what is asked before or after


def test_every_flag_has_a_known_group_and_is_declared_once_per_command() -> None:
    for command in COMMANDS:
        names = [flag.name for flag in (*command.flags, *GLOBAL_FLAGS)]
        assert len(names) == len(set(names)), command.name
        assert {flag.group for flag in command.flags} <= set(GROUPS)


def test_trace_takes_what_run_takes() -> None:
    assert set(RUN_FLAGS) <= set(BY_NAME["trace"].flags)

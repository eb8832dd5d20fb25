"""Command lines as typer parses them, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from cogcli.base.errors import UsageError
from cogcli.cli.app import COMMANDS, GROUPS
from cogcli.cli.batch_flags import BatchFlags
from cogcli.cli.command_help import render_text
from cogcli.cli.options import PANELS, Call
from cogcli.cli.run_flags import RunFlags
from cogcli.cli.typer_app import load, parse, root


def refused(*argv: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(list(argv))
    return caught.value


@pytest.mark.parametrize(
    "argv", [("--json", "ls", "-q"), ("ls", "--json", "-q"), ("-q", "ls", "--json")]
)
def test_global_flags_stand_before_and_after_the_command(argv: tuple[str, ...]) -> None:
    call = parse(list(argv))
    assert (call.command, call.flags.json, call.flags.quiet) == ("ls", True, True)


@pytest.mark.parametrize("argv", [("--runs-dir", "x"), ("--runs-dir=x",)])
def test_a_value_follows_its_flag_or_an_equals_sign(argv: tuple[str, ...]) -> None:
    assert parse([*argv, "ls"]).flags.runs_dir == "x"


@pytest.mark.parametrize("argv", [("-p", "a=b"), ("-pa=b",)])
def test_a_short_flag_takes_its_value_either_way(argv: tuple[str, ...]) -> None:
    assert parse(["run", "x.y", *argv]).given["p"] == ("a=b",)


def test_switches_may_be_written_together() -> None:
    flags = parse(["ls", "-qv"]).flags
    assert flags.quiet
    assert flags.verbose


def test_repeatable_flags_keep_their_order() -> None:
    assert parse(["run", "x.y", "-p", "a=1", "--tag", "t=1", "-p", "b=2"]).given["p"] == (
        "a=1",
        "b=2",
    )


def test_a_global_flag_that_is_repeatable_adds_up_on_both_sides_of_the_command() -> None:
    call = parse(
        [
            "--registry",
            "a",
            "-C",
            "x",
            "skills",
            "--registry",
            "b",
            "ls",
            "--registry",
            "c",
            "-C",
            "y",
        ]
    )
    assert call.flags.registry == ["a", "b", "c"]
    assert call.flags.directory == "y"  # the last one wins
    assert call.given["registry"] == ["a", "b", "c"]


def test_after_two_dashes_everything_is_a_word() -> None:
    call = parse(["verify", "--", "--json", "-x"])
    assert bound(call, "names") == ["--json", "-x"]
    assert not call.flags.json


@pytest.mark.parametrize(
    "argv",
    [
        ["--", "skills", "show", "--json"],
        ["skills", "--", "show", "--json"],
        ["skills", "show", "--", "--json"],
    ],
)
def test_two_dashes_may_stand_before_the_command(argv: list[str]) -> None:
    call = parse(argv)
    assert (call.command, bound(call, "id"), call.flags.json) == ("skills show", "--json", False)
    assert refused("--", "skills", "--json").message == "`skills` has no command `--json`"
    assert refused("--", "a\udcff").code == "input.encoding"


@pytest.mark.parametrize(
    "argv", [["ls "], [" ls"], ["ls\n"], ["skills "], ["skills", "ls "], ["skills", ""]]
)
def test_a_command_is_named_by_its_very_words(argv: list[str]) -> None:
    assert refused(*argv).code == "usage.command"


@pytest.mark.parametrize("flag", ["--help", "--version", "--json"])
def test_a_switch_takes_no_value(flag: str) -> None:
    for command in ("ls", "search"):
        error = refused("skills", command, f"{flag}=1")
        assert (error.message, error.found) == (f"`{flag}` takes no value", "1")


def test_the_word_that_has_no_place_is_named() -> None:
    assert refused("help", "-q", "a", "b", "c", "extra").message == "unexpected argument `extra`"
    assert refused("ls", "-q", "extra").message == "unexpected argument `extra`"


@pytest.mark.parametrize("before", [[], ["skills"], ["run"]])
def test_ten_thousand_unknown_flags_are_one_error(before: list[str]) -> None:
    """The commands that may know a flag are looked through for one of them: for each that takes minutes."""
    assert "no flag `--bogus`" in refused(*before, *["--bogus"] * 10_000).message


def test_a_lone_dash_and_a_negative_looking_value_are_values() -> None:
    assert parse(["run", "x.y", "--input", "-"]).given["input"] == "-"
    assert parse(["run", "x.y", "--goal", "-5 degrees"]).given["goal"] == "-5 degrees"
    assert parse(["run", "x.y", "--goal=--json"]).given["goal"] == "--json"


def test_a_bare_group_is_no_error() -> None:
    call = parse(["state"])
    assert (call.command, call.action) == ("state", None)
    assert render_text(call).startswith("cogcli state\n")


@pytest.mark.parametrize(
    "argv",
    [
        ("--help", "run"),
        ("run", "--help"),
        ("run", "-h", "--limit"),
        ("run", "-qh"),
        ("run", "--plan", "--plan", "-h"),
        ("run", "--json=1", "--goal", "-h"),
    ],
)
def test_help_is_of_the_command_wherever_it_was_asked_for(argv: tuple[str, ...]) -> None:
    call = parse(list(argv))
    assert call.action is None
    assert render_text(call).startswith("cogcli run SKILL: ")


@pytest.mark.parametrize(
    "argv", [("ls", "--version"), ("--version", "ls"), ("--version", "--json")]
)
def test_the_version_is_told_wherever_it_was_asked_for(argv: tuple[str, ...]) -> None:
    assert render_text(parse(list(argv))).startswith("cogcli 0.")


@pytest.mark.parametrize(
    ("argv", "code", "hint"),
    [
        (["rnu"], "usage.command", "`run`"),
        (["state", "shwo"], "usage.command", "`show`"),
        (["text.summarize"], "usage.command", "cogcli run text.summarize"),
        (["run", "x.y", "--inptu", "{}"], "usage.flag", "`--input`"),
        (["run", "x.y", "-input", "{}"], "usage.flag", "`--input`"),
        (["run", "x.y", "-qinput", "{}"], "usage.flag", "`--input`"),
        (["skills", "-verbose"], "usage.flag", "`--verbose`"),
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
    call = parse(["run", "a.b", "--timeout", "1.5", "--max-workers", "4", "--seed", "0"])
    flags = bound(call, "flags")
    assert flags.options == {"seed": 0, "max_workers": 4, "timeout": 1.5}
    assert call.given == {"timeout": 1.5, "max_workers": 4, "seed": 0}


def test_a_flag_that_was_not_given_is_the_default_of_the_function() -> None:
    assert bound(parse(["ls"]), "limit") == 20
    assert bound(parse(["skills", "search", "x"]), "limit") == 10
    assert bound(parse(["replay"]), "at") is None
    assert bound(parse(["validate"]), "words") == []


def bound(call: Call, name: str) -> Any:
    """A value that the command's function gets."""
    assert isinstance(call.action, partial)
    return call.action.keywords[name]


def test_every_example_of_the_help_parses() -> None:
    for name in COMMANDS:
        examples = load(name).declared.examples_of(name)
        assert len(examples) == 3, name
        named = []
        for line, _ in examples:
            words = line.split(" | ")[0].split(" > ")[0].split()
            assert words[0] == "cogcli"
            named.append(parse(words[1:]).command)
        assert named[0] == name
        assert named.count(name) >= 2, name  # one may be what is asked before or after


def test_every_flag_has_a_known_group_and_one_spelling_per_command() -> None:
    for name in COMMANDS:
        flags = [p for p in (*load(name).params, *root().params) if p.param_type_name == "option"]
        spellings = [spelling for flag in flags for spelling in flag.opts]
        assert len(spellings) == len(set(spellings)), name
        names = [param.name for param in (*load(name).params, *root().params)]
        assert len(names) == len(set(names)), name
        assert {flag.rich_help_panel for flag in flags} <= set(PANELS)


def test_a_flag_of_the_run_family_is_declared_once() -> None:
    """`trace SKILL` takes what `run` takes, `rerun` and `serve mcp` a part of it: the same help, words and bounds."""
    of_batches = {name for name, _, _ in BatchFlags.declared()}
    whole = {param.name: param for param in load("run").params if param.name not in of_batches}
    for name in ("trace", "rerun", "serve mcp"):
        shared = {param.name: param for param in load(name).params if param.name in whole}
        assert len(shared) >= 10, name
        for key, param in shared.items():
            if key != "skill":
                assert (param.opts, param.help, param.metavar) == (
                    whole[key].opts, whole[key].help, whole[key].metavar
                )  # fmt: skip
    assert {name for name, _, _ in RunFlags.declared()} <= {
        param.name for param in load("trace").params
    }


def test_every_summary_is_one_line_and_every_row_of_the_home_screen_names_commands() -> None:
    words = {name.split()[0] for name in COMMANDS}
    assert {name for names in GROUPS.values() for name in names} == words
    assert all(summary and "\n" not in summary for _, summary in COMMANDS.values())

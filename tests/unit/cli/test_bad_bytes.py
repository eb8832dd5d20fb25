"""Bytes that are no UTF-8, and numbers without end, are exit 2 or 3 wherever they enter, never a bug."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.agent.use_cases.language_model import chosen_model
from cogcli.app.settings import WHOLE_TABLE, Settings
from cogcli.app.settings.config import KEYS, ConfigFile, variable
from cogcli.app.settings.setting_types import PathList
from cogcli.base.errors import CogcliError, ServiceResolutionError, UsageError
from cogcli.base.system_text import bad_byte
from cogcli.cli import main
from cogcli.cli.app import COMMANDS
from cogcli.cli.envelope import dumps
from cogcli.cli.streams import Screen
from cogcli.cli.typer_app import Parser, load, root

pytestmark = pytest.mark.sampled(4)
"""A long run tries all of it."""

BAD = os.fsdecode(b"a\xffb")
DIGITS = "1" * 6000
FLAGS = [
    (name, flag.opts[-1])
    for name in COMMANDS
    for flag in (*load(name).params, *root().params)
    if flag.param_type_name == "option" and not flag.is_flag
]
WORDS = {name: ["x"] * sum(param.required for param in load(name).params) for name in COMMANDS}


def refused(argv: list[str]) -> CogcliError:
    with pytest.raises(UsageError) as caught:
        Parser(argv).parse()
    return caught.value


@pytest.mark.sampled(16)
@pytest.mark.parametrize("word", [BAD, f"k={BAD}", f"{BAD}=v", "\ud800"])
def test_every_flag_of_every_command_refuses_them(word: str) -> None:
    for command, flag in FLAGS:
        error = refused([*command.split(), *WORDS[command], flag, word])
        assert (error.code, error.exit_code) == ("input.encoding", 2), (command, flag)
        assert flag in error.message
        error.message.encode()
        joined = refused([*command.split(), *WORDS[command], f"{flag}={word}"])
        assert joined.code == "input.encoding" or not flag.startswith("--")


@given(
    st.sampled_from(list(COMMANDS)),
    st.lists(st.text(alphabet="ab-=@\udcff\ud800ü", max_size=4), max_size=3),
)
def test_what_is_parsed_holds_none(command: str, words: list[str]) -> None:
    try:
        found = Parser([*command.split(), *words]).parse()
    except UsageError:
        return
    assert not any(map(bad_byte, words)), found.given


def answered(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main.run([*argv, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words", [["run", "text.language", "-p"], ["run", "text.language", "--goal"], [BAD], ["trace"]]
)
def test_the_envelope_says_which_word_it_was(
    words: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = answered([*words, f"text={BAD}"], capsys)
    assert (code, answer["exit_code"], answer["error"]["code"]) == (2, 2, "input.encoding")
    assert answer["command"] == (words[0] if words[0] != BAD else "")
    assert not list(place.glob(".cogcli/*"))


@pytest.mark.parametrize(
    "name",
    [
        "HOME",
        "XDG_CONFIG_HOME",
        "COGCLI_RUNS_DIR",
        *(f"COGCLI_{key.upper()}" for key in ("registry", "trust_level")),
    ],
)
def test_so_do_the_variables_that_are_read(
    name: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, f"/tmp/{BAD}")
    for command in (["config", "show"], ["run", "text.language", "-p", "text=x"]):
        code, answer = answered(command, capsys)
        assert (code, answer["error"]["code"]) == (2, "input.encoding"), command
        assert name in answer["error"]["message"]
    for command in (["ls"], ["skills", "ls"], ["doctor"], ["trace"]):
        assert answered(command, capsys)[0] in (0, 1, 2), command


@pytest.mark.parametrize("key", [key for key in KEYS if not key.startswith(f"{WHOLE_TABLE}.")])
@pytest.mark.parametrize("text", [BAD, DIGITS, f"-{DIGITS}", "²", "１", "1e999999", "nan"])
def test_every_setting_in_the_environment_is_judged(key: str, text: str) -> None:
    settings = Settings({}, {variable(key): text, "HOME": "/nowhere"})
    setting = KEYS[key].type
    if not setting.in_environment or (isinstance(setting, PathList) and not bad_byte(text)):
        return  # names and tables are not read from the environment
    with pytest.raises(UsageError) as caught:
        settings.value(key)
    assert len(caught.value.message) < 300
    caught.value.message.encode()


@pytest.mark.parametrize("text", [BAD, DIGITS, f"openai{DIGITS}:x", "²", "１", "nan"])
def test_a_model_in_the_environment_is_judged(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen_model(Settings({}, {"COGCLI_MODEL": text, "HOME": "/nowhere"}))
    assert len(caught.value.message) < 300
    caught.value.message.encode()


@pytest.mark.parametrize("text", [DIGITS, "²", "１", BAD, "-1"])
def test_what_a_terminal_is_told_to_be_is_judged(text: str) -> None:
    for name in ("COGCLI_FORCE_TTY", "COLUMNS", "COGCLI_COLOR", "CI", "LC_ALL"):
        Screen({name: text, **({"COGCLI_FORCE_TTY": "0"} if name == "COLUMNS" else {})})
    assert isinstance(Settings({}, {"COGCLI_FAKE_CLOCK": text, "HOME": "/"}).clock.now(), str)


@pytest.mark.skipif(sys.platform == "darwin", reason="this file system has no such names")
def test_a_directory_without_a_name_in_utf8_is_left(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = place / BAD
    odd.mkdir()
    (odd / "cogcli.toml").touch()
    monkeypatch.chdir(odd)
    for command in (
        ["ls"],
        ["run", "text.language", "-p", "text=x"],
        ["validate"],
        ["config", "trust"],
    ):
        code, answer = answered(command, capsys)
        assert (code, answer["error"]["code"]) == (2, "input.encoding"), command
    assert main.run(["--version"]) == 0
    capsys.readouterr()
    assert not (odd / ".cogcli").exists()
    code, _ = answered(["ls", "-C", str(place)], capsys)
    assert code == 0


@pytest.mark.sampled(8)
def test_a_spec_in_a_file_without_such_a_name_is_not_loaded(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("capabilities", "bindings/local/x.y", f"skills/local/{BAD}/c", "services"):
        (place / folder).mkdir(parents=True)
        (place / folder / f"{BAD}.yaml").write_text("id: x\n")
    code, answer = answered(["validate"], capsys)
    assert code == 1
    assert {p["code"] for p in answer["problems"]} == {"id.format"}
    assert len(answer["problems"]) == 4
    assert all("UTF-8" in p["message"] for p in answer["problems"])
    code, answer = answered(["run", "text.language", "-p", "text=hello"], capsys)
    assert (code, answer["status"]) == (0, "ok")


NUMBERS = (
    DIGITS,
    f"-{DIGITS}",
    "0x" + "f" * 6000,
    "0b" + "1" * 60000,
    "9" * 200_000,
    "1e99999",
    "1" + "_1" * 3000,
)


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.parametrize("key", [*KEYS, "x-own", "other"])
def test_every_value_of_a_configuration_file_is_judged(key: str, place: Path) -> None:
    odd = (
        *NUMBERS,
        '"' + "f" * 6000 + '"',
        "2021-02-30",
        "9999-12-31T23:59:60Z",
        "[" * 6000,
        '"\\ud800"',
        "inf",
        "nan",
    )
    for value in odd:
        for text in (
            f"{key} = {value}\n",
            f"\n{key} = [{value}]\n",
            f"[{key}]\na = {value}\n",
            f"{key}.a = {{b = {value}}}",
        ):
            path = place / "cogcli.toml"
            path.write_text(text)
            file = ConfigFile(str(path), "cogcli.toml", project=True)
            for problem in file.problems:
                assert (problem.code, problem.exit_code) == ("config.key", 3)
                assert len(problem.message) < 300, problem.message
                problem.message.encode()
            if key in KEYS:
                long = "f" * 6000
                accepted = ({}, {key: [str(place / long)]}, {key: [long]})
                assert file.problems or file.values in accepted, (text[:80], file.values)


def test_commands_go_on_beside_such_a_file(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGCLI_TRUST_PROJECT", "1")
    (place / "cogcli.toml").write_text(f"# here\nmax_workers = {DIGITS}\n")
    assert main.run(["ls"]) == 0
    assert main.run(["config", "show"]) == 0
    capsys.readouterr()
    code, answer = answered(["run", "text.language", "-p", "text=x"], capsys)
    assert (code, answer["error"]["code"], answer["error"]["line"]) == (3, "config.key", 2)


def test_a_secret_that_is_no_text_is_named_and_not_shown() -> None:
    from cogcli.protocols.secrets import Secrets

    with pytest.raises(ServiceResolutionError) as caught:
        Secrets({"TOKEN": BAD}, lambda secret: None).resolve("env:TOKEN")
    assert caught.value.code == "env.missing"
    assert caught.value.message == "environment variable `TOKEN` is not UTF-8"


@given(
    st.recursive(
        st.text(alphabet="a\udcff\ud800\x1b", max_size=3),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="b\udcff"), inner),
        max_leaves=4,
    )
)
def test_every_envelope_can_be_read_strictly(value: Any) -> None:
    from cogcli.base.strict_json import loads

    loads(dumps({"own": value}))

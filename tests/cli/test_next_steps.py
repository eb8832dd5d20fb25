"""After an error comes a command that can be pasted: what was meant, or where to look
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.sampled(4)

MEANT = {
    ("run", "demo.gret", "-p", "text=a b"): "cogcli run demo.greet -p 'text=a b'",
    ("trace", "demo.gret", "-p", "text=x"): "cogcli trace demo.greet -p text=x",
    ("run", "demo.greet"): "cogcli run demo.greet -p 'text=A first sentence. A second one.'",
    ("run", "demo.greet", "-p", "tims=3"): "cogcli run demo.greet -p times=3 -p 'text=A first sentence. A second one.'",
    ("run", "demo.greet", "--inputfile", "a.json"): "cogcli run demo.greet --input-file a.json",
    ("run", "demo.greet", "--inputfile=a.json"): "cogcli run demo.greet --input-file=a.json",
    ("run", "demo.greet", "-p", "txt=x"): "cogcli run demo.greet -p text=x",
    ("run", "demo.greet", "text=a b", "-q"): "cogcli run demo.greet -p 'text=a b' -q",
    ("run", "skills/local/demo/greet/skill.yaml", "-p", "text=x"): "cogcli run demo.greet -p text=x",
    ("lss", "--all"): "cogcli ls --all",
    ("ls", "--outcome", "eror"): "cogcli ls --outcome error",
    ("config", "show", "max_worker"): "cogcli config show max_workers",
    ("explain", "ref.unwriten"): "cogcli explain ref.unwritten",
    ("run", "demo.greet", "-p", "text=x", "--bind", "demo.text.uper=b"):
        "cogcli run demo.greet -p text=x --bind demo.text.upper=b",
}  # fmt: skip
LOOK = {
    ("demo.greet",): "cogcli skills ls",
    ("run", "demo.greet", "password=x"): "cogcli run --help",
    ("run", "xylograph.qqq"): "cogcli skills ls",
    ("run", "demo.greet", "--input", "{text"): "cogcli help inputs",
    ("run", "demo.greet", "--input-file", "skills"): "cogcli help inputs",
    (
        "run",
        "demo.greet",
        "-p",
        "text=x",
        "--runs-dir",
        "/dev/null/x",
    ): "cogcli doctor --runs-dir /dev/null/x",
    ("trace", "@last", "--runs-dir", "none at all"): "cogcli ls --runs-dir 'none at all'",
    ("run", "demo.greet", "--seed", "x"): "cogcli run --help",
    ("rnu",): "cogcli help commands",
}


@pytest.mark.parametrize("command", MEANT, ids=" ".join)
def test_what_was_meant_is_offered_with_the_users_own_words(
    demo: Any, command: tuple[str, ...]
) -> None:
    assert (
        demo.run(*command).assert_exit(2).err.split("next: ")[1].splitlines()[0] == MEANT[command]
    )


@pytest.mark.parametrize("command", LOOK, ids=" ".join)
def test_else_the_place_to_look_is(demo: Any, command: tuple[str, ...]) -> None:
    assert f"next: {LOOK[command]}\n" in demo.run(*command).err


def test_what_is_wrong_beside_what_was_meant_leaves_the_place_to_look(demo: Any) -> None:
    for more in (("-p", "times=x"), ("--input", "-")):
        result = demo.run("run", "demo.greet", *more, input="{}").assert_exit(2)
        assert result.err.split("next: ")[1] == "cogcli skills show demo.greet\n", more


def test_a_missing_input_says_what_it_is(demo: Any) -> None:
    demo.skill(
        "demo.ask",
        "- {id: one, uses: demo.text.upper, input: {text: inputs.word}, output: {text: outputs.text}}",
        inputs="{word: {type: string, required: true, enum: [a, b], description: Which one.}}",
        outputs="{text: {type: string, required: true}}",
    )
    result = demo.run("run", "demo.ask").assert_exit(2)
    assert 'help: string, one of text "a", text "b": Which one.' in result.err
    assert result.err.endswith(
        "next: cogcli run demo.ask -p word=a\n      cogcli skills show demo.ask\n"
    )


def test_a_secret_that_was_typed_is_not_printed_again(demo: Any) -> None:
    result = demo.run("run", "demo.gret", "-p", "api_key=sentinel-4711").assert_exit(2)
    assert "sentinel" not in result.err
    assert "next: cogcli skills ls" in result.err


def test_capabilities_that_flags_name_must_be_used(demo: Any) -> None:
    for flag, value in (("--bind", "demo.text.none=x"), ("--confirm", "demo.text.none")):
        result = demo.run("run", "demo.greet", "-p", "text=x", flag, value, "--json").assert_exit(2)
        assert result.json["error"]["code"] == "usage.value"
    assert not demo.episodes
    demo.run("run", "demo.review", "-p", "text=x", "--confirm", "demo.text.upper").assert_exit(1)


def test_a_slip_in_a_flag_is_told_beside_what_it_left_undecided(demo: Any) -> None:
    name = "bindings/local/demo.text.upper/demo_text_upper.yaml"
    demo.write(
        name.replace("_upper.y", "_second.y"),
        (demo.root / name).read_text().replace("_upper", "_second", 1),
    )
    run = ("run", "demo.greet", "-p", "text=x", "--bind")
    both = demo.run(*run, "demo.text.uper=demo_text_upper").assert_exit(3).err
    assert "error[binding.ambiguous]" in both
    assert "uses no capability `demo.text.uper`" in both
    slip = demo.run(*run, "demo.text.upper=demo_text_uper").assert_exit(3).err
    assert "next: cogcli run demo.greet -p text=x --bind demo.text.upper=demo_text_upper\n" in slip


def test_an_error_of_the_command_line_names_its_command(demo: Any) -> None:
    assert demo.run("run", "demo.greet", "--seed", "x", "--json").json["command"] == "run"
    assert demo.run("skills", "lss", "--json").json["command"] == "skills"


def test_an_empty_word_is_an_unset_variable_and_not_the_newest_episode(demo: Any) -> None:
    demo.run("run", "demo.greet", "-p", "text=x").assert_ok()
    for command in (("trace", ""), ("state", "show", ""), ("verify", "")):
        assert "is a variable unset?" in demo.run(*command).assert_exit(2).err
    assert (
        "is a variable unset?"
        in demo.run("run", "demo.greet", "--input-file", "").assert_exit(2).err
    )


@pytest.mark.sampled(8)
def test_what_the_doctor_finds_is_an_error_with_a_code(demo: Any) -> None:
    demo.write("taken", "x")
    body = demo.run("doctor", "--runs-dir", "taken", "--json").assert_exit(1).json
    assert (body["error"]["code"], body["error"]["hint"]) == (
        "doctor.found",
        "choose another with --runs-dir",
    )
    assert (
        demo.run("doctor", "--strict", "--json").assert_exit(1).json["error"]["code"]
        == "doctor.found"
    )

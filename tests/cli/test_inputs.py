"""Every way to give inputs, and every way to give them wrongly."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(8)

ECHO = """
def echo(**given: object) -> dict[str, object]:
    return given
"""
TYPES = {"str": "string", "num": "number", "int": "integer", "boo": "boolean", "arr": "array", "obj": "object",
         "any": "any"}  # fmt: skip


@pytest.fixture
def echo(project: Any) -> Any:
    """`demo.echo` gives back its inputs, one of each type."""
    project.services(ECHO)
    fields = "{" + ", ".join(f"{name}: {{type: {type}}}" for name, type in TYPES.items()) + "}"

    def each(place: str) -> str:
        return "{" + ", ".join(f"{name}: {place}.{name}" for name in TYPES) + "}"

    project.capability("demo.echo.all", "echo", inputs=fields, outputs=fields, request=each("input"),
                       response=each("response"))  # fmt: skip
    outputs = "{" + ", ".join(f"{name}: outputs.{name}" for name in TYPES) + "}"
    step = f"- {{id: echo, uses: demo.echo.all, input: {each('inputs')}, output: {outputs}}}"
    project.skill("demo.echo", step, inputs=fields, outputs=fields)
    return project


def values(result: Any) -> dict[str, Any]:
    """The outputs that were given: an absent input of type `any` is null."""
    return {name: value for name, value in result.json.items() if value is not None}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("str=hi", "hi"), ("str=", ""), ("str=a=b", "a=b"), ("str=60", "60"), ("str=@@x", "@x"),
        ("str=@a.txt", "from file\n"),
        ("num=1.5", 1.5), ("num=-2", -2), ("int=60", 60), ("boo=true", True), ("boo=false", False),
        ("arr=[1, 2]", [1, 2]), ("arr:=[]", []), ('obj={"a": 1}', {"a": 1}), ("obj:={}", {}),
        ("any=12", "12"), ("any:=12", 12), ("arr=@a.json", [1]),
    ],
)  # fmt: skip
def test_one_input_is_converted_by_its_declared_type(echo: Any, given: str, value: Any) -> None:
    echo.write("a.txt", "from file\n")
    echo.write("a.json", "[1]")
    result = echo.run("run", "demo.echo", "-p", given, "-q").assert_ok()
    assert values(result) == {given[:3]: value}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("num=ten", "input.type"), ("int=1.5", "input.type"), ("int=0x10", "input.type"), ("int=1_0", "input.type"),
        ("int=", "input.type"), ("num=nan", "input.type"), ("boo=yes", "input.type"), ("boo=True", "input.type"),
        ("arr=a", "input.type"), ("obj=[1]", "input.type"), ("int:=\"60\"", "input.type"), ("any:={a}", "input.json"),
        ("any:=NaN", "input.json"), ("str=@none.txt", "input.file"), ("str=@.", "input.file"), ("str", "usage.value"),
        ("=x", "usage.value"), ("num=1e999", "input.json"), ("int=9007199254740993", "input.json"),
        ("str=@latin.txt", "input.encoding"),
    ],
)  # fmt: skip
def test_one_input_that_does_not_fit_is_refused(echo: Any, given: str, code: str) -> None:
    echo.write("latin.txt", b"caf\xe9")
    result = echo.run("run", "demo.echo", "-p", given, "--json").assert_exit(2)
    assert result.json["error"]["code"] == code
    assert echo.episodes == []


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('{"str": "a",}', "input.json", "trailing comma"),
        ("{'str': 'a'}", "input.json", "single quotes"),
        ("{“str”: 1}", "input.json", "smart quote"),
        ('{"boo": True}', "input.json", "Python"),
        ('{"num": NaN}', "input.json", "NaN"),
        ('{"str": "a", "str": "b"}', "input.json", "repeated"),
        ("", "input.empty", "empty"),
        ("notes.json", "input.json", "file name"),
        ("{str:hi}", "input.json", "your shell removed the double quotes"),
        ("[1]", "input.type", "expected an object"),
        ('{"str": "\\ud800"}', "input.json", "surrogate"),
        ('{"str": "a"} x', "input.json", ""),
        ("@none.json", "input.file", "does not exist"),
    ],
)
def test_bad_json_names_its_cause(echo: Any, text: str, code: str, says: str) -> None:
    result = echo.run("run", "demo.echo", "--input", text, "--json").assert_exit(2)
    assert result.json["error"]["code"] == code
    assert says in result.json["error"]["message"]


def test_the_shell_hint_shows_the_input_as_p(echo: Any) -> None:
    assert "-p str=hi" in echo.run("run", "demo.echo", "--input", "{str:hi}").assert_exit(2).err


def test_files_of_both_kinds_and_stdin(echo: Any) -> None:
    echo.write("in.json", '{"str": "json"}')
    echo.write("in.yaml", "str: yaml\narr: [1, 2]\n")
    run = ("run", "demo.echo", "-q")
    assert values(echo.run(*run, "--input-file", "in.json").assert_ok()) == {"str": "json"}
    assert values(echo.run(*run, "--input-file", "in.yaml").assert_ok()) == {
        "str": "yaml",
        "arr": [1, 2],
    }
    assert values(echo.run(*run, "--input", "@in.json").assert_ok()) == {"str": "json"}
    assert values(echo.run(*run, "--input", "-", input='{"str": "stdin"}').assert_ok()) == {
        "str": "stdin"
    }
    assert values(echo.run(*run, "-p", "str=@-", input="text").assert_ok()) == {"str": "text"}
    assert values(echo.run(*run, "--input-file", "in.json", "-p", "str=wins").assert_ok()) == {
        "str": "wins"
    }


def test_stdin_is_read_once(echo: Any) -> None:
    result = echo.run("run", "demo.echo", "--input", "-", "-p", "str=@-", input="{}").assert_exit(2)
    assert "only once" in result.err


def test_input_and_input_file_exclude_each_other(echo: Any) -> None:
    echo.write("in.json", "{}")
    assert (
        "usage.flag"
        in echo.run("run", "demo.echo", "--input", "{}", "--input-file", "in.json")
        .assert_exit(2)
        .err
    )


def test_a_bad_yaml_input_has_its_place(echo: Any) -> None:
    echo.write("in.yaml", "str: hi\nboo: yes\n")
    error = (
        echo.run("run", "demo.echo", "--input-file", "in.yaml", "--json")
        .assert_exit(2)
        .json["error"]
    )
    assert (error["file"], error["line"], error["column"]) == ("in.yaml", 2, 6)


def test_a_bad_json_file_has_its_place_and_a_frame(echo: Any) -> None:
    echo.write("in.json", '{\n  "str": "hi",\n}\n')
    result = echo.run("run", "demo.echo", "--input-file", "in.json").assert_exit(2)
    assert "--> in.json:2:14" in result.err


def test_a_misspelt_file_name_is_corrected(echo: Any) -> None:
    echo.write("notes.json", "{}")
    assert (
        "`notes.json`"
        in echo.run("run", "demo.echo", "--input-file", "notes.jsn").assert_exit(2).err
    )


def test_too_much_input_is_refused(echo: Any) -> None:
    text = '{"str": "' + "x" * (8 * 1024 * 1024) + '"}'
    assert (
        "input.size" in echo.run("run", "demo.echo", "--input", "-", input=text).assert_exit(2).err
    )


def test_utf_16_and_null_bytes_are_named(echo: Any) -> None:
    echo.write("in.json", '{"str": "hi"}'.encode("utf-16"))
    result = echo.run("run", "demo.echo", "--input-file", "in.json", "--json").assert_exit(2)
    assert result.json["error"]["code"] == "input.encoding"
    assert "UTF-16" in result.json["error"]["message"]


def test_the_frame_comes_from_a_file_and_a_goal(echo: Any) -> None:
    echo.write("frame.yaml", "goal: from the file\npriority: high\n")
    echo.run(
        "run", "demo.echo", "--frame-file", "frame.yaml", "--goal", "from the flag", "-q"
    ).assert_ok()
    frame = echo.run("state", "show", "--path", "x-cognitive.frame").assert_ok().json
    assert (frame["goal"], frame["priority"]) == ("from the flag", "high")
    echo.write("frame.yaml", "gaol: x\n")
    assert (
        "frame.field"
        in echo.run("run", "demo.echo", "--frame-file", "frame.yaml").assert_exit(2).err
    )


@pytest.mark.sampled(16)
@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_bytes_that_are_no_utf8_are_refused_in_every_locale(project: Any, locale: str) -> None:
    word, env = os.fsdecode(b"text=a\xffb"), {"LC_ALL": locale}
    for flags in (
        ["-p", word],
        ["--goal", word],
        ["--tag", word],
        ["-p", "text=x", "--runs-dir", word],
    ):
        answer = (
            project.installed("run", "text.language", "--json", *flags, env=env).assert_exit(2).json
        )
        assert answer["error"]["code"] == "input.encoding", flags
    assert not list(project.root.iterdir())
    project.installed(
        "run", "text.language", "-p", "text=Gr\u00fc\u00dfe", "-q", env=env
    ).assert_ok()


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_arguments_are_utf8_where_python_would_read_ascii(project: Any, locale: str) -> None:
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    project.write("gr\u00f6\u00dfe.txt", "Die Gr\u00f6\u00dfe z\u00e4hlt.")
    for word in ("text=Die Gr\u00f6\u00dfe z\u00e4hlt.", "text=@gr\u00f6\u00dfe.txt"):
        answer = project.installed("run", "text.language", "-p", word, "-q", env=env).assert_ok()
        assert answer.json
    bad = os.fsdecode(b"text=a\xffb")
    answer = (
        project.installed("run", "text.language", "--json", "-p", bad, env=env).assert_exit(2).json
    )
    assert answer["error"]["code"] == "input.encoding"

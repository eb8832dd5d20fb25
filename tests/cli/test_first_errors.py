"""What a new user types wrongly first: JSON on the command line, a URL without its scheme, a broken file that breaks
others (docs/reference/command-line.md#errors)."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

pytestmark = pytest.mark.sampled(4)

TEXT = "{text: {type: string, required: true}}"
URL = '{url: {type: string, required: true, schema: {pattern: "^https?://"}}}'


@pytest.mark.parametrize(
    ("flags", "place", "line", "mark"),
    [
        (("--input", '{"text": "hi",}'), "--input:1:14", '{"text": "hi",}', 13),
        (("--input", '{"text":\n tru}'), "--input:2:2", " tru}", 1),
        (("-p", "text=x", "-p", "times:=3x"), "-p times:1:1", "3x", 0),
    ],
)
def test_json_that_was_typed_is_framed_as_a_file_is(
    demo: Any, flags: tuple[str, ...], place: str, line: str, mark: int
) -> None:
    lines = demo.run("run", "demo.greet", *flags).assert_exit(2).err.splitlines()
    at = lines.index(f"  --> {place}")
    number = place.split(":")[1]
    assert lines[at + 2] == f" {number} | {line}"
    assert lines[at + 3].index("^") == len(" 1 | ") + mark
    error = demo.run("run", "demo.greet", *flags, "--json").json["error"]
    assert f"{error['file']}:{error['line']}:{error['column']}" == place


def test_json_from_a_pipe_is_framed_too(demo: Any) -> None:
    refused = demo.run("run", "demo.greet", "--input", "-", input="{text: 1}").assert_exit(2)
    assert "  --> stdin:1:2" in refused.err
    assert "^" in refused.err


@pytest.mark.parametrize(
    "text",
    ['{"text": "hi", "api_key": "hunter2",}', '{"password":"hunter2","text":x}', "{token:hunter2}"],
)
def test_a_line_that_names_a_secret_is_not_printed_again(demo: Any, text: str) -> None:
    refused = demo.run("run", "demo.greet", "--input", text).assert_exit(2)
    assert "--> --input:1:" in refused.err
    assert "hunter2" not in refused.err.partition("help")[0]
    assert "^" not in refused.err


def test_escapes_in_typed_json_are_shown_harmlessly(demo: Any) -> None:
    refused = demo.run("run", "demo.greet", "--input", '{"text": \x1b]0;x\x07}').assert_exit(2)
    assert "\x1b" not in refused.err
    assert "\\x1b]0;x\\x07}" in refused.err


def test_several_problems_keep_their_frames(demo: Any) -> None:
    flags = ("--input", '{"text": "a",}', "-p", "times:=[", "-p", "txt=b")
    refused = demo.run("run", "demo.greet", *flags).assert_exit(2)
    assert refused.err.count("^") == 2
    codes = [
        problem["code"]
        for problem in demo.run("run", "demo.greet", *flags, "--json").json["problems"]
    ]
    assert codes == ["input.json", "input.json", "input.unknown"]


@pytest.fixture
def pages(demo: Any) -> Any:
    """A project whose skills take URLs; nothing is fetched."""
    step = "- {id: one, uses: demo.text.upper, input: {text: inputs.url}, output: {text: outputs.text}}"
    demo.skill("demo.page", step, inputs=URL, outputs=TEXT)
    step = "- {id: one, uses: demo.text.upper, input: {text: {$literal: x}}, output: {text: outputs.text}}"
    items = 'items: {type: string, schema: {pattern: "^https?://"}}'
    demo.skill(
        "demo.pages",
        step,
        inputs=f"{{urls: {{type: array, required: true, {items}}}}}",
        outputs=TEXT,
    )
    return demo


@pytest.mark.parametrize("address", ["example.com", "www.example.com/a?b=c", "localhost:8000/x"])
def test_a_url_without_a_scheme_is_refused_with_the_corrected_command(
    pages: Any, address: str
) -> None:
    url = f"{'http' if address.startswith('localhost') else 'https'}://{address}"
    for skill, pair in (
        ("demo.page", f"url={address}"),
        ("demo.pages", f"urls:={json.dumps([address])}"),
    ):
        error = pages.run("run", skill, "-p", pair, "--json").assert_exit(2).json["error"]
        assert error["code"] == "input.schema"
        assert error["hint"] == f"did you mean `{url}`?"
        words = shlex.split(error["next"][0])
        assert words[:4] == ["cogcli", "run", skill, "-p"]
        assert words[4] == pair.replace(address, url)
        assert pages.run(*words[1:]).assert_ok().json["outputs"]["text"]
    assert len(pages.episodes) == 2


@pytest.mark.parametrize("text", ["two words", "ftp://example.com", "x", "../etc"])
def test_what_is_no_address_at_all_gets_no_such_hint(pages: Any, text: str) -> None:
    error = (
        pages.run("run", "demo.page", "-p", f"url={text}", "--json").assert_exit(2).json["error"]
    )
    assert "did you mean" not in error["hint"]


@pytest.mark.parametrize(
    "skill",
    ["web.fetch-summary", "web.fetch-classify", "web.page-chunk-and-embed", "api.json-check"],
)
def test_shipped_skills_that_fetch_want_a_scheme(demo: Any, skill: str) -> None:
    refused = demo.run("run", skill, "-p", "url=example.com", "-p", "schema:={}").assert_exit(2)
    assert "did you mean `https://example.com`?" in refused.err
    assert demo.episodes == []


def test_a_list_is_not_proposed_in_the_words_of_a_text(demo: Any) -> None:
    refused = demo.run("run", "web.digest", "-p", "url=example.com").assert_exit(2)
    assert "did you mean `urls`?" in refused.err
    assert "next: cogcli skills show web.digest" in refused.err


def test_validate_shows_causes_before_what_follows_from_them(demo: Any) -> None:
    demo.write(
        "capabilities/demo.text.upper.yaml",
        """
        id: demo.text.upper
        version: "1.0.0"
        description: Upper.
        inputs: {text: {type: strng, required: true}}
        outputs: {text: {type: string, required: true}}
        properties: {side_effects: false}
        """,
    )
    demo.write("services/local/demo.yaml", "id: demo\nkind: pythoncall\nmodul: demo_services\n")
    found = demo.run("validate", "--json").assert_exit(1).json["problems"]
    causes = [
        number
        for number, problem in enumerate(found)
        if problem["code"] in ("value.choice", "key.unknown")
    ]
    follows = [
        number
        for number, problem in enumerate(found)
        if problem["message"].endswith("has errors") or problem["code"] == "key.missing"
    ]
    assert len(causes) == 2
    assert len(follows) >= 4
    assert max(causes) < min(follows)
    refused = demo.run("run", "demo.greet", "-p", "text=x", "--json").assert_exit(3).json
    assert refused["error"]["code"] == "value.choice"

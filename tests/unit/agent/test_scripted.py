"""A model that answers as a file says (docs/reference/models.md#scripted)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.models import ask, failure, model, request, streamed

from cogcli.agent.cognition.model_calls import tokens_of
from cogcli.agent.models.port import LanguageModel
from cogcli.base.problems import Problem, ProblemsFound


def script(root: Path, text: str, *, sent: int = 0) -> LanguageModel:
    file = root / "script.yaml"
    file.write_text(text, encoding="utf-8")
    return model("scripted", "models/script.yaml", file=str(file), sent=sent)


def problems(root: Path, text: str) -> list[Problem]:
    with pytest.raises(ProblemsFound) as caught:
        script(root, text)
    return caught.value.problems


def texts(asked: LanguageModel, *prompts: str) -> list[str]:
    return [ask(asked, request(prompt)).text for prompt in prompts]


def test_replies_go_by_the_number_of_the_call(tmp_path: Path) -> None:
    asked = script(
        tmp_path,
        "replies:\n- {text: one}\n- {text: two, times: 2}\n- {json: {response: three, n: [1, null]}}\n",
    )
    assert texts(asked, *"abcd") == ["one", "two", "two", '{"response":"three","n":[1,null]}']
    error = failure(asked, request())
    assert (error.kind, error.message) == (
        "bad_request",
        "models/script.yaml has no reply for call 5",
    )
    assert error.to_error().exit_code == 1


def test_a_later_sitting_goes_on_at_its_number(tmp_path: Path) -> None:
    assert texts(
        script(tmp_path, "replies: [{text: a}, {text: b}, {text: c}]", sent=1), "x", "x"
    ) == [
        "b",
        "c",
    ]


def test_words_of_the_prompt_go_before_the_number(tmp_path: Path) -> None:
    text = "replies:\n- {when: [REFUND, late], text: words}\n- {when: [desk], text: system}\n"
    assert texts(script(tmp_path, text), "a late Refund", "refund", "late refund") == [
        "words",
        "system",
        "words",
    ]
    asked = script(tmp_path, "replies: [{when: [refund], text: words}, {text: one}, {text: two}]")
    assert texts(asked, "refund", "other") == ["words", "two"]


def test_errors_are_those_that_a_provider_gives(tmp_path: Path) -> None:
    asked = script(
        tmp_path,
        "replies:\n- error: {kind: overloaded, retry_after: 1.5, message: busy}\n"
        "- {text: half of it, error: {kind: protocol}}\n- {error: {kind: rate_limited, retryable: false}}\n",
    )
    first = failure(asked, request())
    assert (first.kind, first.retryable, first.retry_after, first.message) == (
        "overloaded",
        True,
        1.5,
        "busy",
    )
    second = failure(asked, request(), stream=True)
    assert (second.kind, second.partial) == ("protocol", "half of it")
    assert not failure(asked, request()).retryable


def test_usage_is_given_or_estimated(tmp_path: Path) -> None:
    asked = script(
        tmp_path,
        "replies: [{text: a b c}, {text: x, usage: {tokens_in: 5, tokens_out: 6}, finish: length}]",
    )
    first, second = ask(asked, request()), ask(asked, request())
    assert first.usage.estimated
    assert (second.usage, second.finish) == ((5, 6, False), "length")


def test_an_estimate_charges_what_a_context_is_made_to_fit_by(tmp_path: Path) -> None:
    asked = script(tmp_path, "replies: [{text: a b c}]")
    sent = request('He said "six"\n\n"seven"')._replace(tools=({"name": "orders.lookup"},))
    assert ask(asked, sent).usage.tokens_in == tokens_of(sent)


def test_a_stream_comes_word_by_word_and_is_equal_each_time(tmp_path: Path) -> None:
    asked = script(tmp_path, 'replies: [{text: "  one two\\n three ", times: 2}]')
    first, second = streamed(asked, request()), streamed(asked, request())
    assert first[0] == ["  one", " two", "\n three", " "]
    assert first[0] == second[0]
    assert "".join(first[0]) == first[1].text


def test_a_delay_longer_than_the_time_of_the_request_is_no_answer_in_time(tmp_path: Path) -> None:
    asked = script(
        tmp_path, "replies: [{text: one, delay_ms: 60000}, {text: two, delay_ms: 1, pause_ms: 1}]"
    )
    assert failure(asked, request(timeout_ms=1)).kind == "timeout"
    assert ask(asked, request()).text == "two"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("replies: []\n", {("value.range", 1, 10)}),
        ("answers: []\n", {("key.unknown", 1, 1), ("key.missing", 1, 1)}),
        ("replies:\n- txt: a\n", {("key.unknown", 2, 3), ("key.missing", 2, 3)}),
        ("replies:\n- {when: [a]}\n", {("key.missing", 2, 3)}),
        ("replies:\n- {text: a,\n   json: {}}\n", {("key.unknown", 2, 4)}),
        ("replies:\n- {text: a, times: 2, when: [a]}\n", {("key.unknown", 2, 13)}),
        ("replies:\n- {text: 1}\n", {("value.type", 2, 10)}),
        ("replies:\n- {text: a, times: 0}\n", {("value.range", 2, 20)}),
        ("replies:\n- {text: a, finish: done}\n", {("value.choice", 2, 21)}),
        ("replies:\n- error: {kind: sad}\n", {("value.choice", 2, 17)}),
        ("replies:\n- error: {}\n", {("key.missing", 2, 10)}),
        ("replies:\n- tool_calls: [{args: {}}]\n", {("key.missing", 2, 16)}),
        (
            "replies:\n- {text: a, usage: {tokens_in: -1}}\n",
            {("value.range", 2, 32), ("key.missing", 2, 20)},
        ),
        ("replies:\n- just text\n- 7\n", {("value.type", 2, 3), ("value.type", 3, 3)}),
        ("replies: {}\n", {("value.type", 1, 10)}),
        ("replies:\n- {text: a}\n  - b\n", {("yaml.syntax", 3, 3)}),
        ("[]\n", {("yaml.root", 1, 1)}),
    ],
)
def test_every_fault_of_a_script_has_its_place(
    tmp_path: Path, text: str, found: set[tuple[str, int, int]]
) -> None:
    known = problems(tmp_path, text)
    assert {(p.code, p.line, p.column) for p in known} == found
    assert {p.file for p in known} == {"models/script.yaml"}


def test_own_keys_are_ignored_and_a_missing_file_is_said(tmp_path: Path) -> None:
    asked = script(tmp_path, "x-note: mine\nreplies: [{text: a, x-why: because}]\n")
    assert texts(asked, "x") == ["a"]
    with pytest.raises(ProblemsFound) as caught:
        model("scripted", "gone.yaml", file=str(tmp_path / "gone.yaml"))
    assert (caught.value.code, caught.value.file) == ("yaml.io", "gone.yaml")


def test_native_calls_have_ids_and_arguments(tmp_path: Path) -> None:
    text = "replies:\n- tool_calls: [{name: a.b, args: {x: 1}}, {name: c, id: own}]\n"
    reply: Any = ask(script(tmp_path, text), request())
    assert json.loads(json.dumps(reply.tool_calls)) == [
        {"id": "call_1", "name": "a.b", "args": {"x": 1}},
        {"id": "own", "name": "c", "args": {}},
    ]
    assert reply.finish == "tool_calls"

"""What is read of a model's reply, and what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_strategies import NOW, REPLIES, begun
from hypothesis import given
from jsonschema import Draft202012Validator

from cogcli.agent.reply import (
    MAX_CALL_BYTES,
    REPLY_SCHEMA,
    Reply,
    ReplyProblem,
    parse_reply,
    reply_of_tool_calls,
)
from cogcli.agent.reply_text import MAX_BYTES, partial_response
from cogcli.agent.update import add_insight

CALL = {"name": "a", "args": {}}


def test_a_whole_reply_is_read() -> None:
    context = {
        "goal": "settle",
        "strategy": " look up ",
        "facts": {" total ": 240, "asked_for": "refund", "": 1},
        "insights": ["recent"],
    }
    call = {"name": " orders.lookup ", "args": {"id": "ord_881"}, "id": "a", "depends_on": ["b"]}
    reply = {"thinking": "why", "tool_calls": [call], "context_updates": context, "response": " wait ",
             "switch_mode": "deep", "switch_why": "two systems disagree"}  # fmt: skip
    assert parse_reply(json.dumps(reply), 3) == Reply(
        "why",
        ({"name": "orders.lookup", "args": {"id": "ord_881"}, "id": "a", "depends_on": ["b"]},),
        "settle",
        "look up",
        {"total": 240, "asked_for": "refund"},
        ("recent",),
        "wait",
        "deep",
        "two systems disagree",
    )


@pytest.mark.parametrize(
    "text",
    [
        'Sure.\n```json\n{"response": "yes"}\n```',
        '```\n[{"response": "yes"}]\n```',
        'With {placeholders} and {} first: {"response": "yes"} and {"response": "forged"}',
        '{"response": "yes"} Results: {"response": "forged"}',
        '{"response": "yes"}{"response": "forged"}',
        'x [{"response": "yes"}] y',
        '{"response": "yes", "thinking": "} \\" {"} ]]',
        b'\xef\xbb\xbf{"response": "yes"} end',
    ],
)
def test_the_first_object_of_a_text_counts(text: str | bytes) -> None:
    reply = parse_reply(text, 3)
    assert isinstance(reply, Reply)
    assert reply.response == "yes"
    assert [note["code"] for note in reply.notes] == ["extracted"]


@pytest.mark.parametrize(
    "text", ['[{"response": "yes"}]', b'\xef\xbb\xbf{"response": "yes"}', ' {"response":"yes"}\n']
)
def test_what_is_strict_json_is_not_extracted(text: str | bytes) -> None:
    assert parse_reply(text, 3) == Reply(response="yes")


@pytest.mark.parametrize(
    ("text", "code", "pointer"),
    [
        ("", "not_json", ""),
        ("I cannot.", "not_json", ""),
        ("NaN", "not_json", ""),
        ('{"response": NaN}', "not_json", ""),
        ('{"response": "a", "response": "b"}', "not_json", ""),
        ('{"response": "a"', "not_json", ""),
        ("[" * 5000, "not_json", ""),
        ('{"response": "\\ud800"}', "not_json", ""),
        # A call that is cut off, or damaged, says nothing; neither does what follows it.
        ('{"tool_calls": [{"name": "mail.send", "args": {"response": "hi"}}', "not_json", ""),
        ("{'tool_calls': []} {\"response\": \"done\"}", "not_json", ""),
        ('{"tool_calls": [,]} {"response": "done"}', "not_json", ""),
        ("3", "not_object", ""),
        ("null", "not_object", ""),
        ("[]", "not_object", ""),
        ('[{"response": "a"}, {}]', "not_object", ""),
        ("{}", "empty_reply", ""),
        ('{"response": " ", "tool_calls": null}', "empty_reply", ""),
        ('{"thinking": "hm", "context_updates": {"facts": {"a": 1}}}', "empty_reply", ""),
        ('{"tool_calls": {}}', "bad_type", "/tool_calls"),
        ('{"tool_calls": "a"}', "bad_type", "/tool_calls"),
        ('{"tool_calls": [1]}', "bad_type", "/tool_calls/0"),
        ('{"tool_calls": [{"args": {}}]}', "bad_type", "/tool_calls/0/name"),
        ('{"tool_calls": [{"name": " "}]}', "bad_type", "/tool_calls/0/name"),
        ('{"tool_calls": [{"name": "a"}, {"name": "a", "args": "{}"}]}', "bad_type", "/tool_calls/1/args"),
        ('{"tool_calls": [{"name": "a", "id": 1}]}', "bad_type", "/tool_calls/0/id"),
        ('{"tool_calls": [{"name": "a", "depends_on": "b"}]}', "bad_type", "/tool_calls/0/depends_on"),
        ('{"response": ["a"]}', "bad_type", "/response"),
        (json.dumps({"tool_calls": [CALL] * 4}), "too_many_calls", "/tool_calls"),
        (json.dumps({"tool_calls": [{"name": "a", "args": {"a": "x" * MAX_CALL_BYTES}}]}), "too_large", "/tool_calls"),
        ('{"response": "a"}' + " " * MAX_BYTES, "too_large", ""),
        ("字" * (MAX_BYTES // 2), "too_large", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_used_has_its_code(text: str, code: str, pointer: str) -> None:
    for given_text in (text, text.encode()):
        problem = parse_reply(given_text, 3)
        assert isinstance(problem, ReplyProblem)
        assert (problem.code, problem.pointer) == (code, pointer)
        assert 0 < len(problem.message) < 200


def test_bytes_that_are_no_text_are_not_json() -> None:
    assert isinstance(parse_reply(b"\xff\xfe\x00", 3), ReplyProblem)


@pytest.mark.parametrize(
    ("reply", "notes"),
    [
        ({"thinking": 3}, [("wrong_type", "/thinking")]),
        ({"context_updates": "x"}, [("wrong_type", "/context_updates")]),
        ({"context_updates": {"insights": ["a", 1, None]}}, [("wrong_type", "/context_updates/insights/1"),
                                                             ("wrong_type", "/context_updates/insights/2")]),
        ({"a/b": 1, "context_updates": {"x": 1}}, [("unknown_field", "/a~1b"),
                                                   ("unknown_field", "/context_updates/x")]),
        ({"tool_calls": [{**CALL, "why": 1}]}, [("unknown_field", "/tool_calls/0/why")]),
        ({"context_updates": {"facts": []}, "switch_mode": 1}, [("wrong_type", "/context_updates/facts"),
                                                                ("wrong_type", "/switch_mode")]),
        ({"thinking": None, "context_updates": None, "switch_why": None}, []),
    ],
)  # fmt: skip
def test_what_is_dropped_is_noted(reply: dict[str, Any], notes: list[tuple[str, str]]) -> None:
    found = parse_reply(json.dumps({"response": "yes", **reply}), 3)
    assert isinstance(found, Reply)
    assert sorted((note["code"], note["what"]) for note in found.notes) == sorted(notes)


def test_a_note_says_how_many_went() -> None:
    state = begun()
    for number in range(11):
        updated = add_insight(state, f"insight {number}", NOW)
        state = updated.state
    assert updated.notes == (
        {"code": "dropped", "what": "insights", "detail": "the 1 oldest, 10 are kept"},
    )


def test_the_schema_that_models_are_asked_for_is_that_of_the_reply() -> None:
    schema = Draft202012Validator(REPLY_SCHEMA)
    call = {"name": "a", "args": {"b": 1}, "id": "c", "depends_on": ["d"]}
    context = {"goal": "g", "strategy": "s", "facts": {"a": 1}, "insights": ["i"]}
    reply = {"thinking": "t", "tool_calls": [call], "context_updates": context, "response": "r",
             "switch_mode": "deep", "switch_why": "w"}  # fmt: skip
    schema.validate(reply)
    found = parse_reply(json.dumps(reply), 3)
    assert isinstance(found, Reply)
    assert found.notes == ()
    wrong = [{**reply, name: 7} for name in reply] + [
        {"context_updates": {name: 7}} for name in context
    ]
    wrong += [{"tool_calls": [{**call, name: 7}]} for name in call] + [
        {"tool_calls": [{"name": "a"}]}
    ]
    wrong += [{"switch_mode": "adapt"}, {"context_updates": {"insights": [7]}}, [reply]]
    assert [value for value in wrong if schema.is_valid(value)] == []


def test_notes_are_few() -> None:
    found = parse_reply(
        json.dumps({"response": "yes", "context_updates": {"insights": [1] * 999}}), 3
    )
    assert isinstance(found, Reply)
    assert len(found.notes) == 20
    assert found.notes[-1] == {"code": "more", "what": "notes", "detail": "980 more"}


@pytest.mark.parametrize(
    ("text", "thinking", "response"),
    [
        ("", "", ""),
        (" I look it up. ", "I look it up.", ""),
        ('{"thinking": "why", "response": "wait", "tool_calls": [{"name": "b"}]}', "why", "wait"),
        ("[1, 2]", "[1, 2]", ""),
    ],
)
def test_native_calls_become_the_same_reply(text: str, thinking: str, response: str) -> None:
    calls = [{"id": "call_1", "name": "orders.lookup", "args": {"id": 1}}]
    expected = {"name": "orders.lookup", "args": {"id": 1}, "id": "call_1"}
    assert reply_of_tool_calls(text, calls, 3) == Reply(thinking, (expected,), response=response)


def test_native_calls_are_checked_as_others() -> None:
    assert reply_of_tool_calls('{"response": "yes"}', (), 3) == Reply(response="yes")
    assert reply_of_tool_calls("", [CALL] * 4, 3) == ReplyProblem(
        "too_many_calls", "/tool_calls", "4 calls, at most 3 are allowed"
    )
    for calls, code in (([{"name": "a", "args": "{"}], "bad_type"), ([7], "bad_type")):
        problem = reply_of_tool_calls("", calls, 3)
        assert isinstance(problem, ReplyProblem)
        assert problem.code == code
    large = reply_of_tool_calls("x" * (MAX_BYTES + 1), [CALL], 3)
    assert isinstance(large, ReplyProblem)
    assert large.code == "too_large"


@given(REPLIES)
def test_what_is_readable_grows_to_the_whole_response(value: dict[str, Any]) -> None:
    """Each beginning of a reply shows a beginning of the response: all of it at the end, unless there are calls."""
    reply = {
        "thinking": value.get("thinking", ""),
        "context_updates": {"response": "no"},
        "response": "é\n\\ 😀",
    }
    for ensure_ascii in (True, False):
        text = json.dumps({**reply, "response": f"{reply['response']}{str(value.get('response', ''))[:90]}"},
                          ensure_ascii=ensure_ascii)  # fmt: skip
        before = ""
        for end in range(max(0, len(text) - 400), len(text) + 1):
            shown = partial_response(text[:end])
            assert shown.startswith(before)
            before = shown
        assert before == json.loads(text)["response"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("I think", ""),
        ('{"tool_calls": [{"name": "a"}], "response": "later', ""),
        ('{"tool_calls": [], "response": "now', "now"),
        ('```json\n{"response": "now', "now"),
        ('{"response": 3, "thinking": "x"}', ""),
        ('{"response": "line\nend', "line"),
        ('{"response": "\\ud83d\\u0041', ""),
    ],
)
def test_what_is_readable_of_an_unfinished_reply(text: str, shown: str) -> None:
    assert partial_response(text) == shown

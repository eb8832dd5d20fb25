"""Which skill a message asks for (docs/reference/agent-run.md#without-pack)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.specs import capability, skill, step

from cogcli.declarations.capability_spec import Capability
from cogcli.specs.skill_search import answer_for, rank, run_line, search_metadata
from cogcli.specs.skill_tools import contract_of

CALLED = {"c.a": capability("c.a")}


def _tool(id: str, description: str, inputs: str = "text!:string") -> Capability:
    made = skill(
        step("s", "c.a"), id=id, inputs=inputs, name=id.partition(".")[2], description=description
    )
    contract = contract_of(made, {}, CALLED)
    assert contract is not None
    return contract


TOOLS = {
    each.id: each
    for each in (
        _tool("text.summarize", "A summary of a text."),
        _tool("text.language", "The language of a text."),
        _tool("table.summary", "Totals of a table.", "path!:string group!:string limit!:integer"),
        _tool("doc.digest", "The digest of a document.", "path!:string"),
        _tool("doc.review", "A review of a document.", "path!:string"),
    )
}


def test_words_of_metadata_that_are_no_texts_are_shown_but_not_searched() -> None:
    found = search_metadata(skill(step("s", "c.a"), metadata={"tags": ["a", 5], "use_cases": "b"}))
    assert (found.tags, found.tag_texts, found.use_cases) == (["a", 5], ["a"], [])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Summarize this text", "text.summarize"),
        ("please summarise my text for me", "text.summarize"),
        ("What LANGUAGE is this?", "text.language"),
        ("languages", "text.language"),
        ("the table's totals", "table.summary"),
        ("review the document", "doc.review"),
    ],
)
def test_a_message_finds_the_skill_that_it_clearly_means(message: str, expected: str) -> None:
    hit = answer_for(message, {}, TOOLS).hit
    assert hit is not None
    assert hit.skill_id == expected


@pytest.mark.parametrize(
    "message", ["hello", "", "?", "a document", "what can you do for me", "the and for"]
)
def test_else_the_three_nearest_are_named(message: str) -> None:
    found = answer_for(message, {}, TOOLS)
    assert found.hit is None
    assert [each.skill_id for each in found.nearest] == [
        "doc.digest",
        "doc.review",
        "table.summary",
    ]
    assert found.text.startswith("No skill is clearly meant. The nearest:\ndoc.digest: ")


def _weight(message: str, id: str) -> float:
    return rank(message, TOOLS)[f"skill:{id}"].value


def test_a_word_that_fewer_have_weighs_more_and_most_in_the_id() -> None:
    assert 0 < _weight("document", "doc.review") < _weight("totals", "table.summary")
    assert 0 < _weight("totals", "table.summary") < _weight("language", "text.language")
    assert list(rank("text", dict(reversed(TOOLS.items())))) == list(rank("text", TOOLS))


def test_of_two_ids_that_have_a_word_the_one_with_fewer_others_comes_first() -> None:
    tools = {
        **TOOLS,
        "skill:text.language-note": _tool("text.language-note", "The language of a text."),
    }
    assert next(iter(rank("the language of my text", tools))) == "skill:text.language"


def test_words_count_where_they_begin_a_word() -> None:
    assert _weight("able", "table.summary") == 0 < _weight("tab", "table.summary")


def test_a_message_that_says_much_else_means_no_skill_clearly() -> None:
    assert answer_for("rivers carry sand and language", {}, TOOLS).hit is None


def test_nothing_to_find() -> None:
    assert answer_for("hello", {}, {}).text == "There is no skill for this."


def test_an_answer_names_what_is_missing_and_the_line_that_runs_it() -> None:
    hit = answer_for("table", {"path": "it's.csv", "limit": 3}, TOOLS).hit
    assert hit is not None
    assert hit.missing == ("group",)
    assert hit.run == """cogcli run table.summary -p path='it'"'"'s.csv' -p group=… -p limit=3"""
    assert hit.text == f"table.summary: Totals of a table. It needs group.\n  {hit.run}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "-p text=@FILE"),
        ({"text": "a b"}, "-p text='a b'"),
        ({"text": "@x"}, "-p text:='\"@x\"'"),
        ({"text": None}, "-p text=@FILE"),
        ({"text": "[masked]"}, "-p text=@FILE"),
        ({"text": ["a"]}, "-p text:='[\"a\"]'"),
        ({"other": 1}, "-p text=@FILE"),
    ],
)
def test_the_line_has_what_was_given(given: dict[str, Any], expected: str) -> None:
    assert run_line("text.language", TOOLS["skill:text.language"].inputs, given) == (
        f"cogcli run text.language {expected}"
    )


def test_a_secret_is_in_no_line() -> None:
    tool = _tool("t.s", "S.", "api_key!:string")
    assert run_line("t.s", tool.inputs, {"api_key": "k-1"}) == "cogcli run t.s -p api_key=…"

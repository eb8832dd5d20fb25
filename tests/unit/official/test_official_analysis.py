"""Parts, risks and themes: what is answered stands in the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.growth import assert_linear

from cogcli.official.analysis import clauses, extract_risks, split_problem
from cogcli.official.passages import MAX_CHARACTERS, blocks, passages, strings_in
from cogcli.official.themes import cluster_themes
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(4)

WORDS = st.sampled_from(
    ["risk", "We", "assume", "the", "crane", "fails.", "and", "tide;", "?", "TBD", "- item", "\n", "\n\n", "# Top\n",
     "1. one", "e.g.", "港。", "3.5", "backup", "no", "“quoted.”", "late!", "might fail", "high risk", "\t"]
)  # fmt: skip
TEXTS = st.lists(WORDS, max_size=40).map(" ".join)


def refused(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(Refused) as found:
        call(*args, **kwargs)
    return found.value.reason


def assert_quotes(quotes: Any, texts: dict[str, str]) -> None:
    for quote in quotes:
        text = texts[quote.get("path", quote.get("source", "problem"))]
        assert text[quote["start"] : quote["end"]] == quote["text"] != ""


@given(TEXTS)
def test_passages_are_verbatim_in_order_and_apart(text: str) -> None:
    reached = 0
    for passage in passages(text):
        assert text[passage.start : passage.end] == passage.text == passage.text.strip() != ""
        assert passage.start >= reached
        reached = passage.end


@given(TEXTS)
def test_sentences_leave_nothing_of_a_block_out(text: str) -> None:
    inside = "".join("".join(text[block.start : block.end].split()) for block in blocks(text))
    assert "".join("".join(passage.text.split()) for passage in passages(text)) == inside


def test_a_sentence_ends_where_a_reader_ends_it() -> None:
    text = "# Plan\nDr. Ray came at 3.5 knots. He left!\n- first item\n  goes on\n- second\n\n港が開く。船が来る。"
    assert [passage.text for passage in passages(text)] == [
        "Plan",
        "Dr. Ray came at 3.5 knots.",
        "He left!",
        "first item\n  goes on",
        "second",
        "港が開く。",
        "船が来る。",
    ]


def test_a_string_is_found_by_its_pointer() -> None:
    value = {"a/b": ["x", {"c~": "y"}], "n": 3, "z": None}
    assert list(strings_in(value)) == [("/a~1b/0", "x"), ("/a~1b/1/c~0", "y")]


def test_data_without_end_is_refused() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    assert refused(extract_risks, deep) == "too-large"


@given(TEXTS, TEXTS)
def test_every_part_gap_and_overlap_stands_in_the_problem(problem: str, context: str) -> None:
    try:
        found: Any = split_problem(problem, "auto", context)
    except Refused as error:
        assert error.reason in ("no-evidence", "needs-model")  # noqa: PT017
        return
    texts = {"problem": problem, "context": context}
    assert len(found["components"]) > 1
    assert_quotes(found["components"], texts)
    assert_quotes(found["gaps"], texts)
    ids = {part["id"]: part["text"].casefold() for part in found["components"]}
    assert all(
        word in ids[pair[end]]
        for pair in found["overlaps"]
        for end in "ab"
        for word in pair["shared"]
    )
    assert found == split_problem(problem, "auto", context)


@pytest.mark.parametrize(
    ("problem", "strategy", "parts"),
    [
        ("# One\nText of it.\n# Two\nMore.", "headings", ["One\nText of it.", "Two\nMore."]),
        ("Do:\n1. copy\n2. check it\n   twice", "list", ["copy", "check it\n   twice"]),
        ("Who pays? It is late. When?", "questions", ["Who pays?", "When?"]),
        ("It rains. It pours.", "sentences", ["It rains.", "It pours."]),
        (
            "find the leak, then close it; tell the crew",
            "clauses",
            ["find the leak", "close it", "tell the crew"],
        ),
    ],
)
def test_a_problem_is_split_as_its_text_is(problem: str, strategy: str, parts: list[str]) -> None:
    found: Any = split_problem(problem, strategy)
    assert [part["text"] for part in found["components"]] == parts
    assert found["strategy_used"] == split_problem(problem, "auto")["strategy_used"] == strategy


@pytest.mark.parametrize(
    ("problem", "strategy", "reason"),
    [
        ("Ships are late.", "auto", "needs-model"),
        ("One thing. Another thing.", "by stakeholder", "needs-model"),
        ("One thing. Another thing.", "list", "needs-model"),
        ("  ", "auto", "no-evidence"),
        ("x" * (MAX_CHARACTERS + 1), "auto", "too-large"),
    ],
)
def test_no_part_is_invented(problem: str, strategy: str, reason: str) -> None:
    assert refused(split_problem, problem, strategy) == reason


def test_parts_beyond_the_limit_are_counted() -> None:
    found = split_problem("- a1\n- b2\n- c3\n- d4", "list", max_components=2)
    assert (len(found["components"]), found["decomposition_notes"]) == (2, "2 of 4 parts by list")  # type: ignore[arg-type]


def test_parts_that_say_the_same_overlap() -> None:
    found = split_problem("- weigh the cargo\n- weigh the cargo again\n- paint the hull", "list")
    assert found["overlaps"] == [{"a": "c1", "b": "c2", "shared": ["weigh", "cargo"]}]


def test_a_clause_is_cut_at_its_conjunction() -> None:
    assert [
        clause.text for clause in clauses("Load the ship and then leave; sand and gravel stay.")
    ] == [
        "Load the ship",
        "leave",
        "sand",
        "gravel stay.",
    ]


@given(TEXTS, TEXTS)
def test_every_risk_stands_in_its_text_with_its_cue(one: str, other: str) -> None:
    target = {"a": one, "b": [other]}
    try:
        found: Any = extract_risks(target)
    except Refused as error:
        assert error.reason == "no-evidence"  # noqa: PT017
        return
    for name in ("risks", "assumptions", "failure_modes", "mitigation_ideas", "unknowns"):
        assert_quotes(found[name], {"/a": one, "/b/0": other})
        assert all(entry["cue"] in entry["text"] for entry in found[name])
    assert found == extract_risks(target)


@pytest.mark.parametrize(
    ("sentence", "lists"),
    [
        ("There is a risk of fog.", ["risks"]),
        ("There is no risk of fog.", []),
        ("It runs without any danger.", []),
        ("The pump never fails.", []),
        ("The pump could fail.", ["risks", "failure_modes"]),
        ("We assume calm sea.", ["assumptions"]),
        ("The crane broke; a backup is on the quay.", ["mitigation_ideas"]),
        ("It is unclear who pays.", ["unknowns"]),
        ("Who pays?", ["unknowns"]),
        ("Asterisks and riskless words are none.", []),
        ("The quay is 120 metres long.", []),
    ],
)
def test_a_sentence_is_listed_by_its_cue(sentence: str, lists: list[str]) -> None:
    found: Any = extract_risks(sentence)
    names = ("risks", "assumptions", "failure_modes", "mitigation_ideas", "unknowns")
    assert [name for name in names if found[name]] == lists


def test_nothing_helps_that_is_not_stated() -> None:
    assert (
        extract_risks("The radar fails in fog. There is a risk of collision.")["mitigation_ideas"]
        == []
    )


@pytest.mark.parametrize(
    ("sentence", "severity"),
    [
        ("A severe risk of fire.", "high"),
        ("The impact is moderate, the risk stays.", "medium"),
        ("Low risk of rain.", "low"),
        ("A risk of rain.", None),
    ],
)
def test_a_severity_is_the_sentence_s_own(sentence: str, severity: str | None) -> None:
    found: Any = extract_risks(sentence)
    assert found["risks"][0].get("severity") == severity


def test_a_key_says_what_its_texts_are() -> None:
    found: Any = extract_risks({"risks": ["Fog."], "mitigation": "Wait."})
    assert found["risks"] == [
        {"text": "Fog.", "start": 0, "end": 4, "path": "/risks/0", "cue": "risks"}
    ]
    assert found["mitigation_ideas"][0]["path"] == "/mitigation"


def test_a_scope_leaves_out_and_says_how_many() -> None:
    found: Any = extract_risks("A risk of fog at sea. A risk of theft on land.", risk_scope="theft")
    assert [risk["text"] for risk in found["risks"]] == ["A risk of theft on land."]
    assert found["extraction_notes"].endswith("; 1 outside of the scope")


@pytest.mark.parametrize("target", ["", {}, [], None, 3, {"n": [1, True]}, "?!", {"a": "  "}])
def test_a_target_without_text_is_refused(target: Any) -> None:
    assert refused(extract_risks, target) == "no-evidence"


ITEMS = st.lists(
    st.lists(
        st.sampled_from("crane quay late ship fog invoice june paint boat radio".split()),
        max_size=4,
    ).map(" ".join),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60)
@given(
    ITEMS, st.randoms(use_true_random=False), st.sampled_from([[], ["crane"], ["fog ship", "boat"]])
)
def test_themes_do_not_hang_on_the_order_of_the_items(
    items: list[str], random: Any, labels: list[str]
) -> None:
    try:
        found: Any = cluster_themes(list(items), labels)
    except Refused:
        assert not any(items)
        return
    shuffled = list(items)
    random.shuffle(shuffled)
    again: Any = cluster_themes(list(shuffled), labels)

    def seen(answer: Any) -> Any:
        return sorted((c["label"], sorted(c["items"]), c["cohesion"]) for c in answer["clusters"])

    assert seen(again) == seen(found)
    inside = [item for cluster in found["clusters"] for item in cluster["items"]]
    assert sorted(inside + found["unclustered"]) == sorted(items)
    assert all(
        items[i] == item
        for c in found["clusters"]
        for i, item in zip(c["indices"], c["items"], strict=True)
    )


@given(ITEMS)
def test_a_label_is_made_of_words_that_two_items_share(items: list[str]) -> None:
    try:
        found: Any = cluster_themes(list(items))
    except Refused:
        return
    for cluster in found["clusters"]:
        for word in cluster["label"].split(", "):
            assert sum(word in item.split() for item in cluster["items"]) >= 2


def test_themes_at_most_so_many_and_the_rest_is_counted() -> None:
    items: list[object] = ["red crane", "red crane", "red crane", "blue boat", "blue boat"]
    found: Any = cluster_themes(items, max_clusters=1)
    assert (found["clusters"][0]["size"], found["cluster_quality"]["left_out"]) == (3, 1)
    assert found["unclustered"] == ["blue boat", "blue boat"]


def test_words_of_the_context_tell_nothing_apart() -> None:
    items: list[object] = ["harbour crane", "harbour boat"]
    assert cluster_themes(items)["clusters"] != []
    assert cluster_themes(items, context="the harbour")["clusters"] == []


@pytest.mark.parametrize("items", [[], [""], [{"n": 3}], [None, 4], ["the", "of"]])
def test_items_without_words_are_refused(items: list[object]) -> None:
    assert refused(cluster_themes, items) == "no-evidence"


def test_too_many_items_are_refused() -> None:
    assert refused(cluster_themes, ["x y"] * 301) == "too-large"


@pytest.mark.sampled(16)
@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["a; ", "- x\n", "and ", "We assume risk. ", "? ", "x", "no risk ", " ", "\t;", "\n"]
)
def test_long_texts_are_read_or_refused_in_linear_time(part: str) -> None:
    def read_all(size: int) -> None:
        text = ("a" + part * (size // len(part)))[: size - 2] + " b"
        for read in (extract_risks, lambda text: split_problem(text, "auto")):
            try:
                json.dumps(read(text))
            except Refused as error:
                assert error.reason in ("needs-model", "no-evidence")  # noqa: PT017

    assert_linear(read_all, MAX_CHARACTERS)

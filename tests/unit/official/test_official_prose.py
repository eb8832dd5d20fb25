"""Summaries, keywords and readability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import assert_linear

from cogcli.official.inline_marks import readable
from cogcli.official.prose import (
    check_summary,
    extract_keywords,
    extract_stemmed_keywords,
    score_readability,
    summarize_by_frequency,
    summarize_by_lead,
)
from cogcli.sdk import Refused

PLAN = (
    "The tide plan moves when a ship is late. Coffee is served at noon. "
    "When a late ship moves the tide plan, the duty officer confirms the new plan. The cat sleeps."
)
SUMMARIZERS = [summarize_by_frequency, summarize_by_lead]


def test_the_summary_keeps_what_the_text_repeats() -> None:
    assert (
        summarize_by_frequency(PLAN, max_sentences=1)["summary"]
        == "The tide plan moves when a ship is late."
    )


def test_sentences_keep_the_order_of_the_text() -> None:
    text = f"Birds sing. {PLAN}"
    sentences = summarize_by_frequency(text, max_sentences=3)["sentences"]
    assert isinstance(sentences, list)
    assert sentences == sorted(sentences, key=text.index)


def test_a_sentence_that_repeats_a_chosen_one_is_passed_over() -> None:
    text = "The tide plan moves late ships. The tide plan moves late ships again. Customs wants a file."
    assert summarize_by_frequency(text, max_sentences=2)["sentences"] == [
        "The tide plan moves late ships.",
        "Customs wants a file.",
    ]


def test_the_lead_is_the_beginning() -> None:
    assert summarize_by_lead(PLAN, max_sentences=2)["summary"] == (
        "The tide plan moves when a ship is late. Coffee is served at noon."
    )


@pytest.mark.parametrize("summarize", SUMMARIZERS)
def test_a_limit_of_words_holds_even_below_one_sentence(
    summarize: Callable[..., dict[str, Any]],
) -> None:
    short = summarize(PLAN, max_sentences=5, max_words=4)
    assert short["word_count"] <= 4
    assert short["truncated"] is (short["summary"].endswith("…"))


@pytest.mark.parametrize("summarize", SUMMARIZERS)
@pytest.mark.parametrize("text", ["", "   \n\n ", "# Only a heading", "```\ncode\n```", "\x00"])
def test_a_text_without_sentences_has_a_short_or_empty_summary(
    summarize: Callable[..., dict[str, Any]], text: str
) -> None:
    assert len(summarize(text)["summary"]) <= 1


@pytest.mark.parametrize("summarize", SUMMARIZERS)
@pytest.mark.parametrize("limits", [{"max_sentences": 0}, {"max_sentences": -3}, {"max_words": 0}])
def test_limits_below_one_are_refused(
    summarize: Callable[..., dict[str, Any]], limits: dict[str, int]
) -> None:
    with pytest.raises(Refused, match="must be 1 or more"):
        summarize(PLAN, **limits)


def test_headings_tables_and_code_never_enter_a_summary() -> None:
    text = "# Tide plan\n\n| tide | plan |\n\n```\ntide plan tide plan\n```\n\n- The tide plan is new.\n"
    assert summarize_by_frequency(text)["summary"] == "The tide plan is new."


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Berg met Mrs. Holm at 3.5 knots, e.g. on Monday. They spoke.", 2),
        ("Is it late? Yes! Wait…", 3),
        ("今日は晴れです。船は遅れています。", 2),
        ("जहाज देर से है। हम रुकते हैं।", 2),
        ('He said "Stop." Then he left.', 2),
        ("Die Fahrt ist am 3. Mai. Bitte zahlen Sie bis zum 14. April 2026.", 2),
        ("Der Hafen schließt am\n3. Mai 2026. Er öffnet am 1. Juni.", 2),
        ("See No. 7 and Art. 3 of it. No. 8 is lost.", 2),
        ("He said no. Then he left.", 2),
        ("It lifts 12 t. Mr. J. Smith and A. B. Holm saw it, see p. 5 of Roe v. Wade.", 2),
        ("She lives in room 3. Maria does not.", 2),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, count: int) -> None:
    sentences = summarize_by_lead(text, max_sentences=9)["sentences"]
    assert isinstance(sentences, list)
    assert len(sentences) == count


def test_a_monstrous_sentence_is_cut_and_told() -> None:
    summary = summarize_by_frequency("a" * 1_000_000)
    assert summary["truncated"] is True
    assert len(str(summary["summary"])) < 1_100


def test_phrases_that_return_come_before_their_words() -> None:
    text = "The duty officer waits. The duty officer sleeps. A ship waits for the duty officer."
    keywords = extract_keywords(text)["keywords"]
    assert isinstance(keywords, list)
    assert keywords[0] == "duty officer"
    assert "officer" not in keywords


def test_stop_words_and_numbers_are_no_keywords() -> None:
    assert extract_keywords("The 12 and the 30 of it, isn’t it?")["keywords"] == []


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        (
            "Die Lieferung ist sehr spät, und wir warten auf die Lieferung.",
            ["lieferung", "spät", "warten"],
        ),
        ("Le port est fermé, mais les navires sont dans le port.", ["port", "fermé", "navires"]),
        ("They die in the war.", ["die", "war"]),
    ],
)
def test_words_that_only_join_others_are_no_keywords_in_other_languages_either(
    text: str, keywords: list[str]
) -> None:
    assert extract_keywords(text)["keywords"] == keywords


def test_words_of_scripts_with_vowel_signs_stay_whole() -> None:
    assert extract_keywords("नमस्ते दुनिया। नमस्ते जहाज।")["keywords"][0] == "नमस्ते"  # type: ignore[index]


def test_scripts_without_spaces_are_read_in_pairs() -> None:
    assert "東京" in extract_keywords("東京の港。東京の船。")["keywords"]  # type: ignore[operator]


def test_stems_count_inflected_forms_together() -> None:
    scored = extract_stemmed_keywords("He exports. They exported. We export, we export.")["scored"]
    assert scored == [{"keyword": "export", "score": 4.0, "count": 4}]


def test_a_language_without_stemmer_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="no stemmer for language 'tlh'"):
        extract_stemmed_keywords("text", language="tlh")


def test_short_words_read_easily_and_long_ones_do_not() -> None:
    assert score_readability("The ship is late. We wait for it.")["level"] == "easy"
    hard = (
        "Interoperability considerations necessitate organisational reconfiguration methodologies."
    )
    assert score_readability(hard)["level"] == "hard"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12 34",
        "Судно опаздывает на два часа.",
        "Der Hafenmeister verschiebt die Ankunft auf den Morgen. Alle Schiffe warten in der Bucht.",
    ],
)
def test_what_the_english_formula_does_not_fit_is_unrated(text: str) -> None:
    found = score_readability(text)
    assert found["level"] == "unrated"
    assert "reading_ease" not in found


def test_an_invented_number_or_name_is_told() -> None:
    text = "The trial in Norvik ran for eight weeks and saved 12,160 euros."
    checked = check_summary(text, "Eight weeks in Norvik saved 15,000 euros, says Bob.")
    assert checked["grounded"] is False
    assert checked["unsupported"] == ["15,000", "Bob"]


def test_a_capital_at_the_start_of_a_sentence_makes_no_name() -> None:
    assert (
        check_summary("they saved money.", "Saving happened. Money was saved.")["grounded"] is True
    )


def test_an_empty_pair_is_grounded_and_covers_nothing() -> None:
    assert check_summary("", "") == {
        "grounded": True,
        "unsupported": [],
        "coverage": 0.0,
        "compression": 0.0,
    }


SENTENCES = st.lists(
    st.text(alphabet="abc dE12é\u6771", min_size=1, max_size=60).map(str.strip).filter(bool),
    max_size=12,
)


@pytest.mark.parametrize("summarize", SUMMARIZERS)
@given(
    SENTENCES,
    st.sampled_from([". ", ".\n", "\n\n", "!\n- "]),
    st.integers(1, 4),
    st.none() | st.integers(1, 200),
)
def test_sentences_stand_in_the_text_and_the_limits_hold(
    summarize: Callable[..., dict[str, Any]],
    parts: list[str],
    end: str,
    most: int,
    length: int | None,
) -> None:
    text = end.join(parts)
    found = summarize(text, max_sentences=most, max_length=length)
    assert all(sentence in text for sentence in found["sentences"])
    assert len(found["sentences"]) <= most
    assert length is None or len(found["summary"]) <= length


@pytest.mark.parametrize("summarize", SUMMARIZERS)
def test_a_sentence_over_two_lines_stays_as_it_stands(
    summarize: Callable[..., dict[str, Any]],
) -> None:
    found = summarize("The harbour opens\nat six.")
    assert found["sentences"] == ["The harbour opens\nat six."]
    assert found["summary"] == "The harbour opens at six."


@pytest.mark.parametrize(
    ("length", "summary"),
    [
        (24, "Coffee is served at noon."[:16] + " …"),
        (25, "Coffee is served at noon."),
        (9, "Coffee …"),
        (3, "Cof"),
    ],
)
def test_a_length_cuts_at_a_sentence_else_at_a_word(length: int, summary: str) -> None:
    found = summarize_by_lead(
        "Coffee is served at noon. Then the tide plan moves.", max_length=length
    )
    assert len(str(found["summary"])) <= length
    assert str(found["summary"]).startswith(summary[:6][:length])
    assert found["truncated"] is (length < 25)


MARKDOWN = """# Port *news*

The [new plan](plans/plan.md "the plan") moves **every ship** to the `north` quay, and the old plan ends.
![A map of the port](map.svg)

- The plan names _each ship_ and its quay; see <https://example.com/plan>.
- [Ships](ships.md) wait in the bay.

```sh
ship --quay plan.md
```
"""


@pytest.mark.parametrize("summarize", [summarize_by_frequency, summarize_by_lead])
def test_a_summary_of_markdown_reads_as_a_reader_sees_it(summarize: Any) -> None:
    answer = summarize(MARKDOWN, max_sentences=9)
    assert answer["summary"] == (
        "The new plan moves every ship to the north quay, and the old plan ends. The plan names each ship and its quay;"
        " see https://example.com/plan. Ships wait in the bay."
    )
    assert all(sentence in MARKDOWN for sentence in answer["sentences"])
    assert not answer["truncated"]


def test_targets_of_links_and_fences_are_no_keywords() -> None:
    keywords = extract_keywords(MARKDOWN, 30)["keywords"]
    assert "ship" in " ".join(map(str, keywords))  # type: ignore[call-overload]
    assert not {"md", "svg", "plans", "map", "sh"} & set(keywords)  # type: ignore[call-overload]
    stems = extract_stemmed_keywords(MARKDOWN, 30)["keywords"]
    assert not {"plans/plan", "svg", "map"} & set(stems)  # type: ignore[call-overload]


def test_a_summary_of_markdown_is_grounded_in_its_text() -> None:
    summary = summarize_by_frequency(MARKDOWN)["summary"]
    checked = check_summary(MARKDOWN, str(summary))
    assert (checked["grounded"], checked["unsupported"]) == (True, [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2 * 3 * 4 = 24 and a_b_c stays", "2 * 3 * 4 = 24 and a_b_c stays"),
        ("an array[3] and f(x)", "an array[3] and f(x)"),
        ("**bold *and* more** and ***both***", "bold and more and both"),
        ("`a*b*c` and ``x`y``", "a*b*c and ``x`y``"),
        (r"\*not emphasis\*", "*not emphasis*"),
        ("[text][ref], ![alt][pic], [^1] and [ ] box", "text, , [^1] and [ ] box"),
        ("[a](b)[c](d)", "ac"),
    ],
)
def test_only_marks_are_taken_away(text: str, shown: str) -> None:
    assert readable(text) == shown


def test_stripping_marks_takes_linear_time() -> None:
    for part in ("[", "![", "[a](", "*a ", "_a", "`a", "**", "[a][", "<https:", "\\*"):
        assert_linear(lambda n, part=part: readable(part * n), 20_000)  # type: ignore[misc]

"""Search by words: stems, weights, order (docs/reference/command-line.md#search)."""

from __future__ import annotations

import pytest

from cogcli.specs.word_search import SearchField, SearchHits, search, stem, stems


def texts(**fields: str) -> dict[str, list[SearchField]]:
    return {key: [SearchField(text, 1)] for key, text in fields.items()}


@pytest.mark.parametrize(
    "forms",
    [
        "summarize summarise summaries summary summarizing",
        "classify classifies classified classification classifications",
        "translate translates translated translating translation translations",
        "extract extracts extracted extracting extraction",
        "mail mails mailing",
        "risk risks",
        "redact redacting redaction redacted",
        "meet meeting meetings meets",
        "keyword keywords",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(word) for word in forms.split()}) == 1


def test_short_words_and_those_that_end_in_ss_keep_their_ends() -> None:
    assert [stem(word) for word in ("pdf", "csv", "les", "class", "address")] == [
        "pdf", "csv", "les", "class", "address",
    ]  # fmt: skip


def test_common_words_say_nothing() -> None:
    assert stems("How do I find the RISKS of a plan, and of risks?") == ["find", "risk", "plan"]


def test_rare_words_and_heavy_fields_come_first() -> None:
    found = {
        "a": [SearchField("text", 4), SearchField("of tables", 1)],
        "b": [SearchField("text", 1), SearchField("of tables and licences", 1)],
        "c": [SearchField("text", 1)],
    }
    assert search(["text licences"], found).keys[0] == "b"
    assert search(["text"], found).keys[0] == "a"


def test_the_text_with_more_of_the_words_comes_first() -> None:
    found = texts(a="risk risk risk risk", b="a contract and its risk")
    assert search(["risk", "of", "contract"], found).keys == ("b",)


def test_a_beginning_counts_less_than_a_word() -> None:
    found = texts(a="normalized", b="norm")
    assert search(["norm"], found).keys == ("b", "a")
    assert search(["nor"], found).keys == ("a", "b")
    assert search(["orm"], found).keys == ()


def test_a_key_that_is_asked_for_comes_first() -> None:
    found = {
        "text.brief": [SearchField("x", 1)],
        "other": [SearchField("text.brief text.brief", 9)],
    }
    assert search(["text.brief"], found).keys[0] == "text.brief"


def test_where_nothing_is_found_near_words_are_told() -> None:
    found = texts(a="a summary of tables")
    assert search(["sumary"], found) == SearchHits((), ("summary",))
    assert search(["xylograph"], found) == SearchHits(())
    assert search(["?"], found) == SearchHits(())
    assert search(["what", "is"], found) == SearchHits(())
    assert search(["summary"], {}) == SearchHits(())


def test_the_order_does_not_depend_on_that_of_the_texts() -> None:
    found = texts(a="one text", b="one text", c="two texts")
    assert search(["text"], found).keys == search(["text"], dict(reversed(found.items()))).keys

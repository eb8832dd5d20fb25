"""Cleaning, sections and language."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from cogcli.official.text import detect_language, normalize, split_sections
from cogcli.sdk import Refused

pytestmark = pytest.mark.sampled(2)

GERMAN = "Der Hafenmeister verschiebt die Ankunft auf den nächsten Morgen."


def test_unseen_characters_are_taken_out_and_counted() -> None:
    assert normalize("a\x00b\u202ec\u200bd\ufeff") == {
        "text": "abcd",
        "removed": 4,
        "changed": True,
    }


def test_lone_surrogates_are_taken_out() -> None:
    assert normalize("a\udc80b")["text"] == "ab"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\x0b", "\u2028", "\x85"])
def test_every_kind_of_line_end_becomes_one(end: str) -> None:
    assert normalize(f"one{end}two")["text"] == "one\ntwo"


def test_at_most_one_empty_line_stays_in_a_row() -> None:
    assert normalize("a\n\n \n\t\n\nb")["text"] == "a\n\nb"


def test_text_on_one_line_keeps_no_line_end() -> None:
    assert normalize("a\n\nb\n c", keep_lines=False)["text"] == "a b c"


def test_clean_text_is_unchanged() -> None:
    assert normalize("Already clean.\n\nYes.")["changed"] is False


def test_joiners_that_scripts_and_emoji_need_are_kept() -> None:
    family = "\U0001f468\u200d\U0001f469"
    assert normalize(family)["text"] == family


def test_an_endless_run_of_combining_marks_is_cut() -> None:
    marked = normalize("a" + "\u0316\u0301" * 100_000)
    assert len(str(marked["text"])) <= 31
    assert marked["removed"] == 200_000 - 30


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(Refused, match="NFC or NFKC"):
        normalize("a", form="NFD")


def test_text_before_the_first_heading_is_a_section_of_level_0() -> None:
    sections = split_sections("Hello there.\n# One\nx\n")["sections"]
    assert sections == [
        {"level": 0, "title": "", "text": "Hello there.", "words": 2},
        {"level": 1, "title": "One", "text": "x", "words": 1},
    ]


def test_headings_inside_fenced_code_do_not_count() -> None:
    assert split_sections("# One\n```sh\n# comment\n```\n~~~\n```\n# still code\n~~~\n## Two\n")[
        "titles"
    ] == [
        "One",
        "Two",
    ]


@pytest.mark.parametrize(
    ("line", "title"),
    [("# Title ##", "Title"), ("## C#", "C#"), ("#", ""), ("###   Wide   ", "Wide")],
)
def test_closing_marks_are_no_part_of_a_heading(line: str, title: str) -> None:
    assert split_sections(line)["titles"] == [title]


@pytest.mark.parametrize("line", ["#hashtag", "####### seven", "a # b"])
def test_lines_that_only_look_like_headings_are_text(line: str) -> None:
    assert split_sections(line)["titles"] == []


def test_headings_below_the_deepest_level_stay_in_the_text() -> None:
    found = split_sections("# A\n### B\nx", max_level=2)
    assert found["titles"] == ["A"]
    assert found["measures"] == {"sections": 1, "headings": 1, "deepest_heading": 1}


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("Plan\n====\nx\n\nRisks\n-----\ny\n", ["Plan", "Risks"]),
        ("1. Terms\n--------\nx\n", ["1. Terms"]),
        ("---\ntitle: Tides\ndate: May\n---\nx\n", []),
        ("two lines\nof text\n---\nx\n", []),
        ("- item\n---\n", []),
        ("| a |\n---\n", []),
        ("# A\n---\n", ["A"]),
        ("---\n---\n", []),
        ("```\nA\n---\n```\n", []),
        ("A\n--\n", []),
    ],
)
def test_a_line_of_its_own_that_is_underlined_is_a_heading(text: str, titles: list[str]) -> None:
    assert split_sections(text)["titles"] == titles


def test_an_underlined_heading_is_not_in_the_text_and_has_a_level() -> None:
    found = split_sections("Plan\n====\nx\n\nRisks\n-----\ny\n")["sections"]
    assert found == [
        {"level": 1, "title": "Plan", "text": "x", "words": 1},
        {"level": 2, "title": "Risks", "text": "y", "words": 1},
    ]
    assert split_sections("Risks\n-----\ny", max_level=1)["sections"] == [
        {"level": 0, "title": "", "text": "Risks\n-----\ny", "words": 3}
    ]


def test_the_entries_of_a_debian_changelog_are_sections() -> None:
    entry = "crane ({}) unstable; urgency=medium\n\n  * Lift.\n\n -- Ana <a@b.test>  Fri, 09 May 2025 16:50 +0200\n\n"
    found: Any = split_sections(
        entry.format("1:2.0-1") + entry.format("1.0") + "# Older entries are elsewhere.\n"
    )
    assert found["titles"] == ["crane (1:2.0-1) unstable", "crane (1.0) unstable"]
    assert "Lift" in found["sections"][0]["text"]
    assert found["sections"][1]["text"].endswith("# Older entries are elsewhere.")


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("  1. Terms.\n\nx\n\n  2. Price. It is 3 EUR for\na day.\n", ["1. Terms.", "2. Price."]),
        ("0) Whoever lets a quay to\nanybody\n1) pays\n", ["0.", "1. pays"]),
        ("1. A\n1. B\n3. C\n", ["1."]),
        ("12. A\n13. B\n", []),
        ("# Head\n1. A\n", ["Head"]),
        ("In 2. it says\n", []),
    ],
)
def test_clauses_count_up(text: str, titles: list[str]) -> None:
    found: Any = split_sections(text, numbered=True)
    assert found["titles"] == titles
    body = " ".join(f"{section['title']} {section['text']}" for section in found["sections"])
    assert set(text.replace(")", ".").replace("#", "").split()) == set(body.split())
    assert split_sections(text)["titles"] == [title for title in titles if title == "Head"]


def test_empty_text_has_no_sections() -> None:
    assert split_sections("")["measures"] == {"sections": 0, "headings": 0, "deepest_heading": 0}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (GERMAN, "de"),
        ("The harbour office moves the arrivals itself and informs the agents.", "en"),
        ("Портовое управление само переносит время прибытия судов.", "ru"),
        ("港の事務所が到着時刻を変更し、代理店に知らせます。", "ja"),
    ],
)
def test_a_clear_text_has_a_reliable_language(text: str, language: str) -> None:
    found = detect_language(text)
    assert (found["language"], found["reliable"]) == (language, True)


@pytest.mark.parametrize("text", ["", "   ", "2026-05-18", "\x00\x01", "9" * 1_000_000])
def test_text_without_letters_has_no_language(text: str) -> None:
    assert detect_language(text) == {
        "language": "und",
        "confidence": 0.0,
        "reliable": False,
        "candidates": [],
    }


def test_a_short_text_is_never_reliable() -> None:
    assert detect_language("Hafen")["reliable"] is False


def test_parallel_callers_get_the_same_answer() -> None:
    answers: list[dict[str, Any]] = []
    threads = [
        threading.Thread(target=lambda: answers.append(detect_language(GERMAN))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)


def test_of_200_sentences_in_20_languages_97_of_100_are_told() -> None:
    """Measured with all its languages in docs/adr/0021-which-library-tells-languages.md."""
    lines = (
        (Path(__file__).parent / "language_sentences.txt").read_text(encoding="utf-8").splitlines()
    )
    pairs = [line.split("\t") for line in lines]
    wrong = [(code, detect_language(text)["language"], text) for code, text in pairs]
    wrong = [one for one in wrong if one[0] != one[1]]
    assert len(pairs) == 200
    assert len(wrong) <= 6, wrong


@pytest.mark.parametrize("text", ["Quay", "asdf qwer zxcv", "hello"])
def test_what_is_hardly_likely_is_not_told(text: str) -> None:
    found = detect_language(text)
    assert found["language"] == "und" or found["confidence"] >= 0.15  # type: ignore[operator]
    assert found["reliable"] is False

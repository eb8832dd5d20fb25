"""Addresses, links, dates, amounts and versions."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.official.extract import find_entities
from cogcli.sdk import Refused


def values(text: str, kind: str) -> list[str]:
    found: Any = find_entities(text, kinds=[kind])["entities"]
    return [entity["value"] for entity in found]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (
            "email",
            "Write to a.b+c@mail.example.org, or x@y.example.",
            ["a.b+c@mail.example.org", "x@y.example"],
        ),
        ("email", "@handle a@b a@b. user@host", []),
        ("url", "See https://a.example/x?y=1#z. (http://b.example/c_(d)) www.c.example!", None),
        ("date", "2026-05-18, 5 June 2026, June 5th, 2026, the 1st of May 2025", None),
        ("date", "2026-05-189 12026-05-18 May 2026 5 Juni 2026", []),
        ("money", "$5, €1,900.50, US$ 3 million, 240 EUR, GBP 12", None),
        ("money", "5 apples, R$x, 12 dollarsigns", []),
        ("percent", "35%, -2.5 %, 7 percent, 100%", ["35%", "-2.5 %", "7 percent", "100%"]),
        ("version", "v4.2.0, 1.2.3-rc.1, 10.0.0.1, 4.2", ["v4.2.0", "1.2.3-rc.1"]),
    ],
)
def test_a_pattern_finds_what_it_is_sure_of(
    kind: str, text: str, expected: list[str] | None
) -> None:
    wanted = {
        "url": ["https://a.example/x?y=1#z", "http://b.example/c_(d))", "www.c.example"],
        "date": ["2026-05-18", "5 June 2026", "June 5th, 2026", "1st of May 2025"],
        "money": ["$5", "€1,900.50", "US$ 3 million", "240 EUR", "GBP 12"],
    }
    assert values(text, kind) == (wanted[kind] if expected is None else expected)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("5 June 2026", "2026-06-05"),
        ("Sept 30, 2026", "2026-09-30"),
        ("1st of May 2025", "2025-05-01"),
    ],
)
def test_a_date_is_also_given_as_iso(text: str, iso: str) -> None:
    assert find_entities(text, ["date"])["entities"] == [
        {"type": "date", "value": text, "start": 0, "end": len(text), "iso": iso}
    ]


def test_a_day_the_calendar_does_not_know_has_no_iso() -> None:
    found: Any = find_entities("Due 31 April 2026")["entities"]
    assert "iso" not in found[0]


def test_places_point_into_the_text() -> None:
    text = "日本 5 June 2026 and ops@norvik.example"
    found: Any = find_entities(text)["entities"]
    assert [text[e["start"] : e["end"]] for e in found] == ["5 June 2026", "ops@norvik.example"]


def test_nothing_is_found_twice() -> None:
    found: Any = find_entities("https://user@norvik.example/v1.2.3?on=2026-05-18")["entities"]
    assert [entity["type"] for entity in found] == ["url"]


def test_counts_tell_what_the_list_leaves_out() -> None:
    found = find_entities("1% 2% 3%", max_entities=2)
    assert len(found["entities"]) == 2  # type: ignore[arg-type]
    assert found["counts"]["percent"] == 3  # type: ignore[index]
    assert found["truncated"] is True


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(Refused, match="unknown kind 'people'"):
        find_entities("text", ["people"])


def test_empty_text_has_no_entities() -> None:
    assert find_entities("")["entities"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Yesterday Maria Berg met the Harbour Board in Oslo.",
            ["Maria Berg", "Harbour Board", "Oslo"],
        ),
        ("The harbour opens at six. Ships wait in the bay on Monday.", []),
        ("Der Hafen hat ein Tor und eine Glocke und ein Boot und ein Haus.", []),
        ("", []),
    ],
)
def test_names_are_guessed_by_their_capitals_and_say_so(text: str, expected: list[str]) -> None:
    found: Any = find_entities(text, ["name"])["entities"]
    assert [entity["value"] for entity in found] == expected
    assert all(
        entity["guess"] is True and entity["value"] == text[entity["start"] : entity["end"]]
        for entity in found
    )

"""Text made safe for terminals."""

from __future__ import annotations

import json

import pytest

from cogcli.base.terminal_text import (
    cells,
    pad,
    shorten_middle,
    truncate,
    visible,
    visible_block,
    visible_json,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80", "\\udc80"),
        ("naïve ✓ 日本", "naïve ✓ 日本"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_block_keeps_its_lines() -> None:
    assert visible_block("a\n\tb\x1b") == "a\n\tb\\x1b"


def test_json_reads_the_same_and_hides_nothing() -> None:
    value = {"a": "\x9b\u202e\U000e0041é"}
    text = visible_json(json.dumps(value, ensure_ascii=False))
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert "é" in text
    assert json.loads(text) == value


def test_columns_are_those_of_a_terminal() -> None:
    assert cells("日本") == 4
    assert cells("e\u0301") == 1
    assert pad("日", 4) == "日  "


def test_text_is_cut_at_the_end_and_names_in_the_middle() -> None:
    assert truncate("abcdef", 4) == "abc…"
    assert truncate("日本語", 4) == "日…"
    assert shorten_middle("pythoncall:summarizer", 11) == "pytho…rizer"
    assert shorten_middle("short", 10) == "short"

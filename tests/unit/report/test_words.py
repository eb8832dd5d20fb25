"""Durations, times and ids as they are shown."""

from __future__ import annotations

import time

import pytest

from cogcli.base.system import encode_ulid
from cogcli.report.humanize import duration, fuzzy_time, short_episode, short_trace, size


@pytest.mark.parametrize(
    ("ms", "text"),
    [(None, ""), (0, "0ms"), (18, "18ms"), (1840, "1.84s"), (12_340, "12.3s"), (59_999, "1m00s"),
     (125_000, "2m05s"), (11_520_000, "3h12m")],
)  # fmt: skip
def test_durations(ms: int | None, text: str) -> None:
    assert duration(ms) == text


def test_an_episode_is_named_by_its_beginning_but_for_lines_of_a_batch() -> None:
    """Lines of one batch share what is usually shown, so that a command with it would fit several."""
    assert short_episode("ep_01M8FKJR9X6JF77MHAJC92DAWE") == "ep_01M8FKJR9X6J"
    first, second = f"ep_{encode_ulid(1, 1 << 40 | 7)}", f"ep_{encode_ulid(1, 2 << 40 | 7)}"
    assert (short_episode(first), short_episode(second)) == (first, second)


def test_times_near_now_are_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    now = "2026-11-20T22:58:00.000000Z"
    assert fuzzy_time("2026-11-20T09:12:30.5Z", now) == "today 09:12"
    assert fuzzy_time("2026-11-19T23:59:59Z", now) == "yesterday 23:59"
    assert fuzzy_time("2026-03-02T01:00:00Z", now) == "2 Mar 01:00"
    assert fuzzy_time("2025-03-02T01:00:00Z", now) == "2025-03-02"
    assert fuzzy_time("nonsense", now) == "nonsense"


def test_only_generated_trace_ids_are_shortened() -> None:
    assert short_trace("7f3a91c2" * 4) == "7f3a91c2"
    assert short_trace("order-1") == "order-1"


def test_sizes() -> None:
    assert [size(n) for n in (12, 5200, 61_000, 12_000_000)] == ["12 B", "5.2 kB", "61 kB", "12 MB"]

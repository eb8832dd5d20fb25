"""A run as bars on a time axis."""

from __future__ import annotations

from fakes.risk_review import risk_review

from cogcli.episode.history import history_of
from cogcli.report.styled_text import ASCII, UNICODE, plain_text, width
from cogcli.report.timeline import rows, timeline


def lines(
    columns: int | None = 88, *, only: str = "", glyphs: object = UNICODE, until: int = 100
) -> list[str]:
    found = timeline(history_of(risk_review(until=until)), glyphs, width=columns, only=only)  # type: ignore[arg-type]
    return [plain_text(line) for line in found]


def test_bars_stand_where_their_step_began_and_are_as_long_as_it_took() -> None:
    assert lines() == [
        "              0s    0.5s  1.0s  1.5s  2.0s",
        "  ✓ fetch     █████                         412ms",
        "  ✓ clean          █                         18ms",
        "  ✓ risks          ████████████████████     1.63s",
        "  ✓ entities       ███████████              902ms",
        "  ✗ score                              ██   204ms",
    ]


def test_without_a_terminal_nothing_is_cut() -> None:
    assert lines(None) == lines(88)


def test_no_row_exceeds_the_width() -> None:
    for columns in range(20, 121):
        for line in timeline(history_of(risk_review()), UNICODE, width=columns):
            assert width(line) <= columns, (columns, plain_text(line))


def test_a_narrow_terminal_keeps_names_and_times() -> None:
    assert lines(24)[0] == "  ✓ fetch  412ms"


def test_ascii_bars_are_bars() -> None:
    text = "\n".join(lines(88, glyphs=ASCII))
    assert text.isascii()
    assert "#####" in text


def test_a_step_that_runs_reaches_to_the_last_event() -> None:
    assert lines(until=10)[3].endswith("10ms…")


def test_one_step_shows_what_is_inside_it() -> None:
    assert [line.split()[1] for line in lines(only="risks")[1:]] == ["risks", "risks/extract"]


def test_nothing_began_is_nothing_shown() -> None:
    assert lines(until=2) == []
    assert lines(until=0) == []


def test_rows_tell_start_and_length_in_milliseconds() -> None:
    assert rows(history_of(risk_review()))[2] == {
        "step_id": "risks",
        "status": "done",
        "start_ms": 430,
        "ms": 1630,
    }

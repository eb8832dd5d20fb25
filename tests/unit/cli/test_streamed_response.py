"""What a conversation shows of replies while they are written (docs/reference/agent-run.md#streaming)."""

from __future__ import annotations

import pytest

from cogcli.cli.streamed_response import StreamedResponse
from cogcli.cli.streams import Screen


def test_a_draft_ends_its_line_and_the_next_reply_is_shown_as_it_grows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = StreamedResponse(Screen({}))
    for response in ("", "", "Loo", "Looking.", "", "It ", "It is 12", "It is 12 days old."):
        shown(response)
    assert shown.close("It is 12 days old.")
    assert capsys.readouterr().err == "Looking.\nIt is 12 days old.\n"


def test_what_was_never_shown_is_still_to_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    shown = StreamedResponse(Screen({}))
    for response in ("", "Half an ans", ""):
        shown(response)
    assert not shown.close("Another answer.")
    assert capsys.readouterr().err == "Half an ans\n"


def test_blanks_that_a_reply_loses_are_no_reason_to_write_it_again() -> None:
    shown = StreamedResponse(Screen({}))
    shown(" It is 12 days old. \n")
    assert shown.close("It is 12 days old.")

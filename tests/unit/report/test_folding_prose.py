"""A message that is wider than the terminal breaks at blanks (docs/reference/command-line.md#colour)."""

from __future__ import annotations

import pytest

from cogcli.base.terminal_text import cells
from cogcli.report.styled_text import StyledLine, fold_prose, plain_text


def folded(line: StyledLine, width: int = 40) -> list[str]:
    return [plain_text(each) for each in fold_prose(line, width)]


def test_a_message_goes_on_below_its_code() -> None:
    line = [
        ("error[usage.flag]", "error"),
        (": `run` has no flag `--inputfile`; did you mean `--input`?", "bold"),
    ]
    assert folded(line) == [
        "error[usage.flag]: `run` has no flag",
        "  `--inputfile`; did you mean `--input`?",
    ]  # fmt: skip


def test_a_folded_line_ends_without_blanks_in_colour_too() -> None:
    """A blank behind the last column would begin a line of its own on the terminal."""
    line = [("error[usage.flag]", "error"), (": four four four four five5 more words", "bold")]
    for width in range(30, 44):
        for row in fold_prose(line, width):
            assert not "".join(text for text, _ in row).endswith(" ")
            assert sum(cells(text) for text, _ in row) <= width


def test_a_text_goes_on_below_itself() -> None:
    line = [("  expected  ", "dim"), ("an id or its beginning, @last, @failed or a directory", "")]
    assert folded(line) == [
        "  expected  an id or its beginning,",
        "            @last, @failed or a",
        "            directory",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "next: cogcli run text.brief -p 'text=A first sentence. A second one.'",
        "for one run: --bind text.content.summarize=python_text_content_summarize_lead",
        "  help  export OPENAI_API_KEY=... in the shell that runs the command",
    ],
)
def test_a_line_with_a_command_never_breaks(text: str) -> None:
    assert folded([(text, "")]) == [text]


def test_no_line_is_wider_and_no_word_is_lost_or_broken() -> None:
    words = [f"{'x' * (n % 11 + 1)}{'船' * (n % 3)}" for n in range(200)]
    for width in (20, 33, 80):
        lines = folded([("  ", ""), (" ".join(words), "dim")], width)
        assert max(map(cells, lines)) <= width
        assert " ".join(lines).split() == words


def test_a_word_wider_than_the_terminal_stays_whole() -> None:
    assert folded([(f"see {'x' * 50} there", "")]) == ["see", "x" * 50, "there"]

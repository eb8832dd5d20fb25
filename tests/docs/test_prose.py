"""The prose check counts what a reader stumbles over, and no page has a banned term (docs/contributing.md#style)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tooling"))
import prose  # noqa: E402

PLAIN = {
    "cogcli/episode/verify/check.py": "all hashes match, but anyone who can write to the folder could have",
    "cogcli/cli/command_help.py": "usage error; nothing ran",
    "docs/cli.md": "environment, project or episode unusable",
    "cogcli/cli/typer_app.py": "unexpected argument `",
    "cogcli/run/answers.py": "no pending approval is called `",
    "cogcli/cli/commands/config_trust.py": "this folder is trusted, including later changes",
    "cogcli/declarations/options.py": "minimum conformance of bindings",
    "docs/reference/gallery.md": "Unreadable pages are reported, never invented.",
    "docs/tutorial.md": "A project's code runs only once you trust it",
    "docs/how-to/resume.md": "# Resume a stopped run",
    "docs/how-to/come-from-agent-skills.md": "# Come from agent-skills",
}


@pytest.mark.sampled(6)
def test_no_page_and_no_help_has_a_banned_term(capsys: pytest.CaptureFixture[str]) -> None:
    assert prose.main() == 0
    assert capsys.readouterr().out.startswith("prose: ")


def test_terms_are_found_where_they_stand_and_code_is_left_out() -> None:
    text = prose._without_code(
        "One.\n\n```sh\nasked wrongly\n```\n`asked wrongly` is code.\nIt was asked wrongly by whoever.\n"
    )
    found = list(prose.find_terms("page", text))
    assert [(one.line, one.term.banned) for one in found] == [(7, True), (7, False)]


def test_a_sentence_of_many_words_is_counted() -> None:
    long = "word " * prose.MOST_WORDS + "more."
    assert prose.long_sentences(f"{long} Short one.\n\n{long}\n\n| {long} |\n") == 2


@pytest.mark.parametrize(("file", "words"), PLAIN.items())
def test_the_plain_words_are_in_use(file: str, words: str) -> None:
    assert words in " ".join((ROOT / file).read_text(encoding="utf-8").split())

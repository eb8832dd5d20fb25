"""Nothing cites a document that is not in the repository: who reads a comment can follow it."""

from __future__ import annotations

import re

import pytest
from test_citations import ROOT, texts

_FOREIGN = re.compile(
    r"(?<![\w/-])(?:execution|protocols|formats|episode|quality|registry|cognition|agent|scale|origins|house|names)\.md\b"
    r"|(?<![\w/-])cli\.md[ ,]+\d"
    r"|\[seed\]|\bseed's\b|\b(?:the|by|of|in) seed\b(?! \()|(?<= )\(seed[,)]"
    r"|\b(?:runner-guide|cognitive-core|cognitive-state-v1|cogency-state|state-json)\b"
    r"|\brule: (?:\d|formats \d|episode,|seed\b)"
)
"""Files that were read while this was built, and the ways in which they used to be cited."""
_MAY_CITE = re.compile(
    r"\.md|seed|runner-guide|cognitive-core|cognitive-state-v1|cogency-state|state-json|rule: "
)
"""What each of them contains: few lines do, and the whole pattern takes long."""
_IS_LINK = re.compile(r"\]\([\w./-]*$")


def foreign(text: str) -> list[str]:
    """The citations of documents that are elsewhere; links between pages are none."""
    return [
        f"{number}: {found[0]}"
        for number, line in enumerate(text.split("\n"), 1)
        if _MAY_CITE.search(line)
        for found in _FOREIGN.finditer(line)
        if not _IS_LINK.search(line, 0, found.start())
    ]


def test_no_citation_of_a_document_that_is_not_here() -> None:
    pages = {ROOT / "docs/contributing.md", *(ROOT / "docs/reference").glob("*.md")}
    found = [
        f"{path.relative_to(ROOT)}:{place}"
        for path, text in texts().items()
        if path.name != "test_no_foreign_citations.py" and path not in pages
        for place in foreign(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "(formats.md 10, ref.*)",
        "(cli.md 2, 4)",
        "a rule [seed]",
        "the seed's fields",
        "rule: 2 reads",
    ],
)
def test_the_old_ways_are_told(text: str) -> None:
    assert foreign(f"one line\n{text}")[0].startswith("2: ")


@pytest.mark.parametrize(
    "text",
    [
        "docs/reference/episode.md#events",
        "docs/cli.md is generated",
        "[plan](../reference/episode.md#plan)",
        "--seed N",
    ],
)
def test_what_is_here_may_be_cited(text: str) -> None:
    assert not foreign(text)

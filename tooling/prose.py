"""Count words and sentences of the documentation and of help that a reader stumbles over (docs/contributing.md#style).

`python tooling/prose.py` prints how often each word of the list occurs, and how many sentences are too long; `--places`
prints where. These figures are a gauge. Only banned words make it end with 1: the documents have none of them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from cogcli.cli.app import COMMANDS
from cogcli.cli.command_help import commands_text, help_text

ROOT: Final = Path(__file__).resolve().parent.parent
LEFT_OUT: Final = (
    "docs/adr/",
    "docs/changelog.md",
    "docs/cli.md",
    "docs/contributing.md",
    "docs/reference/gallery.md",
    "docs/reference/real-files.md",
)
"""History, pages that are generated, and the one that names these words."""
MOST_WORDS: Final = 25
"""Words of a sentence that is read in one go."""


class Term(NamedTuple):
    """A pattern, what to write instead, and whether no document may have it."""

    pattern: str
    instead: str
    banned: bool = False


TERMS: Final = (
    Term(r"asked wrongly", "usage error", banned=True),
    Term(r"not fit for|are not fit\b", "unusable", banned=True),
    Term(r"tool of the runner guide|runner guide's (?:own )?tool", "agent-skills", banned=True),
    Term(r"told, not made up", "reported, never invented", banned=True),
    Term(r"whatever it holds", "including later changes", banned=True),
    Term(
        r"what survives what|least profile",
        "which crashes the log survives, minimum conformance",
        banned=True,
    ),
    Term(r"gone on with|went on with", "resumed", banned=True),
    Term(r"whoever", "the user, the approver"),
    Term(r"nobody|somebody", "no user, a user; name the role"),
    Term(r"(?:go|goes|going) on with", "resume, continue"),
    Term(r"(?:is|are) told", "is reported"),
    Term(r"what is there|that is there", "what exists"),
    Term(r"beside", "next to, with"),
    Term(r"in place of", "instead of"),
    Term(r"as (?:it is|they are)(?= |[.,;:)])", "unchanged"),
    Term(r"such as are|of which|where none", "name the thing"),
    Term(r"(?<!there )(?:is|are) no (?=[a-z])(?!longer|more)", "is not a"),
)


class Found(NamedTuple):
    """A place, and what was found there."""

    where: str
    line: int
    term: Term


def pages() -> Iterator[tuple[str, str]]:
    """Name and prose of each page, then of the help; without code and tables' marks."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        name = str(path.relative_to(ROOT))
        if not name.startswith(LEFT_OUT):
            yield name, _without_code(path.read_text(encoding="utf-8"))
    yield "help", "\n".join([commands_text(), *map(help_text, COMMANDS)])


def _without_code(text: str) -> str:
    """The text with blocks of code as empty lines, and code spans as one word."""
    text = re.sub(
        r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.M | re.S
    )
    return re.sub(r"`[^`\n]*`", "X", text)


def find_terms(name: str, text: str) -> Iterator[Found]:
    """Each term of the list in a text."""
    for number, line in enumerate(text.splitlines(), 1):
        for term in TERMS:
            for _ in re.finditer(rf"\b(?:{term.pattern})", line, re.I):
                yield Found(name, number, term)


def long_sentences(text: str) -> int:
    """How many sentences have more than `MOST_WORDS` words; tables and headings are none."""
    paragraphs = re.split(r"\n\s*\n|\n(?=[-*\d] )", text)
    prose = [each for each in paragraphs if not each.lstrip().startswith(("|", "#", "<"))]
    sentences = (
        one for each in prose for one in re.split(r"(?<=[.!?])\s+", " ".join(each.split()))
    )
    return sum(len(sentence.split()) > MOST_WORDS for sentence in sentences)


def main() -> int:
    """Print the figures; exit code 1 where a banned term is used."""
    found: list[Found] = []
    too_long = 0
    for name, text in pages():
        found += find_terms(name, text)
        too_long += long_sentences(text) if name != "help" else 0
    banned = [one for one in found if one.term.banned]
    for one in found if "--places" in sys.argv[1:] else banned:
        print(f"{one.where}:{one.line}: {one.term.pattern} -> {one.term.instead}")
    if "--places" in sys.argv[1:]:
        for term, count in Counter(one.term for one in found).most_common():
            print(f"{count:5}  {term.pattern}")
    print(
        f"prose: {len(found)} words of the list, {too_long} sentences above {MOST_WORDS} words, {len(banned)} banned"
    )
    return 1 if banned else 0


if __name__ == "__main__":
    sys.exit(main())

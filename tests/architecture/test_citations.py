"""Every page, anchor and decision that code, tests, tooling and documents cite is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("cogcli", "tests", "tooling", "docs")
SUFFIXES = (".py", ".md", ".yaml", ".toml", ".txt")
REFERENCE = sorted((ROOT / "docs/reference").glob("*.md"))
RULES = [page for page in REFERENCE if page.name not in ("README.md", "failures.md")]
"""The pages that hold rules: one lists the pages, one is generated."""
_CITED = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]*)?")
_CITED_BY_TESTS = re.compile(r"\bdocs/[\w/-]+\.md#[\w-]*")
"""Without an anchor it may be a file of a test's own project."""
_LINK = re.compile(r"\]\((?!https?:)([^)\s]*?)(#[\w-]*)?\)")
_DECISION = re.compile(r"\bADR (\d+)")
_ANCHOR = re.compile(r'^<a id="([a-z0-9-]+)"></a>$', re.MULTILINE)
_HEADING = re.compile(r"^#{2,6} (.+)$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def texts() -> dict[Path, str]:
    """The text files of the project, but for the registry that an installed package holds."""
    found = [
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES
    ]
    kept = [path for path in found if "registry" not in path.relative_to(ROOT).parts[:2]]
    return {
        path: path.read_text(encoding="utf-8", errors="replace")
        for path in sorted([*kept, ROOT / "README.md", ROOT / "pyproject.toml"])
        if path.is_file()
    }


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a page can be cited at: explicit anchors, and headings as GitHub names them."""
    text = _CODE_BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = (
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(text)
    )
    return frozenset([*_ANCHOR.findall(text), *headings])


def cited_in(path: Path, text: str) -> list[str]:
    """The pages that a file cites, with their anchors."""
    pattern = _CITED_BY_TESTS if path.is_relative_to(ROOT / "tests") else _CITED
    return pattern.findall(text)


def unresolved(place: Path, page: Path, anchor: str) -> Iterator[str]:
    """What of a citation at `place` is not there; nothing where all of it is."""
    said = f"{place.relative_to(ROOT)}: {page}#{anchor}"
    if not page.exists():
        yield f"{said}: no such file"
    elif anchor and anchor not in anchors(page):
        yield f"{said}: no such anchor"


def test_every_cited_page_and_anchor_exists() -> None:
    lost = [
        said
        for path, text in texts().items()
        for cited in sorted(set(cited_in(path, text)))
        for said in unresolved(path, ROOT / cited.partition("#")[0], cited.partition("#")[2])
    ]
    assert not lost, "\n".join(lost)


def test_every_link_between_documents_leads_somewhere() -> None:
    lost = [
        said
        for path, text in texts().items()
        if path.suffix == ".md"
        for target, anchor in _LINK.findall(_CODE_BLOCK.sub("", text))
        for said in unresolved(
            path,
            (path.parent / target).resolve() if target else path,
            anchor[1:] if ".md" in target or not target else "",
        )
    ]
    assert not lost, "\n".join(lost)


def test_every_cited_decision_exists() -> None:
    decisions = {int(page.name[:4]) for page in (ROOT / "docs/adr").glob("[0-9]*.md")}
    lost = [
        f"{path.relative_to(ROOT)}: ADR {number}"
        for path, text in texts().items()
        for number in sorted(set(map(int, _DECISION.findall(text))))
        if number not in decisions
    ]
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("page", RULES, ids=lambda page: page.stem)
def test_every_heading_of_a_page_of_rules_has_an_anchor_of_its_own(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    bare = [
        line
        for before, line in pairwise(lines)
        if line.startswith("##") and not _ANCHOR.match(before)
    ]
    assert not bare
    ids = _ANCHOR.findall("\n".join(lines))
    assert ids
    assert not [name for name, count in Counter(ids).items() if count > 1]


@pytest.mark.parametrize(
    "page", [page for page in REFERENCE if page.name != "README.md"], ids=lambda page: page.stem
)
def test_every_page_of_the_reference_is_listed(page: Path) -> None:
    assert f"({page.name})" in (ROOT / "docs/reference/README.md").read_text(encoding="utf-8")


def test_an_anchor_or_page_that_is_not_there_is_told(tmp_path: Path) -> None:
    here = ROOT / "README.md"
    assert [*unresolved(here, ROOT / "docs/reference/skill.md", "config")] == []
    assert "no such anchor" in "".join(unresolved(here, ROOT / "docs/reference/skill.md", "cnofig"))
    assert "no such file" in "".join(unresolved(here, tmp_path / "skill.md", "config"))

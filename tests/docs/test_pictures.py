"""The pictures of README and tutorial show what the commands print today."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from support.project import Project

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tooling"))
import pictures  # noqa: E402


def test_the_pictures_are_drawn_again_the_same(ordinary_path: Path, warm_cache: Path) -> None:
    drawn = pictures.pictures(Project(ordinary_path, warm_cache))
    stale = [
        name
        for name, text in drawn.items()
        if text != (pictures.PICTURES / name).read_text(encoding="utf-8")
    ]
    assert stale == [], "run python tooling/pictures.py"
    for text in drawn.values():
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "response.missing" in drawn["failure.svg"]


def test_every_picture_that_a_document_shows_is_there_with_its_words() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for words, name in re.findall(r"!\[(.*?)\]\((.*?)\)", page.read_text(encoding="utf-8")):
            assert words, (page, name)
            assert (page.parent / name).is_file(), (page, name)
    assert (pictures.PICTURES / "page.png").read_bytes().startswith(b"\x89PNG")

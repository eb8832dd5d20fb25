"""A page of `report`, read back as a browser would: its tags must close, and nothing in it may run or load anything."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "img", "link"}
_DRAWN = {"rect", "line", "path"}


class ReadPage(HTMLParser):
    """The texts and attributes of a page. Raises AssertionError for a tag that does not close."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.headings: list[str] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _DRAWN, tag
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1] == tag, f"</{tag}> closes <{self._open[-1]}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            return
        self._texts.append(data)
        if {"h1", "h2"} & set(self._open):
            self.headings[-1] += data

    @property
    def text(self) -> str:
        """All that is read, spaces folded."""
        return re.sub(r"\s+", " ", " ".join(self._texts))


def read_page(html: str) -> ReadPage:
    """The page, after what holds of every page was checked: it is whole, and nothing in it runs, loads or is styled but
    by its one style sheet."""
    page = ReadPage(html)
    assert "script" not in {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        bad = [
            name
            for name in attributes
            if name == "style" or name.startswith("on") or name in ("src", "srcset")
        ]
        assert not bad, (tag, attributes)
        assert all(
            attributes[name].startswith("#")
            for name in ("href", "xlink:href")
            if name in attributes
        )
    assert [tag for tag, _ in page.tags].count("style") == 1
    style = html.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(
        a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)), "an id stands twice"
    return page

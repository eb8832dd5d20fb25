"""The readable part of the HTML text of a page. Nothing is fetched."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from cogcli.official.confined import run_confined_function
from cogcli.official.hidden_text import remove_hidden
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bs4 import BeautifulSoup
    from bs4.element import PageElement, Tag

_MAX_CHARACTERS = 1024 * 1024
_MAX_LINKS = 500
_MAX_LINK_TEXT = 200
_ARTICLE = 250
"""Characters below which what was found as the article of a page is rather a remark."""
_DEEPEST = 200
"""Elements inside one another, above which trafilatura's parser, which calls itself, is not asked."""
_UNREAD = frozenset(("nav", "form", "head", "title", "textarea", "select", "datalist", "button"))
_FOLLOWED = ("", "http", "https", "mailto")
_LINE = "\0"
_PARAGRAPH = "\0\0"
# What stands before and after the text of an element; other elements run on in the line.
_AROUND = {
    **{f"h{level}": (f"{_PARAGRAPH}{'#' * level} ", _PARAGRAPH) for level in range(1, 7)},
    **dict.fromkeys(
        ("p", "div", "section", "article", "blockquote", "pre"), (_PARAGRAPH, _PARAGRAPH)
    ),
    **dict.fromkeys(
        ("main", "aside", "header", "footer", "ul", "ol", "table"), (_PARAGRAPH, _PARAGRAPH)
    ),
    **dict.fromkeys(
        ("address", "fieldset", "details", "dialog", "hgroup"), (_PARAGRAPH, _PARAGRAPH)
    ),
    **dict.fromkeys(("summary", "caption", "figcaption", "legend"), (_LINE, _LINE)),
    **dict.fromkeys(("br", "hr", "tr", "dl", "dt", "dd", "figure"), (_LINE, "")),
    "li": (f"{_LINE}- ", ""),
    "td": ("", " "),
    "th": ("", " "),
}


def extract_content(content: str) -> dict[str, object]:
    """Return the readable text of a page as Markdown-like lines, with its title, language and
    links.

    Scripts, styles, navigation, forms and hidden elements are left out. If the page has `main` or
    exactly one `article`, that is read; otherwise its recognized article, or all of it. Links keep
    their address as written; only http, https, mailto and relative ones are listed, each once.
    """
    require_page_size(content)
    return run_confined_function("web:read_page", content=content.encode("utf-8", "surrogatepass"))


def require_page_size(content: str) -> None:
    """Raise Refused for a page of more than 1 Mi characters."""
    if len(content) > _MAX_CHARACTERS:
        raise Refused(
            "too-large", f"page of {len(content)} characters; at most {_MAX_CHARACTERS} are read"
        )


def read_page(content: bytes) -> dict[str, object]:
    """Return the result of `extract_content` for a page in UTF-8. Runs in a confined process."""
    return read_text_of_page(content.decode("utf-8", "surrogatepass"))


def read_text_of_page(content: str) -> dict[str, object]:
    """Return the result of `extract_content` for the text of a page. Call it in a confined process
    only.
    """
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(_without_open_tag(content), "html.parser")
    remove_hidden(soup)
    articles = [] if soup.find("main") else soup.find_all("article", limit=2)
    root = soup.find("main") or (articles[0] if len(articles) == 1 else None)
    text, links, depth = _read_element(root or soup)
    article = "" if root or depth > _DEEPEST or len(text) < _ARTICLE else _recognize_article(soup)
    heading = re.search(r"^#{1,6} (.+)$", text, re.MULTILINE)
    title = _one_line(soup.title.get_text()) if soup.title else heading[1] if heading else ""
    language = str(soup.html.get("lang", "")) if soup.html else ""
    return {"text": article or text, "title": title, "language": language, "links": links}


def _recognize_article(soup: BeautifulSoup) -> str:
    """Return the article that trafilatura recognizes in a page; empty without one, or without the
    library.
    """
    try:
        import trafilatura
    except ModuleNotFoundError as error:
        if error.name != "trafilatura":
            raise
        return ""
    found = trafilatura.extract(
        str(soup),
        output_format="markdown",
        include_formatting=True,
        include_comments=False,
        include_tables=True,
    )
    return found.strip() if found and len(found) >= _ARTICLE else ""


def _without_open_tag(html: str) -> str:
    # The parser looks again and again for the end of a tag that has none; after the last ">" none can end. The
    # line end keeps the library from taking a short text for a file name.
    head, mark, tail = html.replace("\0", "").rpartition(">")
    return f"{head}{mark}{tail.replace('<', '&lt;')}\n"


def _read_element(root: Tag) -> tuple[str, list[dict[str, str]], int]:
    """Return the text and links of an element, and its depth."""
    from bs4.element import NavigableString, Tag

    parts: list[str] = []
    links: dict[str, str] = {}
    depth = 0
    # A stack instead of recursion: pages may nest deeper than Python calls do.
    open_elements: list[tuple[Iterator[PageElement], str]] = [(iter(root.contents), "")]
    while open_elements:
        children, closing = open_elements[-1]
        node = next(children, None)
        if node is None:
            parts.append(closing)
            open_elements.pop()
        elif isinstance(node, Tag) and node.name not in _UNREAD:
            opening, closing = _AROUND.get(node.name, ("", ""))
            parts.append(opening)
            open_elements.append((iter(node.contents), closing))
            depth = max(depth, len(open_elements))
            _add_link(node, links)
        elif type(node) is NavigableString:
            parts.append(node)
    lines = map(_one_line, "".join(parts).split(_LINE))
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return text, [{"href": href, "text": link_text} for href, link_text in links.items()], depth


def _add_link(element: Tag, links: dict[str, str]) -> None:
    href = str(element.get("href") or "").strip() if element.name == "a" else ""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]{0,20}):|", href)
    if href and len(links) < _MAX_LINKS and scheme and (scheme[1] or "").lower() in _FOLLOWED:
        text = _one_line(" ".join(islice(element.stripped_strings, 10)))
        links.setdefault(href, text[:_MAX_LINK_TEXT])


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""Removes the elements of a page that a reader never sees, because they may hold instructions for a
model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bs4 import BeautifulSoup
    from bs4.element import Tag

_HIDING = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0{1,9})?\s*(?:[;!%]|$)"
    r"|(?:font-size|(?:max-)?(?:width|height))\s*:\s*0(?:px|em|rem|pt|%)?\s*(?:[;!]|$)|color\s*:\s*transparent"
    r"|font-size\s*:\s*(?:[01]?\.\d{1,9}|1)(?:px|pt)\s*(?:[;!]|$)|font-size\s*:\s*0?\.0\d{0,9}(?:em|rem)\s*(?:[;!]|$)"
    r"|transform\s*:[^;]{0,80}\bscale[xy]?\(\s*0(?:\.0{1,9})?\s*[,)]|filter\s*:[^;]{0,80}\bopacity\(\s*0(?:\.0{1,9})?%?\s*\)"
    r"|(?:left|right|top|bottom|text-indent|margin-left|margin-top)\s*:\s*-\d{3,9}"
    r"|clip\s*:\s*rect\(\s*0|clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0))",
    re.IGNORECASE,
)
_COLOURS = re.compile(
    r"(?:^|;)\s*(color|background(?:-color)?)\s*:\s*([^;]{1,80}?)\s*(?=;|$)", re.IGNORECASE
)
_SELECTOR = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]{0,40})?(?:[.#][A-Za-z_-][\w-]{0,80})?")
_MAX_STYLE = 4000
_UNSEEN = frozenset(("script", "style", "noscript", "template", "svg", "iframe", "object"))
_VOID = frozenset(
    ("br", "hr", "img", "meta", "link", "input", "wbr", "source", "area", "base", "col")
)


def remove_hidden(soup: BeautifulSoup) -> None:
    """Remove the elements that the page hides: by kind of element, attribute, own style, or a page
    rule.

    Only rules with plain selectors count; rules inside `@media` and external style sheets are not
    followed.
    """
    selectors = {
        each for style in soup.find_all("style") for each in _hiding_selectors(style.get_text())
    }
    for tag in list(_hidden_elements(soup, selectors)):
        tag.extract()


def _hidden_elements(soup: BeautifulSoup, selectors: set[str]) -> Iterator[Tag]:
    """Yield the hidden elements that are not inside another hidden one."""
    from bs4.element import Tag

    pending: list[Tag] = [soup]
    while pending:
        for child in pending.pop().contents:
            if isinstance(child, Tag) and child.name not in _VOID:
                if _is_hidden(child, selectors):
                    yield child
                else:
                    pending.append(child)


def _is_hidden(tag: Tag, selectors: set[str]) -> bool:
    if (
        tag.name in _UNSEEN
        or tag.has_attr("hidden")
        or str(tag.get("aria-hidden", "")).lower() == "true"
    ):
        return True
    if tag.name == "dialog" and not tag.has_attr("open"):
        return True
    if _is_hiding_style(str(tag.get("style") or "")):
        return True
    return bool(selectors) and not selectors.isdisjoint(_selectors_of(tag))


def _is_hiding_style(style: str) -> bool:
    if len(style) > _MAX_STYLE:
        return True
    style_text = _without_comments(style)
    return _HIDING.search(style_text) is not None or _is_invisible(style_text)


def _is_invisible(style: str) -> bool:
    """Return whether a style gives the text the color of its background."""
    colours = {name.lower(): value.lower() for name, value in _COLOURS.findall(style)}
    ground = colours.get("background-color", colours.get("background"))
    return ground is not None and _normalize_colour(ground) == _normalize_colour(
        colours.get("color", "")
    )


def _normalize_colour(declared: str) -> str:
    """Return the normal form of a color: `#fff`, `white` and `rgb(255,255,255)` become `ffffff`."""
    colour = re.sub(r"[\s#]", "", declared.removesuffix("!important"))
    if parts := re.fullmatch(r"rgba?\((\d{1,3}),(\d{1,3}),(\d{1,3})(?:,1)?\)", colour):
        return "".join(f"{int(part):02x}" for part in parts.groups())
    colour = {"white": "ffffff", "black": "000000"}.get(colour, colour)
    return "".join(digit * 2 for digit in colour) if len(colour) == 3 else colour


def _without_comments(style: str) -> str:
    return "".join(
        part.partition("*/")[2] if n else part for n, part in enumerate(style.split("/*"))
    )


def _selectors_of(tag: Tag) -> Iterator[str]:
    """Yield the plain selectors that match an element."""
    classes = tag.get("class") or ()
    parts = [f".{name}" for name in (classes.split() if isinstance(classes, str) else classes)]
    if tag.get("id"):
        parts.append(f"#{tag.get('id')}")
    yield tag.name
    for part in parts:
        yield part
        yield f"{tag.name}{part}"


def _hiding_selectors(sheet: str) -> Iterator[str]:
    """Yield the plain selectors of the rules that hide elements, outside of any `@` block."""
    outer, selector, body = 0, "", ""
    for part in re.split(r"([{}])", _without_comments(sheet)):
        if part == "{":
            outer += 1
            selector, body = body.rpartition(";")[2], ""
        elif part == "}":
            if outer == 1 and _is_hiding_style(body[:_MAX_STYLE]):
                yield from (
                    each.strip() for each in selector.split(",") if _is_plain_selector(each.strip())
                )
            outer, body = max(0, outer - 1), ""
        else:
            body = part


def _is_plain_selector(selector: str) -> bool:
    return (
        bool(selector)
        and selector.lower() not in ("html", "body")
        and bool(_SELECTOR.fullmatch(selector))
    )

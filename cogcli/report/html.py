"""The page as HTML: one file without script, network or style attribute (docs/reference/command-line.md#page). Every
text is made visible and escaped where the template writes it, once; drawings are escaped where they are drawn."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from cogcli.base.terminal_text import LONGEST_SHOWN, visible_block
from cogcli.report.humanize import count_of
from cogcli.report.page import Page
from cogcli.report.page_comparison import PageComparison
from cogcli.report.page_values import ValueLimit
from cogcli.report.styled_text import style_of
from cogcli.report.svg import page_file, style_sheet

LARGEST: Final = 2_000_000
"""Bytes that a page may have; values are cut shorter until it fits."""
_LEAST: Final = 64
_ROOM: Final = 8_000_000
"""Bytes of values that are given out at first."""


def html_page(
    build: Callable[[ValueLimit], list[Page]],
    *,
    version: str,
    events: int,
    comparison: PageComparison | None = None,
) -> bytes:
    """The page of what `build` gives for a limit of values: 4 KB each, less where the page would be too large. A first
    guess comes from the number of `events`."""
    style = style_sheet("colours", "page", "drawing")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    template = _template()
    common = {"style": style, "style_hash": digest, "version": version, "comparison": comparison}
    most = min(LONGEST_SHOWN, max(_LEAST, _ROOM // max(1, events)))
    while True:
        pages = build(ValueLimit(most))
        title = "; ".join(f"{page.title}: {page.outcome.lower()}" for page in pages)
        data = template.render(common, pages=pages, title=title).encode("utf-8")
        if len(data) <= LARGEST or most <= _LEAST:
            return data
        most = max(_LEAST, min(most // 2, most * LARGEST // len(data)))


@cache
def _template() -> Template:
    """The template, compiled once: that takes longer than most pages."""
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(page_file),
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"drawn": Markup, "words": _words}
    environment.globals |= {"tone_of": style_of, "count_of": count_of}
    return environment.get_template("page.html.j2")


def _words(text: str) -> Markup:
    """A sentence of ours, what stands in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(visible_block(text)))))  # noqa: S704


def _visible(value: Any) -> Any:
    """Control and bidi characters of a text as `\\x1b`, before it is escaped."""
    return visible_block(value) if type(value) is str else value
